//! Jobs whose Pods do not run, or cannot be read.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

use super::{
    answer::{Cause, Said},
    scene::{CREATION_FAILED, Scene},
    words,
};

/// Reasons of a container that is about to start.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Why a Pod does not run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    /// No node takes it; says why.
    NoNode(String),
    /// A container cannot be started; says why.
    Container(String),
    /// Nothing is known but that it is about to start.
    Starting,
}

/// Its Pods could not be read, so nobody can tell whether it runs. The answer says so beside this.
#[must_use]
pub fn unknown(scene: &Scene) -> Option<Said> {
    scene.pods.unread()?;
    let note = scene.told(CREATION_FAILED).filter(|_| scene.job_set.there().is_none());
    let told = note.map(|note| format!("An event says: {}.", words::quoted(note)));
    let because = told.into_iter().chain(words::deadline(scene)).collect();
    let ask = format!(
        "Ask somebody who may list Pods: kubectl get pods {} --selector {}",
        words::in_namespace(scene),
        words::selector(scene)
    );
    let summary = "is to run, but whether it does is not known".to_owned();
    Some(Said { cause: Cause::Unknown, summary, because, next: vec![ask] })
}

/// Pods of it do not run.
#[must_use]
pub fn not_running(scene: &Scene) -> Option<Said> {
    let pods = scene.running();
    let mut stopped = BTreeMap::<Obstacle, Vec<&str>>::new();
    for pod in &pods {
        if let Some(obstacle) = obstacle(pod) {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            stopped.entry(obstacle).or_default().push(name);
        }
    }
    if stopped.is_empty() {
        return None;
    }
    let many: usize = stopped.values().map(Vec::len).sum();
    let verb = if many == 1 { "does" } else { "do" };
    let summary = format!("waits for its Pods: {many} of {} {verb} not run", pods.len());
    let mut because: Vec<String> = stopped.iter().map(|(why, names)| why.said_of(names)).collect();
    because.extend(words::deadline(scene));
    let next = stopped.iter().map(|(why, names)| why.advice(scene, names)).collect();
    Some(Said { cause: Cause::PodsPending, summary, because, next })
}

fn obstacle(pod: &Pod) -> Option<Obstacle> {
    let status = pod.status.as_ref()?;
    if let Some(why) = without_node(status) {
        return Some(Obstacle::NoNode(why));
    }
    let all = [&status.init_container_statuses, &status.container_statuses];
    let mut containers = all.into_iter().flatten().flatten();
    if let Some(why) = containers.find_map(not_started) {
        return Some(Obstacle::Container(why));
    }
    (status.phase.as_deref() == Some("Pending")).then_some(Obstacle::Starting)
}

/// What the scheduler says of a Pod that it has found no node for.
fn without_node(status: &PodStatus) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    let scheduled = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    let message = scheduled.message.as_deref().or(scheduled.reason.as_deref());
    Some(words::quoted(message.unwrap_or("no node was found")))
}

fn not_started(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| !STARTING.contains(reason))?;
    let message = waiting.message.as_deref().map(words::quoted).unwrap_or_default();
    Some(format!("container {}: {reason}: {message}", container.name))
}

impl Obstacle {
    /// A sentence about the Pods of these names.
    fn said_of(&self, names: &[&str]) -> String {
        let first = names.first().copied().unwrap_or_default();
        let pods = match names.len().saturating_sub(1) {
            0 => format!("Pod {first}"),
            others => format!("Pod {first} and {others} more"),
        };
        match self {
            Self::NoNode(why) => format!("No node takes {pods}: {why}."),
            Self::Container(why) => format!("{pods} cannot start {why}."),
            Self::Starting => format!("{pods}: the kubelet is about to start it."),
        }
    }

    fn advice(&self, scene: &Scene, names: &[&str]) -> String {
        let pod = names.first().copied().unwrap_or_default();
        let describe = format!("kubectl describe pod {pod} {}", words::in_namespace(scene));
        match self {
            Self::NoNode(_) => format!(
                "Wait for room, or create the job again with less in spec.trainer.resourcesPerNode. More of it: {describe}"
            ),
            Self::Container(_) => {
                format!(
                    "Correct the image, the command or what the container mounts. More of it: {describe}"
                )
            }
            Self::Starting => {
                format!("Wait. If it takes minutes, see what its node says: {describe}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::why::testing::scene;

    fn page(pods: &[(&str, Value)]) -> Option<String> {
        let job = scene(&json!({}), &json!({}), &json!([]));
        let job = pods.iter().fold(job, |job, (name, status)| job.with_pod(name, None, status));
        let said = not_running(&job)?;
        Some(format!("{}\n{}\n{}", said.summary, said.because.join("\n"), said.next.join("\n")))
    }

    #[test]
    fn pods_that_do_not_run_say_why_and_those_of_one_reason_together() {
        let unschedulable = json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
        }]});
        let container = |phase: &str, reason: &str| {
            json!({"phase": phase, "containerStatuses": [{
                "name": "node", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": "said by the kubelet"}},
            }]})
        };
        let running = json!({"phase": "Running"});
        for (pods, texts) in [
            (
                vec![("a", unschedulable.clone()), ("b", unschedulable), ("c", running.clone())],
                &[
                    "waits for its Pods: 2 of 3 do not run",
                    "No node takes Pod a and 1 more: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
                    "kubectl describe pod a --namespace team",
                ][..],
            ),
            (
                vec![("a", container("Pending", "ImagePullBackOff"))],
                &[
                    "1 of 1 does not run",
                    "Pod a cannot start container node: ImagePullBackOff: said by the kubelet.",
                ],
            ),
            (vec![("a", container("Running", "CrashLoopBackOff"))], &["CrashLoopBackOff"]),
            (
                vec![("a", container("Pending", "ContainerCreating"))],
                &["Pod a: the kubelet is about to start it."],
            ),
            (vec![("a", json!({"phase": "Pending"}))], &["about to start"]),
        ] {
            let page = page(&pods).unwrap();
            for text in texts {
                assert!(page.contains(text), "{text:?} is not in\n{page}");
            }
        }
        assert_eq!(page(&[("a", running)]), None);
    }
}
