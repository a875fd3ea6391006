//! What may not change in a JobSet that exists.
//!
//! Of a suspended JobSet's replicated jobs only five parts of each Pod template may change
//! ([`update_suspended`](super::update_suspended)). Where anything else would be built otherwise today,
//! JobSet refuses the change for ever (D-22 of Kubeflow Trainer), so it has to be known beforehand.
//!
//! A stored JobSet is compared with one that was never stored: what JobSet and its schema fill in is no
//! difference. They only ever fill in fields that are absent. So a field that is absent from what would be
//! built differs only where it is one that users set and nobody fills in.

use serde_json::{Map, Value};
use trainjob_api::{JobSet, jobset::ReplicatedJob};

use super::quantity;

/// Parts of a Pod template that may change, as paths below the replicated job.
const MAY_CHANGE: [&str; 5] = [
    "template.spec.template.metadata.labels",
    "template.spec.template.metadata.annotations",
    "template.spec.template.spec.nodeSelector",
    "template.spec.template.spec.tolerations",
    "template.spec.template.spec.schedulingGates",
];

/// Fields that nobody but a user fills in, wherever they are.
const OF_USERS: [&str; 24] = [
    "affinity",
    "annotations",
    "args",
    "command",
    "dependsOn",
    "env",
    "envFrom",
    "hostNetwork",
    "image",
    "imagePullSecrets",
    "initContainers",
    "labels",
    "lifecycle",
    "nodeName",
    "priorityClassName",
    "readOnly",
    "resources",
    "runtimeClassName",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "value",
    "volumeMounts",
    "volumes",
];
/// Fields below which nothing is filled in either.
const OF_USERS_WHOLE: [&str; 3] = ["affinity", "resources", "securityContext"];
/// Fields whose values, or the values below, are quantities. JobSet's webhook writes them in its own spelling.
const QUANTITIES: [&str; 5] = ["divisor", "limits", "overhead", "requests", "sizeLimit"];
/// So many digits after the point are compared.
const DIGITS: i64 = 9;

/// The path of the first part of `current`'s replicated jobs that would be built otherwise today and that
/// may not change; `None` if there is none.
#[must_use]
pub fn fixed_difference(current: &JobSet, desired: &JobSet) -> Option<String> {
    let [current, desired] = [current, desired].map(jobs);
    if current.len() != desired.len() {
        return Some("spec.replicatedJobs".into());
    }
    let mut pairs = current.iter().zip(desired);
    pairs.find_map(|(current, desired)| {
        let [before, after] = [current, desired].map(|job| serde_json::to_value(job).ok());
        let differs = difference("", before.as_ref(), after.as_ref())?;
        Some(format!("spec.replicatedJobs[{}].{differs}", current.name))
    })
}

fn jobs(job_set: &JobSet) -> &[ReplicatedJob] {
    job_set.spec.replicated_jobs.as_deref().unwrap_or_default()
}

/// The path of the first difference at or below `path`.
fn difference(path: &str, current: Option<&Value>, desired: Option<&Value>) -> Option<String> {
    if MAY_CHANGE.contains(&path) {
        return None;
    }
    let here = || Some(path.to_owned());
    match (current.filter(|it| says_something(it)), desired.filter(|it| says_something(it))) {
        (None, None) => None,
        (None, Some(Value::Object(desired))) => {
            in_fields(path, &Map::new(), desired).and_then(|_| here())
        }
        (None, Some(_)) => here(),
        (Some(_), None) => {
            let mut fields = path.split(['.', '[']);
            let of_user = fields.any(|field| OF_USERS_WHOLE.contains(&field))
                || path.rsplit('.').next().is_some_and(|last| OF_USERS.contains(&last));
            of_user.then(|| path.to_owned())
        }
        (Some(Value::Object(current)), Some(Value::Object(desired))) => {
            in_fields(path, current, desired)
        }
        (Some(Value::Array(current)), Some(Value::Array(desired))) => {
            if current.len() != desired.len() {
                return here();
            }
            let mut pairs = current.iter().zip(desired).enumerate();
            pairs.find_map(|(n, (current, desired))| {
                difference(&format!("{path}[{n}]"), Some(current), Some(desired))
            })
        }
        (Some(current), Some(desired)) => {
            let same = current == desired || is_quantity(path) && same_quantity(current, desired);
            (!same).then(|| path.to_owned())
        }
    }
}

fn is_quantity(path: &str) -> bool {
    path.split(['.', '[']).any(|field| QUANTITIES.contains(&field))
}

fn same_quantity(current: &Value, desired: &Value) -> bool {
    let parts = |value: &Value| quantity::parts(value.as_str()?, DIGITS);
    parts(current).is_some_and(|current| parts(desired) == Some(current))
}

fn in_fields(
    path: &str,
    current: &Map<String, Value>,
    desired: &Map<String, Value>,
) -> Option<String> {
    let absent = current.keys().filter(|field| !desired.contains_key(*field));
    desired.keys().chain(absent).find_map(|field| {
        let below = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        difference(&below, current.get(field), desired.get(field))
    })
}

/// Nothing is said in several ways, and left out of what is stored in some of them.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => fields.values().any(says_something),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job_set(pod: &Value) -> JobSet {
        serde_json::from_value(json!({
            "metadata": {"name": "tj"},
            "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {
                "parallelism": 2,
                "template": {"spec": pod},
            }}}]},
        }))
        .unwrap()
    }

    #[test]
    fn what_differs_is_named_and_what_may_change_or_is_filled_in_is_no_difference() {
        let container = json!({"name": "node", "image": "a", "ports": [{"containerPort": 1}]});
        let plain = json!({"containers": [container]});
        let with = |field: &str, value: Value| {
            let mut pod = plain.clone();
            pod[field] = value;
            pod
        };
        let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchFields": [{"key": "k", "operator": "Exists"}]}},
        ]}});
        let mut both_affinities = affinity.clone();
        both_affinities["podAffinity"] = json!({"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}},
        ]});
        let filled_in = json!({"containers": [{
            "name": "node",
            "image": "a",
            "imagePullPolicy": "Always",
            "ports": [{"containerPort": 1, "protocol": "TCP"}],
        }], "restartPolicy": "OnFailure"});
        let other_image = json!({"containers": [{
            "name": "node", "image": "b", "ports": [{"containerPort": 1}],
        }]});
        let pod = "spec.replicatedJobs[node].template.spec.template.spec";
        for (current, desired, expected) in [
            (plain.clone(), plain.clone(), None),
            (filled_in.clone(), plain.clone(), None),
            (plain.clone(), with("nodeSelector", json!({"a": "b"})), None),
            (with("tolerations", json!([{"key": "k"}])), plain.clone(), None),
            (plain.clone(), with("schedulingGates", json!([{"name": "g"}])), None),
            (plain.clone(), with("affinity", json!({"podAffinity": {}})), None),
            (plain.clone(), with("affinity", affinity.clone()), Some("affinity")),
            (with("affinity", affinity.clone()), plain.clone(), Some("affinity")),
            (
                with("affinity", both_affinities),
                with("affinity", affinity),
                Some("affinity.podAffinity"),
            ),
            (
                with("overhead", json!({"memory": "1Gi"})),
                with("overhead", json!({"memory": "1024Mi"})),
                None,
            ),
            (
                with("overhead", json!({"memory": "1Gi"})),
                with("overhead", json!({"memory": "1025Mi"})),
                Some("overhead.memory"),
            ),
            (
                with("terminationGracePeriodSeconds", json!(600)),
                plain.clone(),
                Some("terminationGracePeriodSeconds"),
            ),
            (filled_in.clone(), other_image, Some("containers[0].image")),
            (plain.clone(), with("initContainers", json!([container])), Some("initContainers")),
            (
                plain.clone(),
                with("containers", json!([container, {"name": "more"}])),
                Some("containers"),
            ),
        ] {
            let difference = fixed_difference(&job_set(&current), &job_set(&desired));
            let expected = expected.map(|field| format!("{pod}.{field}"));
            assert_eq!(difference, expected, "{current} {desired}");
        }
    }

    #[test]
    fn other_replicated_jobs_are_a_difference() {
        let one = job_set(&json!({"containers": []}));
        let mut two = one.clone();
        two.spec.replicated_jobs.as_mut().unwrap().push(ReplicatedJob::default());
        assert_eq!(fixed_difference(&one, &two).as_deref(), Some("spec.replicatedJobs"));
        let mut renamed = one.clone();
        renamed.spec.replicated_jobs.as_mut().unwrap()[0].name = "other".into();
        let difference = fixed_difference(&one, &renamed);
        assert_eq!(difference.as_deref(), Some("spec.replicatedJobs[node].name"));
    }
}
