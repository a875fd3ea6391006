//! Traps 3 and 5: a write that arrives after its writer was replaced, and a watch that stands still.

use anyhow::{Result, ensure};
use e2e::accounting::{Accounting, becomes_final, holds};
use e2e::fixtures::COMPLETES;
use e2e::proxy::{Call, Fault};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, nodes, own_box::OwnBox, released};

#[tokio::test]
async fn a_store_that_is_delayed_past_its_successor_counts_nothing_twice() -> Result<()> {
    let OwnBox { program: _first, proxy, direct, world, .. } = OwnBox::proxied("Exact").await?;
    world
        .test("delayed", async |tenant| {
            let namespace = tenant.namespace.clone();
            let stores = move |call: &Call| {
                call.verb == "update"
                    && call.resource == "trainjobrecords"
                    && call.namespace == namespace
            };
            let store = proxy.inject(stores, 1..=1, Fault::HoldRequest);
            tenant.create("delayed", COMPLETES, nodes(4)).await?;
            store.reached().await?;
            // The first cannot renew its Lease, and what it has sent is on its way for ever.
            let leases = |call: &Call| call.resource == "leases";
            let renewals = proxy.inject(leases, 1..=usize::MAX, Fault::HoldRequest);
            let second = Accounting::short_lived(&world.cluster, SETTINGS, direct).await?;
            second.leads().await?;
            let status = becomes_final(tenant, "delayed").await?;
            let succeeded = PodCounts { succeeded: 4, ..PodCounts::default() };
            ensure!(status.totals.pods == succeeded, "{status:#?}");
            store.release();
            renewals.remove();
            released(tenant, "delayed").await?;
            let status = becomes_final(tenant, "delayed").await?;
            ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn ag5_a_leader_whose_watch_of_pods_stands_still_counts_nothing_twice() -> Result<()> {
    let OwnBox { program: first, proxy, proxied, world, .. } = OwnBox::direct().await?;
    // The second stands by, and its watch of Pods stops while the first counts.
    let pods = |call: &Call| call.verb == "watch" && call.resource == "pods";
    let watch = proxy.inject(pods, 1..=usize::MAX, Fault::FreezeWatch);
    let second = Accounting::short_lived(&world.cluster, SETTINGS, proxied).await?;
    world
        .test("frozen", async |tenant| {
            tenant.create("frozen", COMPLETES, nodes(4)).await?;
            super::run_held(tenant, "frozen", 4).await?;
            watch.freeze();
            let status = becomes_final(tenant, "frozen").await?;
            let succeeded = PodCounts { succeeded: 4, ..PodCounts::default() };
            ensure!(status.totals.pods == succeeded, "{status:#?}");
            first.kill9();
            second.leads().await?;
            // It has seen these Pods run, and not what became of them.
            tenant
                .patch("frozen", &serde_json::json!({"metadata": {"labels": {"seen": "1"}}}))
                .await?;
            watch.release();
            released(tenant, "frozen").await?;
            let status = becomes_final(tenant, "frozen").await?;
            ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
            ensure!(status.lost.is_empty() && status.settling.is_empty(), "{status:#?}");
            Ok(())
        })
        .await
}
