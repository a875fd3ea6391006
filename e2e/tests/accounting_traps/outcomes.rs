//! Traps 17 and 18, and a deadline: Pods that nothing is wrong with are stopped.

use anyhow::{Result, ensure};
use e2e::accounting::{become_older, becomes_final, holds, reasons, status};
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::{MPI, PATIENCE, RUNS, Tenant};
use e2e::until::until_ok;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use trainjob_api::conditions;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{judged, nodes, run_held};

/// Waits until each of these Pods of a job is being deleted, or gone.
async fn are_stopped(tenant: &Tenant<'_>, job: &str, pods: &[Pod]) -> Result<()> {
    until_ok("its Pods are stopped", PATIENCE, || async {
        let there = tenant.pods_of(job).await?;
        let is_one = |pod: &Pod| pods.iter().any(|it| it.uid() == pod.uid());
        let goes_on = |pod: &&Pod| is_one(pod) && pod.metadata.deletion_timestamp.is_none();
        let left = there.iter().filter(goes_on).count();
        ensure!(left == 0, "{left} are not");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_is_resumed_as_soon_as_it_is_suspended_has_one_attempt_and_counts_all_pods()
-> Result<()> {
    judged("hasty", async |tenant| {
        tenant.create("hasty", RUNS, nodes(2)).await?;
        for round in 1..=3 {
            let pods = run_held(tenant, "hasty", 2).await?;
            become_older(&pods).await?;
            tenant.patch("hasty", &json!({"spec": {"suspend": true}})).await?;
            tenant.becomes("hasty", "Suspended").await?;
            // Resumed before its JobSet has seen it, it would go on with the same Pods.
            until_ok("its JobSet is suspended", PATIENCE, || async {
                let job_set = tenant.job_sets.get("hasty").await?;
                let conditions = job_set.data.pointer("/status/conditions");
                let is_so = |it: &Value| it["type"] == "Suspended" && it["status"] == "True";
                let is_suspended =
                    conditions.and_then(Value::as_array).is_some_and(|all| all.iter().any(is_so));
                ensure!(is_suspended, "{conditions:?}");
                Ok(())
            })
            .await?;
            are_stopped(tenant, "hasty", &pods).await?;
            tenant.patch("hasty", &json!({"spec": {"suspend": false}})).await?;
            // Suspended again before, it would stay as it was.
            until_ok("it is resumed", PATIENCE, || async {
                let job = tenant.jobs.get("hasty").await?;
                let suspended = conditions::find_true(conditions_of(&job), conditions::SUSPENDED);
                ensure!(suspended.is_none(), "it is suspended");
                Ok(())
            })
            .await?;
            until_ok("its Pods are counted", PATIENCE, || async {
                let status = status(tenant, "hasty").await?;
                ensure!(reasons(&status) == [("Suspended", 2 * round)], "{status:#?}");
                Ok(())
            })
            .await?;
        }
        run_held(tenant, "hasty", 2).await?;
        tenant.delete("hasty").await?;
        let status = becomes_final(tenant, "hasty").await?;
        ensure!(reasons(&status) == [("Stopped", 2), ("Suspended", 6)], "{status:#?}");
        ensure!(status.totals.restarts == 0 && holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pods_of_a_job_that_is_suspended_and_resumed_count_as_suspended_and_wasted() -> Result<()> {
    judged("suspended", async |tenant| {
        tenant.create("suspended", RUNS, nodes(2)).await?;
        let pods = run_held(tenant, "suspended", 2).await?;
        become_older(&pods).await?;
        tenant.patch("suspended", &json!({"spec": {"suspend": true}})).await?;
        until_ok("its Pods are counted", PATIENCE, || async {
            let status = status(tenant, "suspended").await?;
            ensure!(status.totals.pods.deleted == 2, "{status:#?}");
            ensure!(reasons(&status) == [("Suspended", 2)], "{status:#?}");
            Ok(())
        })
        .await?;
        tenant.patch("suspended", &json!({"spec": {"suspend": false}})).await?;
        run_held(tenant, "suspended", 2).await?;
        tenant.delete("suspended").await?;
        let status = becomes_final(tenant, "suspended").await?;
        ensure!(status.totals.pods.deleted == 4 && holds(&status, "Exact"), "{status:#?}");
        // It is one attempt: nothing has failed.
        ensure!(status.totals.restarts == 0, "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pods_that_the_deadline_of_their_job_ends_count_so() -> Result<()> {
    judged("deadline", async |tenant| {
        let mut spec = nodes(2);
        spec["activeDeadlineSeconds"] = json!(20);
        tenant.create("deadline", RUNS, spec).await?;
        run_held(tenant, "deadline", 2).await?;
        tenant.fails_by_deadline("deadline").await?;
        let status = becomes_final(tenant, "deadline").await?;
        ensure!(status.outcome == "DeadlineExceeded", "{status:#?}");
        ensure!(
            status.totals.pods == PodCounts { deleted: 2, ..PodCounts::default() },
            "{status:#?}"
        );
        ensure!(reasons(&status) == [("Deadline", 2)], "{status:#?}");
        ensure!(status.totals.wasted_gpu_seconds == status.totals.gpu_seconds, "{status:#?}");
        tenant.released("deadline").await
    })
    .await
}

#[tokio::test]
async fn nodes_of_mpi_that_are_stopped_after_their_launcher_are_not_wasted() -> Result<()> {
    judged("mpi", async |tenant| {
        tenant.create("mpi", MPI, json!({})).await?;
        tenant.becomes("mpi", "Complete").await?;
        let status = becomes_final(tenant, "mpi").await?;
        let PodCounts { active, succeeded, failed, deleted } = status.totals.pods;
        ensure!((active, failed, succeeded + deleted) == (0, 0, 2), "{status:#?}");
        ensure!(status.totals.wasted.values().all(|seconds| *seconds == 0), "{status:#?}");
        ensure!(status.outcome == "Complete" && holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}
