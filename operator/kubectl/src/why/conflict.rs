//! Jobs whose JobSet cannot be made, because a JobSet of that name belongs to somebody else.

use trainjob_api::conditions::Reason;

use super::{
    answer::{Cause, Said},
    scene::Scene,
    words,
};

/// A JobSet of its name belongs to somebody else. The operator says so in its condition `Waiting`, but not at once.
#[must_use]
pub fn job_set_conflict(scene: &Scene) -> Option<Said> {
    let foreign = scene.foreign_job_set.as_ref()?;
    let because = note(scene).into_iter().chain(words::deadline(scene)).collect();
    let next = if foreign.metadata.deletion_timestamp.is_some() {
        words::until_gone(scene, "that JobSet")
    } else {
        "Delete or rename that JobSet, which belongs to somebody else, or create the job under another name.".to_owned()
    };
    let summary = format!("waits ({})", Reason::JobSetConflict.as_str());
    Some(Said { cause: Cause::Waiting, summary, because, next: vec![next] })
}

/// That a JobSet of its name belongs to somebody else, in the words of the operator.
pub(super) fn note(scene: &Scene) -> Option<String> {
    scene.foreign_job_set.as_ref()?;
    Some(format!("JobSet {} exists and does not belong to this TrainJob.", scene.key()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::why::testing::scene;

    #[test]
    fn a_job_whose_name_is_taken_waits_until_that_jobset_is_gone() {
        let going = json!({"metadata": {"uid": "J", "deletionTimestamp": "1970-01-01T00:50:00Z"}});
        for (foreign, advice) in [
            (json!({}), "Delete or rename that JobSet, which belongs to somebody else, or"),
            (going, "Wait until that JobSet is gone. If it stays, look for its finalizers"),
        ] {
            let job = scene(&json!({}), &json!({"activeDeadlineSeconds": 7_200}), &json!([]));
            let said = job_set_conflict(&job.with_foreign_job_set(&foreign)).unwrap();
            assert_eq!((said.cause, &*said.summary), (Cause::Waiting, "waits (JobSetConflict)"));
            let why = "JobSet team/llm exists and does not belong to this TrainJob.";
            let deadline = "Its deadline fails it at 1970-01-01T02:00:00Z, in 1h.";
            assert_eq!(said.because, [why, deadline]);
            assert!(said.next.iter().all(|it| it.starts_with(advice)), "{said:?}");
        }
    }

    #[test]
    fn a_job_with_its_own_jobset_or_none_has_no_conflict() {
        let job = || scene(&json!({}), &json!({}), &json!([]));
        for scene in [job(), job().with_job_set(&json!({}))] {
            assert_eq!(job_set_conflict(&scene), None);
        }
    }
}
