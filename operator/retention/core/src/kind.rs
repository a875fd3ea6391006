//! The kinds whose ends are known without being told.
//!
//! They are those whose controllers the project runs in its tests (`docs/retention.md`, R9). Any other kind needs a
//! `finished` block in the policy.

use std::{fmt, sync::Arc};

/// A kind of object in any version, as the target of a policy names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The name of the kind.
    pub kind: Arc<str>,
}

/// A kind whose end is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BuiltIn {
    /// A Job of Kubernetes.
    Job,
    /// A Pod.
    Pod,
    /// A JobSet.
    JobSet,
    /// A TrainJob.
    TrainJob,
    /// A Workload of Kueue.
    Workload,
    /// The record that is kept of a TrainJob's Pods.
    TrainJobRecord,
}

impl GroupKind {
    /// The built-in kind that it is, if it is one.
    #[must_use]
    pub fn built_in(&self) -> Option<BuiltIn> {
        BuiltIn::of(&self.group, &self.kind)
    }
}

impl fmt::Display for GroupKind {
    /// As kubectl has it: `Job.batch`, and `Pod` for a kind of the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.kind, self.group)
    }
}

impl BuiltIn {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::Job, Self::Pod, Self::JobSet, Self::TrainJob, Self::Workload, Self::TrainJobRecord];

    /// The kind of this group and name, if it is one of them.
    #[must_use]
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.group() == group && it.kind() == kind)
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Job => "batch",
            Self::Pod => "",
            Self::JobSet => "jobset.x-k8s.io",
            Self::TrainJob => "trainer.kubeflow.org",
            Self::Workload => "kueue.x-k8s.io",
            Self::TrainJobRecord => "lifecycle.trainjob.dev",
        }
    }

    /// The name of the kind.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::Pod => "Pod",
            Self::JobSet => "JobSet",
            Self::TrainJob => "TrainJob",
            Self::Workload => "Workload",
            Self::TrainJobRecord => "TrainJobRecord",
        }
    }

    /// The versions whose ends are known (`docs/retention.md`, R11). The server's preferred one among them is read.
    #[must_use]
    pub const fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Job | Self::Pod => &["v1"],
            Self::JobSet => &["v1alpha2"],
            Self::TrainJob | Self::TrainJobRecord => &["v1alpha1"],
            Self::Workload => &["v1beta2", "v1beta1"],
        }
    }

    /// Whether the controller that executes the kind's own TTL waits for the end of a hold
    /// (`docs/retention.md`, R31).
    #[must_use]
    pub const fn own_ttl_waits_for_hold(self) -> bool {
        match self {
            Self::TrainJob => true,
            Self::Job | Self::Pod | Self::JobSet | Self::Workload | Self::TrainJobRecord => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_group_and_name() {
        for (group, kind, expected) in [
            ("batch", "Job", Some(BuiltIn::Job)),
            ("", "Pod", Some(BuiltIn::Pod)),
            ("kueue.x-k8s.io", "Workload", Some(BuiltIn::Workload)),
            ("batch.volcano.sh", "Job", None),
            ("", "Job", None),
            ("batch", "job", None),
            ("ray.io", "RayJob", None),
        ] {
            let named = GroupKind { group: group.into(), kind: kind.into() };
            assert_eq!(named.built_in(), expected, "{named}");
        }
    }

    #[test]
    fn a_kind_is_shown_as_kubectl_names_it() {
        for (group, kind, expected) in [("batch", "Job", "Job.batch"), ("", "Pod", "Pod")] {
            let named = GroupKind { group: group.into(), kind: kind.into() };
            assert_eq!(named.to_string(), expected);
        }
    }
}
