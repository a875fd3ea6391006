//! The programs, and what pins each of them.

use std::path::{Path, PathBuf};

use super::versions::{JobSet, Kubernetes, Versions};

/// Programs that are built together, for what needs one of them needs the others, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pins {
    ControlPlane,
    OldestKubernetes,
    OldestJobSet,
    Helm,
    Kueue,
    Trainer,
    Coscheduling,
    Volcano,
    Node,
    OldClient,
}

impl Pins {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "controlplane",
            Self::OldestKubernetes => "kubernetes-1.31",
            Self::OldestJobSet => "jobset-0.10",
            Self::Helm => "helm",
            Self::Kueue => "kueue",
            Self::Trainer => "trainer",
            Self::Coscheduling => "coscheduling",
            Self::Volcano => "volcano",
            Self::Node => "node",
            Self::OldClient => "old-client",
        }
    }

    /// The folder with the `go.mod` that pins them.
    pub(crate) fn directory(self) -> PathBuf {
        let folder = match self {
            // One `go.mod`, so that what they have in common is compiled once.
            Self::ControlPlane
            | Self::Helm
            | Self::Kueue
            | Self::Coscheduling
            | Self::Volcano
            | Self::Node => "newest",
            Self::OldestKubernetes | Self::OldestJobSet | Self::Trainer | Self::OldClient => {
                self.name()
            }
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(folder)
    }

    /// The programs it pins.
    pub(super) const fn programs(self) -> &'static [Program] {
        use Program::{
            ApiServer, ControllerGen, ControllerManager, CoschedulingController,
            CoschedulingScheduler, Etcd, Helm, JobSet, Kubectl, Kubelet, Kueue, Kwok, NameServer,
            OldClient, Scheduler, TrainerManager,
        };
        match self {
            Self::ControlPlane => {
                &[Etcd, ApiServer, ControllerManager, Scheduler, Kubectl, JobSet, Kwok]
            }
            Self::OldestKubernetes => &[ApiServer, ControllerManager, Scheduler, Kubectl],
            Self::OldestJobSet => &[JobSet],
            Self::Helm => &[Helm],
            Self::Kueue => &[Kueue],
            Self::Trainer => &[TrainerManager],
            Self::Coscheduling => &[CoschedulingScheduler, CoschedulingController],
            Self::Volcano => &[ControllerGen],
            Self::Node => &[Kubelet, NameServer],
            Self::OldClient => &[OldClient],
        }
    }

    /// The Go files beside its `go.mod`, which are ours and which nothing pins.
    pub(super) const fn sources(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["name-server/main.go"],
            Self::Coscheduling => &["coscheduling/main.go"],
            Self::OldClient => &["main.go"],
            Self::ControlPlane
            | Self::OldestKubernetes
            | Self::OldestJobSet
            | Self::Helm
            | Self::Kueue
            | Self::Trainer
            | Self::Volcano => &[],
        }
    }

    /// Whether its versions are not those that everybody has in `PATH`.
    pub(super) const fn old(self) -> bool {
        matches!(self, Self::OldestKubernetes | Self::OldestJobSet)
    }
}

/// A program that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Program {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    Kubectl,
    JobSet,
    Kwok,
    Helm,
    Kueue,
    /// Kubeflow Trainer's controller manager.
    TrainerManager,
    /// kube-scheduler with the coscheduling plugin.
    CoschedulingScheduler,
    /// The controller of coscheduling's PodGroups.
    CoschedulingController,
    /// What makes definitions of API types.
    ControllerGen,
    Kubelet,
    /// A name server for the Services of a cluster.
    NameServer,
    /// A client of TrainJobs from before they had a deadline or a TTL.
    OldClient,
}

impl Program {
    /// Its usual file name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::JobSet => "jobset",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
            Self::Kueue => "kueue",
            Self::TrainerManager => "trainer-controller-manager",
            Self::CoschedulingScheduler => "coscheduling-scheduler",
            Self::CoschedulingController => "coscheduling-controller",
            Self::ControllerGen => "controller-gen",
            Self::Kubelet => "kubelet",
            Self::NameServer => "coredns",
            Self::OldClient => "old-client",
        }
    }

    /// What pins it in a cluster of these versions.
    pub(super) const fn pins(self, versions: Versions) -> Pins {
        match self {
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => {
                match versions.kubernetes {
                    Kubernetes::Oldest => Pins::OldestKubernetes,
                    Kubernetes::Newest => Pins::ControlPlane,
                }
            }
            Self::JobSet => versions.jobset.pins(),
            Self::Etcd | Self::Kwok => Pins::ControlPlane,
            Self::Helm => Pins::Helm,
            Self::Kueue => Pins::Kueue,
            Self::TrainerManager => Pins::Trainer,
            Self::CoschedulingScheduler | Self::CoschedulingController => Pins::Coscheduling,
            Self::ControllerGen => Pins::Volcano,
            Self::Kubelet | Self::NameServer => Pins::Node,
            Self::OldClient => Pins::OldClient,
        }
    }

    /// The Go package it is built from: a `tool` of the `go.mod`, or a folder beside it.
    pub(super) const fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::JobSet => "sigs.k8s.io/jobset",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
            Self::Kueue => "sigs.k8s.io/kueue/cmd/kueue",
            Self::TrainerManager => "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
            Self::CoschedulingScheduler => "./coscheduling",
            Self::CoschedulingController => "sigs.k8s.io/scheduler-plugins/cmd/controller",
            Self::ControllerGen => "sigs.k8s.io/controller-tools/cmd/controller-gen",
            Self::Kubelet => "k8s.io/kubernetes/cmd/kubelet",
            Self::NameServer => "./name-server",
            Self::OldClient => "trainjob.dev/e2e/programs/old-client",
        }
    }

    /// The file name `go install` gives it, which is the last part of the package's path.
    pub(super) const fn built_name(self) -> &'static str {
        match self {
            Self::Etcd => "server",
            Self::CoschedulingScheduler => "coscheduling",
            Self::CoschedulingController => "controller",
            Self::NameServer => "name-server",
            other => other.name(),
        }
    }
}

impl JobSet {
    pub(crate) const fn pins(self) -> Pins {
        match self {
            Self::Oldest => Pins::OldestJobSet,
            Self::Newest => Pins::ControlPlane,
        }
    }
}
