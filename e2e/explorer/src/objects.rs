//! The objects that schedules are about, as they are stored, with the facts that they contain.

use std::sync::LazyLock;

use invariants::Hold;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference, Time};
use serde_json::{Value, json};
use trainjob_api::{
    ClusterTrainingRuntime, JobSet, TrainJob,
    constants::MANAGED_BY,
    jobset::{JobSetSpecView, JobSetView},
    time::Timestamp,
    v1alpha1::{API_VERSION, GROUP, TRAIN_JOB_KIND},
};
use trainjob_core::{
    action::WaitingChange,
    build::{Runtime, RuntimeKey, runtime_key},
    facts::{JobFacts, JobSetFacts, ObjectKey},
};

/// The annotation that holds the deletion of a job by its TTL.
const HOLD: &str = "lifecycle.trainjob.dev/hold-until";
/// A finalizer that somebody else puts on objects.
pub const KEPT: &str = "example.com/keep";
/// The garbage collector's finalizer.
pub const FOREGROUND: &str = "foregroundDeletion";

/// A version of a TrainJob.
#[derive(Debug)]
pub struct StoredJob {
    /// The object.
    pub manifest: TrainJob,
    /// Its facts.
    pub facts: JobFacts,
    /// The runtime it names, if of a kind that is known.
    pub runtime: Option<RuntimeKey>,
}

impl StoredJob {
    /// The version that this object is.
    #[must_use]
    pub fn of(manifest: TrainJob) -> Self {
        let facts = JobFacts::of(&manifest);
        let runtime = runtime_key(&manifest).ok();
        Self { manifest, facts, runtime }
    }
}

/// A version of a JobSet.
#[derive(Debug)]
pub struct StoredJobSet {
    /// The object.
    pub object: JobSet,
    /// Its facts.
    pub facts: JobSetFacts,
}

impl StoredJobSet {
    /// The version that this object is.
    #[must_use]
    pub fn of(object: JobSet) -> Self {
        let facts = JobSetFacts::of(&JobSetView {
            metadata: object.metadata.clone(),
            spec: JobSetSpecView {
                suspend: object.spec.suspend.unwrap_or(false),
                ..JobSetSpecView::default()
            },
            status: object.status.clone().unwrap_or_default(),
        });
        Self { object, facts }
    }
}

fn parsed<T: serde::de::DeserializeOwned + Default>(value: Value) -> T {
    // The values are the constants of this file; a mistake in one shows in its first schedule.
    serde_json::from_value(value).unwrap_or_default()
}

static JOB: LazyLock<TrainJob> = LazyLock::new(|| {
    parsed(json!({
        "apiVersion": API_VERSION,
        "kind": TRAIN_JOB_KIND,
        "metadata": {},
        "spec": {"runtimeRef": {"name": "plain", "apiGroup": GROUP}},
    }))
});

static RUNTIMES: LazyLock<[Runtime; 3]> = LazyLock::new(|| [usable("0"), usable("1"), broken()]);

static PATCHES: LazyLock<[TrainJob; 3]> = LazyLock::new(|| [patched(0), patched(1), patched(2)]);

/// A TrainJob of this key, without a UID.
#[must_use]
pub fn train_job(key: &ObjectKey, created: Timestamp) -> TrainJob {
    let mut job = JOB.clone();
    job.metadata.name = Some(key.name.to_string());
    job.metadata.namespace = Some(key.namespace.to_string());
    job.metadata.creation_timestamp = Some(created.into());
    job
}

/// Gives a job this hold, or none.
pub fn set_hold(job: &mut TrainJob, text: Option<&str>) {
    job.metadata.annotations = text.map(|text| [(HOLD.to_owned(), text.to_owned())].into());
}

/// Gives a job one of three sets of patches: none, and two as Kueue writes them.
pub fn patch(job: &mut TrainJob, number: usize) {
    if let Some(patched) = PATCHES.get(number) {
        job.spec.runtime_patches.clone_from(&patched.spec.runtime_patches);
    }
}

fn patched(number: usize) -> TrainJob {
    if number == 0 {
        return JOB.clone();
    }
    let pod = json!({"metadata": {"labels": {"patch": number.to_string()}}});
    let replicated_job = json!({"name": "node", "template": {"spec": {"template": pod}}});
    let template = json!({"spec": {"replicatedJobs": [replicated_job]}});
    parsed(json!({"metadata": {}, "spec": {
        "runtimeRef": {"name": "plain"},
        "runtimePatches": [{
            "manager": "kueue.x-k8s.io/manager",
            "trainingRuntimeSpec": {"template": template},
        }],
    }}))
}

/// One of three versions of the runtime that the jobs name; with the last, no job can be built.
#[must_use]
pub fn runtime(number: usize) -> Option<Runtime> {
    RUNTIMES.get(number).cloned()
}

fn usable(image: &str) -> Runtime {
    let containers = json!([{"name": "node", "image": image}]);
    let job = json!({
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": containers}}},
    });
    let template = json!({"spec": {"replicatedJobs": [{"name": "node", "template": job}]}});
    of_spec(json!({"mlPolicy": {"numNodes": 1}, "template": template}))
}

fn broken() -> Runtime {
    of_spec(json!({"mlPolicy": {"mpi": {"mpiImplementation": ""}}}))
}

fn of_spec(spec: Value) -> Runtime {
    let mut runtime = json!({"metadata": {"name": "plain"}});
    if let Some(fields) = runtime.as_object_mut() {
        fields.insert("spec".into(), spec);
    }
    parsed::<ClusterTrainingRuntime>(runtime).into()
}

/// A condition that holds.
#[must_use]
pub fn condition(kind: &str, reason: &str, at: Timestamp) -> Condition {
    Condition {
        type_: kind.into(),
        status: "True".into(),
        reason: reason.into(),
        message: reason.into(),
        last_transition_time: at.into(),
        observed_generation: None,
    }
}

/// The reference of an object to the TrainJob of this name and UID, its controller.
#[must_use]
pub fn owner(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.into(),
        kind: TRAIN_JOB_KIND.into(),
        name: name.into(),
        uid: uid.into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The UID in an object's metadata.
#[must_use]
pub fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

/// Changes the `Waiting` condition of a job in its place, as the API server does by a JSON patch.
pub fn change_waiting(conditions: &mut Vec<Condition>, change: &WaitingChange) {
    match change {
        WaitingChange::Add(condition) => conditions.insert(0, condition.clone()),
        WaitingChange::Update { index, reason, message, .. } => {
            if let Some(condition) = conditions.get_mut(*index) {
                condition.reason = reason.as_str().into();
                condition.message.clone_from(message);
            }
        }
        WaitingChange::Remove { index } => {
            if *index < conditions.len() {
                conditions.remove(*index);
            }
        }
    }
}

/// Whether an object has this finalizer.
#[must_use]
pub fn has_finalizer(metadata: &ObjectMeta, name: &str) -> bool {
    metadata.finalizers.iter().flatten().any(|finalizer| finalizer == name)
}

/// Puts a finalizer on an object.
pub fn add_finalizer(metadata: &mut ObjectMeta, name: &str) {
    if !has_finalizer(metadata, name) {
        metadata.finalizers.get_or_insert_default().push(name.into());
    }
}

/// Takes a finalizer off an object.
pub fn remove_finalizer(metadata: &mut ObjectMeta, name: &str) {
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.retain(|finalizer| finalizer != name);
        if finalizers.is_empty() {
            metadata.finalizers = None;
        }
    }
}

/// The meaning of a stored job, said once more and in other words than the core's.
#[must_use]
pub fn conditions(job: &TrainJob) -> &[Condition] {
    job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

/// Whether this operator may touch a job.
#[must_use]
pub fn is_ours(job: &TrainJob) -> bool {
    job.spec.managed_by.as_deref().unwrap_or(MANAGED_BY) == MANAGED_BY
}

/// The hold that a job asks for.
#[must_use]
pub fn hold(job: &TrainJob) -> Option<Hold> {
    let text = Value::from(job.metadata.annotations.as_ref()?.get(HOLD)?.as_str());
    let until = serde_json::from_value(text).map(|at: Time| Hold::Until(Timestamp::from(&at)));
    Some(until.unwrap_or(Hold::Unreadable))
}

/// When a condition changed.
#[must_use]
pub fn at(condition: &Condition) -> Timestamp {
    Timestamp::from(&condition.last_transition_time)
}

/// The conditions that end a job.
pub fn ends(job: &TrainJob) -> impl Iterator<Item = &Condition> {
    conditions(job).iter().filter(|condition| {
        condition.status == "True" && ["Complete", "Failed"].contains(&&*condition.type_)
    })
}

/// The condition that ended a job.
#[must_use]
pub fn end(job: &TrainJob) -> Option<&Condition> {
    ends(job).min_by_key(|condition| at(condition))
}
