//! The one operator that runs in a life at a time. It may be killed and replaced.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};

use crate::faults::proxy::Proxy;
use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::operator::{Operator, OperatorOptions};
use crate::testenv::until::until_ok;

/// Holds the running operator; operators follow one another behind one proxy.
pub struct OperatorSlot<'a> {
    cluster: &'a Cluster,
    proxy: &'a Proxy,
    kubeconfig: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    operator: Option<Arc<Operator>>,
    /// How many have been started.
    count: u32,
}

impl<'a> OperatorSlot<'a> {
    /// A slot for operators that reach the cluster through `proxy`, with the credentials of `like`.
    pub fn new(cluster: &'a Cluster, proxy: &'a Proxy, like: &std::path::Path) -> Result<Self> {
        let kubeconfig = proxy.kubeconfig(like)?;
        Ok(Self { cluster, proxy, kubeconfig, state: Mutex::default() })
    }

    /// Starts an operator with its default configuration.
    pub async fn launch(&self) -> Result<()> {
        let number = self.state().count + 1;
        self.proxy.process(number);
        let options = OperatorOptions {
            kubeconfig: Some(self.kubeconfig.clone()),
            ..OperatorOptions::default()
        };
        let operator = Operator::start(self.cluster, options).await?;
        *self.state() = State { operator: Some(Arc::new(operator)), count: number };
        Ok(())
    }

    /// Kills the operator, as a crash of its machine would.
    pub fn kill(&self) {
        if let Some(operator) = self.state().operator.take() {
            operator.kill9();
        }
    }

    /// Waits until the operator that runs then is ready.
    pub async fn ready(&self) -> Result<()> {
        until_ok("an operator is ready", PATIENCE, || async {
            self.operator().context("nobody is there")?.wait_ready().await
        })
        .await
    }

    /// Sees that the operator has not ended by itself.
    pub fn still_runs(&self) -> Result<()> {
        let operator = self.operator().context("no operator was started again")?;
        match operator.process().ended() {
            None => Ok(()),
            Some(status) => bail!("the operator ended by itself: {status}\n{}", operator.log()?),
        }
    }

    fn operator(&self) -> Option<Arc<Operator>> {
        self.state().operator.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OperatorSlot<'_> {
    /// Dropping an operator would wait for it, and all lanes with it.
    fn drop(&mut self) {
        self.kill();
    }
}
