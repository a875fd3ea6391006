//! A cluster with a release in it, as those find it who use it: the chart installed by Helm, its programs
//! running with what it gives them, and somebody with a namespace.

pub mod programs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::testenv::chart::CHART;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::fixtures::train_job;
use crate::testenv::ports::Port;
use crate::testenv::release::programs::Programs;
use crate::testenv::tools::Tools;
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

/// The release, which is called as the chart is.
pub(crate) const RELEASE: &str = "trainjob-operator";
/// Its namespace.
pub const NAMESPACE: &str = "kubeflow-system";
/// How long the slowest step may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The `ServiceAccount` that stands for a user.
const USER: &str = "user";

/// A cluster with the chart in it.
#[derive(Debug)]
pub struct Release {
    /// The cluster.
    pub cluster: Cluster,
    pub(crate) tools: Tools,
    webhook: Port,
}

impl Release {
    /// Starts a cluster and installs the chart, with these values and all its runtimes but that with a cache.
    pub(crate) async fn with_runtimes(sets: &[&str]) -> Result<Self> {
        // Helm makes the runtimes only where their definition is there before.
        let cluster = Cluster::start(Options { crds: true, ..Options::default() }).await?;
        let sets = [&["crds.enabled=false", "runtimes.defaultEnabled=true"], sets].concat();
        Self::install(cluster, &sets).await
    }

    /// Installs the chart in a cluster, with these values. Nobody waits for its Pods, which run nothing here:
    /// [`Release::start`] starts what they would run.
    pub async fn install(cluster: Cluster, sets: &[&str]) -> Result<Self> {
        Self::install_with(cluster, &[], sets).await
    }

    /// The same with these files of values, before the others.
    pub async fn install_with(cluster: Cluster, files: &[PathBuf], sets: &[&str]) -> Result<Self> {
        let chart = workspace::path(CHART).display().to_string();
        Self::install_chart(cluster, &chart, files, sets).await
    }

    /// The same with the chart at this path.
    pub(crate) async fn install_chart(
        cluster: Cluster,
        chart: &str,
        files: &[PathBuf],
        sets: &[&str],
    ) -> Result<Self> {
        let (tools, webhook) = (Tools::provide(&cluster).await?, Port::take()?);
        let (host, port) = ("127.0.0.1", webhook.number());
        let here = [
            format!("webhook.url=https://{host}:{port}"),
            format!("manager.config.webhook.host={host}"),
            format!("manager.config.webhook.port={port}"),
        ];
        let mut arguments =
            vec!["install", RELEASE, chart, "--create-namespace", "--namespace", NAMESPACE];
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        arguments.extend(files.iter().flat_map(|file| ["--values", file]));
        let sets = here.iter().map(String::as_str).chain(sets.iter().copied());
        arguments.extend(sets.flat_map(|set| [as_flag(set), set]));
        tools.helm(&arguments).await?;
        Ok(Self { cluster, tools, webhook })
    }

    /// Where the webhook configurations expect the webhook.
    pub(crate) fn webhook_address(&self) -> String {
        self.webhook.address()
    }

    /// Starts the programs of the release, one of each, and waits until they are ready.
    pub async fn start(&self) -> Result<Programs> {
        Programs::start(&self.cluster, &self.tools, RELEASE, NAMESPACE).await
    }

    /// Like [`Release::start`], as those of the image that is unpacked in `root`.
    pub(crate) async fn start_in(&self, root: &Path) -> Result<Programs> {
        Programs::start_in(Some(root), &self.cluster, &self.tools, RELEASE, NAMESPACE).await
    }

    /// Makes a namespace for somebody who may edit there and nothing else, and waits until they can create a
    /// TrainJob. The tools that they have are returned, and the namespace.
    pub(crate) async fn user(&self, prefix: &str) -> Result<(Tools, String)> {
        self.user_with("edit", prefix).await
    }

    /// Like [`Release::user`], with this `ClusterRole` in the namespace.
    pub(crate) async fn user_with(&self, role: &str, prefix: &str) -> Result<(Tools, String)> {
        let namespace = self.cluster.namespace(prefix).await?;
        let group = "rbac.authorization.k8s.io";
        let subject = json!({"kind": "ServiceAccount", "name": USER, "namespace": namespace});
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": USER}}),
            json!({
                "apiVersion": format!("{group}/v1"),
                "kind": "RoleBinding",
                "metadata": {"name": USER},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            }),
        ];
        self.cluster.apply_yaml(&namespace, &yaml::stream(&objects)).await?;
        let kubeconfig = self.cluster.service_account_kubeconfig(&namespace, USER).await?;
        let tools = self.tools.for_user(kubeconfig);
        let probe = train_job("probe", "torch-distributed", &json!({}));
        let create = ["create", "--dry-run=server", "--namespace", &namespace, "-f", "-"];
        // The API server hears of RBAC rules and webhook configurations a moment after they were made.
        until_ok("a user may create a job", PATIENCE, || {
            tools.kubectl(&create, Some(probe.to_string()))
        })
        .await?;
        Ok((tools, namespace))
    }
}

/// The flag for a value, which is JSON where it is quoted or a list, or for a file of values.
pub(crate) fn as_flag(set: &str) -> &'static str {
    match set {
        _ if set.ends_with(['"', ']']) => "--set-json",
        _ if Path::new(set).is_absolute() => "--values",
        _ => "--set",
    }
}
