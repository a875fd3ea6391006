//! Jobs that something of is left after their end.

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Condition};
use trainjob_api::{
    conditions::{FAILED, Reason, WAITING},
    time::Timestamp,
};
use trainjob_core::{
    facts::Outcome,
    running_pods::{Cause as Keeps, RunningPod},
};

use super::{
    answer::{Cause, Said},
    scene::{Scene, Seen},
    words,
};
use crate::gpus::has_ended;

/// How many Pods are named.
const MOST_NAMED: usize = 10;

/// Its deadline has failed it, and Pods or a JobSet of it are left: as far as they can be seen, or else by its condition
/// `Waiting`, which the operator takes away at the release.
#[must_use]
pub fn not_released(scene: &Scene) -> Option<Said> {
    let finished = scene.facts.finished?;
    let waiting = scene.holds(WAITING);
    let is_seen = scene.job_set.there().is_some() || !scene.running().is_empty();
    let is_left = is_seen || waiting.is_some();
    if finished.outcome != Outcome::DeadlineExceeded || !is_left {
        return None;
    }
    let what = what_is_left(scene);
    let summary =
        format!("was stopped by its deadline at {} and is not released: {what}", finished.at);
    let mut next = advice(scene);
    next.extend(waiting.and_then(|it| about_job_set(scene, it)));
    Some(Said { cause: Cause::NotReleased, summary, because: shown_by(scene, waiting), next })
}

/// What is left of a job that is not released, as the end of a sentence.
fn what_is_left(scene: &Scene) -> String {
    let running = scene.running();
    if !running.is_empty() {
        let verb = if running.len() == 1 { "holds" } else { "hold" };
        let pods = words::count(running.len(), "Pod");
        return format!("{pods} of it still {verb} {}", words::gpus(&running));
    }
    let what = match (&scene.job_set, &scene.pods) {
        (Seen::There(_), Seen::Unknown(_)) => {
            "its JobSet is there, and whether Pods of it run is not known"
        }
        (Seen::There(_), Seen::There(_) | Seen::Absent) => {
            "its Pods are gone, but its JobSet is not"
        }
        (Seen::Absent | Seen::Unknown(_), _) => "its condition Waiting says what is left of it",
    };
    what.to_owned()
}

/// What shows that a job is not released. What is seen of it says more than its condition, and events often the same.
fn shown_by(scene: &Scene, waiting: Option<&Condition>) -> Vec<String> {
    let message = scene.holds(FAILED).map(|failed| words::quoted(&failed.message));
    let mut because: Vec<String> =
        message.map(|message| format!("Its status says: {message}.")).into_iter().collect();
    let left = left(scene);
    if let Some(Condition { reason, message, last_transition_time, .. }) =
        waiting.filter(|_| left.is_empty())
    {
        let (since, why) = (Timestamp::from(last_transition_time), words::quoted(message));
        because.push(format!("It waits since {since} ({reason}): {why}."));
    }
    because.extend(left);
    let notes = ["ReleaseFailed", "ReleaseBlocked"].map(|reason| scene.told(reason));
    for note in notes.into_iter().flatten().map(words::quoted) {
        if !because.iter().any(|said| said.contains(&note)) {
            because.push(format!("An event says: {note}."));
        }
    }
    because
}

/// What can be done about its JobSet, if that is what the release waits for.
fn about_job_set(scene: &Scene, waiting: &Condition) -> Option<String> {
    let waits_for_it = waiting.reason == Reason::JobSetTerminating.as_str();
    waits_for_it.then(|| words::until_gone(scene, "its JobSet"))
}

/// What is left of a job, and what keeps it.
pub(super) fn left(scene: &Scene) -> Vec<String> {
    let running = scene.running();
    let mut left: Vec<String> = running
        .iter()
        .take(MOST_NAMED)
        .map(|pod| {
            let gpus = words::gpus(&[*pod]);
            format!("{}: {gpus}.", RunningPod::of(pod, scene.now))
        })
        .collect();
    let further = running.len().saturating_sub(MOST_NAMED);
    if further > 0 {
        left.push(format!("{} more still run.", words::count(further, "Pod")));
    }
    left.extend(scene.labelled().iter().filter_map(kept_pod).take(MOST_NAMED));
    if let Some(job_set) = scene.job_set.there() {
        let finalizers = job_set.metadata.finalizers.clone().unwrap_or_default();
        let by = if finalizers.is_empty() {
            String::new()
        } else {
            format!(", with the finalizer {}", finalizers.join(", "))
        };
        let going = if job_set.metadata.deletion_timestamp.is_some() {
            "is being deleted"
        } else {
            "is not being deleted yet"
        };
        left.push(format!("Its JobSet {going}{by}."));
    }
    left
}

/// A Pod that has ended, is deleted, and is kept by a finalizer.
fn kept_pod(pod: &Pod) -> Option<String> {
    let finalizer = pod.metadata.finalizers.iter().flatten().next()?;
    let kept = has_ended(pod) && pod.metadata.deletion_timestamp.is_some();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    kept.then(|| format!("Pod {name} has ended, but its finalizer {finalizer} keeps it."))
}

/// What can be done about the Pods that still run: a sentence for each cause.
pub(super) fn advice(scene: &Scene) -> Vec<String> {
    let mut advice = Vec::new();
    for pod in scene.running() {
        let pod = RunningPod::of(pod, scene.now);
        let namespace = words::in_namespace(scene);
        let node = pod.node.as_deref().unwrap_or("NODE");
        let sentence = match &pod.cause {
            Keeps::NodeNotReady => format!(
                "Look at node {node}: kubectl describe node {node}. If its machine is gone for good, delete the Node, and its Pods go, too."
            ),
            Keeps::NotDeleted => {
                "Wait a minute: the garbage collector deletes what its owner has left.".to_owned()
            }
            Keeps::GracePeriod { ends } => {
                format!("Wait until {ends}: then the grace period of its Pods is over.")
            }
            Keeps::Finalizer(finalizer) => format!(
                "Find out which program has put the finalizer {finalizer} on Pod {}: kubectl get pod {} {namespace} --output yaml",
                pod.name, pod.name
            ),
            Keeps::Overdue { .. } => format!(
                "Look at node {node}, which should have ended the Pod by now: kubectl describe node {node}"
            ),
        };
        if !advice.contains(&sentence) && advice.len() < MOST_NAMED {
            advice.push(sentence);
        }
    }
    advice
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::why::testing::{condition, scene};

    fn exceeded() -> Scene {
        let failed =
            condition("Failed", "DeadlineExceeded", "TrainJob exceeded its active deadline.");
        scene(&json!({}), &json!({"activeDeadlineSeconds": 600}), &json!([failed]))
    }

    fn going(mut scene: Scene, until: i64, finalizer: Option<&str>) -> Scene {
        let Seen::There(pods) = &mut scene.pods else { panic!("no Pods") };
        let pod = pods.last_mut().unwrap();
        pod.metadata.deletion_timestamp = Some(Timestamp(until).into());
        pod.metadata.finalizers = finalizer.map(|finalizer| vec![finalizer.to_owned()]);
        scene
    }

    #[test]
    fn a_job_that_is_not_released_names_pods_nodes_and_what_to_do() {
        let status = json!({"phase": "Running", "startTime": "1970-01-01T00:05:00Z"});
        let lost =
            json!({"phase": "Running", "reason": "NodeLost", "startTime": "1970-01-01T00:05:00Z"});
        let pod = |status: &Value| exceeded().with_pod("p", Some("n1"), status);
        for (scene, texts) in [
            (
                pod(&status).with_pod("q", Some("n2"), &status),
                &[
                    "was stopped by its deadline at 1970-01-01T00:10:00Z and is not released: 2 Pods of it still hold 8 GPUs",
                    "Pod p on node n1 since 1970-01-01T00:05:00Z (nobody has deleted it yet): 4 GPUs.",
                    "Pod q on node n2",
                ][..],
            ),
            (pod(&lost), &["its node is not ready", "kubectl describe node n1", "delete the Node"]),
            (going(pod(&status), 3_700, None), &["1 Pod of it still holds 4 GPUs", "Wait until 1970-01-01T01:01:40Z"]),
            (going(pod(&status), 700, Some("example.com/f")), &["finalizer example.com/f keeps it", "kubectl get pod p --namespace team"]),
            (going(pod(&status), 700, None), &["should have ended the Pod by now"]),
            (
                exceeded().with_job_set(&json!({"metadata": {"finalizers": ["example.com/f"], "deletionTimestamp": "1970-01-01T00:10:00Z"}})),
                &["its Pods are gone, but its JobSet is not", "Its JobSet is being deleted, with the finalizer example.com/f."],
            ),
            (
                pod(&status).with_event("ReleaseFailed", "JobSet could not be deleted."),
                &["An event says: JobSet could not be deleted."],
            ),
        ] {
            let said = not_released(&scene).unwrap();
            let page = format!("{}\n{}\n{}", said.summary, said.because.join("\n"), said.next.join("\n"));
            for text in texts {
                assert!(page.contains(text), "{text:?} is not in\n{page}");
            }
        }
    }

    #[test]
    fn a_job_that_its_condition_calls_unreleased_is_not_released() {
        let failed = condition("Failed", "DeadlineExceeded", "m");
        let blocked = "JobSet team/llm has been terminating since 1970-01-01T00:10:00Z.";
        let job = |reason: &str| {
            let waiting = condition("Waiting", reason, blocked);
            scene(&json!({}), &json!({"activeDeadlineSeconds": 600}), &json!([failed, waiting]))
        };
        let mut blind = job("JobSetTerminating").with_event("ReleaseBlocked", blocked);
        blind.job_set = Seen::Unknown("JobSets are forbidden.".to_owned());
        let said = not_released(&blind).unwrap();
        assert!(
            said.summary.ends_with("its condition Waiting says what is left of it"),
            "{said:?}"
        );
        let why = "It waits since 1970-01-01T00:10:00Z (JobSetTerminating): JobSet team/llm has been terminating since 1970-01-01T00:10:00Z.";
        assert_eq!(said.because, ["Its status says: m.", why]);
        let advice = "Wait until its JobSet is gone. If it stays, look for its finalizers: kubectl get jobset llm --namespace team --output yaml";
        assert_eq!(said.next, [advice]);

        let seen = job("JobSetTerminating").with_job_set(&json!({}));
        let said = not_released(&seen).unwrap();
        assert_eq!(said.because, ["Its status says: m.", "Its JobSet is not being deleted yet."]);
        assert_eq!(said.next, [advice]);
        assert_eq!(not_released(&job("PodsRunning")).unwrap().next, Vec::<String>::new());
    }

    #[test]
    fn of_pods_that_could_not_be_read_nobody_says_that_they_are_gone() {
        let mut blind = exceeded().with_job_set(&json!({}));
        blind.pods = Seen::Unknown("Pods are forbidden.".to_owned());
        let said = not_released(&blind).unwrap();
        assert!(said.summary.ends_with("whether Pods of it run is not known"), "{said:?}");
    }

    #[test]
    fn a_job_of_which_nothing_is_left_is_released() {
        assert_eq!(not_released(&exceeded()), None);
        let ended = exceeded().with_pod("p", Some("n"), &json!({"phase": "Failed"}));
        assert_eq!(not_released(&ended), None);
    }

    #[test]
    fn not_more_than_ten_pods_are_named() {
        let scene = (0..12).fold(exceeded(), |scene, number| {
            scene.with_pod(&format!("p{number}"), Some("n"), &json!({"phase": "Running"}))
        });
        let left = left(&scene);
        assert_eq!(left.len(), 11);
        assert_eq!(left[10], "2 Pods more still run.");
    }
}
