//! Traps 9, 20, 23 and 31: the API server dies between a store and its releases, and is silent for longer than Pods may be held;
//! a namespace goes, and a deadline comes due, while the program is away.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::accounting::{Accounting, Counted, becomes_final, holds};
use e2e::component::Component;
use e2e::fixtures::{COMPLETES, PATIENCE, RUNS};
use e2e::proxy::{Call, Fault};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use invariants::accounting::Terms;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams};
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, nodes, own_box::OwnBox, released, run_held};

/// How long a namespace may take to go.
const GONE_WITHIN: Duration = Duration::from_mins(4);

#[tokio::test]
async fn an_api_server_that_dies_between_store_and_release_loses_nothing() -> Result<()> {
    let OwnBox { program: _program, proxy, direct, world, .. } = OwnBox::proxied("Exact").await?;
    let cluster = &world.cluster;
    world
        .test("outage", async |tenant| {
            let namespace = tenant.namespace.clone();
            let releases = move |call: &Call| {
                call.verb == "patch" && call.resource == "pods" && call.namespace == namespace
            };
            let held = proxy.inject(releases, 1..=4, Fault::HoldRequest);
            tenant.create("outage", COMPLETES, nodes(4)).await?;
            held.reached().await?;
            cluster.stop_apiserver();
            held.remove();
            cluster.start_apiserver().await?;
            // It may have lost its Lease meanwhile, and is then started again, as in a cluster.
            let _again = Accounting::start_as(cluster, SETTINGS, direct).await?;
            let status = becomes_final(tenant, "outage").await?;
            let succeeded = PodCounts { succeeded: 4, ..PodCounts::default() };
            ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
            released(tenant, "outage").await
        })
        .await
}

/// Twice as long as a Pod may be held here.
const SILENT_FOR: Duration = Duration::from_secs(20);
/// By what the requests of the program for records are known that got no answer.
const UNANSWERED: &str = r#"code="none",kind="TrainJobRecord",verb="get""#;

#[tokio::test]
async fn ah3_an_api_server_that_is_silent_for_twice_the_limit_lets_no_pod_go_uncounted()
-> Result<()> {
    let OwnBox { program: first, proxy, proxied, world, .. } = OwnBox::direct().await?;
    let cluster = &world.cluster;
    world
        .test("silent", async |tenant| {
            tenant.create("silent", RUNS, nodes(2)).await?;
            run_held(tenant, "silent", 2).await?;
            // One that needs no Lease: whoever loses it ends, and a new one waits anew.
            first.kill9();
            let program = Accounting::unelected(cluster, SETTINGS, proxied).await?;
            program.wait_ready().await?;
            let stores = |call: &Call| {
                (call.verb, call.resource.as_str()) == ("update", "trainjobrecords")
                    && call.json().pointer("/status/settling/0").is_some()
            };
            let held = proxy.inject(stores, 1..=1, Fault::HoldRequest);
            tenant.delete("silent").await?;
            held.reached().await?;
            cluster.pause(Component::ApiServer)?;
            tokio::time::sleep(SILENT_FOR).await;
            // Once nothing at all is answered, the time of its Pods begins anew, and they have all of it when that is over.
            until_ok("it has asked for the record in vain", PATIENCE, || async {
                let requests = "trainjob_accounting_api_requests_total";
                let unanswered = program.labelled_metric(requests, UNANSWERED).await?;
                ensure!(unanswered > 0.5, "it has not");
                Ok(())
            })
            .await?;
            cluster.resume(Component::ApiServer)?;
            held.remove();
            let status = becomes_final(tenant, "silent").await?;
            let deleted = PodCounts { deleted: 2, ..PodCounts::default() };
            ensure!(status.totals.pods == deleted && status.lost.is_empty(), "{status:#?}");
            ensure!(holds(&status, "Exact"), "{status:#?}");
            released(tenant, "silent").await
        })
        .await
}

#[tokio::test]
async fn a_namespace_that_is_deleted_while_the_program_is_away_goes_when_it_is_back() -> Result<()>
{
    let mut counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let tenant = counted.world.tenant("away").await?;
    for name in ["first", "second"] {
        tenant.create(name, RUNS, nodes(2)).await?;
        run_held(&tenant, name, 2).await?;
    }
    counted.program.kill9();
    let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
    namespaces.delete(&tenant.namespace, &DeleteParams::default()).await?;
    until_ok("its Pods have ended", GONE_WITHIN, || async {
        let running = tenant.running_pods_of("first").await?;
        ensure!(running == 0, "{running} run");
        Ok(())
    })
    .await?;
    counted.program = Accounting::start(&counted.world.cluster, SETTINGS).await?;
    until_ok("the namespace is gone", GONE_WITHIN, || async {
        let found = namespaces.get_opt(&tenant.namespace).await?;
        ensure!(found.is_none(), "{:#?}", found.and_then(|it| it.status));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pods_that_a_deadline_ends_while_the_program_is_away_count_so_when_it_is_back() -> Result<()>
{
    let mut counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let recorder = AccountingRecorder::start(counted.world.cluster.client().await?).await?;
    let tenant = counted.world.tenant("late").await?;
    let mut spec = nodes(2);
    spec["activeDeadlineSeconds"] = json!(30);
    tenant.create("late", RUNS, spec).await?;
    run_held(&tenant, "late", 2).await?;
    counted.program.kill9();
    tenant.becomes("late", "Failed").await?;
    until_ok("its Pods have ended", PATIENCE, || async {
        let running = tenant.running_pods_of("late").await?;
        ensure!(running == 0, "{running} run");
        Ok(())
    })
    .await?;
    counted.program = Accounting::start(&counted.world.cluster, SETTINGS).await?;
    let status = becomes_final(&tenant, "late").await?;
    let deleted = PodCounts { deleted: 2, ..PodCounts::default() };
    ensure!(status.outcome == "DeadlineExceeded" && holds(&status, "Exact"), "{status:#?}");
    ensure!(status.totals.pods == deleted, "{status:#?}");
    let attempts = status.replicated_jobs.iter().flat_map(|job| &job.attempts);
    let reasons: Vec<_> = attempts.flat_map(|it| it.sums.reasons.keys()).collect();
    ensure!(reasons == ["Deadline"], "{reasons:?}");
    recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
}
