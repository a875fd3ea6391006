//! The kubelet: makes the machine that the namespaces show a node of the cluster.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::json;

use super::containerd::SOCKET;
use super::name_server::DOMAIN;
use super::sandbox::{ADDRESS, Sandbox};
use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::Cluster;
use crate::testenv::credentials::Identity;
use crate::testenv::process::Process;
use crate::testenv::until::until_ok;

/// What the node is called.
const NAME: &str = "real";
const PATIENCE: Duration = Duration::from_mins(2);

/// Starts it and waits until the node takes Pods.
pub(super) async fn start(sandbox: &Sandbox, cluster: &Cluster) -> Result<Process> {
    let folder = sandbox.folder();
    let file = |name: &str| folder.join(name).display().to_string();
    // Pods are to look for names in the cluster, not where this machine does.
    fs::write(folder.join("resolv.conf"), "")?;
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        // Nobody else is in this network.
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "clusterDNS": [ADDRESS],
        "clusterDomain": DOMAIN,
        "resolvConf": file("resolv.conf"),
        "volumePluginDir": file("volume-plugins"),
        // It looks at what Pods store only so often, every minute if nothing is said.
        "volumeStatsAggPeriod": "10s",
        // The machine is shared: what others store and use is no reason to evict.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "failSwapOn": false,
        "oomScoreAdj": 0,
    });
    fs::write(folder.join("kubelet.yaml"), config.to_string())?;
    let program = Program::Kubelet;
    let provide = move || Binaries::provide(&[program]);
    let binaries = tokio::task::spawn_blocking(provide).await??;
    let kubeconfig = cluster.credentials().kubeconfig(Identity::Kubelet);
    let flags = [
        format!("--config={}", file("kubelet.yaml")),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--root-dir={}", file("kubelet")),
        format!("--cert-dir={}", file("kubelet-certificates")),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={ADDRESS}"),
    ];
    let path = binaries.path(program).to_str().context("a path that is no text")?;
    let command: Vec<&str> = [path].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let process = sandbox.spawn(program.name(), &command)?;
    process.ready_when(takes_pods(cluster)).await?;
    Ok(process)
}

/// Waits until the node says that it is ready and nobody says that it is not.
async fn takes_pods(cluster: &Cluster) -> Result<()> {
    let nodes: Api<Node> = Api::all(cluster.client().await?);
    until_ok("the node takes Pods", PATIENCE, || async {
        let node = nodes.get(NAME).await?;
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let ready = ready.context("it says nothing yet")?;
        ensure!(ready.status == "True", "{}", ready.message.as_deref().unwrap_or_default());
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        ensure!(taints.is_empty(), "it has taints: {taints:?}");
        Ok(())
    })
    .await
}
