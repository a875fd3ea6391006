//! What a Pod is charged for, by section 3 of `docs/accounting.md`, worked out from the spec and the status that the API server
//! stored, without the code of the program.
//!
//! Only what Pods of tests are like: containers that were never started again, and whose requests are all that the Pod requests.

use invariants::accounting::Charge;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use trainjob_api::time::Timestamp;

/// The resource that Pods of tests use.
const GPU: &str = "nvidia.com/gpu";
/// What a kubelet says of a container whose end it has not seen.
const UNKNOWN: &str = "ContainerStatusUnknown";

/// When something ended.
enum End {
    /// Then.
    At(Timestamp),
    /// Then, or when it is counted, if that is earlier.
    AtMost(Timestamp),
}

/// What a Pod as it is now would be charged for; `None`: that does not follow from it.
pub(super) fn charge(pod: &Pod) -> Option<Charge> {
    let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
    if spec.init_containers.is_some() || spec.overhead.is_some() || spec.resources.is_some() {
        return None;
    }
    let gpus = spec.containers.iter().filter_map(|container| {
        container.resources.as_ref()?.requests.as_ref()?.get(GPU)?.0.parse::<u64>().ok()
    });
    let gpus = gpus.sum();
    let deleted = pod.metadata.deletion_timestamp.as_ref().map(Timestamp::from);
    let Some(_) = &spec.node_name else {
        let never = deleted?;
        return Some(Charge { start: never, end: never, at_most: false, gpus });
    };
    let start = since(status, "PodScheduled", "True")?;
    let containers: Vec<_> = status.container_statuses.iter().flatten().collect();
    let ends = containers.iter().map(|it| end_of(it, status, deleted));
    let ends = ends.collect::<Result<Vec<_>, Unknown>>().ok()?;
    let mut ends: Vec<_> = ends.into_iter().flatten().collect();
    if ends.is_empty() {
        ends.push(unreported(status, Some(start), deleted)?);
    }
    let latest = ends.into_iter().max_by_key(|end| match end {
        End::At(at) | End::AtMost(at) => *at,
    });
    Some(match latest? {
        End::At(end) => Charge { start, end, at_most: false, gpus },
        End::AtMost(end) => Charge { start, end, at_most: true, gpus },
    })
}

/// When a container ended is not known.
struct Unknown;

/// The end of a container; one that never started has none.
fn end_of(
    container: &ContainerStatus,
    status: &PodStatus,
    deleted: Option<Timestamp>,
) -> Result<Option<End>, Unknown> {
    if container.last_state.as_ref().is_some_and(|last| last.terminated.is_some()) {
        return Err(Unknown);
    }
    let state = container.state.as_ref().ok_or(Unknown)?;
    if let Some(ended) = &state.terminated {
        let is_known = ended.reason.as_deref() != Some(UNKNOWN);
        let finished = ended.finished_at.as_ref().and_then(real).filter(|_| is_known);
        let end = finished.map(End::At).or_else(|| unreported(status, None, deleted));
        return end.map(Some).ok_or(Unknown);
    }
    let Some(running) = &state.running else { return Ok(None) };
    let started = running.started_at.as_ref().and_then(real);
    unreported(status, started, deleted).map(Some).ok_or(Unknown)
}

/// The best evidence of an end that nobody reported.
fn unreported(
    status: &PodStatus,
    started: Option<Timestamp>,
    deleted: Option<Timestamp>,
) -> Option<End> {
    let initialized = since(status, "Initialized", "True");
    let begin = [started, initialized].into_iter().flatten().max();
    let unready =
        since(status, "Ready", "False").filter(|at| begin.is_none_or(|begin| *at > begin));
    let disrupted = since(status, "DisruptionTarget", "True");
    unready.or(disrupted).map(End::At).or_else(|| deleted.map(End::AtMost))
}

fn since(status: &PodStatus, kind: &str, holds: &str) -> Option<Timestamp> {
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|it| it.type_ == kind && it.status == holds)?;
    condition.last_transition_time.as_ref().and_then(real)
}

/// Zeros are written for instants that nobody knows.
fn real(time: &Time) -> Option<Timestamp> {
    Some(Timestamp::from(time)).filter(|at| *at > Timestamp(0))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> String {
        Timestamp(seconds).to_string()
    }

    /// Bound at 100, with this state of its container, and deleted at 700.
    fn charged(
        node: Option<&str>,
        conditions: &[(&str, &str, i64)],
        states: &[Value],
    ) -> Option<(i64, bool)> {
        let conditions = [&[("PodScheduled", "True", 100)][..], conditions].concat();
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, holds, since)| json!({"type": kind, "status": holds, "lastTransitionTime": at(*since)}))
            .collect();
        let statuses: Vec<_> = states
            .iter()
            .map(|state| {
                json!({"name": "a", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
            })
            .collect();
        let pod = json!({
            "metadata": {"deletionTimestamp": at(700)},
            "spec": {"nodeName": node, "containers": [{"name": "a", "resources": {"requests": {GPU: "2"}}}]},
            "status": {"conditions": conditions, "containerStatuses": statuses},
        });
        let charge = charge(&serde_json::from_value(pod).unwrap())?;
        assert_eq!(charge.gpus, 2);
        Some((charge.end.since(charge.start), charge.at_most))
    }

    #[test]
    fn a_pod_is_charged_from_its_binding_to_the_best_evidence_of_its_end() {
        let ended = |seconds| json!({"terminated": {"exitCode": 0, "finishedAt": at(seconds)}});
        let unknown = json!({"terminated": {"exitCode": 137, "reason": UNKNOWN}});
        let running = json!({"running": {"startedAt": at(150)}});
        let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
        let never_ready = [("Initialized", "True", 101), ("Ready", "False", 101)];
        let unready = [("Initialized", "True", 101), ("Ready", "False", 400)];
        let disrupted = [("DisruptionTarget", "True", 450)];
        let node = Some("n");
        for (case, node, conditions, states, expected) in [
            ("never bound", None, &[][..], vec![], Some((0, false))),
            ("ended", node, &[], vec![ended(500)], Some((400, false))),
            ("the last counts", node, &[], vec![ended(500), ended(510)], Some((410, false))),
            ("deleted while it runs", node, &[], vec![running.clone()], Some((600, true))),
            ("unready", node, &unready, vec![running.clone()], Some((300, false))),
            ("disrupted", node, &disrupted, vec![running], Some((350, false))),
            ("never started", node, &never_ready, vec![unknown.clone()], Some((600, true))),
            ("lost", node, &unready, vec![unknown], Some((300, false))),
            ("pulls its image", node, &never_ready, vec![waiting], Some((600, true))),
        ] {
            assert_eq!(charged(node, conditions, &states), expected, "{case}");
        }
    }
}
