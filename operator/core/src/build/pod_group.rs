//! The PodGroup of a job, for the scheduler that its runtime asks for.
//!
//! No policy names a scheduler: `schedulerName` is the runtime's to set. What each scheduler wants is in
//! [`scheduler`](crate::scheduler).

use serde_json::{Map, Value};
use trainjob_api::{TrainJob, v1alpha1::runtime::TrainingRuntimeSpec};

use super::{
    error::BuildError,
    gang::{gang, pods_mut},
    objects::{Objects, PodGroup},
    owner::child_metadata,
};
use crate::scheduler::{PodGroupSpec, Scheduler};

/// Lets the scheduler that the runtime asks for know the gang. A job without Pods has none.
pub(crate) fn enforce(
    objects: &mut Objects,
    job: &TrainJob,
    runtime: &TrainingRuntimeSpec,
) -> Result<(), BuildError> {
    let Some(policies) = &runtime.pod_group_policy else { return Ok(()) };
    let gang = gang(&objects.job_set)?;
    if gang.members == 0 {
        return Ok(());
    }
    let mut asked = Scheduler::asked(policies);
    let Some(scheduler) = asked.next() else { return Ok(()) };
    if let Some(other) = asked.next() {
        return Err(BuildError::TwoSchedulers(scheduler.policy(), other.policy()));
    }
    let metadata = child_metadata(job, "");
    let name = metadata.name.clone().unwrap_or_default();
    for pod in pods_mut(&mut objects.job_set) {
        scheduler.join(pod.metadata.get_or_insert_default(), &name);
    }
    let spec = scheduler.spec(gang, policies, &objects.job_set);
    objects.pod_group = spec.map(|spec| PodGroup { metadata, spec });
    Ok(())
}

/// The merge patch that makes a stored PodGroup ask for what is wanted; `None` if it does.
///
/// What is not wanted in particular, somebody else may have set.
#[must_use]
pub fn pod_group_patch(stored: &PodGroupSpec, wanted: &PodGroupSpec) -> Option<Value> {
    // A spec that cannot be written as JSON was never read from it.
    let json = |spec| serde_json::to_value(spec).unwrap_or_default();
    let (stored, mut patch) = (json(stored), json(wanted));
    if let (Some(stored), Some(patch)) = (stored.as_object(), patch.as_object_mut()) {
        patch.retain(|field, value| stored.get(field) != Some(value));
        let resources = |spec: &Map<String, Value>| spec.get("minResources")?.as_object().cloned();
        let known = resources(stored).unwrap_or_default();
        if let Some(Value::Object(wanted)) = patch.get_mut("minResources") {
            // In a merge patch, null removes the key.
            let gone: Vec<_> =
                known.into_iter().filter(|(key, _)| !wanted.contains_key(key)).collect();
            wanted.extend(gone.into_iter().map(|(key, _)| (key, Value::Null)));
        }
    }
    patch.as_object().is_some_and(|patch| !patch.is_empty()).then_some(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            build,
            testing::{job, pod, runtime},
        },
        *,
    };

    /// A replicated job of so many Pods with these requests, and what it waits for.
    fn replicated_job(name: &str, nodes: i32, requests: &Value, waits: &Value) -> Value {
        let node = json!({"name": name, "resources": {"requests": requests}});
        json!({"name": name, "dependsOn": waits, "template": {"spec": {
            "parallelism": nodes,
            "template": {"spec": {"containers": [node]}},
        }}})
    }

    fn built(policy: &Value, spec: &Value) -> Objects {
        let runtime = runtime(&json!({"podGroupPolicy": policy, "template": {"spec": spec}}));
        build(&job(&json!({})), &runtime).unwrap()
    }

    fn spec(objects: &Objects) -> Value {
        serde_json::to_value(&objects.pod_group.as_ref().unwrap().spec).unwrap()
    }

    /// Which replicated jobs' Pods are marked with the label of coscheduling.
    fn marked(objects: &Objects) -> Vec<bool> {
        let job_set = serde_json::to_value(&objects.job_set).unwrap();
        let count = objects.job_set.spec.replicated_jobs.as_ref().unwrap().len();
        let label =
            |index| format!("{}/metadata/labels/scheduling.x-k8s.io~1pod-group", pod(index));
        (0..count).map(|index| job_set.pointer(&label(index)) == Some(&json!("tj"))).collect()
    }

    #[test]
    fn a_gang_is_what_starts_together() {
        let one = json!({"cpu": "1", "memory": "4Gi"});
        let on = |name: &str, status: &str| json!([{"name": name, "status": status}]);
        let after = |status: &str| json!([{"name": "data", "status": status}, {"name": "model", "status": status}]);
        let (none, data, model) = (json!(null), "data", "model");
        for (what, replicated_jobs, members, cpu, memory, marks) in [
            (
                "everything, if nothing waits",
                json!([
                    replicated_job(data, 1, &one, &none),
                    replicated_job(model, 1, &one, &none),
                    replicated_job("node", 100, &one, &none)
                ]),
                102,
                "102",
                "408Gi",
                vec![true, true, true],
            ),
            (
                "not what is over before",
                json!([
                    replicated_job(data, 1, &one, &none),
                    replicated_job(model, 1, &one, &none),
                    replicated_job("node", 100, &one, &after("Complete"))
                ]),
                100,
                "100",
                "400Gi",
                vec![false, false, true],
            ),
            (
                "without waiting for what starts when the others are ready",
                json!([
                    replicated_job("node", 4, &one, &none),
                    replicated_job("launcher", 1, &one, &on("node", "Ready"))
                ]),
                4,
                "4",
                "16Gi",
                vec![true, true],
            ),
            (
                "a replicated job that waits only for what is no member",
                json!([
                    replicated_job(data, 2, &one, &none),
                    replicated_job("node", 3, &one, &on(data, "Complete")),
                    replicated_job("log", 1, &one, &on("node", "Ready"))
                ]),
                3,
                "3",
                "12Gi",
                vec![false, true, true],
            ),
        ] {
            let objects =
                built(&json!({"coscheduling": {}}), &json!({"replicatedJobs": replicated_jobs}));
            let resources = json!({"cpu": cpu, "memory": memory});
            assert_eq!(
                spec(&objects),
                json!({"minMember": members, "minResources": resources}),
                "{what}"
            );
            assert_eq!(marked(&objects), marks, "{what}");
        }
    }

    #[test]
    fn every_job_of_a_replicated_job_counts() {
        let mut node = replicated_job("node", 3, &json!({"nvidia.com/gpu": "2"}), &json!(null));
        node["replicas"] = json!(2);
        let objects = built(
            &json!({"coscheduling": {"scheduleTimeoutSeconds": 7}}),
            &json!({"replicatedJobs": [node]}),
        );
        let expected = json!({
            "minMember": 6, "minResources": {"nvidia.com/gpu": "12"}, "scheduleTimeoutSeconds": 7,
        });
        assert_eq!(spec(&objects), expected);
    }

    #[test]
    fn a_job_without_pods_has_no_gang() {
        let objects = built(&json!({"coscheduling": {}}), &json!({"replicatedJobs": []}));
        assert_eq!(objects.pod_group, None);
        let replicated_job = replicated_job("node", 1, &json!({}), &json!(null));
        for policy in [json!({}), json!(null)] {
            let objects = built(&policy, &json!({"replicatedJobs": [replicated_job.clone()]}));
            assert_eq!((objects.pod_group.clone(), marked(&objects)), (None, vec![false]));
        }
    }

    #[test]
    fn a_pod_group_is_the_job_s_own() {
        let replicated_job = replicated_job("node", 1, &json!({}), &json!(null));
        let objects =
            built(&json!({"coscheduling": {}}), &json!({"replicatedJobs": [replicated_job]}));
        let group = objects.pod_group.as_ref().unwrap();
        assert_eq!(group.metadata.name.as_deref(), Some("tj"));
        assert_eq!(group.metadata.owner_references, objects.job_set.metadata.owner_references);
    }

    #[test]
    fn volcano_is_told_queue_priority_and_network() {
        let mut node = replicated_job("node", 2, &json!({}), &json!(null));
        node["template"]["spec"]["template"]["spec"]["priorityClassName"] = json!("high");
        let topology = json!({"mode": "soft", "highestTierAllowed": 2});
        let runtime = runtime(&json!({
            "podGroupPolicy": {"volcano": {"networkTopology": topology}},
            "template": {
                "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "team"}},
                "spec": {"replicatedJobs": [node, replicated_job("log", 1, &json!({}), &json!(null))]},
            },
        }));
        let objects = build(&job(&json!({})), &runtime).unwrap();
        let expected = json!({
            "minMember": 3, "queue": "team", "priorityClassName": "high", "networkTopology": topology,
        });
        assert_eq!(spec(&objects), expected);
        let job_set = serde_json::to_value(&objects.job_set).unwrap();
        let annotation = "/metadata/annotations/scheduling.k8s.io~1group-name";
        assert_eq!(job_set.pointer(&format!("{}{annotation}", pod(1))), Some(&json!("tj")));
    }

    #[test]
    fn two_schedulers_are_refused() {
        let both = json!({"podGroupPolicy": {"coscheduling": {}, "volcano": {}}, "template": {"spec": {
            "replicatedJobs": [replicated_job("node", 1, &json!({}), &json!(null))],
        }}});
        let error = build(&job(&json!({})), &runtime(&both)).unwrap_err().to_string();
        assert!(error.contains("set one of them"), "{error}");
    }

    #[test]
    fn a_pod_group_is_changed_where_it_differs_from_what_is_wanted() {
        let spec = |spec: Value| PodGroupSpec::Volcano(serde_json::from_value(spec).unwrap());
        let one = json!({"minMember": 2, "minResources": {"cpu": "2"}});
        for (what, stored, wanted, patch) in [
            ("the same", one.clone(), one.clone(), None),
            (
                "set by somebody else",
                json!({"minMember": 2, "minResources": {"cpu": "2"}, "queue": "default"}),
                one.clone(),
                None,
            ),
            (
                "another queue",
                json!({"minMember": 2, "queue": "a"}),
                json!({"minMember": 2, "queue": "b"}),
                Some(json!({"queue": "b"})),
            ),
            (
                "other resources",
                json!({"minMember": 2, "minResources": {"cpu": "1", "memory": "1Gi"}}),
                one,
                Some(json!({"minResources": {"cpu": "2", "memory": null}})),
            ),
        ] {
            assert_eq!(pod_group_patch(&spec(stored), &spec(wanted)), patch, "{what}");
        }
    }
}
