//! Pods.
//!
//! No field tells when a Pod finished. If all of its containers have ended, it was with the last of them; else the last
//! write of its status stands for that.

use std::collections::BTreeSet;

use serde::Deserialize;
use trainjob_api::time::Timestamp;

use crate::{
    instant,
    metadata::{Metadata, or_default},
    outcome::{End, Outcome, Reading},
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "or_default")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    reason: String,
    #[serde(deserialize_with = "or_default")]
    init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "or_default")]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    name: String,
    #[serde(deserialize_with = "or_default")]
    state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    terminated: Option<Terminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    exit_code: i64,
    reason: String,
    #[serde(deserialize_with = "instant::lenient")]
    finished_at: Option<Timestamp>,
}

impl Pod {
    /// What is known of containers that have ended, init containers first.
    fn ended(&self) -> impl Iterator<Item = (&str, &Terminated)> {
        let Status { init_container_statuses, container_statuses, .. } = &self.status;
        let all = init_container_statuses.iter().chain(container_statuses);
        all.filter_map(|status| Some((&*status.name, status.state.terminated.as_ref()?)))
    }

    /// When the last container ended, if all have. An evicted Pod may have no word of some.
    fn last_end(&self) -> Option<Timestamp> {
        let times = self.ended().filter_map(|(name, ended)| Some((name, ended.finished_at?)));
        let (names, times): (BTreeSet<_>, BTreeSet<_>) = times.unzip();
        let mut containers = self.spec.init_containers.iter().chain(&self.spec.containers);
        let all = containers.all(|container| names.contains(&*container.name));
        times.last().copied().filter(|_| all)
    }

    fn reason(&self, outcome: Outcome) -> &str {
        // Of a Pod that succeeded no container failed that matters: a sidecar is killed at the end.
        if !self.status.reason.is_empty() || outcome == Outcome::Succeeded {
            return &self.status.reason;
        }
        let failed = self.ended().find(|(_, ended)| ended.exit_code != 0);
        failed.map_or("", |(_, ended)| &ended.reason)
    }
}

/// Reads a Pod.
pub(super) fn read(object: &str) -> Result<Reading, serde_json::Error> {
    let pod: Pod = serde_json::from_str(object)?;
    let outcome = match pod.status.phase.as_str() {
        "Succeeded" => Some(Outcome::Succeeded),
        "Failed" => Some(Outcome::Failed),
        _ => None,
    };
    let end = outcome.map(|outcome| End::new(outcome, pod.reason(outcome), pod.last_end()));
    Ok(Reading::new(pod.metadata, end))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Option<End> {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "managedFields": null},
            "spec": {"initContainers": [{"name": "fetch", "image": "i"}], "nodeName": "n",
                "containers": [{"name": "main", "image": "i"}, {"name": "log", "image": "i"}]},
            "status": status,
        });
        read(&pod.to_string()).unwrap().end
    }

    fn ended(name: &str, exit_code: i32, reason: &str, finished_at: &str) -> Value {
        json!({"name": name, "ready": false, "restartCount": 0, "image": "i", "state": {"terminated": {
            "exitCode": exit_code, "reason": reason, "startedAt": "2026-11-22T06:00:00Z",
            "finishedAt": finished_at, "containerID": "containerd://0"}}})
    }

    const AT_1: &str = "2026-11-22T06:30:01Z";
    const AT_5: &str = "2026-11-22T06:30:05Z";
    const AT_9: &str = "2026-11-22T06:30:09Z";

    fn at(second: i64) -> Timestamp {
        Timestamp(1_795_329_000 + second)
    }

    #[test]
    fn a_pod_has_finished_with_its_phase_and_ended_with_its_last_container() {
        let fetched = ended("fetch", 0, "Completed", AT_1);
        let succeeded = json!({"phase": "Succeeded", "initContainerStatuses": [fetched],
            "containerStatuses": [ended("log", 0, "Completed", AT_9), ended("main", 0, "Completed", AT_5)]});
        assert_eq!(pod(&succeeded), Some(End::new(Outcome::Succeeded, "", Some(at(9)))));
        for phase in ["Pending", "Running", "Unknown", ""] {
            let mut status = succeeded.clone();
            status["phase"] = json!(phase);
            assert_eq!(pod(&status), None, "{phase}");
        }
        for status in [json!({}), Value::Null] {
            assert_eq!(pod(&status), None);
        }
    }

    #[test]
    fn the_time_of_a_pod_is_unknown_unless_every_container_has_one() {
        let fetched = ended("fetch", 0, "Completed", AT_1);
        let main = ended("main", 1, "Error", AT_5);
        let waiting = json!({"name": "log", "state": {"waiting": {"reason": "PodInitializing"}}});
        let running = json!({"name": "log", "state": {"running": {"startedAt": AT_1}}});
        for log in [waiting, running, json!({"name": "log", "state": null}), json!({"name": "log"})]
        {
            let status = json!({"phase": "Failed", "initContainerStatuses": [fetched],
                "containerStatuses": [main, log]});
            assert_eq!(pod(&status), Some(End::new(Outcome::Failed, "Error", None)), "{log}");
        }
        for zero in ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"] {
            let status = json!({"phase": "Failed", "initContainerStatuses": [fetched],
                "containerStatuses": [main, ended("log", 0, "Completed", zero)]});
            assert_eq!(pod(&status), Some(End::new(Outcome::Failed, "Error", None)), "{zero}");
        }
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory",
            "startTime": AT_1});
        assert_eq!(pod(&evicted), Some(End::new(Outcome::Failed, "Evicted", None)));
    }

    #[test]
    fn the_reason_is_the_pod_s_else_that_of_the_first_container_that_failed() {
        let status = |phase: &str, reason: Option<&str>| {
            let log = ended("log", 143, "Error", AT_9);
            json!({"phase": phase, "reason": reason.unwrap_or_default(),
                "initContainerStatuses": [ended("fetch", 0, "Completed", AT_1)],
                "containerStatuses": [ended("main", 137, "OOMKilled", AT_5), log]})
        };
        for (phase, reason, expected) in [
            ("Failed", None, "OOMKilled"),
            ("Failed", Some("DeadlineExceeded"), "DeadlineExceeded"),
            ("Succeeded", None, ""),
        ] {
            let end = pod(&status(phase, reason)).unwrap();
            assert_eq!((&*end.reason, end.time), (expected, Some(at(9))), "{phase} {reason:?}");
        }
        assert_eq!(pod(&json!({"phase": "Failed"})), Some(End::new(Outcome::Failed, "", None)));
    }
}
