//! A box in which engines are disturbed, and what they may do there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::objects::{KINDS, Kind, definitions, target};
use crate::testenv::apply::{apply, established};
use crate::testenv::chart::install_retention_crds;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::retention::{NAMESPACE, SERVICE_ACCOUNT, install_chart_rbac};

/// A kind that engines may delete and that a case may define.
const TO_COME: Kind = ("visits.e2e.trainjob.dev", "v1", "Visit", "visits");

/// What keeps a box running: the box itself, or more that acts in it.
pub type Testbed = dyn AsRef<Cluster> + Send + Sync;

/// A box without an engine.
pub struct Ground {
    testbed: Arc<Testbed>,
    kinds: &'static [Kind],
    credentials: PathBuf,
}

impl Ground {
    /// Starts a box in which nothing acts, with all of [`KINDS`].
    pub async fn start() -> Result<Self> {
        let cluster = Cluster::start(Options::bare()).await?;
        let client = cluster.client().await?;
        let defined = apply(&client, "default", definitions()).await?;
        established(&client, &defined).await?;
        Self::within(Arc::new(cluster), &KINDS).await
    }

    /// A box that is there, with these kinds. Engines have the rights that the chart gives them.
    pub async fn within(testbed: Arc<Testbed>, kinds: &'static [Kind]) -> Result<Self> {
        let cluster = (*testbed).as_ref();
        install_retention_crds(&cluster.client().await?).await?;
        let targets: Vec<_> = kinds.iter().chain([&TO_COME]).map(target).collect();
        install_chart_rbac(cluster, &targets).await?;
        let credentials = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        Ok(Self { testbed, kinds, credentials })
    }

    /// The box.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        (*self.testbed).as_ref()
    }

    /// The kinds that policies are about in it.
    pub(super) const fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    /// What an engine proves with who it is.
    pub(super) fn credentials(&self) -> &Path {
        &self.credentials
    }
}
