//! `Observe`: no finalizer holds a Pod until it is counted.

use anyhow::{Result, ensure};
use e2e::accounting::{Accounting, becomes_final, reason};
use e2e::fixtures::{RUNS, Tenant};
use e2e::proxy::{Call, Fault};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, no_pods, nodes, own_box::OwnBox};

fn creates_record(namespace: String) -> impl Fn(&Call) -> bool {
    move |call| {
        (call.verb, call.resource.as_str()) == ("create", "trainjobrecords")
            && call.namespace == namespace
    }
}

async fn goes(tenant: &Tenant<'_>) -> Result<()> {
    tenant.runs("brief").await?;
    tenant.delete("brief").await?;
    tenant.gone("brief").await?;
    no_pods(tenant, "brief").await
}

#[tokio::test]
async fn ag10_pods_that_go_while_their_record_is_made_are_counted_or_told_of_as_lost() -> Result<()>
{
    let OwnBox { program, proxy, proxied, world, .. } = OwnBox::proxied("Observe").await?;
    world
        .test("held", async |tenant| {
            let creation = creates_record(tenant.namespace.clone());
            let held = proxy.inject(creation, 1..=1, Fault::HoldRequest);
            tenant.create("brief", RUNS, nodes(2)).await?;
            held.reached().await?;
            goes(tenant).await?;
            held.remove();
            let status = becomes_final(tenant, "brief").await?;
            let deleted = PodCounts { deleted: 2, ..PodCounts::default() };
            ensure!(status.totals.pods == deleted && status.lost.is_empty(), "{status:#?}");
            ensure!(reason(&status, "Exact") == Some("Observed"), "{status:#?}");
            Ok(())
        })
        .await?;
    world
        .test("killed", async |tenant| {
            let creation = creates_record(tenant.namespace.clone());
            let held = proxy.inject(creation, 1..=1, Fault::HoldReply);
            tenant.create("brief", RUNS, nodes(2)).await?;
            held.reached().await?;
            program.kill9();
            held.remove();
            goes(tenant).await?;
            let again = Accounting::start_as(&world.cluster, SETTINGS, proxied.clone()).await?;
            again.leads().await?;
            let status = becomes_final(tenant, "brief").await?;
            ensure!(status.totals.pods == PodCounts::default(), "{status:#?}");
            ensure!(status.lost == [("Unwatched".to_owned(), 1)].into(), "{status:#?}");
            ensure!(reason(&status, "Exact") == Some("Lost"), "{status:#?}");
            Ok(())
        })
        .await
}
