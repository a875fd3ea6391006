//! Boxes in which accounting programs are disturbed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::faults::proxy::{Proxy, Scope};
use crate::testenv::accounting::{
    Accounting, NAMESPACE, SERVICE_ACCOUNT, install_accounting, start_operator,
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
        cell.get_or_try_init(|| Box::pin(Testbed::start(mode))).await
    }
}

/// A box with an operator that marks Pods, and somebody who writes down what happens in it.
pub(super) struct Testbed {
    pub(super) world: World,
    pub(super) recorder: AccountingRecorder,
    kubeconfig: PathBuf,
    _lease: (Accounting, Proxy),
}

impl Testbed {
    async fn start(mode: &str) -> Result<Self> {
        let world = World::without_operator(Options::default()).await?;
        install_accounting(&world.cluster).await?;
        install_restarts(&world).await?;
        let cluster = &world.cluster;
        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        let proxy = Proxy::start(cluster, Scope::Namespace(ELSEWHERE.to_owned())).await?;
        let program =
            Accounting::short_lived(cluster, "{}", proxy.kubeconfig(&kubeconfig)?).await?;
        program.leads().await?;
        start_operator(&world, mode).await?;
        let recorder = AccountingRecorder::start(cluster.client().await?).await?;
        Ok(Self { recorder, kubeconfig, _lease: (program, proxy), world })
    }

    /// What a program proves with who it is.
    pub(super) fn credentials(&self) -> &Path {
        &self.kubeconfig
    }
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
