//! Trap 1: the program is killed before and after each of its calls.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use e2e::accounting::{
    Accounting, NAMESPACE, SERVICE_ACCOUNT, becomes_final, holds, install_accounting,
    start_operator,
};
use e2e::cluster::Options;
use e2e::fixtures::{COMPLETES, World};
use e2e::proxy::{Call, Fault, Proxy, Scope};
use e2e::recorder::AccountingRecorder;
use invariants::accounting::Terms;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, nodes, released};

/// What the program asks for in the life of a job: verb, resource, and how often before it is killed.
const CALLS: [(&str, &str, usize); 6] = [
    ("create", "trainjobrecords", 1),
    ("list", "pods", 1),
    ("update", "trainjobrecords", 1),
    ("update", "trainjobrecords", 2),
    ("patch", "pods", 1),
    ("patch", "pods", 3),
];

/// A box in which programs come and go.
struct Place {
    world: World,
    kubeconfig: PathBuf,
}

impl Place {
    async fn start() -> Result<Self> {
        let world = Box::pin(World::without_operator(Options::default())).await?;
        install_accounting(&world.cluster).await?;
        let kubeconfig =
            world.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        Ok(Self { world, kubeconfig })
    }

    async fn program(&self, proxy: &Proxy) -> Result<Accounting> {
        let kubeconfig = proxy.kubeconfig(&self.kubeconfig)?;
        let program = Accounting::short_lived(&self.world.cluster, SETTINGS, kubeconfig).await?;
        program.leads().await?;
        Ok(program)
    }
}

/// Whether this is the call that the program is killed at, about something in this namespace.
fn is_it(verb: &'static str, resource: &'static str, namespace: String) -> impl Fn(&Call) -> bool {
    move |call| call.verb == verb && call.resource == resource && call.namespace == namespace
}

#[tokio::test]
async fn a_program_that_is_killed_at_any_call_counts_each_pod_once() -> Result<()> {
    let place = Place::start().await?;
    let proxy = Proxy::start(&place.world.cluster, Scope::Cluster).await?;
    let mut program = place.program(&proxy).await?;
    start_operator(&place.world, "Exact").await?;
    let recorder = AccountingRecorder::start(place.world.cluster.client().await?).await?;
    for (verb, resource, which) in CALLS {
        for fault in [Fault::HoldRequest, Fault::HoldReply] {
            let prefix = format!("{verb}-{resource}-{which}");
            place
                .world
                .test(&prefix, async |tenant| {
                    let matches = is_it(verb, resource, tenant.namespace.clone());
                    let injection = proxy.inject(matches, which..=which, fault);
                    tenant.create("killed", COMPLETES, nodes(4)).await?;
                    injection.reached().await?;
                    program.kill9();
                    injection.remove();
                    program = place.program(&proxy).await?;
                    let status = becomes_final(tenant, "killed").await?;
                    let succeeded = PodCounts { succeeded: 4, ..PodCounts::default() };
                    ensure!(status.totals.pods == succeeded, "{fault:?}: {status:#?}");
                    ensure!(holds(&status, "Exact"), "{fault:?}: {status:#?}");
                    ensure!(status.settling.is_empty(), "{fault:?}: {status:#?}");
                    released(tenant, "killed").await?;
                    let calls = proxy.calls();
                    recorder.judge(&[&tenant.namespace], &calls, &Terms::default()).await
                })
                .await?;
        }
    }
    Ok(())
}
