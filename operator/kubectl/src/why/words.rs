//! Sentences, and parts of them, that several causes need.

use k8s_openapi::api::core::v1::Pod;
use trainjob_api::constants::JOBSET_NAME_LABEL;

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

/// The selector of its Pods.
#[must_use]
pub fn selector(scene: &Scene) -> String {
    format!("{JOBSET_NAME_LABEL}={}", scene.key().name)
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
        Deadline::Due { due } => {
            Some(format!("Its deadline has passed at {due}, and the operator is about to fail it."))
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
