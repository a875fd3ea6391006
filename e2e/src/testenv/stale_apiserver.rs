//! A second API server on the etcd of a cluster, whose watch cache can be made to fall behind.

use anyhow::Result;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::testenv::cluster::Cluster;
use crate::testenv::component::Component;
use crate::testenv::lagging_etcd::LaggingEtcd;
use crate::testenv::ports::Port;
use crate::testenv::process::Process;
use crate::testenv::ready::answers;

/// A second API server. Dropped, it is killed.
#[derive(Debug)]
pub struct StaleApiServer {
    // Dropped before its way to etcd.
    _process: Process,
    etcd: LaggingEtcd,
    port: Port,
}

impl StaleApiServer {
    /// Starts one, which is not stale at first, and waits until it is ready.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let etcd = LaggingEtcd::start(cluster.etcd_address()).await?;
        let port = Port::take()?;
        let name = "stale-apiserver";
        // The later of two flags counts, but of this one, both.
        let mut arguments = cluster.arguments(Component::ApiServer);
        arguments.retain(|argument| !argument.starts_with("--etcd-servers="));
        arguments.extend([
            format!("--etcd-servers=http://{}", etcd.address()),
            format!("--secure-port={}", port.number()),
            format!("--cert-dir={name}"),
            format!("--audit-log-path={name}-audit.log"),
        ]);
        let program = cluster.program(Component::ApiServer.program());
        let process = cluster.spawn(name, program, &arguments, &[])?;
        let address = format!("https://{}", port.address());
        process.ready_when(answers(&address, "/readyz", cluster.authority())).await?;
        Ok(Self { _process: process, etcd, port })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        self.port.address()
    }

    /// A client with all permissions.
    pub async fn client(&self, cluster: &Cluster) -> Result<Client> {
        let file = Kubeconfig::read_from(cluster.kubeconfig())?;
        let mut config =
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.cluster_url = format!("https://{}", self.address()).parse()?;
        Ok(Client::try_from(config)?)
    }

    /// From now on it learns of no change, though it still reads and writes; or it learns of all that it missed, and of
    /// everything from now on.
    pub fn fall_behind(&self, behind: bool) {
        self.etcd.hold_watches(behind);
    }
}
