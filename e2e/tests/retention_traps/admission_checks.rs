//! An admission check of Kueue, which a test answers in place of a controller.

use anyhow::Result;
use e2e::apply::apply;
use e2e::fixtures::status::now;
use e2e::kueue::{Case, QueueOptions, Setting, Workload};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

/// Its name.
const CHECK: &str = "e2e-check";

/// A queue whose Workloads must pass it.
pub(super) async fn checked_queue(setting: &Setting) -> Result<QueueOptions> {
    let client = setting.world.cluster.client().await?;
    let check = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
        "metadata": {"name": CHECK}, "spec": {"controllerName": "e2e.trainjob.dev/check"},
    });
    apply(&client, "default", vec![check]).await?;
    let is_active = json!({"status": {"conditions": [{
        "type": "Active", "status": "True", "reason": "Active", "message": "",
        "lastTransitionTime": Time::from(now()),
    }]}});
    let kind = e2e::recorder::kind("kueue.x-k8s.io", "v1beta2", "AdmissionCheck");
    let checks: Api<DynamicObject> = Api::all_with(client, &kind);
    checks.patch_status(CHECK, &PatchParams::default(), &Patch::Merge(is_active)).await?;
    Ok(QueueOptions { admission_checks: vec![CHECK.to_owned()], ..QueueOptions::default() })
}

/// Waits until the Workload of a job waits for its check.
pub(super) async fn waits_for_check(case: &Case<'_>, job: &str) -> Result<Workload> {
    let waits = |it: &Workload| {
        it.is("QuotaReserved") && it.0.data["status"]["admissionChecks"][0]["state"] == "Pending"
    };
    case.workload_is(job, "waiting for its check", waits).await
}

/// Answers the check of a Workload with this state and, if it is `Ready`, with these updates of its Pods.
pub(super) async fn answer_check(
    case: &Case<'_>,
    workload: &Workload,
    state: &str,
    updates: Value,
) -> Result<()> {
    let mut check = json!({
        "name": CHECK, "state": state, "message": "", "lastTransitionTime": Time::from(now()),
    });
    if !updates.is_null() {
        check["podSetUpdates"] = updates;
    }
    let answer = Patch::Merge(json!({"status": {"admissionChecks": [check]}}));
    let (name, how) = (workload.0.name_any(), PatchParams::default());
    case.workloads.patch_status(&name, &how, &answer).await?;
    Ok(())
}
