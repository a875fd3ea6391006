//! Traps 3 to 5: a write that arrives after its writer was replaced, and watches that stand still.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{Accounting, becomes_final, holds};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES, COMPLETES_AFTER, PATIENCE, runtime};
use e2e::proxy::{Call, Fault};
use e2e::until::until_ok;
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, nodes, own_box::OwnBox, released, run_held};

const RECORDS: &str = "trainjobrecords";

#[tokio::test]
async fn a_store_that_is_delayed_past_its_successor_counts_nothing_twice() -> Result<()> {
    writes_last(false).await
}

#[tokio::test]
async fn a_leader_with_frozen_caches_that_writes_last_counts_nothing_twice() -> Result<()> {
    writes_last(true).await
}

/// Two leaders, of which the first has a store on its way while the second counts all.
async fn writes_last(with_frozen_caches: bool) -> Result<()> {
    let OwnBox { program, proxy, direct, proxied, world } = OwnBox::direct().await?;
    drop(program);
    let caches = proxy.inject(Call::is_watch, 1..=usize::MAX, Fault::FreezeWatch);
    let first = Accounting::short_lived(&world.cluster, SETTINGS, proxied).await?;
    first.leads().await?;
    world
        .test("last", async |tenant| {
            let namespace = tenant.namespace.clone();
            let stores = move |call: &Call| {
                call.verb == "update" && call.resource == RECORDS && call.namespace == namespace
            };
            let store = proxy.inject(stores, 1..=1, Fault::HoldOnItsWay);
            tenant.create("last", COMPLETES, nodes(4)).await?;
            store.reached().await?;
            if with_frozen_caches {
                caches.freeze();
            }
            // It cannot renew its Lease, and does not know that it does not lead.
            let leases = |call: &Call| call.resource == "leases";
            let renewals = proxy.inject(leases, 1..=usize::MAX, Fault::HoldRequest);
            let second = Accounting::start_as(&world.cluster, SETTINGS, direct).await?;
            second.leads().await?;
            let status = becomes_final(tenant, "last").await?;
            let succeeded = PodCounts { succeeded: 4, ..PodCounts::default() };
            ensure!(status.totals.pods == succeeded, "{status:#?}");
            store.release();
            until_ok("the store has come too late", PATIENCE, || async {
                let requests = proxy.requests();
                let store =
                    requests.iter().find(|it| it.verb == "update" && it.resource == RECORDS);
                let served = store.context("it was not sent")?.answer.served;
                ensure!(served == Some(409), "the API server said {served:?}");
                Ok(())
            })
            .await?;
            renewals.remove();
            caches.remove();
            released(tenant, "last").await?;
            let status = becomes_final(tenant, "last").await?;
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
    let second = Accounting::start_as(&world.cluster, SETTINGS, proxied).await?;
    world
        .test("frozen", async |tenant| {
            // All of them are to be seen to run at once.
            let later = runtime("later", &json!({COMPLETES_AFTER: "10s"}), 3, None);
            apply(&tenant.client, "default", vec![later]).await?;
            tenant.create("frozen", "later", nodes(4)).await?;
            run_held(tenant, "frozen", 4).await?;
            watch.freeze();
            let status = becomes_final(tenant, "frozen").await?;
            let succeeded = PodCounts { succeeded: 4, ..PodCounts::default() };
            ensure!(status.totals.pods == succeeded, "{status:#?}");
            first.kill9();
            second.leads().await?;
            // It has seen these Pods run, and not what became of them.
            tenant.patch("frozen", &json!({"metadata": {"labels": {"seen": "1"}}})).await?;
            watch.release();
            released(tenant, "frozen").await?;
            let status = becomes_final(tenant, "frozen").await?;
            ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
            ensure!(status.lost.is_empty() && status.settling.is_empty(), "{status:#?}");
            Ok(())
        })
        .await
}
