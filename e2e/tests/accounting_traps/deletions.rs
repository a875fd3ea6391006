//! Traps 12 and 19: Pods, Jobs, JobSets and TrainJobs are deleted, by force and in every way of propagation.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::accounting::{becomes_final, holds, reasons, status};
use e2e::apply::apply;
use e2e::fixtures::{PATIENCE, RUNS, Tenant, runtime};
use e2e::until::until_ok;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PropagationPolicy};
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;
use trainjob_api::time::Timestamp;

use super::{judged, no_pods, nodes, others_come, run_held};

fn deleted(count: u64) -> PodCounts {
    PodCounts { deleted: count, ..PodCounts::default() }
}

#[tokio::test]
async fn a_train_job_that_is_deleted_in_any_way_leaves_a_record_and_no_pod() -> Result<()> {
    judged("deleted", async |tenant| {
        let ways = [
            ("background", PropagationPolicy::Background),
            ("foreground", PropagationPolicy::Foreground),
        ];
        for (job, _) in &ways {
            tenant.create(job, RUNS, nodes(2)).await?;
        }
        for (job, propagation) in ways {
            run_held(tenant, job, 2).await?;
            let params =
                DeleteParams { propagation_policy: Some(propagation), ..DeleteParams::default() };
            tenant.jobs.delete(job, &params).await?;
            tenant.gone(job).await?;
            no_pods(tenant, job).await?;
            let status = becomes_final(tenant, job).await?;
            ensure!(status.outcome == "Deleted", "{status:#?}");
            ensure!(status.totals.pods == deleted(2), "{status:#?}");
            ensure!(holds(&status, "Exact") && status.settling.is_empty(), "{status:#?}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn ag12_pods_of_a_train_job_that_was_orphaned_are_counted_by_their_labels() -> Result<()> {
    judged("orphaned", async |tenant| {
        tenant.create("orphaned", RUNS, nodes(2)).await?;
        run_held(tenant, "orphaned", 2).await?;
        let orphan = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Orphan),
            ..DeleteParams::default()
        };
        tenant.jobs.delete("orphaned", &orphan).await?;
        tenant.gone("orphaned").await?;
        // Its Pods run on, so the record is not final.
        until_ok("the record says that it is gone", PATIENCE, || async {
            let status = status(tenant, "orphaned").await?;
            ensure!(status.outcome == "Deleted" && !holds(&status, "Final"), "{status:#?}");
            Ok(())
        })
        .await?;
        tenant.delete_job_set("orphaned").await?;
        no_pods(tenant, "orphaned").await?;
        let status = becomes_final(tenant, "orphaned").await?;
        ensure!(status.totals.pods == deleted(2) && holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_of_the_job_set_that_is_deleted_is_made_anew_and_all_pods_are_counted() -> Result<()>
{
    judged("job", async |tenant| {
        tenant.create("twice", RUNS, nodes(2)).await?;
        let first = run_held(tenant, "twice", 2).await?;
        let jobs: Api<Job> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
        for job in jobs.list(&ListParams::default()).await? {
            jobs.delete(&job.name_any(), &DeleteParams::foreground()).await?;
        }
        others_come(tenant, "twice", &first, PATIENCE).await?;
        run_held(tenant, "twice", 2).await?;
        tenant.delete("twice").await?;
        let status = becomes_final(tenant, "twice").await?;
        ensure!(status.totals.pods == deleted(4) && holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_that_is_deleted_by_force_is_counted_and_goes() -> Result<()> {
    judged("forced", async |tenant| {
        tenant.create("forced", RUNS, nodes(1)).await?;
        let [pod] = &run_held(tenant, "forced", 1).await?[..] else {
            anyhow::bail!("not one Pod");
        };
        tenant.pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
        no_pod(tenant, pod).await?;
        let status = becomes_final(tenant, "forced").await?;
        let PodCounts { active, succeeded, failed, deleted } = status.totals.pods;
        ensure!((active, succeeded, failed + deleted) == (0, 0, 1), "{status:#?}");
        ensure!(holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}

/// A runtime whose Pods run, and of which nothing is reported any more once they are deleted.
const UNREPORTED: &str = "unreported";

#[tokio::test]
async fn ae1_a_pod_that_is_deleted_by_force_and_never_reported_is_counted_after_ten_seconds()
-> Result<()> {
    judged("unreported", async |tenant| {
        let silent = json!({"e2e.trainjob.dev/sigterm": "unreported"});
        let unreported = runtime(UNREPORTED, &silent, 3, None);
        apply(&tenant.client, "default", vec![unreported]).await?;
        tenant.create("silent", UNREPORTED, nodes(1)).await?;
        let pod = run_held(tenant, "silent", 1).await?.pop().context("no Pod")?;
        let since = Instant::now();
        let forced = DeleteParams::default().grace_period(0);
        let deleted = tenant.pods.delete(&pod.name_any(), &forced).await?.left();
        let deleted = deleted.context("it went at once, though it is held")?;
        no_pod(tenant, &pod).await?;
        // The deletion is a whole second, cut off.
        ensure!(since.elapsed() >= Duration::from_secs(9), "it went after {:?}", since.elapsed());
        let status = becomes_final(tenant, "silent").await?;
        ensure!(reasons(&status) == [("Stopped", 1)] && holds(&status, "Exact"), "{status:#?}");
        // It has the ten seconds only to be reported, and is not charged for them.
        let conditions = pod.status.iter().flat_map(|it| it.conditions.iter().flatten());
        let mut bound = conditions.filter(|it| it.type_ == "PodScheduled");
        let bound = bound.find_map(|it| it.last_transition_time.clone()).context("not bound")?;
        let end = deleted.metadata.deletion_timestamp.context("it is not deleted")?;
        let seconds = Timestamp::from(&end).since(Timestamp::from(&bound));
        ensure!(i64::try_from(status.totals.gpu_seconds)? == seconds, "{seconds}: {status:#?}");
        Ok(())
    })
    .await
}

async fn no_pod(tenant: &Tenant<'_>, pod: &Pod) -> Result<()> {
    until_ok("the Pod is gone", PATIENCE, || async {
        let found = tenant.pods.get_opt(&pod.name_any()).await?;
        ensure!(found.is_none_or(|found| found.uid() != pod.uid()), "it is there");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_that_was_never_scheduled_goes_at_once_and_costs_nothing() -> Result<()> {
    judged("waiting", async |tenant| {
        // No node has so many GPUs.
        let mut spec = nodes(1);
        spec["trainer"]["resourcesPerNode"]["limits"]["nvidia.com/gpu"] = "64".into();
        tenant.create("waiting", RUNS, spec).await?;
        let pod = until_ok("there is a Pod", PATIENCE, || async {
            let pod = tenant.pods_of("waiting").await?.pop();
            pod.ok_or_else(|| anyhow::anyhow!("there is none"))
        })
        .await?;
        tenant.pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
        tenant.becomes("waiting", "Failed").await?;
        let status = becomes_final(tenant, "waiting").await?;
        ensure!(status.totals.pods == deleted(1), "{status:#?}");
        ensure!(status.totals.gpu_seconds == 0 && holds(&status, "Exact"), "{status:#?}");
        let attempts = status.replicated_jobs.iter().flat_map(|job| &job.attempts);
        let reasons: Vec<_> = attempts.flat_map(|it| it.sums.reasons.keys()).collect();
        ensure!(reasons == ["NeverScheduled"], "{reasons:?}");
        Ok(())
    })
    .await
}
