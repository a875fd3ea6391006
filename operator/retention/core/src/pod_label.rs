//! By which label the Pods of an object are found (`docs/retention.md`, R22).
//!
//! The kinds here are those that do not make their Pods again once they have finished. A label that has a name for its
//! value is a hint only, because names are used again; the UIDs of owners tell then.

/// A label on the Pods of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodLabel {
    key: &'static str,
    value: PodLabelValue,
}

/// What such a label has for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodLabelValue {
    /// The UID of the object.
    Uid,
    /// The name of the object.
    Name,
    /// The UID of the JobSet that the object, a TrainJob, has made.
    JobSetUid,
}

const JOB_SET_UID: &str = "jobset.sigs.k8s.io/jobset-uid";

impl PodLabel {
    /// The label on the Pods of this kind; `None` for kinds whose Pods cannot be deleted without it.
    #[must_use]
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        use PodLabelValue::{JobSetUid, Name, Uid};
        let (key, value) = match (group, kind) {
            ("batch", "Job") => ("batch.kubernetes.io/controller-uid", Uid),
            ("jobset.x-k8s.io", "JobSet") => (JOB_SET_UID, Uid),
            ("trainer.kubeflow.org", "TrainJob") => (JOB_SET_UID, JobSetUid),
            (
                "kubeflow.org",
                "PyTorchJob" | "TFJob" | "MPIJob" | "XGBoostJob" | "PaddleJob" | "JAXJob",
            ) => ("training.kubeflow.org/job-name", Name),
            ("argoproj.io", "Workflow") => ("workflows.argoproj.io/workflow", Name),
            ("tekton.dev", "TaskRun") => ("tekton.dev/taskRunUID", Uid),
            ("tekton.dev", "PipelineRun") => ("tekton.dev/pipelineRunUID", Uid),
            ("batch.volcano.sh", "Job") => ("volcano.sh/job-name", Name),
            _ => return None,
        };
        Some(Self { key, value })
    }

    /// The key.
    #[must_use]
    pub const fn key(self) -> &'static str {
        self.key
    }

    /// What the value is.
    #[must_use]
    pub const fn value(self) -> PodLabelValue {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_found_by_the_label_that_their_kind_gives_them() {
        for (group, kind, expected) in [
            ("batch", "Job", Some(("batch.kubernetes.io/controller-uid", PodLabelValue::Uid))),
            ("batch.volcano.sh", "Job", Some(("volcano.sh/job-name", PodLabelValue::Name))),
            ("trainer.kubeflow.org", "TrainJob", Some((JOB_SET_UID, PodLabelValue::JobSetUid))),
            (
                "kubeflow.org",
                "MPIJob",
                Some(("training.kubeflow.org/job-name", PodLabelValue::Name)),
            ),
            ("ray.io", "RayJob", None),
            ("", "Pod", None),
            ("kueue.x-k8s.io", "Workload", None),
        ] {
            let label = PodLabel::of(group, kind).map(|label| (label.key(), label.value()));
            assert_eq!(label, expected, "{group} {kind}");
        }
    }
}
