//! One job and what belongs to it, as the rules see them.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Condition};
use serde_json::{Value, json};
use trainjob_api::{
    JobSet, TrainJob,
    jobset::{JobSetStatus, ReplicatedJobStatus},
    time::Timestamp,
    v1alpha1::train_job::TrainJobStatus,
};
use trainjob_core::{
    Action, Now, Observed, Plan,
    action::{StatusWrite, TtlDeletion},
    build::{Runtime, build, snapshot},
    facts::{JobFacts, PodGroupFacts},
    mark::Accounting,
    observed::{
        KnownRuntime, Listed, PodGroups, Presence, ReadJobSet, Reading, Readings, Settings,
    },
    plan,
    take_over::Comparison,
};

use crate::common::{condition, facts, owner, runtime, train_job};

/// When every job was created.
pub(crate) const CREATED: i64 = 1_000;
/// When the JobSet of every job was created, if it was.
pub(crate) const STARTED: i64 = 1_001;
/// UID of the job.
pub(crate) const UID: &str = "uid-of-job";
/// The stored version of the job.
pub(crate) const VERSION: &str = "7";
/// UID of the JobSet.
pub(crate) const JOB_SET_UID: &str = "uid-of-jobset";
/// The stored version of the JobSet.
pub(crate) const JOB_SET_VERSION: &str = "70";

/// A job and what belongs to it.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) job: TrainJob,
    pub(crate) job_set: Option<JobSet>,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) pod_group: Group,
    pub(crate) readings: Readings,
    pub(crate) settings: Settings,
    pub(crate) accounting: Accounting,
    pub(crate) comparison: Comparison,
    pub(crate) is_evicted: bool,
    pub(crate) is_runtime_evicted: bool,
}

/// The PodGroup of coscheduling.
#[derive(Debug, Clone)]
pub(crate) enum Group {
    /// There is no such kind.
    NotServed,
    /// There is none.
    Absent,
    /// There is one.
    There(Box<PodGroupFacts>),
}

/// A new job with these fields in its spec. Its runtime exists; nothing else does or was read.
pub(crate) fn new(fields: &Value) -> Scene {
    Scene {
        job: train_job(fields, UID, VERSION, CREATED),
        job_set: None,
        runtime: Some(runtime("now")),
        pod_group: Group::NotServed,
        readings: Readings::default(),
        settings: Settings::default(),
        accounting: Accounting::default(),
        comparison: Comparison::Due,
        is_evicted: false,
        is_runtime_evicted: false,
    }
}

/// A job whose JobSet exists, suspended or not as the job says.
pub(crate) fn built(fields: &Value) -> Scene {
    let mut scene = new(fields);
    let mut job_set = build(&scene.job, &runtime("now")).unwrap().job_set;
    job_set.metadata.uid = Some(JOB_SET_UID.into());
    job_set.metadata.resource_version = Some(JOB_SET_VERSION.into());
    job_set.metadata.creation_timestamp = Some(Timestamp(STARTED).into());
    scene.job_set = Some(job_set);
    scene
}

/// A job that ended so, at `at`, and whose JobSet is still there.
pub(crate) fn ended(fields: &Value, (kind, reason): (&str, &str), at: i64) -> Scene {
    built(fields).with_conditions(&[condition(kind, "True", reason, at)])
}

/// The ends that a job may come to.
pub(crate) const ENDS: [(&str, &str); 4] = [
    ("Complete", "AllJobsCompleted"),
    ("Failed", "FailedJobs"),
    ("Failed", "TrainingRuntimeNotSupported"),
    ("Failed", "DeadlineExceeded"),
];

impl Scene {
    /// What is planned at `now`. Asks twice: the answer may not differ.
    pub(crate) fn plan(&self, now: i64) -> Plan {
        self.plan_at(Now::at(Timestamp(now)))
    }

    /// What is planned while the time is not known, though it is most likely `now`.
    pub(crate) fn plan_held(&self, now: i64) -> Plan {
        self.plan_at(Now::Held { likely: Timestamp(now) })
    }

    fn plan_at(&self, now: Now) -> Plan {
        self.planned(Listed::Everything, now)
    }

    /// What is planned at `now` while other objects may still have to be listed.
    pub(crate) fn words_before_all_is_listed(&self, now: i64) -> Vec<String> {
        words(&self.plan_before_all_is_listed(now))
    }

    /// The same, not in words.
    pub(crate) fn plan_before_all_is_listed(&self, now: i64) -> Plan {
        self.planned(Listed::TheJob, Now::at(Timestamp(now)))
    }

    fn planned(&self, listed: Listed, now: Now) -> Plan {
        let job = JobFacts::of(&self.job);
        let job_set = self.job_set.as_ref().map(facts);
        let coscheduling = match &self.pod_group {
            Group::NotServed => Presence::NotServed,
            Group::Absent => Presence::Absent,
            Group::There(group) => Presence::There(group),
        };
        let observed = Observed {
            job: &job,
            manifest: (job.finished.is_none() && !self.is_evicted).then_some(&self.job),
            job_set: job_set.as_ref(),
            pod_groups: PodGroups { coscheduling, ..PodGroups::default() },
            runtime: self.known_runtime(),
            readings: &self.readings,
            settings: &self.settings,
            accounting: self.accounting,
            comparison: self.comparison,
            listed,
        };
        let answer = plan(&observed, now);
        assert_eq!(answer, plan(&observed, now));
        answer
    }

    fn known_runtime(&self) -> KnownRuntime<'_> {
        match self.runtime.as_ref() {
            Some(_) if self.is_runtime_evicted => KnownRuntime::Evicted,
            runtime => runtime.into(),
        }
    }

    /// What is planned at `now`, in words.
    pub(crate) fn words(&self, now: i64) -> Vec<String> {
        words(&self.plan(now))
    }

    /// The same, with these conditions stored.
    pub(crate) fn with_conditions(mut self, conditions: &[Condition]) -> Self {
        self.status().conditions = Some(conditions.to_vec());
        self
    }

    /// The same, with a JobSet that is not this job's, with `uid` as its owner if it has one.
    pub(crate) fn with_foreign_job_set(self, uid: Option<&str>) -> Self {
        let mut scene = Self { job_set: built(&json!({})).job_set, ..self };
        scene.job_set().metadata.owner_references = uid.map(|uid| vec![owner(uid)]);
        scene
    }

    /// The same, with a JobSet that has one more condition.
    pub(crate) fn with_job_set_condition(mut self, condition: Condition) -> Self {
        self.job_set_status().conditions.push(condition);
        self
    }

    /// The same, with a JobSet that counts so many active Jobs.
    pub(crate) fn with_active(mut self, active: i32) -> Self {
        let name = "node".into();
        let status = ReplicatedJobStatus { name, active, ..ReplicatedJobStatus::default() };
        self.job_set_status().replicated_jobs_status = vec![status];
        self
    }

    /// The same, with a JobSet whose deletion began at `at`.
    pub(crate) fn with_job_set_terminating(mut self, at: i64) -> Self {
        self.job_set().metadata.deletion_timestamp = Some(Timestamp(at).into());
        self
    }

    /// The same, with a JobSet that was created at `at`.
    pub(crate) fn with_job_set_created(mut self, at: i64) -> Self {
        self.job_set().metadata.creation_timestamp = Some(Timestamp(at).into());
        self
    }

    /// The same, with a JobSet that is suspended or not, whatever the job says.
    pub(crate) fn with_job_set_suspended(mut self, suspended: bool) -> Self {
        self.job_set().spec.suspend = Some(suspended);
        self
    }

    /// The same, without a JobSet.
    pub(crate) fn with_job_set_seen_to_go(mut self) -> Self {
        let seen = self.job_set.as_ref().map(facts);
        self.readings.needs_existence_check = true;
        self.readings.ended = seen.and_then(|job_set| job_set.ended);
        self.without_job_set()
    }

    pub(crate) fn without_job_set(self) -> Self {
        Self { job_set: None, ..self }
    }

    /// The same, with a job whose deletion somebody asked for.
    pub(crate) fn terminating(mut self) -> Self {
        self.job.metadata.deletion_timestamp = Some(Timestamp(CREATED).into());
        self
    }

    /// The same, with a label on the job.
    pub(crate) fn labelled(mut self, label: &str) -> Self {
        self.job.metadata.labels.get_or_insert_default().insert(label.into(), "x".into());
        self
    }

    /// The same, with other settings.
    pub(crate) fn under(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// The same, without its runtime.
    pub(crate) fn without_runtime(self) -> Self {
        Self { runtime: None, ..self }
    }

    /// The same, with the snapshot read.
    pub(crate) fn having_read(mut self, snapshot: Reading<ConfigMap>) -> Self {
        self.readings.snapshot = snapshot;
        self
    }

    /// The same, with a JobSet that is known to be what the job asks for.
    pub(crate) fn up_to_date(mut self) -> Self {
        let unbuilt = Self { readings: Readings::default(), ..self.clone() }.without_job_set();
        self.readings.applied_spec_hash = unbuilt.plan(CREATED).applied_spec_hash;
        self
    }

    /// This job's snapshot of the runtime with `image`.
    pub(crate) fn snapshot(&self, image: &str) -> ConfigMap {
        snapshot::render(&self.job, &runtime(image)).unwrap()
    }

    /// The same, after the status write of a plan.
    pub(crate) fn after(mut self, plan: &Plan) -> Self {
        let write = status_write(plan).clone();
        let status = self.status();
        status.conditions = write.conditions.or(status.conditions.take());
        status.jobs_status = write.jobs_status.or(status.jobs_status.take());
        self
    }

    pub(crate) fn status(&mut self) -> &mut TrainJobStatus {
        self.job.status.get_or_insert_default()
    }

    /// Its JobSet was read as it is.
    pub(crate) fn read_job_set(&mut self) {
        let read = self.job_set.as_ref().map(ReadJobSet::of).transpose();
        self.readings.job_set = read.unwrap();
    }

    /// Its JobSet after a plan of one action, which updates it.
    pub(crate) fn updated(&self, plan: &Plan) -> JobSet {
        let [Action::UpdateJobSet { uid, resource_version, patch }] = &plan.actions[..] else {
            panic!("no update but {:?}", plan.actions)
        };
        assert_eq!((&**uid, &**resource_version), (JOB_SET_UID, JOB_SET_VERSION));
        let mut job_set = serde_json::to_value(&self.job_set).unwrap();
        json_patch::patch(&mut job_set, &patch.read().unwrap()).unwrap();
        serde_json::from_value(job_set).unwrap()
    }

    pub(crate) fn job_set(&mut self) -> &mut JobSet {
        self.job_set.as_mut().unwrap()
    }

    fn job_set_status(&mut self) -> &mut JobSetStatus {
        self.job_set().status.get_or_insert_default()
    }
}

/// A plan in words.
pub(crate) fn words(plan: &Plan) -> Vec<String> {
    plan.actions.iter().map(word).collect()
}

/// What an action does, in two or three words.
fn word(action: &Action) -> String {
    let word = match action {
        Action::WriteStatus(_) => "write status",
        Action::WriteWaiting(_) => "write waiting",
        Action::CreateSnapshot(_) => "create snapshot",
        Action::ReadTrainJob => "read TrainJob",
        Action::ReadRuntime(_) => "read runtime",
        Action::ReadSnapshot => "read snapshot",
        Action::ProbeSecret { .. } => "probe Secret",
        Action::CreateSecret(_) => "create Secret",
        Action::CreateConfigMap(_) => "create ConfigMap",
        Action::DeleteConfigMap { .. } => "delete ConfigMap",
        Action::CreatePodGroup(_) => "create PodGroup",
        Action::UpdatePodGroup { .. } => "update PodGroup",
        Action::DeletePodGroup { .. } => "delete PodGroup",
        Action::CreateJobSet { .. } => "create JobSet",
        Action::ReadJobSet => "read JobSet",
        Action::UpdateJobSet { .. } => "update JobSet",
        Action::SuspendJobSet { suspend: true, .. } => "suspend JobSet",
        Action::SuspendJobSet { suspend: false, .. } => "resume JobSet",
        Action::DeleteJobSet { .. } => "delete JobSet",
        Action::CheckPods { .. } => "check Pods",
        Action::DeleteTrainJob(_) => "delete TrainJob",
        Action::RecordOutOfMemory { .. } => "tell if out of memory",
        Action::RecordEvent(event) => return format!("tell {}", event.reason()),
    };
    word.into()
}

/// The status write of a plan that begins with one.
pub(crate) fn status_write(plan: &Plan) -> &StatusWrite {
    match plan.actions.first() {
        Some(Action::WriteStatus(write)) => write,
        other => panic!("no status write but {other:?}"),
    }
}

/// The conditions that a plan writes: type, status and reason of each.
pub(crate) fn written(plan: &Plan) -> Vec<(String, String, String)> {
    let conditions = status_write(plan).conditions.iter().flatten();
    conditions.map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone())).collect()
}

/// The deletion of the job in a plan that begins with one.
pub(crate) fn deletion(plan: &Plan) -> &TtlDeletion {
    match plan.actions.first() {
        Some(Action::DeleteTrainJob(deletion)) => deletion,
        other => panic!("no deletion but {other:?}"),
    }
}
