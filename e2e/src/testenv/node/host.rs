//! A node and its cluster.

use std::path::Path;

use anyhow::Result;
use tokio::sync::Mutex;

use super::packages::Packages;
use super::sandbox::Sandbox;
use super::{containerd, image, kubelet, name_server};
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::World;
use crate::testenv::process::Process;

/// A node and the cluster that it belongs to. Dropped, all of it ends.
#[derive(Debug)]
pub struct Node {
    /// The cluster, with the operator's permissions and definitions in it but no operator yet.
    pub world: World,
    _name_server: Process,
    kubelet: Mutex<Process>,
    _containerd: Process,
    // Dropped last: with it ends what the others have started.
    sandbox: Sandbox,
}

impl Node {
    /// Starts all of it, in the network of `sandbox`, and waits until Pods can be scheduled.
    pub(super) async fn start(sandbox: Sandbox, packages: &Packages) -> Result<Self> {
        let flags = [
            "--authorization-mode=Node",
            "--enable-admission-plugins=NodeRestriction",
            // There is no way out of this network, which is where the address is looked for otherwise.
            "--advertise-address=10.77.0.1",
            // Its name is known to nobody.
            "--kubelet-preferred-address-types=InternalIP",
        ];
        let options = Options {
            nodes: None,
            apiserver_flags: flags.map(str::to_owned).into(),
            ..Options::default()
        };
        let world = Box::pin(World::without_operator(options)).await?;
        let containerd = containerd::start(&sandbox).await?;
        // Also what every Pod begins with.
        containerd::load(&sandbox, &image::small(packages, sandbox.folder())?).await?;
        let name_server = name_server::start(&world.cluster).await?;
        let kubelet = kubelet::start(&sandbox, &world.cluster).await?;
        Ok(Self {
            world,
            _name_server: name_server,
            kubelet: Mutex::new(kubelet),
            _containerd: containerd,
            sandbox,
        })
    }

    /// A folder for what is made for the node, which goes with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.sandbox.folder()
    }

    /// Makes the image of a file known to the node; see [`image::write`].
    pub async fn load(&self, image: &Path) -> Result<()> {
        containerd::load(&self.sandbox, image).await
    }

    /// Kills the kubelet, and starts another one when `body` has ended well. What runs in Pods runs on.
    pub async fn while_kubelet_is_dead(
        &self,
        body: impl AsyncFnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut kubelet = self.kubelet.lock().await;
        kubelet.kill();
        body().await?;
        *kubelet = kubelet::start(&self.sandbox, &self.world.cluster).await?;
        Ok(())
    }

    /// The ids of the processes in the containers of the Pods with these UIDs, as they are now.
    pub fn processes(&self, pods: &[String]) -> Result<Vec<u32>> {
        self.sandbox.groups().processes(pods)
    }
}
