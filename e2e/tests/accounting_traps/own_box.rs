//! A box to itself, for traps that disturb the program or the API server.

use std::path::PathBuf;

use anyhow::Result;
use e2e::accounting::accounting_box::AccountingBox;
use e2e::accounting::{Accounting, NAMESPACE, SERVICE_ACCOUNT, start_operator};
use e2e::proxy::{Proxy, Scope};

use super::SETTINGS;

/// A program that leads, and an operator that marks Pods. Dropped, all ends, the program first.
pub(super) struct OwnBox {
    pub(super) program: Accounting,
    pub(super) proxy: Proxy,
    /// The credentials of the program, with which it goes past the proxy.
    pub(super) direct: PathBuf,
    /// The same, with which it goes through it.
    pub(super) proxied: PathBuf,
    pub(super) world: AccountingBox,
}

impl OwnBox {
    /// With accounting in this mode, and a program that goes through the proxy.
    pub(super) async fn proxied(mode: &str) -> Result<Self> {
        Self::start(mode, |_, proxied| proxied).await
    }

    /// With accounting in mode `Exact`, and a program that goes past the proxy.
    pub(super) async fn direct() -> Result<Self> {
        Self::start("Exact", |direct, _| direct).await
    }

    async fn start(mode: &str, which: impl FnOnce(PathBuf, PathBuf) -> PathBuf) -> Result<Self> {
        let world = AccountingBox::pooled().await?;
        let cluster = &world.cluster;
        let direct = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        let proxy = Proxy::start(cluster, Scope::Cluster).await?;
        let proxied = proxy.kubeconfig(&direct)?;
        let kubeconfig = which(direct.clone(), proxied.clone());
        let program = Accounting::start_as(cluster, SETTINGS, kubeconfig).await?;
        program.leads().await?;
        start_operator(&world, mode).await?;
        Ok(Self { program, proxy, direct, proxied, world })
    }
}
