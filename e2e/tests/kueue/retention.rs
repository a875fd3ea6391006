//! Kueue's own retention beside the TTL.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::{COMPLETES, RUNS, consistently};
use e2e::kueue::Setting;
use e2e::kueue::{Ask, Case, Clock, Kueue, KueueOptions, NAMESPACE, QueueOptions, SERVICE_ACCOUNT};
use e2e::yaml;
use serde_json::{Value, json};

use super::{DEADLINE, KEPT, TTL};

/// The label of a job whose Workload Kueue deactivates after so many seconds of running.
const MAX_EXEC_TIME: &str = "kueue.x-k8s.io/max-exec-time-seconds";

/// The labels of a job that may run for two seconds.
fn limited(case: &Case<'_>) -> Result<Value> {
    let mut labels = case.queue.labels("low");
    let fields = labels.as_object_mut().context("labels are a map")?;
    fields.insert(MAX_EXEC_TIME.to_owned(), json!("2"));
    Ok(labels)
}

fn retention(after_finished: &str, after_deactivated: &str) -> Value {
    json!({"objectRetentionPolicies": {"workloads": {
        "afterFinished": after_finished,
        "afterDeactivatedByKueue": after_deactivated,
    }}})
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_of_kueue_takes_workloads_and_leaves_jobs_to_their_ttl() -> Result<()> {
    let mut setting = Setting::start(Clock::Creation, retention("0s", "0s")).await?;
    setting.test("zero", QueueOptions::default(), zero).await.context("retention of 0")?;
    setting.kueue.stop().await?;
    let options = KueueOptions { config: retention("2s", "2s") };
    setting.kueue = Kueue::start(&setting.world.cluster, options).await?;
    setting.test("seconds", QueueOptions::default(), seconds).await.context("retention of 2 s")?;
    may_delete(&setting).await?;
    setting.test("may", QueueOptions::default(), deactivated_and_deleted).await
}

/// Without a TTL a finished job stays, and its Workload goes at once.
async fn zero(case: &Case<'_>) -> Result<()> {
    case.submit("kept", COMPLETES, Ask::low(4), json!({})).await?;
    case.submit("brief", COMPLETES, Ask::low(4), json!({TTL: 2})).await?;
    case.tenant.completes("kept").await?;
    case.workload_is_gone("kept").await?;
    case.both_gone("brief").await?;
    consistently("the job stays without a Workload", Duration::from_secs(3), async || {
        let job = case.tenant.jobs.get("kept").await?;
        ensure!(job.metadata.deletion_timestamp.is_none(), "it is being deleted");
        ensure!(case.workload("kept").await?.is_none(), "its Workload is back");
        Ok(())
    })
    .await
}

/// What Kueue deactivates has not failed: it is suspended until its deadline. The role of Kueue's release does not let it
/// delete TrainJobs, so that its retention of deactivated Workloads does nothing.
async fn seconds(case: &Case<'_>) -> Result<()> {
    case.submit("kept", COMPLETES, Ask::low(4), json!({})).await?;
    let labels = limited(case)?;
    let both = json!({DEADLINE: 25, TTL: KEPT});
    case.submit_labelled("slow", RUNS, &labels, Ask::low(4), both).await?;
    case.tenant.completes("kept").await?;
    case.workload_is_gone("kept").await?;
    ensure!(case.tenant.jobs.get_opt("kept").await?.is_some(), "Kueue deleted a finished job");
    let workload = case
        .workload_is("slow", "deactivated", |it| {
            it.is("Evicted") && it.0.data.pointer("/spec/active") == Some(&json!(false))
        })
        .await?;
    let reason = workload.reason("Evicted").unwrap_or_default();
    ensure!(reason.starts_with("Deactivated"), "{}", workload.brief());
    case.tenant.becomes("slow", "Suspended").await?;
    case.tenant.fails_by_deadline("slow").await?;
    case.both_gone("slow").await
}

/// With the permission to delete TrainJobs, it does.
async fn deactivated_and_deleted(case: &Case<'_>) -> Result<()> {
    let labels = limited(case)?;
    // It does not finish, so its TTL has no part in this.
    case.submit_labelled("slow", RUNS, &labels, Ask::low(4), json!({TTL: 600})).await?;
    case.both_gone("slow").await
}

/// Gives Kueue the permission that its role lacks.
async fn may_delete(setting: &Setting) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let name = "kueue-deletes-trainjobs";
    let role = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{
            "apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["delete"],
        }],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}],
    });
    // As JSON has it.
    let refused = r#"cannot delete resource \"trainjobs\""#;
    ensure!(setting.kueue.log()?.contains(refused), "Kueue could delete a TrainJob before");
    setting.world.cluster.apply_yaml("default", &yaml::stream(&[role, binding])).await?;
    Ok(())
}
