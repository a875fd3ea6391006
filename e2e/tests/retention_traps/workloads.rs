//! Workloads of the real Kueue, whose own retention is off (R25, R26).

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::faults::retention::{Ground, Place, QUEUED, Testbed, policy};
use e2e::fixtures::{COMPLETES, RUNS};
use e2e::kueue::{Ask, Case, Clock, GPU, QUEUE_LABEL, QueueOptions, Setting, Workload};
use invariants::retention::Terms;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::admission_checks::{answer_check, checked_queue, waits_for_check};
use super::{WINDOW, is_enforcing, ttl};

/// The label of a job whose Workload Kueue deactivates after so many seconds of running.
const MAX_EXEC_TIME: &str = "kueue.x-k8s.io/max-exec-time-seconds";
/// The label of a job that names the Workload it is to have.
const PREBUILT: &str = "kueue.x-k8s.io/prebuilt-workload-name";

/// Runs a test in a namespace with a queue and a place for an engine, and judges it.
pub(crate) async fn test(
    setting: &Arc<Setting>,
    prefix: &str,
    options: QueueOptions,
    body: impl AsyncFnOnce(&Case<'_>, &Place) -> Result<()>,
) -> Result<()> {
    let testbed: Arc<Testbed> = Arc::<Setting>::clone(setting);
    let ground = Arc::new(Ground::within(testbed, &QUEUED).await?);
    setting
        .test(prefix, options, async move |case| {
            let place = Place::within(ground, case.tenant.namespace.clone()).await?;
            // On the heap: the future of a long test is large.
            Box::pin(body(case, &place)).await?;
            place.judge(&Terms::default()).await?;
            Ok(())
        })
        .await
}

/// A policy that deletes Workloads a second after their end, once their job is over; with `delete: Owner` for what Kueue has
/// deactivated, or not.
pub(crate) fn workloads(takes_owner: bool) -> Value {
    let mut workloads = policy("workloads", "Workload", &ttl(1));
    workloads["spec"]["owned"] = json!("AfterOwner");
    let deactivated = json!({
        "name": "deactivated", "match": {"outcomes": ["Deactivated"]},
        "delete": if takes_owner { "Owner" } else { "Object" }, "action": ttl(1),
    });
    workloads["spec"]["rules"] = json!([deactivated, {"name": "rest", "action": ttl(1)}]);
    workloads
}

/// Submits a job whose Workload Kueue deactivates two seconds after it has started it.
pub(crate) async fn submit_limited(case: &Case<'_>, name: &str) -> Result<()> {
    let mut labels = case.queue.labels("low");
    labels[MAX_EXEC_TIME] = json!("2");
    case.submit_labelled(name, RUNS, &labels, Ask::low(1), json!({})).await?;
    Ok(())
}

/// Does that, and waits until Kueue has.
async fn given_up(case: &Case<'_>, name: &str) -> Result<Workload> {
    submit_limited(case, name).await?;
    let is_given_up = |it: &Workload| {
        let reason = it.reason("Evicted").unwrap_or_default();
        it.0.data["spec"]["active"] == false && reason.starts_with("DeactivatedDueTo")
    };
    let workload = case.workload_is(name, "deactivated", is_given_up).await?;
    case.tenant.becomes(name, "Suspended").await?;
    Ok(workload)
}

/// A Job and the Workload that it names, of which it does not have as many Pods. Kueue says `OutOfSync` and does not run it.
async fn out_of_sync(case: &Case<'_>) -> Result<()> {
    let resources = json!({"requests": {"cpu": "1", GPU: "1"}, "limits": {"cpu": "1", GPU: "1"}});
    let container = json!({"name": "main", "image": "none", "resources": resources});
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let mut labels = case.queue.labels("low");
    labels[PREBUILT] = json!("prebuilt");
    let pod_sets = json!([{"name": "main", "count": 3, "template": template}]);
    let workload = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "prebuilt"},
        "spec": {"queueName": labels[QUEUE_LABEL], "podSets": pod_sets},
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "out-of-sync", "labels": labels},
        "spec": {"template": template, "suspend": true},
    });
    apply(&case.tenant.client, &case.tenant.namespace, vec![workload, job]).await?;
    let is_over = |it: &Workload| it.reason("Finished") == Some("OutOfSync");
    case.workload_is("out-of-sync", "out of sync", is_over).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_goes_only_where_its_job_does_not_run_again_and_with_its_job_if_that_is_given_up()
-> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    test(&setting, "workloads", QueueOptions::default(), async |case, place| {
        case.submit("done", COMPLETES, Ask::low(1), json!({})).await?;
        out_of_sync(case).await?;
        let kept = given_up(case, "given-up").await?;
        case.tenant.completes("done").await?;
        place.apply(workloads(false)).await?;
        place.launch().await?;
        case.workload_is_gone("done").await?;
        place
            .status("workloads", |it| {
                let counts = &it["counts"];
                counts["needsOwner"] == 1 && counts["owned"] == 1
            })
            .await?;
        place.asks_for_nothing_more(WINDOW).await?;
        ensure!(case.workload("done").await?.is_none(), "a finished job has a Workload again");
        let there = case.workload("given-up").await?.context("its Workload is gone")?;
        ensure!(there.0.uid() == kept.0.uid(), "it has another Workload");
        let job = case.tenant.jobs.get("given-up").await?;
        ensure!(job.spec.suspend == Some(true), "a job that was given up runs again");

        place.apply(workloads(true)).await?;
        case.both_gone("given-up").await?;
        ensure!(case.workload("out-of-sync").await?.is_some(), "its job would run again");
        case.tenant.jobs.get("done").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_of_a_job_that_kueue_cannot_start_stays() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    let checked = checked_queue(&setting).await?;
    test(&setting, "refused", checked, async |case, place| {
        case.submit("refused", RUNS, Ask::low(1), json!({})).await?;
        let workload = waits_for_check(case, "refused").await?;
        // It contradicts the node selector of the flavor.
        let update = json!({
            "name": workload.0.data["spec"]["podSets"][0]["name"],
            "nodeSelector": {"type": "other"},
        });
        answer_check(case, &workload, "Ready", json!([update])).await?;
        let is_over = |it: &Workload| it.reason("Finished") == Some("FailedToStart");
        case.workload_is("refused", "given up", is_over).await?;

        place.apply(workloads(true)).await?;
        place.launch().await?;
        place.status("workloads", |it| is_enforcing(it) && it["counts"]["owned"] == 1).await?;
        place.asks_for_nothing_more(WINDOW).await?;
        ensure!(place.deletions() == 0, "{} deletions", place.deletions());
        let there = case.workload("refused").await?.context("its Workload is gone")?;
        ensure!(there.0.uid() == workload.0.uid(), "it has another Workload");
        Ok(())
    })
    .await
}
