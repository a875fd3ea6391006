//! Boxes in which accounting programs are disturbed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};

use crate::faults::proxy::{Proxy, Scope};
use crate::testenv::accounting::{
    Accounting, NAMESPACE, SERVICE_ACCOUNT, install_accounting, marks, start_operator,
};
use crate::testenv::apply::apply;
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::{World, runtime};
use crate::testenv::kwok::COMPLETES_AFTER;
use crate::testenv::recorder::AccountingRecorder;

/// A runtime whose Pods fail after a second, and whose JobSets are restarted once.
pub(super) const RESTARTS: &str = "restarts";
/// Where there is nothing to count.
const ELSEWHERE: &str = "default";

/// The boxes, each started when it is needed.
#[derive(Default)]
pub(in crate::faults) struct Ground {
    exact: OnceCell<Testbed>,
    observe: OnceCell<Testbed>,
}

impl Ground {
    /// The box in which Pods are marked in this mode.
    pub(super) async fn testbed(&self, mode: &'static str) -> Result<&Testbed> {
        let cell = if mode == "Observe" { &self.observe } else { &self.exact };
        let testbed = cell.get_or_try_init(|| Box::pin(Testbed::start(mode))).await?;
        testbed.marks().await?;
        Ok(testbed)
    }
}

/// A box with an operator that marks Pods, and somebody who writes down what happens in it.
pub(super) struct Testbed {
    pub(super) world: World,
    pub(super) recorder: AccountingRecorder,
    kubeconfig: PathBuf,
    lease: Mutex<Accounting>,
    elsewhere: Proxy,
}

impl Testbed {
    async fn start(mode: &str) -> Result<Self> {
        let world = World::without_operator(Options::default()).await?;
        install_accounting(&world.cluster).await?;
        install_restarts(&world).await?;
        let cluster = &world.cluster;
        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        let proxy = Proxy::start(cluster, Scope::Namespace(ELSEWHERE.to_owned())).await?;
        let program = lease(&world, &proxy, &kubeconfig).await?;
        start_operator(&world, mode).await?;
        let recorder = AccountingRecorder::start(cluster.client().await?).await?;
        let lease = Mutex::new(program);
        Ok(Self { recorder, kubeconfig, lease, elsewhere: proxy, world })
    }

    /// Sees that the operator marks Pods: a program whose Lease is late on a busy machine ends, and nobody would be marked.
    async fn marks(&self) -> Result<()> {
        let mut holder = self.lease.lock().await;
        if holder.process().ended().is_some() {
            *holder = lease(&self.world, &self.elsewhere, &self.kubeconfig).await?;
        }
        marks(&self.world).await
    }

    /// What a program proves with who it is.
    pub(super) fn credentials(&self) -> &Path {
        &self.kubeconfig
    }
}

/// A program that holds the Lease, where there is nothing to count.
async fn lease(world: &World, elsewhere: &Proxy, kubeconfig: &Path) -> Result<Accounting> {
    let kubeconfig = elsewhere.kubeconfig(kubeconfig)?;
    let program = Accounting::start_as(&world.cluster, "{}", kubeconfig).await?;
    program.leads().await?;
    Ok(program)
}

async fn install_restarts(world: &World) -> Result<()> {
    let fails = json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"});
    let mut restarts = runtime(RESTARTS, &fails, 3, None);
    let job_set = restarts.pointer_mut("/spec/template/spec");
    let job_set = job_set.and_then(serde_json::Value::as_object_mut).context("no JobSet")?;
    job_set.insert("failurePolicy".to_owned(), json!({"maxRestarts": 1}));
    apply(&world.cluster.client().await?, "default", vec![restarts]).await?;
    Ok(())
}
