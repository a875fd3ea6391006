//! What may still change in a JobSet that exists.
//!
//! A JobSet that runs is left alone. One that is suspended may be resumed, or suspended again, and of
//! its Pod templates JobSet lets five things change: labels, annotations, node selector, tolerations
//! and scheduling gates. Kueue uses that to say where an admitted job runs. So an update takes those
//! from the JobSet as it would be built today, and everything else from the JobSet as it is. Whether
//! anything else differs is a question of its own: [`fixed_difference`].

use std::collections::BTreeMap;

use json_patch::{
    AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, jsonptr::PointerBuf,
};
use k8s_openapi::{
    api::{
        batch::v1::{JobSpec, JobTemplateSpec},
        core::v1::{PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;
use trainjob_api::{
    JobSet,
    jobset::{JobSetSpec, ReplicatedJob},
};

type Keys = BTreeMap<String, String>;

/// Lists in a Pod's spec that are replaced whole.
const LISTS: [&str; 2] = ["tolerations", "schedulingGates"];

/// Domains whose labels and annotations are JobSet's and the Job controller's to set.
const OF_CONTROLLERS: [&str; 2] = ["jobset.sigs.k8s.io/", "batch.kubernetes.io/"];

/// A change of a suspended JobSet. It knows only the parts that may change: the whole may be large.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSetUpdate {
    /// As they are.
    pub current: JobSet,
    /// As they are to be, with the UID and the resourceVersion of `current`.
    pub updated: JobSet,
}

impl JobSetUpdate {
    /// The JSON patch of what changes, fenced against both a successor of the same name and a change in
    /// between. Fields that this release does not know stay as they are, in lists too.
    ///
    /// # Errors
    ///
    /// A JobSet that was never read from JSON cannot be written as such.
    pub fn patch(&self) -> Result<Patch, serde_json::Error> {
        let metadata = &self.current.metadata;
        let fence = |field, value: &Option<String>| {
            let path = PointerBuf::from_tokens(["metadata", field]);
            let value = Value::from(value.clone());
            PatchOperation::Replace(ReplaceOperation { path, value })
        };
        let fences =
            [fence("uid", &metadata.uid), fence("resourceVersion", &metadata.resource_version)];
        let (mut from, to) =
            (serde_json::to_value(&self.current)?, serde_json::to_value(&self.updated)?);
        let lists = replaced_lists(&mut from, &to);
        let differences = json_patch::diff(&from, &to).0;
        Ok(Patch(fences.into_iter().chain(lists).chain(differences).collect()))
    }
}

/// The changes of lists that are replaced whole, which are made in `from`, too. Item by item, an unknown field
/// of one would end up in another.
fn replaced_lists(from: &mut Value, to: &Value) -> Vec<PatchOperation> {
    let count = to.pointer("/spec/replicatedJobs").and_then(Value::as_array).map_or(0, Vec::len);
    let mut operations = Vec::new();
    for (index, list) in (0..count).flat_map(|index| LISTS.map(|list| (index, list))) {
        let pod = format!("/spec/replicatedJobs/{index}/template/spec/template/spec");
        let wanted = to.pointer(&pod).and_then(|pod| pod.get(list));
        let Some(Value::Object(stored)) = from.pointer_mut(&pod) else { continue };
        if stored.get(list) == wanted {
            continue;
        }
        let tokens = ["spec", "replicatedJobs"].into_iter().map(str::to_owned);
        let below = ["template", "spec", "template", "spec", list].into_iter().map(str::to_owned);
        let path = PointerBuf::from_tokens(tokens.chain([index.to_string()]).chain(below));
        operations.push(if let Some(wanted) = wanted {
            stored.insert(list.to_owned(), wanted.clone());
            PatchOperation::Add(AddOperation { path, value: wanted.clone() })
        } else {
            stored.remove(list);
            PatchOperation::Remove(RemoveOperation { path })
        });
    }
    operations
}

/// `current` with what may change taken from `desired`; `None` if nothing differs.
///
/// In a Pod template the five parts are replaced whole. Who set a key is not known any more, and it
/// matters that keys go: a node selector or a gate that Kueue has withdrawn must not stay. The
/// exception are labels and annotations in the domains of JobSet and of Jobs, which are added to.
/// The JobSet's own labels and annotations are only added to, because other controllers and people put
/// theirs there.
#[must_use]
pub fn update_suspended(current: &JobSet, desired: &JobSet) -> Option<JobSetUpdate> {
    let current = changeable(current);
    let mut updated = current.clone();
    add_keys(&mut updated.metadata.labels, desired.metadata.labels.as_ref());
    add_keys(&mut updated.metadata.annotations, desired.metadata.annotations.as_ref());
    replace(&mut updated.spec.suspend, desired.spec.suspend.as_ref());
    for replicated_job in updated.spec.replicated_jobs.iter_mut().flatten() {
        let mut wanted = desired.spec.replicated_jobs.iter().flatten();
        let wanted =
            wanted.find(|wanted| wanted.name == replicated_job.name).and_then(pod_template);
        if let (Some(pod), Some(wanted)) = (pod_template_mut(replicated_job), wanted) {
            update_pod(pod, wanted);
        }
    }
    (updated != current).then_some(JobSetUpdate { current, updated })
}

/// A JobSet without what does not change.
fn changeable(job_set: &JobSet) -> JobSet {
    let ObjectMeta { name, uid, resource_version, .. } = job_set.metadata.clone();
    let metadata = ObjectMeta { name, uid, resource_version, ..keys(&job_set.metadata) };
    let jobs = job_set.spec.replicated_jobs.as_ref();
    let replicated_jobs = jobs.map(|jobs| jobs.iter().map(changeable_job).collect());
    let spec =
        JobSetSpec { replicated_jobs, suspend: job_set.spec.suspend, ..JobSetSpec::default() };
    JobSet { metadata, spec, ..JobSet::default() }
}

fn changeable_job(job: &ReplicatedJob) -> ReplicatedJob {
    let spec = pod_template(job).map(|template| JobSpec {
        template: PodTemplateSpec {
            metadata: template.metadata.as_ref().map(keys),
            spec: template.spec.as_ref().map(|pod| PodSpec {
                node_selector: pod.node_selector.clone(),
                tolerations: pod.tolerations.clone(),
                scheduling_gates: pod.scheduling_gates.clone(),
                ..PodSpec::default()
            }),
        },
        ..JobSpec::default()
    });
    let template = JobTemplateSpec { spec, ..JobTemplateSpec::default() };
    ReplicatedJob { name: job.name.clone(), template, ..ReplicatedJob::default() }
}

fn keys(metadata: &ObjectMeta) -> ObjectMeta {
    let (labels, annotations) = (metadata.labels.clone(), metadata.annotations.clone());
    ObjectMeta { labels, annotations, ..ObjectMeta::default() }
}

fn pod_template(replicated_job: &ReplicatedJob) -> Option<&PodTemplateSpec> {
    replicated_job.template.spec.as_ref().map(|spec| &spec.template)
}

fn pod_template_mut(replicated_job: &mut ReplicatedJob) -> Option<&mut PodTemplateSpec> {
    replicated_job.template.spec.as_mut().map(|spec| &mut spec.template)
}

fn update_pod(pod: &mut PodTemplateSpec, wanted: &PodTemplateSpec) {
    let mut metadata = pod.metadata.clone().unwrap_or_default();
    let wanted_metadata = wanted.metadata.as_ref();
    replace_keys(&mut metadata.labels, wanted_metadata.and_then(|m| m.labels.as_ref()));
    replace_keys(&mut metadata.annotations, wanted_metadata.and_then(|m| m.annotations.as_ref()));
    replace(&mut pod.metadata, Some(&metadata));

    if let (Some(pod), Some(wanted)) = (&mut pod.spec, &wanted.spec) {
        replace(&mut pod.node_selector, wanted.node_selector.as_ref());
        replace(&mut pod.tolerations, wanted.tolerations.as_ref());
        replace(&mut pod.scheduling_gates, wanted.scheduling_gates.as_ref());
    }
}

/// Takes the desired value, unless the two differ only in how they say "nothing".
fn replace<T: Clone + Default + PartialEq>(current: &mut Option<T>, desired: Option<&T>) {
    let nothing = T::default();
    if current.as_ref().unwrap_or(&nothing) != desired.unwrap_or(&nothing) {
        *current = desired.cloned();
    }
}

fn replace_keys(current: &mut Option<Keys>, desired: Option<&Keys>) {
    let mut keys = current.clone().unwrap_or_default();
    keys.retain(|key, _| OF_CONTROLLERS.iter().any(|domain| key.starts_with(domain)));
    keys.extend(desired.cloned().unwrap_or_default());
    replace(current, Some(&keys));
}

fn add_keys(current: &mut Option<Keys>, desired: Option<&Keys>) {
    let mut keys = current.clone().unwrap_or_default();
    keys.extend(desired.cloned().unwrap_or_default());
    replace(current, Some(&keys));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A JobSet with this metadata, suspension and Pod template, the last merged over a small one.
    fn job_set(metadata: &Value, suspend: bool, pod_metadata: &Value, pod: &Value) -> JobSet {
        let mut spec = json!({"containers": [{"name": "node", "image": "a"}]});
        spec.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
        let mut all = json!({"name": "tj", "uid": "V", "resourceVersion": "7"});
        all.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": all,
            "spec": {"suspend": suspend, "replicatedJobs": [{
                "name": "node",
                "template": {"spec": {"template": {"metadata": pod_metadata, "spec": spec}}},
            }]},
        }))
        .unwrap()
    }

    fn updated(current: &JobSet, desired: &JobSet) -> Value {
        let patch = update_suspended(current, desired).unwrap().patch().unwrap();
        let mut updated = serde_json::to_value(current).unwrap();
        json_patch::patch(&mut updated, &patch).unwrap();
        updated
    }

    const POD: &str = "/spec/replicatedJobs/0/template/spec/template";

    #[test]
    fn equal_job_sets_need_no_update() {
        let same = job_set(&json!({}), true, &json!({"labels": {"a": "1"}}), &json!({}));
        assert_eq!(update_suspended(&same, &same), None);
    }

    #[test]
    fn nothing_is_said_in_several_ways() {
        let current = job_set(&json!({}), true, &json!(null), &json!({"tolerations": []}));
        let mut desired = job_set(
            &json!({"labels": {}}),
            true,
            &json!({"labels": {}, "annotations": {}}),
            &json!({"nodeSelector": {}}),
        );
        assert_eq!(update_suspended(&current, &desired), None);

        let mut absent = current;
        absent.spec.suspend = None;
        desired.spec.suspend = Some(false);
        assert_eq!(update_suspended(&absent, &desired), None);
    }

    #[test]
    fn an_update_is_of_the_object_it_was_read_from() {
        let current = job_set(&json!({}), true, &json!({}), &json!({}));
        let mut desired = job_set(&json!({}), false, &json!({}), &json!({}));
        desired.metadata.uid = None;
        desired.metadata.resource_version = None;
        let updated = updated(&current, &desired);
        assert_eq!(updated["metadata"], json!({"name": "tj", "uid": "V", "resourceVersion": "7"}));
        assert_eq!(updated["spec"]["suspend"], json!(false));
    }

    #[test]
    fn what_kueue_withdraws_goes_and_what_jobset_set_stays() {
        let current = job_set(
            &json!({"labels": {"theirs": "1"}, "annotations": {"ours": "old"}}),
            true,
            &json!({"labels": {"kueue.x-k8s.io/podset": "node", "jobset.sigs.k8s.io/x": "1"}}),
            &json!({
                "nodeSelector": {"zone": "a", "gone": "1"},
                "tolerations": [{"key": "gone"}],
                "schedulingGates": [{"name": "gone"}],
            }),
        );
        let desired = job_set(
            &json!({"labels": {"ours": "1"}, "annotations": {"ours": "new"}}),
            true,
            &json!({"labels": {"a": "1"}, "annotations": {"b": "2"}}),
            &json!({"nodeSelector": {"zone": "b"}, "tolerations": [{"key": "new"}]}),
        );
        let updated = updated(&current, &desired);
        let pod = updated.pointer(POD).unwrap();
        assert_eq!(updated["metadata"]["labels"], json!({"theirs": "1", "ours": "1"}));
        assert_eq!(updated["metadata"]["annotations"], json!({"ours": "new"}));
        assert_eq!(
            pod["metadata"],
            json!({"labels": {"a": "1", "jobset.sigs.k8s.io/x": "1"}, "annotations": {"b": "2"}})
        );
        assert_eq!(
            pod["spec"],
            json!({
                "containers": [{"name": "node", "image": "a"}],
                "nodeSelector": {"zone": "b"},
                "tolerations": [{"key": "new"}],
            })
        );
    }

    #[test]
    fn what_jobset_does_not_let_change_is_not_changed() {
        let current = job_set(&json!({}), true, &json!({}), &json!({}));
        let mut desired = job_set(
            &json!({"finalizers": ["f"], "ownerReferences": []}),
            true,
            &json!({"finalizers": ["f"]}),
            &json!({"containers": [{"name": "node", "image": "b"}], "affinity": {"nodeAffinity": {}}}),
        );
        desired.spec.managed_by = Some("somebody".into());
        let replicated_jobs = desired.spec.replicated_jobs.as_mut().unwrap();
        replicated_jobs[0].replicas = Some(3);
        replicated_jobs.push(ReplicatedJob { name: "other".into(), ..ReplicatedJob::default() });
        assert_eq!(update_suspended(&current, &desired), None);
    }

    #[test]
    fn a_patch_keeps_what_is_not_known_and_moves_it_nowhere() {
        let current = job_set(
            &json!({}),
            true,
            &json!({"labels": {"gone": "1"}}),
            &json!({"tolerations": [{"key": "a"}, {"key": "b"}], "schedulingGates": [{"name": "g"}]}),
        );
        let desired = job_set(
            &json!({}),
            false,
            &json!({"labels": {"new": "1"}}),
            &json!({"tolerations": [{"key": "b"}], "nodeSelector": {"a": "b"}}),
        );
        let patch = update_suspended(&current, &desired).unwrap().patch().unwrap();
        // As a newer release of JobSet may have stored it.
        let mut stored = serde_json::to_value(&current).unwrap();
        stored["spec"]["unknown"] = json!(1);
        let pod = stored.pointer_mut(POD).unwrap();
        pod["spec"]["unknown"] = json!(2);
        pod["spec"]["tolerations"][0]["unknown"] = json!(3);
        json_patch::patch(&mut stored, &patch).unwrap();
        let pod = stored.pointer(POD).unwrap();
        assert_eq!(stored["spec"]["suspend"], json!(false));
        assert_eq!(stored["spec"]["unknown"], json!(1));
        assert_eq!(pod["metadata"]["labels"], json!({"new": "1"}));
        assert_eq!(
            pod["spec"],
            json!({
                "containers": [{"name": "node", "image": "a"}],
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "b"}],
                "unknown": 2,
            })
        );
        let fences: Vec<_> = patch.0.iter().take(2).map(|it| it.path().to_string()).collect();
        assert_eq!(fences, ["/metadata/uid", "/metadata/resourceVersion"]);
    }

    #[test]
    fn an_update_is_made_once() {
        let current = job_set(&json!({}), true, &json!({"labels": {"x": "1"}}), &json!({}));
        let desired =
            job_set(&json!({}), false, &json!({}), &json!({"nodeSelector": {"zone": "b"}}));
        let once = update_suspended(&current, &desired).unwrap();
        assert_eq!(update_suspended(&once.updated, &desired), None);
    }
}
