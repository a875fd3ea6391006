//! Trap 33: the right to write records is taken, and given back.

use anyhow::{Context, Result, bail, ensure};
use e2e::accounting::{
    Counted, NAMESPACE, SERVICE_ACCOUNT, becomes_final, grant_all_but, holds, records, status,
};
use e2e::fixtures::{PATIENCE, RUNS, Tenant};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use invariants::accounting::Terms;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use trainjob_api::lifecycle::v1alpha1::record::{PodCounts, TrainJobRecord};

use super::{SETTINGS, no_pods, nodes, run_held};

/// Waits until the program may not write the record of a job: what has become of rights takes effect a moment later.
async fn is_refused(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    let cluster = &tenant.world.cluster;
    let program = cluster.service_account_client(NAMESPACE, SERVICE_ACCOUNT).await?;
    let api: Api<TrainJobRecord> = Api::namespaced(program, &tenant.namespace);
    let only_tried = PostParams { dry_run: true, ..PostParams::default() };
    until_ok("the program is refused", PATIENCE, || async {
        let record = records(tenant, job).await?.pop().context("there is no record")?;
        match api.replace_status(&record.name_any(), &only_tried, &record).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 403 => Ok(()),
            Err(error) => bail!(error),
            Ok(_) => bail!("it is still allowed"),
        }
    })
    .await
}

#[tokio::test]
async fn ah2_without_the_right_to_write_records_pods_are_let_go_and_told_of_when_it_is_back()
-> Result<()> {
    let counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let cluster = &counted.world.cluster;
    let recorder = AccountingRecorder::start(cluster.client().await?).await?;
    counted
        .test("rights", async |tenant| {
            tenant.create("taken", RUNS, nodes(2)).await?;
            let pods = run_held(tenant, "taken", 2).await?;
            until_ok("the record tells of them", PATIENCE, || async {
                let status = status(tenant, "taken").await?;
                ensure!(status.totals.pods.active > 0, "{status:#?}");
                Ok(())
            })
            .await?;
            grant_all_but(cluster, Some("trainjobrecords/status")).await?;
            is_refused(tenant, "taken").await?;
            tenant.delete("taken").await?;
            no_pods(tenant, "taken").await?;
            grant_all_but(cluster, None).await?;
            let status = becomes_final(tenant, "taken").await?;
            ensure!(status.lost.get("RecordUnwritable") == Some(&2), "{status:#?}");
            ensure!(status.totals.pods == PodCounts::default(), "{status:#?}");
            ensure!(!holds(&status, "Exact"), "{status:#?}");
            let excused = pods.iter().filter_map(ResourceExt::uid).collect();
            let terms = Terms { excused, ..Terms::default() };
            recorder.judge(&[&tenant.namespace], &[], &terms).await
        })
        .await
}
