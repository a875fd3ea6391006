//! The place for accounting programs behind a proxy: one, and perhaps another that acts beside it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::ground::Testbed;
use crate::faults::proxy::Proxy;
use crate::faults::running::Running;
use crate::testenv::accounting::Accounting;

/// Long enough for what is refused until an endless fault ends, and is tried again after half a minute.
pub(super) const PATIENCE: Duration = Duration::from_mins(3);
/// Periods of the program, scaled down.
const SETTINGS: &str = "{batchPeriod: 1s, holdLimit: 10s}";

pub(super) struct Slot<'a> {
    testbed: &'a Testbed,
    proxy: &'a Proxy,
    kubeconfig: PathBuf,
    first: Running<Accounting>,
    second: Running<Accounting>,
}

impl<'a> Slot<'a> {
    pub(super) fn new(testbed: &'a Testbed, proxy: &'a Proxy) -> Result<Self> {
        let kubeconfig = proxy.kubeconfig(testbed.credentials())?;
        Ok(Self { testbed, proxy, kubeconfig, first: Running::none(), second: Running::none() })
    }

    pub(super) async fn launch(&self) -> Result<()> {
        self.proxy.process(self.first.next());
        self.first.started(self.start().await?);
        Ok(())
    }

    /// Starts another program, and waits until it knows everything, so that it acts.
    pub(super) async fn launch_second(&self) -> Result<()> {
        self.proxy.process(self.first.next());
        self.second.started(self.start().await?);
        self.second.ready(PATIENCE).await
    }

    async fn start(&self) -> Result<Accounting> {
        Accounting::unelected(&self.testbed.world.cluster, SETTINGS, self.kubeconfig.clone()).await
    }

    pub(super) fn kill(&self) {
        self.first.kill();
    }

    pub(super) async fn ready(&self) -> Result<()> {
        self.first.ready(PATIENCE).await
    }

    pub(super) fn still_runs(&self) -> Result<()> {
        self.first.still_runs()
    }
}
