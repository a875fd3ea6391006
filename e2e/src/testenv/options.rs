//! What a cluster is to consist of.

use std::time::Duration;

use crate::testenv::binaries::{Program, Versions};

/// What a cluster is to consist of.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a part that is there or not")]
pub struct Options {
    /// How many fake nodes it has, of 8 GPUs each. With `None` not even KWOK runs, which plays
    /// their kubelets.
    pub nodes: Option<usize>,
    /// Whether kube-controller-manager and kube-scheduler run. Without them there are no Jobs, no
    /// garbage collection, and nothing is scheduled.
    pub controllers: bool,
    /// Whether JobSet runs, with its webhooks.
    pub jobset: bool,
    /// Whether the operator's own custom resource definitions are installed.
    pub crds: bool,
    /// Whether etcd waits for the disk before it answers. Only measurements need that.
    pub fsync: bool,
    /// Which releases it is made of; the environment may ask for others ([`Versions::environment`]).
    pub versions: Versions,
    /// More flags for the API server; given twice, a flag's later value counts.
    pub apiserver_flags: Vec<String>,
    /// More flags for kube-controller-manager.
    pub controller_manager_flags: Vec<String>,
    /// Told each step of the start, with the time since it began.
    pub report: fn(Duration, &str),
}

impl Default for Options {
    /// Everything but the operator's own definitions, with 4 nodes, not durable, silent.
    fn default() -> Self {
        Self {
            nodes: Some(4),
            controllers: true,
            jobset: true,
            crds: false,
            fsync: false,
            versions: Versions::default(),
            apiserver_flags: Vec::new(),
            controller_manager_flags: Vec::new(),
            report: |_, _| {},
        }
    }
}

impl Options {
    /// An API server with its etcd, and nothing that acts on what is in it.
    #[must_use]
    pub fn bare() -> Self {
        Self { nodes: None, controllers: false, jobset: false, ..Self::default() }
    }

    /// The programs that it needs.
    pub(crate) fn programs(&self) -> Vec<Program> {
        use Program::{ApiServer, ControllerManager, Etcd, JobSet, Kubectl, Kwok, Scheduler};
        let groups: [(bool, &[Program]); 4] = [
            (true, &[Etcd, ApiServer, Kubectl]),
            (self.controllers, &[ControllerManager, Scheduler]),
            (self.jobset, &[JobSet]),
            (self.nodes.is_some(), &[Kwok]),
        ];
        groups
            .into_iter()
            .filter(|(wanted, _)| *wanted)
            .flat_map(|(_, group)| group.to_vec())
            .collect()
    }
}
