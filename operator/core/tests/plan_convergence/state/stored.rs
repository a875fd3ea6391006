//! States as the objects that are stored.

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference},
};
use serde_json::json;
use trainjob_api::{
    JobSet, TrainJob,
    constants::MULTIKUEUE_ORIGIN_LABEL,
    jobset::{JobSetStatus, ReplicatedJobStatus},
    lifecycle::v1alpha1::HOLD_ANNOTATION,
    time::Timestamp,
    v1alpha1::train_job::JobStatus,
};
use trainjob_core::build::{Runtime, build, snapshot};

use super::{CONDITIONS, Job, JobSetState, Owner, RuntimeState, START, SnapshotState, Start};
use crate::{
    cluster::{Cluster, KEPT},
    common::{broken_runtime, condition, owner, patches, runtime, set_spec, train_job},
};

impl Start {
    /// The cluster in which this is stored.
    pub(crate) fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::new(Timestamp(START), self.settings);
        cluster.job = Some(self.job.stored());
        cluster.bump(|cluster| cluster.job.as_mut().map(|job| &mut job.metadata));
        cluster.runtime = self.runtime.stored();
        cluster.snapshot = self.snapshot.stored(cluster.job.as_ref().unwrap());
        if let Some(state) = &self.job_set {
            let job_set = state.stored(&self.job);
            cluster.add_job_set(job_set);
            if !state.pods {
                cluster.end_pods();
            }
        }
        cluster
    }
}

impl Job {
    fn stored(&self) -> TrainJob {
        let mut job =
            train_job(&json!({"runtimePatches": patch(self.patch)}), "job-0", "", self.created);
        job.spec.suspend = self.suspend;
        job.spec.active_deadline_seconds = self.deadline;
        job.spec.ttl_seconds_after_finished = self.ttl;
        set_hold(&mut job, self.hold.as_deref());
        job.spec.managed_by = self.elsewhere.then(|| "kueue.x-k8s.io/multikueue".into());
        job.spec.runtime_ref.kind = self.unknown_kind.then(|| "Unknown".into());
        if self.remote_copy {
            job.metadata.labels =
                Some([(MULTIKUEUE_ORIGIN_LABEL.into(), "multikueue".into())].into());
        }
        if self.terminating {
            job.metadata.deletion_timestamp = Some(Timestamp(START).into());
            job.metadata.finalizers = Some(vec![KEPT.into()]);
        }
        let mut conditions: Vec<Condition> = Vec::new();
        for &(index, holds, at) in &self.conditions {
            let (kind, reason) = CONDITIONS[index];
            // The schema keys the list by type.
            if conditions.iter().all(|present| present.type_ != kind) {
                conditions.push(condition(kind, if holds { "True" } else { "False" }, reason, at));
            }
        }
        let status = job.status.get_or_insert_default();
        status.conditions = Some(conditions).filter(|conditions| !conditions.is_empty());
        status.jobs_status = self
            .active
            .map(|active| vec![JobStatus { name: "node".into(), active, ..JobStatus::default() }]);
        job
    }
}

/// Gives a job this hold, or none.
pub(crate) fn set_hold(job: &mut TrainJob, text: Option<&str>) {
    let hold = text.map(|text| [(HOLD_ANNOTATION.to_owned(), text.to_owned())].into());
    job.metadata.annotations = hold;
}

/// Patches that only differ in what JobSet lets change; 0 is none.
fn patch(number: u8) -> serde_json::Value {
    if number == 0 { json!(null) } else { patches(&number.to_string()) }
}

impl RuntimeState {
    pub(crate) fn stored(self) -> Option<Runtime> {
        match self {
            Self::Absent => None,
            Self::Broken => Some(broken_runtime()),
            Self::Image(image) => Some(runtime(&image.to_string())),
        }
    }
}

impl SnapshotState {
    pub(crate) fn stored(self, job: &TrainJob) -> Option<ConfigMap> {
        let of = |image: u8| snapshot::render(job, &runtime(&image.to_string())).unwrap();
        match self {
            Self::Absent => None,
            Self::Damaged => Some(ConfigMap { data: None, ..of(0) }),
            Self::Of(owner, image) => {
                let mut config_map = of(image);
                config_map.metadata.owner_references = owner.reference(job);
                Some(config_map)
            }
        }
    }
}

impl Owner {
    fn reference(self, job: &TrainJob) -> Option<Vec<OwnerReference>> {
        match self {
            Self::ThisJob => Some(vec![owner(job.metadata.uid.as_deref().unwrap())]),
            Self::Predecessor => Some(vec![owner("predecessor")]),
            Self::Nobody => None,
        }
    }

    /// A JobSet of the job's name with this owner.
    pub(crate) fn job_set(self, job: &TrainJob) -> JobSet {
        let mut job_set = build(job, &runtime("0")).unwrap().job_set;
        job_set.metadata.owner_references = self.reference(job);
        job_set
    }
}

impl JobSetState {
    fn stored(&self, job: &Job) -> JobSet {
        let job = Job { patch: self.patch, ..job.clone() }.stored();
        let mut job_set = self.owner.job_set(&job);
        job_set.metadata.creation_timestamp = Some(Timestamp(self.created).into());
        job_set.metadata.deletion_timestamp = self.terminating.map(|at| Timestamp(at).into());
        job_set.metadata.finalizers = self.kept.then(|| vec![KEPT.into()]);
        job_set.spec.suspend = Some(self.suspended);
        for &(completed, at) in &self.ends {
            end(&mut job_set, completed, at);
        }
        count(&mut job_set, self.active);
        job_set
    }
}

/// JobSet's controller says that a JobSet has ended.
pub(crate) fn end(job_set: &mut JobSet, completed: bool, at: i64) {
    let kind = if completed { "Completed" } else { "Failed" };
    let JobSetStatus { conditions, .. } = job_set.status.get_or_insert_default();
    if conditions.iter().all(|present| present.type_ != kind) {
        conditions.push(condition(kind, "True", "SaidByJobSet", at));
    }
}

/// JobSet's controller counts.
pub(crate) fn count(job_set: &mut JobSet, active: Option<i32>) {
    let status = job_set.status.get_or_insert_default();
    status.replicated_jobs_status = active
        .map(|active| ReplicatedJobStatus { name: "node".into(), active, ..Default::default() })
        .into_iter()
        .collect();
}

/// A user changes the job's patches.
pub(crate) fn set_patch(job: &mut TrainJob, number: u8) {
    set_spec(job, &json!({"runtimePatches": patch(number)}));
}
