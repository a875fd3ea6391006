//! The parts of a control plane: how each is started and when it is ready.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use kube::{Client, Config};

use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::Options;
use crate::testenv::credentials::{Credentials, Identity};
use crate::testenv::modules::Modules;
use crate::testenv::ports::Port;
use crate::testenv::until::until_ok;
use crate::testenv::{jobset, kwok};

/// A part of a cluster, in the order in which they start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    JobSet,
    Kwok,
}

impl Component {
    pub(crate) const fn program(self) -> Program {
        match self {
            Self::Etcd => Program::Etcd,
            Self::ApiServer => Program::ApiServer,
            Self::ControllerManager => Program::ControllerManager,
            Self::Scheduler => Program::Scheduler,
            Self::JobSet => Program::JobSet,
            Self::Kwok => Program::Kwok,
        }
    }

    /// Its name, which is also that of its log file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.program().name()
    }
}

/// The ports of a cluster.
#[derive(Debug)]
pub(crate) struct Ports {
    etcd: Port,
    etcd_peer: Port,
    pub(crate) apiserver: Port,
    controller_manager: Port,
    scheduler: Port,
    pub(crate) jobset_webhook: Port,
    pub(crate) jobset_health: Port,
    pub(crate) jobset_metrics: Port,
    kwok: Port,
}

/// Where a cluster is, and everything its parts have to know of each other.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) folder: PathBuf,
    pub(crate) binaries: Binaries,
    modules: Option<Modules>,
    pub(crate) credentials: Credentials,
    pub(crate) ports: Ports,
    pub(crate) options: Options,
}

impl Site {
    pub(crate) fn new(
        folder: &Path,
        binaries: Binaries,
        modules: Option<Modules>,
        options: Options,
    ) -> Result<Self> {
        let ports = Ports {
            etcd: Port::take()?,
            etcd_peer: Port::take()?,
            apiserver: Port::take()?,
            controller_manager: Port::take()?,
            scheduler: Port::take()?,
            jobset_webhook: Port::take()?,
            jobset_health: Port::take()?,
            jobset_metrics: Port::take()?,
            kwok: Port::take()?,
        };
        let credentials = Credentials::create(folder, ports.apiserver.number())?;
        let folder = folder.to_owned();
        Ok(Self { folder, binaries, modules, credentials, ports, options })
    }

    /// The files of JobSet and KWOK.
    pub(crate) fn modules(&self) -> Result<&Modules> {
        self.modules.as_ref().context("neither JobSet nor KWOK was asked for")
    }

    /// The command line of `component`.
    pub(crate) fn arguments(&self, component: Component) -> Vec<String> {
        match component {
            Component::Etcd => self.etcd(),
            Component::ApiServer => self.apiserver(),
            Component::ControllerManager => self.controller_manager(),
            Component::Scheduler => self.scheduler(),
            Component::JobSet => vec![
                self.kubeconfig_flag(Identity::JobSet),
                format!("--config={}", self.file(jobset::CONFIGURATION)),
            ],
            Component::Kwok => vec![
                self.kubeconfig_flag(Identity::Kwok),
                format!("--config={}", self.file(kwok::CONFIGURATION)),
                format!("--server-address={}", self.ports.kwok.address()),
                "--manage-all-nodes".to_owned(),
                "--node-lease-duration-seconds=40".to_owned(),
            ],
        }
    }

    fn etcd(&self) -> Vec<String> {
        let (client, peer) = (self.ports.etcd.address(), self.ports.etcd_peer.address());
        let mut arguments = vec![
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls=http://{client}"),
            format!("--advertise-client-urls=http://{client}"),
            format!("--listen-peer-urls=http://{peer}"),
            format!("--initial-advertise-peer-urls=http://{peer}"),
            format!("--initial-cluster=default=http://{peer}"),
            // Room for a load run; the default ends at 2 GiB.
            "--quota-backend-bytes=8589934592".to_owned(),
        ];
        if !self.options.fsync {
            arguments.push("--unsafe-no-fsync".to_owned());
        }
        arguments
    }

    fn apiserver(&self) -> Vec<String> {
        let credential = |name| self.credentials.path(name).display().to_string();
        let mut arguments = vec![
            format!("--etcd-servers=http://{}", self.ports.etcd.address()),
            format!("--cert-dir={}", self.file("apiserver")),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.apiserver.number()),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // The `kubernetes` Service cannot have a loopback address as its endpoint.
            "--endpoint-reconciler-type=none".to_owned(),
            "--allow-privileged".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            format!("--token-auth-file={}", credential("tokens.csv")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-signing-key-file={}", credential("service-accounts.key")),
            format!("--service-account-key-file={}", credential("service-accounts.pub")),
            // On in OpenShift: it shows which permissions on finalizers `blockOwnerDeletion` needs.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
        ];
        arguments.extend(self.serving_certificate_flags());
        arguments.extend(self.options.apiserver_flags.iter().cloned());
        arguments
    }

    fn controller_manager(&self) -> Vec<String> {
        let credential = |name| self.credentials.path(name).display().to_string();
        let mut arguments = vec![
            self.kubeconfig_flag(Identity::ControllerManager),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.controller_manager.number()),
            format!("--root-ca-file={}", credential("ca.crt")),
            format!("--service-account-private-key-file={}", credential("service-accounts.key")),
            // Each controller with its own permissions, as in a real cluster.
            "--use-service-account-credentials".to_owned(),
            // With the defaults, garbage collection is what a test waits for.
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            "--concurrent-gc-syncs=20".to_owned(),
        ];
        arguments.extend(self.serving_certificate_flags());
        arguments.extend(self.options.controller_manager_flags.iter().cloned());
        arguments
    }

    fn scheduler(&self) -> Vec<String> {
        let mut arguments = vec![
            self.kubeconfig_flag(Identity::Scheduler),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.scheduler.number()),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ];
        arguments.extend(self.serving_certificate_flags());
        arguments
    }

    fn kubeconfig_flag(&self, identity: Identity) -> String {
        format!("--kubeconfig={}", self.credentials.kubeconfig(identity).display())
    }

    fn serving_certificate_flags(&self) -> [String; 2] {
        [
            format!("--tls-cert-file={}", self.credentials.path("tls.crt").display()),
            format!("--tls-private-key-file={}", self.credentials.path("tls.key").display()),
        ]
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Waits until `component` does its work.
    pub(crate) async fn ready(&self, component: Component, client: &Client) -> Result<()> {
        let ports = &self.ports;
        let secure = |port: &Port| format!("https://{}", port.address());
        let plain = |port: &Port| format!("http://{}", port.address());
        match component {
            Component::Etcd => self.answers(&plain(&ports.etcd), "/health").await,
            Component::ApiServer => self.answers(&secure(&ports.apiserver), "/readyz").await,
            Component::ControllerManager => {
                self.answers(&secure(&ports.controller_manager), "/healthz").await
            }
            Component::Scheduler => self.answers(&secure(&ports.scheduler), "/readyz").await,
            Component::JobSet => {
                self.answers(&plain(&ports.jobset_health), "/readyz").await?;
                jobset::webhooks_answer(client).await
            }
            Component::Kwok => self.answers(&plain(&ports.kwok), "/readyz").await,
        }
    }

    async fn answers(&self, server: &str, path: &str) -> Result<()> {
        answers(server, path, self.credentials.authority()).await
    }
}

/// How long any part may take to become ready; a busy machine needs a multiple of an idle one.
const START: Duration = Duration::from_secs(90);

/// Waits until `GET path` on `server` succeeds.
pub(crate) async fn answers(server: &str, path: &str, authority: &str) -> Result<()> {
    let mut config = Config::new(server.parse()?);
    config.root_cert = Some(vec![der(authority)?]);
    let client = Client::try_from(config)?;
    until_ok(format!("{server}{path} answers"), START, || async {
        let request = http::Request::get(path).body(Vec::new())?;
        client.request_text(request).await.context("it does not answer")?;
        Ok(())
    })
    .await
}

fn der(pem: &str) -> Result<Vec<u8>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    Ok(CertificateDer::from_pem_slice(pem.as_bytes())?.to_vec())
}
