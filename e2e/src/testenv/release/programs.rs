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

/// The `ServiceAccount` of the retention engine, as the chart calls it.
const RETENTION: &str = "trainjob-operator-retention";
/// That of the accounting program.
const ACCOUNTING: &str = "trainjob-operator-accounting";

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// Of which one leads.
    Operator,
    /// Which the API server asks.
    Webhook,
    /// Which deletes by policy, where the chart installs it.
    Retention,
    /// Which counts Pods, where the chart installs it.
    Accounting,
    /// Which lets Pods go while that does not run.
    Sweeper,
}

impl Program {
    /// What its container is called, and what Prometheus calls its job.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Operator => "trainjob-operator",
            Self::Webhook => "trainjob-webhook",
            Self::Retention => "trainjob-retention",
            Self::Accounting => "trainjob-accounting",
            Self::Sweeper => "trainjob-accounting-sweeper",
        }
    }

    /// The command of the program that it is.
    const fn command(self) -> Option<&'static str> {
        match self {
            Self::Operator | Self::Webhook | Self::Retention | Self::Accounting => None,
            Self::Sweeper => Some("sweep"),
        }
    }

    /// The `ConfigMap` of the chart for it belongs to this, beside the release.
    const fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Operator | Self::Webhook => None,
            Self::Retention => Some("retention"),
            Self::Accounting | Self::Sweeper => Some("accounting"),
        }
    }

    /// The configuration file that the chart gives to it, without the addresses of the servers that all would listen on.
    pub(crate) async fn configuration(
        self,
        tools: &Tools,
        release: &str,
        namespace: &str,
    ) -> Result<Value> {
        let prefix = self.suffix().map_or_else(|| release.into(), |it| format!("{release}-{it}"));
        let file = file_of_config(tools, &prefix, namespace).await?;
        file.with_context(|| format!("{prefix} has no configuration"))
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
            Self::Retention => RETENTION,
            Self::Accounting | Self::Sweeper => ACCOUNTING,
        };
        cluster.service_account_kubeconfig(namespace, account).await
    }

    /// Starts it beside the cluster.
    pub(crate) async fn start(self, cluster: &Cluster, options: Options) -> Result<Product> {
        let (kind, build): (_, fn() -> Result<PathBuf>) = match self {
            Self::Operator => ("operator", workspace::operator),
            Self::Webhook => ("webhook", workspace::webhook),
            Self::Retention => ("retention", workspace::retention),
            Self::Accounting | Self::Sweeper => ("accounting", workspace::accounting),
        };
        let options = Options { command: options.command.or_else(|| self.command()), ..options };
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
    /// The retention engine, where the chart has installed it.
    pub retention: Option<Product>,
    /// The accounting program, where the chart has installed it.
    pub accounting: Option<Product>,
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
        let config = Program::Operator.configuration(tools, release, namespace).await?;
        let start = async |program: Program, config: &Value| {
            let options = options(program, config, cluster, namespace).await?;
            program.start(cluster, Options { root: root.map(Path::to_owned), ..options }).await
        };
        let operator = start(Program::Operator, &config).await?;
        let webhook = start(Program::Webhook, &config).await?;
        let optional = async |program: Program, suffix: &str| match file_of_config(
            tools,
            &format!("{release}-{suffix}"),
            namespace,
        )
        .await?
        {
            Some(config) => start(program, &config).await.map(Some),
            None => Ok(None),
        };
        let retention = optional(Program::Retention, "retention").await?;
        let accounting = optional(Program::Accounting, "accounting").await?;
        for program in [&operator, &webhook].into_iter().chain(&retention).chain(&accounting) {
            program.wait_ready().await?;
        }
        Ok(Self { operator, webhook, retention, accounting })
    }
}

/// Starts what a Pod of the accounting program runs that has this command.
pub(crate) async fn accounting_command(
    cluster: &Cluster,
    tools: &Tools,
    (release, namespace): (&str, &str),
    command: &'static str,
    flags: &[&str],
) -> Result<Product> {
    let config = Program::Accounting.configuration(tools, release, namespace).await?;
    let options = options(Program::Accounting, &config, cluster, namespace).await?;
    let extra_args = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let options = Options { command: Some(command), extra_args, ..options };
    Program::Accounting.start(cluster, options).await
}

/// What a program has in its Pod, but that everybody may read its metrics.
async fn options(
    program: Program,
    config: &Value,
    cluster: &Cluster,
    namespace: &str,
) -> Result<Options> {
    let mut config = config.clone();
    let metrics = config.get_mut("metrics").and_then(Value::as_object_mut);
    // Tests read them that are not about who may.
    metrics.context("no metrics")?.insert("secureServing".to_owned(), false.into());
    Ok(Options {
        config_yaml: yaml::stream(slice::from_ref(&config)),
        env: vec![("POD_NAMESPACE".to_owned(), namespace.to_owned())],
        kubeconfig: Some(program.kubeconfig(cluster, namespace).await?),
        ..Options::default()
    })
}

/// A configuration file of the chart, if there is one, without the addresses of the servers that all would listen on:
/// here they share a machine.
async fn file_of_config(tools: &Tools, prefix: &str, namespace: &str) -> Result<Option<Value>> {
    let name = format!("{prefix}-config");
    let file = "jsonpath={.data.config\\.yaml}";
    let find = ["get", "configmap", &name, "--namespace", namespace, "--ignore-not-found"];
    let text = tools.kubectl(&[&find[..], &["-o", file]].concat(), None).await?;
    let Some(mut config) = yaml::documents(&text)?.pop() else { return Ok(None) };
    for (section, field) in [("health", "healthProbeBindAddress"), ("metrics", "bindAddress")] {
        let section = config.get_mut(section).and_then(Value::as_object_mut);
        let section = section.context("a section is missing")?;
        section.remove(field).context("an address is missing")?;
    }
    Ok(Some(config))
}
