//! Volcano: a queue has a name, and a priority exists.
//!
//! The priorities that Kubernetes itself comes with always exist. (Kubeflow Trainer looks no further at
//! any job once it has met one of them.)

use std::collections::{BTreeMap, BTreeSet};

use trainjob_api::jobset::ReplicatedJob;

use super::field::FieldError;
use crate::build::{Runtime, draft::Draft};

const QUEUE: &str = "scheduling.volcano.sh/queue-name";
const OF_KUBERNETES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// The `PriorityClass` objects that have to exist for a TrainJob on this runtime to be admitted.
#[must_use]
pub fn priority_classes(runtime: &Runtime) -> BTreeSet<&str> {
    let policy = runtime.spec.pod_group_policy.as_ref();
    let template = runtime.spec.template.spec.as_ref();
    let replicated_jobs =
        template.filter(|_| policy.is_some_and(|policy| policy.volcano.is_some()));
    let replicated_jobs =
        replicated_jobs.and_then(|spec| spec.replicated_jobs.as_deref()).unwrap_or_default();
    replicated_jobs.iter().filter_map(priority_class).collect()
}

/// What is wrong with a job on a runtime with Volcano. `missing` says of each `PriorityClass` that cannot
/// be read why.
pub(super) fn check(draft: &Draft<'_>, missing: &BTreeMap<String, String>) -> Vec<FieldError> {
    let queue = draft.annotations.get(QUEUE).filter(|queue| queue.is_empty());
    let queue = queue.map(|queue| {
        let detail = "Volcano queue name must not be empty";
        FieldError::invalid(format!("spec.annotations[{QUEUE}]"), queue, detail)
    });
    let replicated_jobs = draft.spec.replicated_jobs.iter().flatten();
    let priorities = replicated_jobs.filter_map(priority_class).filter_map(|name| {
        let detail = format!("PriorityClass {name:?} doesn't exist: {}", missing.get(name)?);
        Some(FieldError::invalid("spec.templateSpec.priorityClassName", name, detail))
    });
    queue.into_iter().chain(priorities).collect()
}

/// The priority of a job's Pods, if somebody has to make it.
fn priority_class(replicated_job: &ReplicatedJob) -> Option<&str> {
    let pod = replicated_job.template.spec.as_ref()?.template.spec.as_ref()?;
    let name = pod.priority_class_name.as_deref()?;
    (!name.is_empty() && !OF_KUBERNETES.contains(&name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::testing;

    fn runtime(policy: &Value, annotations: &Value, priorities: &[&str]) -> Runtime {
        let replicated_job = |priority: &&str| {
            let pod = json!({"containers": [], "priorityClassName": priority});
            testing::replicated_job(&format!("of-{priority}"), None, &pod)
        };
        let replicated_jobs: Vec<_> = priorities.iter().map(replicated_job).collect();
        testing::runtime(&json!({"podGroupPolicy": policy, "template": {
            "metadata": {"annotations": annotations},
            "spec": {"replicatedJobs": replicated_jobs},
        }}))
    }

    fn found(annotations: &Value, priorities: &[&str]) -> Vec<String> {
        let missing = BTreeMap::from(
            ["gone", "system-node-critical"].map(|name| (name.to_owned(), "not found".to_owned())),
        );
        let runtime = runtime(&json!({"volcano": {}}), annotations, priorities);
        testing::found(&testing::job(&json!({})), &runtime, |draft| check(draft, &missing))
    }

    #[test]
    fn a_queue_has_a_name() {
        const EMPTY: &str = "spec.annotations[scheduling.volcano.sh/queue-name]: Invalid value: \"\": Volcano queue name must not be empty";
        for (annotations, expected) in [
            (json!({}), vec![]),
            (json!({(QUEUE): "team"}), vec![]),
            (json!({(QUEUE): ""}), vec![EMPTY]),
        ] {
            assert_eq!(found(&annotations, &[]), expected, "{annotations}");
        }
    }

    #[test]
    fn a_priority_exists() {
        const GONE: &str = "spec.templateSpec.priorityClassName: Invalid value: \"gone\": PriorityClass \"gone\" doesn't exist: not found";
        for (priorities, expected) in [
            (&["high"][..], vec![]),
            (&["", "high"], vec![]),
            (&["gone"], vec![GONE]),
            (&["system-node-critical"], vec![]),
            (&["system-cluster-critical", "gone"], vec![GONE]),
        ] {
            assert_eq!(found(&json!({}), priorities), expected, "{priorities:?}");
        }
    }

    #[test]
    fn only_volcano_s_jobs_need_their_priorities() {
        let priorities = ["high", "system-node-critical", "high", "low"];
        let of = |policy: Value| {
            let runtime = runtime(&policy, &json!({}), &priorities);
            priority_classes(&runtime).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(json!({"volcano": {}})), ["high", "low"]);
        assert_eq!(of(json!({"coscheduling": {}})), [""; 0]);
        assert_eq!(of(json!(null)), [""; 0]);
    }
}
