//! Which container the kernel killed because it wanted more memory than it may have.
//!
//! A job that failed says "failed jobs" and no more, and its Pods soon go. That one of them was out of
//! memory is what people look for first, and what only its Pods know.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

use crate::event::Event;

/// What the kubelet calls it.
const REASON: &str = "OOMKilled";

/// What to tell users of these Pods of a failed job: the first container that was killed for its memory.
/// Others often end with it, because nobody answers them any more.
#[must_use]
pub fn find(pods: &[Pod]) -> Option<Event> {
    let killed = pods.iter().flat_map(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        statuses(pod).filter_map(move |status| Some((name, &status.name, killed(status)?)))
    });
    // Two ends in the same second are told apart by name, so that the answer is always the same.
    let (pod, container, end) = killed.min_by_key(|(pod, container, end)| {
        let at = end.finished_at.as_ref().map(|at| at.0);
        (at.is_none(), at, *pod, *container)
    })?;
    Some(Event::OutOfMemory {
        pod: pod.to_owned(),
        container: container.clone(),
        exit_code: end.exit_code,
    })
}

/// The containers of a Pod, those that come before the others included.
fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let lists = pod.status.as_ref().map(|status| {
        [status.init_container_statuses.as_deref(), status.container_statuses.as_deref()]
    });
    lists.into_iter().flatten().flatten().flatten()
}

/// How a container ended, if that was for its memory. What it did before it was started again is no reason
/// for the end that it has come to, unless it is about to be started once more.
fn killed(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let state = status.state.as_ref();
    let waits = state.is_some_and(|state| state.waiting.is_some());
    let state = if waits { status.last_state.as_ref() } else { state };
    let end = state?.terminated.as_ref()?;
    (end.reason.as_deref() == Some(REASON)).then_some(end)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ended(reason: &str, at: i64) -> Value {
        let at = format!("2026-01-01T00:00:{at:02}Z");
        json!({"terminated": {"reason": reason, "exitCode": 137, "finishedAt": at}})
    }

    fn pod(name: &str, status: &Value) -> Pod {
        let pod = json!({"metadata": {"name": name}, "status": status});
        serde_json::from_value(pod).unwrap()
    }

    /// A Pod with one container in these states, now and before.
    fn with(name: &str, state: &Value, last_state: &Value) -> Pod {
        let node = json!({
            "name": "node", "state": state, "lastState": last_state,
            "image": "", "imageID": "", "ready": false, "restartCount": 0,
        });
        pod(name, &json!({"containerStatuses": [node]}))
    }

    fn told(pods: &[Pod]) -> Option<String> {
        find(pods).map(|event| event.note())
    }

    #[test]
    fn only_an_end_for_lack_of_memory_is_told() {
        let waiting = || json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let running = || json!({"running": {}});
        let killed = || ended("OOMKilled", 1);
        for (state, last_state, expected) in [
            (killed(), json!({}), true),
            (ended("Error", 1), json!({}), false),
            (ended("Completed", 1), json!({}), false),
            (running(), json!({}), false),
            (json!({}), json!({}), false),
            // Started again after that: it went on, or ended for another reason.
            (running(), killed(), false),
            (ended("Error", 2), killed(), false),
            (waiting(), killed(), true),
            (waiting(), ended("Error", 1), false),
        ] {
            let what = format!("{state} after {last_state}");
            assert_eq!(find(&[with("a", &state, &last_state)]).is_some(), expected, "{what}");
        }
        assert_eq!(find(&[pod("a", &json!({})), Pod::default()]), None);
        assert_eq!(find(&[]), None);
    }

    #[test]
    fn it_names_pod_and_container_and_the_exit_code() {
        let pods = [with("job-node-0-0-x7k2p", &ended("OOMKilled", 1), &json!({}))];
        let expected =
            "container node of Pod job-node-0-0-x7k2p ran out of memory (OOMKilled, exit code 137)";
        assert_eq!(told(&pods).as_deref(), Some(expected));
    }

    #[test]
    fn of_several_the_first_to_end_is_told_and_of_those_the_first_by_name() {
        let pod = |name, reason, at| with(name, &ended(reason, at), &json!({}));
        let undated =
            with("a", &json!({"terminated": {"reason": "OOMKilled", "exitCode": 1}}), &json!({}));
        for (pods, expected) in [
            (vec![pod("a", "OOMKilled", 5), pod("b", "OOMKilled", 4)], "b"),
            (vec![pod("b", "OOMKilled", 4), pod("a", "OOMKilled", 4)], "a"),
            (vec![pod("a", "Error", 1), pod("b", "OOMKilled", 4)], "b"),
            (vec![undated, pod("b", "OOMKilled", 4)], "b"),
        ] {
            for pods in [pods.clone(), pods.into_iter().rev().collect()] {
                let told = told(&pods).unwrap();
                assert!(told.contains(&format!(" Pod {expected} ")), "{told}");
            }
        }
    }

    #[test]
    fn an_init_container_counts_too() {
        let initializer = json!({
            "name": "initializer", "state": ended("OOMKilled", 1),
            "image": "", "imageID": "", "ready": false, "restartCount": 0,
        });
        let pods = [pod("a", &json!({"initContainerStatuses": [initializer]}))];
        assert!(told(&pods).unwrap().starts_with("container initializer of Pod a "));
    }
}
