//! The coscheduling of scheduler-plugins: a scheduler that starts the Pods of a PodGroup together or not at all.
//!
//! It runs beside the cluster's own scheduler, for the Pods that name it, with the definitions and the RBAC rules
//! of its own release.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::testenv::apply::{apply, established};
use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::Cluster;
use crate::testenv::credentials::Identity;
use crate::testenv::modules::{Module, ModuleFiles};
use crate::testenv::ports::Port;
use crate::testenv::process::Process;
use crate::testenv::ready::answers;
use crate::testenv::yaml;

/// The `schedulerName` of the Pods it places.
pub const SCHEDULER_NAME: &str = "coscheduling";

const POD_GROUPS: &str = "manifests/coscheduling/crd.yaml";
/// The controller watches these, too, and does not start without them.
const ELASTIC_QUOTAS: &str = "manifests/capacityscheduling/crd.yaml";
const INSTALLATION: &str = "manifests/install/all-in-one.yaml";
/// The namespace and the `ServiceAccount` of the controller in that file.
const CONTROLLER: (&str, &str) = ("scheduler-plugins", "scheduler-plugins-controller");

/// The definition of its PodGroups.
pub fn pod_group_definition() -> Result<Vec<Value>> {
    yaml::documents(&ModuleFiles::provide(Module::SchedulerPlugins)?.read(POD_GROUPS)?)
}

/// The scheduler and the controller of PodGroups, which wakes a gang when room comes. Dropped, both end.
#[derive(Debug)]
pub struct Coscheduling {
    _scheduler: Process,
    _controller: Process,
}

impl Coscheduling {
    /// Starts both and waits until they are ready.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let provide = || {
            use Program::{CoschedulingController, CoschedulingScheduler};
            let binaries = Binaries::provide(&[CoschedulingScheduler, CoschedulingController])?;
            anyhow::Ok((binaries, ModuleFiles::provide(Module::SchedulerPlugins)?))
        };
        let (binaries, files) = tokio::task::spawn_blocking(provide).await??;
        install(cluster, &files).await?;
        let (scheduler, controller) = tokio::try_join!(
            start_scheduler(cluster, &binaries),
            start_controller(cluster, &binaries),
        )?;
        Ok(Self { _scheduler: scheduler, _controller: controller })
    }
}

async fn install(cluster: &Cluster, files: &ModuleFiles) -> Result<()> {
    let client = cluster.client().await?;
    let mut definitions = Vec::new();
    for file in [POD_GROUPS, ELASTIC_QUOTAS] {
        let manifests = yaml::documents(&files.read(file)?)?;
        definitions.extend(apply(&client, "default", manifests).await?);
    }
    established(&client, &definitions).await?;
    // The programs run beside the cluster, not in it.
    let mut manifests = yaml::documents(&files.read(INSTALLATION)?)?;
    manifests.retain(|manifest| manifest["kind"] != "Deployment");
    apply(&client, "default", manifests).await?;
    Ok(())
}

async fn start_scheduler(cluster: &Cluster, binaries: &Binaries) -> Result<Process> {
    let credentials = cluster.credentials();
    let configuration = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": false},
        "clientConnection": {
            "kubeconfig": credentials.kubeconfig(Identity::Scheduler),
            "qps": 500,
            "burst": 1000,
        },
        "profiles": [{
            "schedulerName": SCHEDULER_NAME,
            "plugins": {
                "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
            },
            "pluginConfig": [{
                "name": "Coscheduling",
                "args": {"permitWaitingTimeSeconds": 10},
            }],
        }],
    });
    let file = cluster.folder().join("coscheduling.yaml");
    fs::write(&file, configuration.to_string()).context("cannot write its configuration")?;
    let port = Port::take()?;
    let arguments = [
        format!("--config={}", file.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", port.number()),
        format!("--tls-cert-file={}", credentials.path("tls.crt").display()),
        format!("--tls-private-key-file={}", credentials.path("tls.key").display()),
    ];
    let program = Program::CoschedulingScheduler;
    let process = cluster.spawn(program.name(), binaries.path(program), &arguments, &[])?;
    let server = format!("https://{}", port.address());
    process.ready_when(answers(&server, "/readyz", credentials.authority())).await?;
    Ok(process)
}

async fn start_controller(cluster: &Cluster, binaries: &Binaries) -> Result<Process> {
    let (namespace, account) = CONTROLLER;
    let kubeconfig = cluster.service_account_kubeconfig(namespace, account).await?;
    let (metrics, probe) = (Port::take()?, Port::take()?);
    let arguments = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--metricsAddr={}", metrics.address()),
        format!("--probeAddr={}", probe.address()),
    ];
    let program = Program::CoschedulingController;
    let process = cluster.spawn(program.name(), binaries.path(program), &arguments, &[])?;
    let server = format!("http://{}", probe.address());
    process.ready_when(answers(&server, "/readyz", cluster.authority())).await?;
    Ok(process)
}
