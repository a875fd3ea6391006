//! The one operator that runs in a life at a time. It may be killed and replaced.

use std::path::PathBuf;

use anyhow::Result;

use super::running::Running;
use crate::faults::proxy::Proxy;
use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::operator::{Operator, OperatorOptions};

/// Holds the running operator; operators follow one another behind one proxy.
pub struct OperatorSlot<'a> {
    cluster: &'a Cluster,
    proxy: &'a Proxy,
    kubeconfig: PathBuf,
    running: Running<Operator>,
}

impl<'a> OperatorSlot<'a> {
    /// A slot for operators that reach the cluster through `proxy`, with the credentials of `like`.
    pub fn new(cluster: &'a Cluster, proxy: &'a Proxy, like: &std::path::Path) -> Result<Self> {
        let kubeconfig = proxy.kubeconfig(like)?;
        Ok(Self { cluster, proxy, kubeconfig, running: Running::none() })
    }

    /// Starts an operator with its default configuration.
    pub async fn launch(&self) -> Result<()> {
        self.proxy.process(self.running.next());
        let options = OperatorOptions {
            kubeconfig: Some(self.kubeconfig.clone()),
            ..OperatorOptions::default()
        };
        self.running.started(Operator::start(self.cluster, options).await?);
        Ok(())
    }

    /// Kills the operator, as a crash of its machine would.
    pub fn kill(&self) {
        self.running.kill();
    }

    /// Whether another operator has taken the place of the first.
    pub fn was_replaced(&self) -> bool {
        self.running.was_replaced()
    }

    /// Waits until the operator that runs then is ready.
    pub async fn ready(&self) -> Result<()> {
        self.running.ready(PATIENCE).await
    }

    /// Sees that the operator has not ended by itself.
    pub fn still_runs(&self) -> Result<()> {
        self.running.still_runs()
    }
}
