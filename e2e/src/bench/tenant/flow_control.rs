//! The operator's priority level at the API server, as the chart makes it. The raw client is in it, too.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::super::rig::{RAW, Rig};
use crate::testenv::apply::apply;
use crate::testenv::chart::CHART;
use crate::testenv::fixtures::{PATIENCE, SYSTEM};
use crate::testenv::operator::SERVICE_ACCOUNT;
use crate::testenv::tools::Tools;
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

const TEMPLATE: &str = "templates/flow-control.yaml";
/// In which the API server says how it has classified a request.
const CLASSIFIED: &str = "X-Kubernetes-PF-FlowSchema-UID";

/// Makes the level and waits until the API server knows it.
pub(super) async fn install(rig: &Rig) -> Result<()> {
    rig.progress.step("the operator gets its priority level", 0);
    let tools = Tools::provide(&rig.cluster).await?;
    let chart = workspace::path(CHART).display().to_string();
    let arguments =
        ["template", SERVICE_ACCOUNT, &chart, "--namespace", SYSTEM, "--show-only", TEMPLATE];
    let mut manifests = yaml::documents(&tools.helm_offline(&arguments).await?)?;
    let schema = manifests.iter_mut().find(|it| it["kind"] == "FlowSchema");
    admit_raw(schema.context("the chart has no FlowSchema")?)?;
    let applied = apply(&rig.admin, SYSTEM, manifests).await?;
    let uids: Vec<String> = applied.iter().filter_map(ResourceExt::uid).collect();

    let path = ConfigMap::url_path(&(), Some(RAW));
    until_ok("the raw client has the operator's level", PATIENCE, || async {
        let request = http::Request::get(format!("{path}/none")).body(Body::empty())?;
        let answer = rig.raw.send(request).await?;
        let level = answer.headers().get(CLASSIFIED).context("it was not classified")?;
        ensure!(uids.iter().any(|uid| level == uid.as_str()), "it has another");
        Ok(())
    })
    .await
}

/// The raw client is classified as the operator, by another user.
fn admit_raw(schema: &mut Value) -> Result<()> {
    let subjects = schema.pointer_mut("/spec/rules/0/subjects").and_then(Value::as_array_mut);
    subjects.context("a FlowSchema without subjects")?.push(json!({
        "kind": "ServiceAccount",
        "serviceAccount": {"name": SERVICE_ACCOUNT, "namespace": RAW},
    }));
    Ok(())
}
