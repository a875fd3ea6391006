//! The programs of a release, as they run in its Pods: the chart's accounts, the chart's configuration.

use std::path::{Path, PathBuf};
use std::slice;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::testenv::cluster::Cluster;
use crate::testenv::operator::SERVICE_ACCOUNT as OPERATOR;
use crate::testenv::product::{Options, Product};
use crate::testenv::tools::Tools;
use crate::testenv::webhook::SERVICE_ACCOUNT as WEBHOOK;
use crate::testenv::{workspace, yaml};

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// Of which one leads.
    Operator,
    /// Which the API server asks.
    Webhook,
}

impl Program {
    /// What its container is called, and what Prometheus calls its job.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Operator => "trainjob-operator",
            Self::Webhook => "trainjob-webhook",
        }
    }

    /// Where the image has it.
    pub(crate) fn file_of_image(self) -> PathBuf {
        Path::new("/usr/bin").join(self.name())
    }

    /// With the permissions that the chart gives it.
    pub(crate) async fn kubeconfig(self, cluster: &Cluster, namespace: &str) -> Result<PathBuf> {
        let account = match self {
            Self::Operator => OPERATOR,
            Self::Webhook => WEBHOOK,
        };
        cluster.service_account_kubeconfig(namespace, account).await
    }

    /// Starts it beside the cluster.
    pub(crate) async fn start(self, cluster: &Cluster, options: Options) -> Result<Product> {
        let (kind, build): (_, fn() -> Result<PathBuf>) = match self {
            Self::Operator => ("operator", workspace::operator),
            Self::Webhook => ("webhook", workspace::webhook),
        };
        let binary = match options.root {
            Some(_) => self.file_of_image(),
            None => tokio::task::spawn_blocking(build).await??,
        };
        Product::start(cluster, kind, &binary, options)
    }
}

/// One of each. Dropped, they end.
#[derive(Debug)]
pub struct Programs {
    /// The operator.
    pub operator: Product,
    /// The webhook.
    pub webhook: Product,
}

impl Programs {
    /// Starts them beside the cluster and waits until they are ready.
    pub(crate) async fn start(
        cluster: &Cluster,
        tools: &Tools,
        release: &str,
        namespace: &str,
    ) -> Result<Self> {
        Self::start_in(None, cluster, tools, release, namespace).await
    }

    /// Like [`Programs::start`], as those of the image that is unpacked in `root`.
    pub(crate) async fn start_in(
        root: Option<&Path>,
        cluster: &Cluster,
        tools: &Tools,
        release: &str,
        namespace: &str,
    ) -> Result<Self> {
        let config = configuration(tools, release, namespace).await?;
        let start = async |program: Program| {
            let options = Options {
                config_yaml: yaml::stream(slice::from_ref(&config)),
                env: vec![("POD_NAMESPACE".to_owned(), namespace.to_owned())],
                kubeconfig: Some(program.kubeconfig(cluster, namespace).await?),
                root: root.map(Path::to_owned),
                ..Options::default()
            };
            program.start(cluster, options).await
        };
        let operator = start(Program::Operator).await?;
        let webhook = start(Program::Webhook).await?;
        operator.wait_ready().await?;
        webhook.wait_ready().await?;
        Ok(Self { operator, webhook })
    }
}

/// The configuration file that the chart gives to both programs, without the addresses of the servers
/// that both would listen on: here they share a machine.
pub(crate) async fn configuration(tools: &Tools, release: &str, namespace: &str) -> Result<Value> {
    let name = format!("{release}-config");
    let file = "jsonpath={.data.config\\.yaml}";
    let get = ["get", "configmap", &name, "--namespace", namespace, "-o", file];
    let text = tools.kubectl(&get, None).await?;
    let mut config = yaml::documents(&text)?.pop().context("an empty configuration")?;
    for (section, field) in [("health", "healthProbeBindAddress"), ("metrics", "bindAddress")] {
        let section = config.get_mut(section).and_then(Value::as_object_mut);
        let section = section.context("a section is missing")?;
        section.remove(field).context("an address is missing")?;
    }
    Ok(config)
}
