//! Traps 24 and 33: records are deleted, their names are taken, and names of TrainJobs are used again.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{becomes_final, holds, reason, records};
use e2e::fixtures::{COMPLETES, PATIENCE, RUNS};
use e2e::until::until_ok;
use invariants::accounting::Terms;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::{
    PodCounts, RecordedJob, TrainJobRecord, TrainJobRecordSpec,
};

use super::{counted, judged, judged_by, no_pods, nodes, run_held};

#[tokio::test]
async fn a_record_that_is_deleted_by_hand_is_made_anew_and_says_that_it_is_not_exact() -> Result<()>
{
    let terms = Terms { records_go: true, ..Terms::default() };
    judged_by(&terms, &*counted().await?, "remade", async |tenant| {
        tenant.create("remade", RUNS, nodes(2)).await?;
        run_held(tenant, "remade", 2).await?;
        let record = until_ok("there is a record", PATIENCE, || async {
            records(tenant, "remade").await?.pop().context("there is none")
        })
        .await?;
        let api: Api<TrainJobRecord> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
        api.delete(&record.name_any(), &DeleteParams::default()).await?;
        until_ok("there is another", PATIENCE, || async {
            let other = records(tenant, "remade").await?.pop().context("there is none")?;
            ensure!(other.uid() != record.uid(), "it is the same");
            Ok(())
        })
        .await?;
        tenant.delete("remade").await?;
        no_pods(tenant, "remade").await?;
        let status = becomes_final(tenant, "remade").await?;
        ensure!(status.totals.pods.deleted == 2, "{status:#?}");
        ensure!(reason(&status, "Exact") == Some("Recreated"), "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_record_whose_name_is_taken_gets_a_longer_one() -> Result<()> {
    judged("taken", async |tenant| {
        let mut spec = nodes(1);
        spec["suspend"] = json!(true);
        let job = tenant.create("taken", COMPLETES, spec).await?;
        let uid = job.metadata.uid.context("no UID")?;
        let short = format!("taken-{}", uid.get(..8).context("a short UID")?);
        let foreign = RecordedJob { name: "other".into(), uid: "other".into(), created_at: None };
        let spec = TrainJobRecordSpec { train_job: foreign, runtime_ref: None, queue: None };
        let api: Api<TrainJobRecord> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
        api.create(&PostParams::default(), &TrainJobRecord::new(&short, spec)).await?;
        tenant.patch("taken", &json!({"spec": {"suspend": false}})).await?;
        let status = becomes_final(tenant, "taken").await?;
        ensure!(status.totals.pods.succeeded == 1 && holds(&status, "Exact"), "{status:#?}");
        let record = records(tenant, "taken").await?.pop().context("no record")?;
        ensure!(record.name_any() == format!("taken-{uid}"), "{}", record.name_any());
        ensure!(api.get(&short).await?.spec.train_job.uid == "other", "it was overwritten");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_name_that_is_used_again_has_a_record_each_time() -> Result<()> {
    judged("again", async |tenant| {
        for count in [1, 2] {
            tenant.create("again", COMPLETES, nodes(count)).await?;
            tenant.becomes("again", "Complete").await?;
            tenant.delete("again").await?;
            tenant.gone("again").await?;
        }
        let all = until_ok("both records are final", PATIENCE, || async {
            let all = records(tenant, "again").await?;
            let is_final = |it: &TrainJobRecord| {
                it.status.as_ref().is_some_and(|status| holds(status, "Final"))
            };
            ensure!(all.len() == 2 && all.iter().all(is_final), "they are not: {all:#?}");
            Ok(all)
        })
        .await?;
        let mut pods: Vec<_> = all
            .iter()
            .filter_map(|record| Some(record.status.as_ref()?.totals.pods.succeeded))
            .collect();
        pods.sort_unstable();
        ensure!(pods == [1, 2], "{all:#?}");
        let none = PodCounts::default();
        ensure!(all.iter().all(|it| it.status.as_ref().is_some_and(|it| it.totals.pods != none)));
        Ok(())
    })
    .await
}
