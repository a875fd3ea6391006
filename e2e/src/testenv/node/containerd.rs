//! containerd: runs containers, and knows their images and their network.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::image::SMALL;
use super::sandbox::Sandbox;
use crate::testenv::process::Process;
use crate::testenv::until::until_ok;

/// Where the kubelet talks to it.
pub(super) const SOCKET: &str = "/run/containerd/containerd.sock";
/// Where it has the kubelet's images and containers.
const NAMESPACE: &str = "k8s.io";
const PATIENCE: Duration = Duration::from_mins(1);

/// Starts it and waits until it answers.
pub(super) async fn start(sandbox: &Sandbox) -> Result<Process> {
    let folder = sandbox.folder();
    let networks = folder.join("networks");
    fs::create_dir(&networks)?;
    fs::write(networks.join("pods.conflist"), network())?;
    let file = folder.join("containerd.toml");
    fs::write(&file, configuration(&folder.join("containerd"), &networks))?;
    let config = format!("--config={}", file.display());
    let process = sandbox.spawn("containerd", &["containerd", &config])?;
    let answers = until_ok("containerd answers", PATIENCE, || ctr(sandbox, &["version"]));
    process.ready_when(answers).await?;
    Ok(process)
}

/// Makes the image of a file known.
pub(super) async fn load(sandbox: &Sandbox, image: &Path) -> Result<()> {
    let file = image.to_str().context("a path that is no text")?;
    ctr(sandbox, &["images", "import", file]).await?;
    Ok(())
}

async fn ctr(sandbox: &Sandbox, arguments: &[&str]) -> Result<String> {
    let to = ["ctr", "--address", SOCKET, "--namespace", NAMESPACE];
    sandbox.output(&[&to[..], arguments].concat()).await
}

/// Pods are on a bridge of the node, and have the node as their router.
fn network() -> String {
    let subnet = json!([[{"subnet": "10.77.64.0/24"}]]);
    let bridge = json!({
        "type": "bridge",
        "bridge": "pods0",
        "isDefaultGateway": true,
        "ipam": {"type": "host-local", "ranges": subnet},
    });
    json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}).to_string()
}

fn configuration(root: &Path, networks: &Path) -> String {
    let (root, networks) = (root.display(), networks.display());
    format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd"
# What looks for other file systems, restarts what nobody asked for, or sends away what it does.
disabled_plugins = [
    "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
    "io.containerd.internal.v1.restart", "io.containerd.internal.v1.tracing",
    "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{SMALL}"
# Who may not lower the score of a process could start none otherwise.
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{networks}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"#
    )
}
