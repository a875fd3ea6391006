//! Sentences, and parts of them, that several causes need.

use k8s_openapi::api::core::v1::Pod;
use trainjob_api::constants::{JOBSET_NAME_LABEL, JOBSET_UID_LABEL};

use super::scene::Scene;
use crate::{deadline::Deadline, duration::brief, gpus::of_pod};

/// So many things of a kind, such as `1 Pod` and `2 Pods`.
#[must_use]
pub fn count(many: usize, thing: &str) -> String {
    let ending = if many == 1 { "" } else { "s" };
    format!("{many} {thing}{ending}")
}

/// How many GPUs Pods hold, such as `no GPU` and `8 GPUs`.
#[must_use]
pub fn gpus(pods: &[&Pod]) -> String {
    let gpus = pods.iter().fold(0_u64, |sum, pod| sum.saturating_add(of_pod(pod)));
    match gpus {
        0 => "no GPU".to_owned(),
        1 => "1 GPU".to_owned(),
        _ => format!("{gpus} GPUs"),
    }
}

/// The flag that names the namespace of the job.
#[must_use]
pub fn in_namespace(scene: &Scene) -> String {
    format!("--namespace {}", scene.key().namespace)
}

/// The selector of its Pods, without those of a foreign JobSet.
#[must_use]
pub fn selector(scene: &Scene) -> String {
    let foreign = scene.foreign_job_set.as_ref().and_then(|it| it.metadata.uid.as_deref());
    let but = foreign.map_or_else(String::new, |uid| format!(",{JOBSET_UID_LABEL}!={uid}"));
    format!("{JOBSET_NAME_LABEL}={}{but}", scene.key().name)
}

/// The name of the job with the flag that names its namespace, as kubectl takes them.
#[must_use]
pub fn name_and_namespace(scene: &Scene) -> String {
    format!("{} {}", scene.key().name, in_namespace(scene))
}

/// What can be done about a JobSet that is being deleted.
#[must_use]
pub fn until_gone(scene: &Scene, job_set: &str) -> String {
    format!(
        "Wait until {job_set} is gone. If it stays, look for its finalizers: kubectl get jobset {} --output yaml",
        name_and_namespace(scene)
    )
}

/// When the deadline of an unfinished job fails it, if it does.
#[must_use]
pub fn deadline(scene: &Scene) -> Option<String> {
    match Deadline::of(&scene.facts, scene.clock, scene.now) {
        Deadline::None | Deadline::Endless => None,
        Deadline::Stopped => Some("Its deadline does not run while it is suspended.".to_owned()),
        Deadline::Due { due, exact } => {
            let bound = if exact { "" } else { " at the latest" };
            Some(format!("Its deadline has passed at {due}{bound}: the operator is to fail it."))
        }
        Deadline::DueByCreation { due, left_seconds } => {
            let otherwise = left_seconds.map_or_else(
                || "it does not run while the job is suspended".to_owned(),
                |left| {
                    let (at, left) = (scene.now.plus(left), brief(left.unsigned_abs()));
                    format!("it fails the job at {at}, in {left}")
                },
            );
            Some(format!(
                "If deadlines count from the creation here (lifecycle.deadlineClock: Creation), its deadline has passed at {due}, and the operator is to fail it. If they count from the last resume (LastResume), {otherwise}. Name the clock with --deadline-clock."
            ))
        }
        Deadline::Running { due, left_seconds, exact } => {
            let left = brief(left_seconds.unsigned_abs());
            let bound = if exact { "" } else { " at the earliest" };
            Some(format!("Its deadline fails it at {due}{bound}, in {left}."))
        }
    }
}

/// A text from elsewhere as the end of a sentence: on one line, without the full stop that the sentence adds.
#[must_use]
pub fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainjob_core::lifecycle::deadline::Clock;

    use super::*;
    use crate::why::testing::{condition, scene};

    #[test]
    fn a_deadline_that_has_passed_by_one_clock_only_is_told_by_both() {
        let suspended = condition("Suspended", "Suspended", "");
        let mut resumed = suspended.clone();
        resumed["status"] = json!("False");
        let unclear = "If deadlines count from the creation here (lifecycle.deadlineClock: Creation), its deadline has passed at 1970-01-01T00:55:00Z, and the operator is to fail it. If they count from the last resume (LastResume), ";
        let running = "it fails the job at 1970-01-01T01:05:00Z, in 5m. Name the clock with --deadline-clock.";
        let stopped =
            "it does not run while the job is suspended. Name the clock with --deadline-clock.";
        let passed =
            |at: &str| format!("Its deadline has passed at {at}: the operator is to fail it.");
        for (conditions, suspend, seconds, clock, expected) in [
            (json!([resumed]), false, 3_300, None, format!("{unclear}{running}")),
            (json!([suspended]), true, 3_300, None, format!("{unclear}{stopped}")),
            (
                json!([resumed]),
                false,
                3_300,
                Some(Clock::LastResume),
                "Its deadline fails it at 1970-01-01T01:05:00Z, in 5m.".to_owned(),
            ),
            (json!([resumed]), false, 3_300, Some(Clock::Creation), passed("1970-01-01T00:55:00Z")),
            (json!([resumed]), false, 1_200, None, passed("1970-01-01T00:30:00Z at the latest")),
            (json!([]), false, 1_200, None, passed("1970-01-01T00:20:00Z")),
        ] {
            let spec = json!({"suspend": suspend, "activeDeadlineSeconds": seconds});
            let mut job = scene(&json!({}), &spec, &conditions);
            job.clock = clock;
            assert_eq!(deadline(&job), Some(expected), "{conditions} {seconds} {clock:?}");
        }
    }
}
