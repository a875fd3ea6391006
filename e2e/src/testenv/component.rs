//! The parts of a control plane: how each is started and when it is ready.

use anyhow::Result;
use kube::Client;

use crate::testenv::binaries::Program;
use crate::testenv::credentials::Identity;
use crate::testenv::ports::Port;
use crate::testenv::ready::answers;
use crate::testenv::site::Site;
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

impl Site {
    /// What the components find in their environment. Tests wait for processors, not for memory: so garbage is collected
    /// less often than by default, but in a cluster that is measured, which writes to the disk, too.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        if self.options.fsync {
            return Vec::new();
        }
        [("GOGC", "300"), ("GOMEMLIMIT", "1GiB")]
            .map(|(name, value)| (name.into(), value.into()))
            .into()
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
