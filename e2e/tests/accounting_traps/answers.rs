//! Trap 2: each call of the program is answered with each error, once and three times in a row.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{
    Accounting, NAMESPACE, SERVICE_ACCOUNT, becomes_final, holds, install_accounting,
    start_operator,
};
use e2e::cluster::Options;
use e2e::fixtures::{COMPLETES, Tenant, World};
use e2e::proxy::{Call, Fault, Proxy, Scope};
use e2e::recorder::AccountingRecorder;
use futures::future::try_join_all;
use invariants::accounting::Terms;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, nodes, released};

/// What the program asks for in the life of a job.
const CALLS: [(&str, &str); 5] = [
    ("get", "trainjobrecords"),
    ("create", "trainjobrecords"),
    ("list", "pods"),
    ("update", "trainjobrecords"),
    ("patch", "pods"),
];

const fn answer(status: u16) -> Fault {
    Fault::Answer { status, retry_after: None }
}

/// What is answered, or that nothing is. That an object is gone is not among it: the program believes that.
const FAULTS: [Fault; 6] =
    [answer(403), answer(409), answer(429), answer(500), answer(503), Fault::DropReply];

/// One life in which the calls of one kind are answered so.
async fn life(
    (world, proxy, recorder): (&World, &Proxy, &AccountingRecorder),
    (verb, resource): (&'static str, &'static str),
    fault: Fault,
    times: usize,
) -> Result<()> {
    let body = async |tenant: &Tenant<'_>| {
        let namespace = tenant.namespace.clone();
        let is_it = move |call: &Call| {
            call.verb == verb && call.resource == resource && call.namespace == namespace
        };
        let injection = proxy.inject(is_it, 1..=times, fault);
        tenant.create("answered", COMPLETES, nodes(2)).await?;
        let status = becomes_final(tenant, "answered").await?;
        ensure!(injection.befallen() > 0, "nothing was answered so");
        let succeeded = PodCounts { succeeded: 2, ..PodCounts::default() };
        ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
        released(tenant, "answered").await?;
        recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
    };
    let life = world.test("answered", body).await;
    life.with_context(|| format!("{verb} {resource}, {fault:?}, {times} times"))
}

#[tokio::test]
async fn ag8_a_call_that_fails_is_repeated_and_each_pod_counts_once() -> Result<()> {
    let world = Box::pin(World::without_operator(Options::default())).await?;
    install_accounting(&world.cluster).await?;
    let cluster = &world.cluster;
    let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
    let proxy = Proxy::start(cluster, Scope::Cluster).await?;
    let program =
        Accounting::short_lived(cluster, SETTINGS, proxy.kubeconfig(&kubeconfig)?).await?;
    program.leads().await?;
    start_operator(&world, "Exact").await?;
    let recorder = AccountingRecorder::start(cluster.client().await?).await?;
    for times in [1, 3] {
        for fault in FAULTS {
            let lives =
                CALLS.map(|call| Box::pin(life((&world, &proxy, &recorder), call, fault, times)));
            try_join_all(lives).await?;
        }
    }
    Ok(())
}
