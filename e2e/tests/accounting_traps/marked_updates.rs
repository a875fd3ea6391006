//! Trap 28: suspended JobSets that are marked are updated, by us, and after an operator that does not know the mark.
//!
//! What such an operator, of an earlier version of this repository, and Kubeflow Trainer make of them is shown by
//! `cargo acceptance --only handover`.

use anyhow::{Result, ensure};
use e2e::accounting::marked::{
    Mark, PODS, change, is_marked, is_updated, marks, patch, paused, queued, resume,
};
use e2e::accounting::{Counted, becomes_final, holds, reasons, start_operator};
use e2e::fixtures::{PATIENCE, Tenant};
use e2e::until::until_ok;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;
use trainjob_api::lifecycle::v1alpha1::{TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL};

use super::{SETTINGS, judged, judged_in, no_pods, run_held};

/// Waits until all Pods of a job have completed, and sees that they and those of before, which were suspended, count.
async fn completes(tenant: &Tenant<'_>, job: &str, suspended: u64) -> Result<()> {
    tenant.becomes(job, "Complete").await?;
    let status = becomes_final(tenant, job).await?;
    let expected = PodCounts { succeeded: PODS, deleted: suspended, ..PodCounts::default() };
    ensure!(status.totals.pods == expected, "{job}: {status:#?}");
    ensure!(holds(&status, "Exact") && status.lost.is_empty(), "{job}: {status:#?}");
    // It is one attempt: nothing has failed.
    ensure!(status.totals.restarts == 0, "{job}: {status:#?}");
    Ok(())
}

#[tokio::test]
async fn am3_a_suspended_job_set_that_is_updated_keeps_its_mark_and_all_its_pods_count()
-> Result<()> {
    judged("updated", async |tenant| {
        let queued = queued(tenant, "queued").await?;
        let paused = paused(tenant, "paused").await?;
        for (job, before, suspended) in [("queued", queued, 0), ("paused", paused, PODS)] {
            // Nobody forges a mark either.
            let forged = json!({"team": "b", TRAIN_JOB_UID_LABEL: "forged"});
            change(tenant, job, &forged).await?;
            is_updated(tenant, job, &before).await?;
            is_marked(tenant, job).await?;
            resume(tenant, job).await?;
            completes(tenant, job, suspended).await?;
            is_marked(tenant, job).await?;
        }
        Ok(())
    })
    .await
}

/// An affinity, which JobSet lets nobody change.
fn preferring(zone: &str) -> Value {
    let zone = json!({"key": "zone", "operator": "In", "values": [zone]});
    let term = json!({"weight": 1, "preference": {"matchExpressions": [zone]}});
    json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})
}

#[tokio::test]
async fn am3_a_change_that_job_set_does_not_take_leaves_the_mark_or_makes_it_anew() -> Result<()> {
    judged("fixed", async |tenant| {
        let never_ran = queued(tenant, "queued").await?;
        let ran = paused(tenant, "paused").await?;
        for job in ["queued", "paused"] {
            patch(tenant, job, &json!({"spec": {"affinity": preferring("a")}})).await?;
        }
        until_ok("the JobSet that never ran is made anew", PATIENCE, || async {
            let job_set = tenant.has_job_set("queued").await?;
            ensure!(job_set.uid() != never_ran.uid(), "it is still the same");
            Ok(())
        })
        .await?;
        tenant.tells("paused", "ChangeNotApplied").await?;
        ensure!(tenant.has_job_set("paused").await?.uid() == ran.uid(), "it was made anew");
        for (job, suspended) in [("queued", 0), ("paused", PODS)] {
            is_marked(tenant, job).await?;
            resume(tenant, job).await?;
            run_held(tenant, job, usize::try_from(PODS)?).await?;
            tenant.delete(job).await?;
            no_pods(tenant, job).await?;
            let status = becomes_final(tenant, job).await?;
            let deleted = PodCounts { deleted: PODS + suspended, ..PodCounts::default() };
            ensure!(status.totals.pods == deleted && holds(&status, "Exact"), "{status:#?}");
            let before = (suspended > 0).then_some(("Suspended", suspended));
            let expected: Vec<_> = [("Stopped", PODS)].into_iter().chain(before).collect();
            ensure!(reasons(&status) == expected, "{status:#?}");
        }
        Ok(())
    })
    .await
}

/// What an operator leaves that replaces all labels: the finalizer alone, by which nobody finds a Pod.
async fn takes_our_labels(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    let label = |name: &str| {
        let labels = "/spec/replicatedJobs/0/template/spec/template/metadata/labels";
        json!({"op": "remove", "path": format!("{labels}/{}", name.replace('/', "~1"))})
    };
    let edit = json!([label(TRAIN_JOB_NAME_LABEL), label(TRAIN_JOB_UID_LABEL)]);
    let edit = Patch::Json::<()>(serde_json::from_value(edit)?);
    let edited = tenant.job_sets.patch(job, &PatchParams::default(), &edit).await?;
    ensure!(Mark::of(&edited) == Mark::unlabelled(), "{:?}", Mark::of(&edited));
    Ok(())
}

#[tokio::test]
async fn am3_half_a_mark_that_another_operator_has_left_is_made_whole() -> Result<()> {
    let counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let world = &counted.world;
    judged_in(&counted, "half", async |tenant| {
        let queued = queued(tenant, "queued").await?;
        let paused = paused(tenant, "paused").await?;
        world.stop_operator().await?;
        for job in ["queued", "paused"] {
            takes_our_labels(tenant, job).await?;
        }
        start_operator(world, "Exact").await?;
        for (job, before, suspended) in [("queued", queued, 0), ("paused", paused, PODS)] {
            change(tenant, job, &json!({})).await?;
            until_ok(format!("the mark of {job} is whole"), PATIENCE, || async {
                let (expected, found) = marks(tenant, job).await?;
                ensure!(found == expected, "{found:?}");
                Ok(())
            })
            .await?;
            is_updated(tenant, job, &before).await?;
            resume(tenant, job).await?;
            completes(tenant, job, suspended).await?;
        }
        Ok(())
    })
    .await
}
