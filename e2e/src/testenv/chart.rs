//! The Helm chart of the operator, which has everything of the programs but themselves.

use anyhow::Result;
use kube::Client;
use serde_json::Value;

use crate::testenv::apply::{apply, established};
use crate::testenv::{workspace, yaml};

/// Its folder.
pub(crate) const CHART: &str = "charts/trainjob-operator";

/// Installs the chart's custom resource definitions and waits until they are served.
pub async fn install_crds(client: &Client) -> Result<()> {
    install_folder(client, "crds").await
}

/// Installs the chart's definitions of retention policies, and waits until they are served.
pub async fn install_retention_crds(client: &Client) -> Result<()> {
    install_folder(client, "retention-crds").await
}

/// Installs the chart's definition of records, and waits until it is served.
pub async fn install_accounting_crds(client: &Client) -> Result<()> {
    install_folder(client, "accounting-crds").await
}

async fn install_folder(client: &Client, folder: &str) -> Result<()> {
    let texts = workspace::read_all(&format!("{CHART}/files/{folder}"))?;
    let definitions = apply(client, "default", yaml::documents(&texts.join("\n---\n"))?).await?;
    established(client, &definitions).await
}

/// The documents in one of the chart's plain files.
pub(crate) fn file_of_chart(file: &str) -> Result<Vec<Value>> {
    yaml::documents(&workspace::read(&format!("{CHART}/files/{file}"))?)
}
