//! Trap 33: the right to write records is taken, and given back.

use anyhow::{Result, ensure};
use e2e::accounting::{Counted, becomes_final, grant_all_but, holds, status};
use e2e::fixtures::{PATIENCE, RUNS};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use invariants::accounting::Terms;
use kube::ResourceExt;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, no_pods, nodes, run_held};

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
