//! Which of the objects with a job's name are its own: names are used again, and by others.

use k8s_openapi::api::core::v1::Event;
use trainjob_api::{jobset::JobSetView, v1alpha1::TRAIN_JOB_KIND};

/// Whether a JobSet is controlled by the job with this UID.
pub(super) fn is_owned_by(job_set: &JobSetView, uid: &str) -> bool {
    let mut owners = job_set.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.uid == uid && owner.controller == Some(true))
}

/// Whether an event is about an earlier TrainJob of the same name: events outlive what they are about.
pub(super) fn is_of_another(event: &Event, uid: &str) -> bool {
    let about = &event.involved_object;
    let is_another = about.uid.as_deref().is_some_and(|it| !it.is_empty() && it != uid);
    is_another && about.kind.as_deref() == Some(TRAIN_JOB_KIND)
}

/// Whether a Job has the name that a JobSet gives its Jobs: its own, that of the replicated job, and a number. Without
/// the names of the replicated jobs nobody can tell the Jobs of `llm` from those of `llm-large`.
pub(super) fn is_job_of(job_set: &str, replicated_jobs: &[&str], job: &str) -> bool {
    let rest = job.strip_prefix(job_set).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| rest.rsplit_once('-')).is_some_and(|(replicated_job, index)| {
        let is_known = replicated_jobs.is_empty() || replicated_jobs.contains(&replicated_job);
        is_known && index.parse::<u32>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_about_an_earlier_job_of_the_same_name_are_not_heard() {
        for (about, expected) in [
            (json!({"kind": "TrainJob", "name": "llm", "uid": "U"}), false),
            (json!({"kind": "TrainJob", "name": "llm", "uid": "earlier"}), true),
            (json!({"kind": "TrainJob", "name": "llm", "uid": ""}), false),
            (json!({"kind": "TrainJob", "name": "llm"}), false),
            (json!({"kind": "JobSet", "name": "llm", "uid": "J"}), false),
        ] {
            let event = json!({"metadata": {"name": "e"}, "involvedObject": about});
            let event: Event = serde_json::from_value(event).unwrap();
            assert_eq!(is_of_another(&event, "U"), expected, "{about}");
        }
    }

    #[test]
    fn a_job_is_told_by_its_name_from_those_of_longer_named_train_jobs() {
        let both: &[&str] = &["node", "dataset-initializer"];
        let unknown: &[&str] = &[];
        for (replicated_jobs, name, expected) in [
            (both, "llm-node-0", true),
            (both, "llm-dataset-initializer-12", true),
            (both, "llm-large-node-0", false),
            (both, "llm-node-node-0", false),
            (both, "llm-node", false),
            (both, "llm-node-0-0", false),
            (both, "llmnode-0", false),
            (both, "other-node-0", false),
            (unknown, "llm-node-0", true),
            (unknown, "llm-large-node-0", true),
            (unknown, "llm-nightly", false),
        ] {
            assert_eq!(is_job_of("llm", replicated_jobs, name), expected, "{name}");
        }
    }
}
