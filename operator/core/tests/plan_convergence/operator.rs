//! The operator's shell, as far as `plan` can tell: what it knows, and how it carries plans out.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use trainjob_api::{JobSet, TrainJob, time::Timestamp};
use trainjob_core::{
    Action, Observed, Plan,
    action::Waiting,
    facts::{JobFacts, JobSetFacts},
    observed::{PodGroups, Reading, Readings, RunningPods, Settings},
    plan,
    runtime::Runtime,
};

use crate::{
    cluster::{Cluster, Refusal, brief, conditions, is_ours, terminal, uid},
    common::facts,
};

/// Rounds in one pass after which the shell gives the worker to another job.
const ROUNDS: usize = 8;

/// What the operator knows of one job's name.
#[derive(Default)]
pub(crate) struct Operator {
    job: Option<TrainJob>,
    job_set: Option<JobSet>,
    runtime: Option<Runtime>,
    readings: Readings,
    settings: Settings,
    job_sets_gone: usize,
}

/// How a pass ended.
#[derive(Debug)]
pub(crate) enum Pass {
    /// There is nothing to do for now: what was known, and the plan that says so.
    Settled(Box<Settled>),
    /// An action failed, or there were too many rounds: it is tried again later.
    Retried,
    /// There is no such job.
    NoJob,
}

/// What was known when there was nothing to do.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) known: Known,
    pub(crate) plan: Plan,
}

/// What one decision is made on.
#[derive(Clone)]
pub(crate) struct Known {
    job: TrainJob,
    job_set: Option<JobSet>,
    runtime: Option<Runtime>,
    readings: Readings,
    settings: Settings,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, job_set, runtime, readings, settings } = self;
        let image = runtime.as_ref().map(|runtime| brief(&runtime.spec));
        write!(f, "job {}, JobSet {}, runtime {image:?}, ", brief(job), brief(job_set))?;
        let Readings { snapshot, job_set, pods, rendered, in_doubt, taken } = readings;
        let snapshot = match snapshot {
            Reading::NotRead => "not read".into(),
            Reading::Absent => "absent".into(),
            Reading::Found(snapshot) => brief(snapshot),
        };
        write!(f, "snapshot {snapshot}, read JobSet {}, {pods:?}, ", brief(job_set))?;
        write!(f, "{rendered:?}, in doubt: {in_doubt}, {taken:?}, {settings:?}")
    }
}

impl Known {
    /// What is planned at `now`. Asks twice: the answer may not differ.
    pub(crate) fn plan(&self, now: i64) -> Plan {
        let job = JobFacts::of(&self.job);
        let job_set: Option<JobSetFacts> = self.job_set.as_ref().map(facts);
        let observed = Observed {
            job: &job,
            manifest: job.finished.is_none().then_some(&self.job),
            job_set: job_set.as_ref(),
            pod_groups: PodGroups::default(),
            runtime: self.runtime.as_ref(),
            readings: &self.readings,
            settings: &self.settings,
        };
        let now = Timestamp(now);
        let answer = plan(&observed, now);
        assert_eq!(answer, plan(&observed, now), "the same question has the same answer");
        answer
    }

    /// What holds for every plan, however old the knowledge it is made on.
    fn judge(&self, plan: &Plan) {
        let job = &self.job;
        let version = |metadata: &ObjectMeta| {
            (uid(metadata), metadata.resource_version.clone().unwrap_or_default())
        };
        let own = self.job_set.as_ref().filter(|job_set| {
            facts(job_set).train_job_uid.is_some_and(|owner| owner == uid(&job.metadata))
        });
        let over =
            terminal(job).is_some() || !is_ours(job) || job.metadata.deletion_timestamp.is_some();
        let mut end_is_stored = terminal(job).is_some();
        for (index, action) in plan.actions.iter().enumerate() {
            match action {
                Action::WriteStatus(write) => {
                    let fence = (write.uid.clone(), write.resource_version.clone());
                    assert_eq!(fence, version(&job.metadata));
                    assert_eq!(index, 0, "the status goes first");
                    if let Some(counts) = &write.jobs_status {
                        assert_eq!(Some(counts), own.map(|own| facts(own).jobs_status).as_ref());
                    }
                    end_is_stored |= write.conditions.as_deref() != Some(conditions(job));
                }
                Action::DeleteTrainJob(deletion) => {
                    let fence = (deletion.uid.clone(), deletion.resource_version.clone());
                    assert_eq!(fence, version(&job.metadata));
                    let others = plan.actions.iter().filter(|a| !matches!(a, Action::Tell(_)));
                    assert_eq!(others.count(), 1, "a deletion goes alone: {plan:?}");
                    let by_deadline =
                        terminal(job).is_some_and(|end| end.reason == "DeadlineExceeded");
                    let released = own.is_none() && self.readings.pods == Reading::Absent;
                    assert!(released || !by_deadline || !is_ours(job), "unreleased: {self:?}");
                }
                Action::DeleteJobSet { uid: of, resource_version } => {
                    assert_eq!(Some(of), own.map(|own| uid(&own.metadata)).as_ref());
                    let to_be_remade = own.is_some_and(|own| {
                        let version = own.metadata.resource_version.as_ref();
                        version == resource_version.as_ref() && facts(own).never_ran && !over
                    });
                    let calls_for_it = end_is_stored || to_be_remade;
                    assert!(calls_for_it, "the end is stored first: {plan:?}");
                }
                Action::SuspendJobSet { uid, resource_version, suspend } => {
                    let fence = (uid.clone(), resource_version.clone());
                    assert_eq!(Some(fence), own.map(|own| version(&own.metadata)));
                    assert!(!over || *suspend, "resumed after the end: {self:?}");
                }
                Action::UpdateJobSet(update) => {
                    let job_set = &update.updated;
                    let read = self.readings.job_set.as_ref().unwrap();
                    assert_eq!(version(&job_set.metadata), version(&read.metadata));
                    assert_eq!(
                        Some(uid(&job_set.metadata)),
                        own.map(|own| uid(&own.metadata)),
                        "an update of what is not the job's"
                    );
                    assert!(!over, "changed after the end: {self:?}");
                }
                Action::CreateSnapshot(_)
                | Action::CreateSecret(_)
                | Action::CreateConfigMap(_)
                | Action::DeleteConfigMap { .. }
                | Action::CreatePodGroup(_)
                | Action::UpdatePodGroup { .. }
                | Action::CreateJobSet(_) => {
                    assert!(!over, "made after the end: {self:?}");
                }
                Action::DeletePodGroup { .. } => {
                    assert!(end_is_stored, "the end is stored first: {plan:?}");
                }
                Action::ReadTrainJob
                | Action::ProbeSecret { .. }
                | Action::ReadSnapshot
                | Action::ReadJobSet
                | Action::CheckPods { .. }
                | Action::Tell(_)
                | Action::TellOutOfMemory { .. } => {}
            }
        }
        if !is_ours(job) && !matches!(plan.actions.first(), Some(Action::DeleteTrainJob(_))) {
            assert_eq!(plan.actions, [], "somebody else's job");
        }
    }
}

impl Operator {
    /// An operator that knows nothing yet.
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A restart: everything is forgotten, and then listed anew.
    pub(crate) fn crash(&mut self, cluster: &Cluster) {
        self.readings = Readings::default();
        self.deliver(cluster);
    }

    /// The watches have caught up.
    pub(crate) fn deliver(&mut self, cluster: &Cluster) {
        self.deliver_job(cluster);
        self.deliver_job_set(cluster);
        self.runtime.clone_from(&cluster.runtime);
    }

    /// The watch of TrainJobs has caught up.
    pub(crate) fn deliver_job(&mut self, cluster: &Cluster) {
        let known = |job: &Option<TrainJob>| job.as_ref().map(|job| uid(&job.metadata));
        if known(&self.job) != known(&cluster.job) {
            self.readings = Readings::default();
        }
        self.job.clone_from(&cluster.job);
    }

    /// The watch of JobSets has caught up.
    pub(crate) fn deliver_job_set(&mut self, cluster: &Cluster) {
        if self.job_sets_gone != cluster.job_sets_gone {
            self.forget_job_set();
        }
        self.job_sets_gone = cluster.job_sets_gone;
        let known = |job_set: &Option<JobSet>| job_set.as_ref().map(|js| uid(&js.metadata));
        if known(&self.job_set) != known(&cluster.job_set) {
            // That no Pods ran was true of the JobSets before this one.
            self.readings.pods = Reading::NotRead;
        }
        self.job_set.clone_from(&cluster.job_set);
    }

    /// What was known of its Pods and of what it was made from no longer holds.
    fn forget_job_set(&mut self) {
        let owner = self.job_set.as_ref().and_then(|job_set| facts(job_set).train_job_uid);
        let unfinished = |job: &&TrainJob| terminal(job).is_none();
        let job = self.job.as_ref().filter(unfinished).map(|job| uid(&job.metadata));
        self.readings.in_doubt |= owner.is_some() && owner == job;
        self.readings.pods = Reading::NotRead;
        self.readings.rendered = None;
        self.readings.job_set = None;
    }

    /// Works on the job until there is nothing to do for now.
    pub(crate) fn work(&mut self, cluster: &mut Cluster) -> Pass {
        for _ in 0..ROUNDS {
            let Some(job) = self.job.clone() else { return Pass::NoJob };
            let known = Known {
                job,
                job_set: self.job_set.clone(),
                runtime: self.runtime.clone(),
                readings: self.readings.clone(),
                settings: self.settings,
            };
            let plan = known.plan(cluster.now.0);
            known.judge(&plan);
            match self.carry_out(cluster, &known.job, &plan) {
                Ok(()) => {}
                Err(Refusal::Exists) => continue,
                Err(_) => {
                    self.forget_readings();
                    // An update may have had its effect all the same.
                    self.readings.rendered = None;
                    return Pass::Retried;
                }
            }
            let rendered = plan.rendered.filter(|now| known.readings.rendered != Some(*now));
            let idle = plan.actions.iter().all(|action| matches!(action, Action::Tell(_)));
            if rendered.is_some() {
                self.forget_readings();
                self.readings.rendered = rendered;
            } else if idle {
                self.forget_readings();
                if plan.waiting.as_ref().is_some_and(Waiting::must_ask_again) {
                    self.readings.pods = Reading::NotRead;
                }
                return Pass::Settled(Box::new(Settled { known, plan }));
            }
        }
        self.forget_readings();
        Pass::Retried
    }

    fn forget_readings(&mut self) {
        self.readings.snapshot = Reading::NotRead;
        self.readings.job_set = None;
    }

    fn carry_out(
        &mut self,
        cluster: &mut Cluster,
        by: &TrainJob,
        plan: &Plan,
    ) -> Result<(), Refusal> {
        plan.actions.iter().try_for_each(|action| self.execute(cluster, by, action))
    }

    fn execute(
        &mut self,
        cluster: &mut Cluster,
        by: &TrainJob,
        action: &Action,
    ) -> Result<(), Refusal> {
        match action {
            Action::WriteStatus(write) => self.job = Some(cluster.write_status(write)?),
            Action::CreateSnapshot(config_map) => {
                let created = cluster.create_snapshot(config_map);
                if created == Err(Refusal::Exists) {
                    self.readings.snapshot = read(cluster.snapshot.as_ref());
                }
                created?;
            }
            Action::ReadTrainJob => {
                let known = uid(&by.metadata);
                let job = cluster.job.clone().ok_or(Refusal::NotFound)?;
                if uid(&job.metadata) == known {
                    self.readings.in_doubt = false;
                }
                self.job = Some(job);
            }
            Action::ReadSnapshot => self.readings.snapshot = read(cluster.snapshot.as_ref()),
            Action::CreateJobSet(job_set) => {
                let created = cluster.create_job_set(by, job_set);
                if created == Err(Refusal::Exists) {
                    // Ours or not: the job is planned again, on what is there.
                    self.job_set.clone_from(&cluster.job_set);
                }
                self.job_set = Some(created?);
            }
            Action::ReadJobSet => self.readings.job_set.clone_from(&cluster.job_set),
            Action::UpdateJobSet(update) => {
                self.job_set = Some(cluster.update_job_set(by, &update.updated)?);
            }
            Action::SuspendJobSet { uid, resource_version, suspend } => {
                let suspended = cluster.suspend_job_set(by, uid, resource_version, *suspend)?;
                self.job_set = Some(suspended);
            }
            Action::DeleteJobSet { uid, resource_version } => {
                match cluster.delete_job_set(by, uid, resource_version.as_deref()) {
                    Err(Refusal::NotFound) => {
                        self.job_set = None;
                        self.forget_job_set();
                    }
                    deleted => self.job_set = Some(deleted?),
                }
            }
            Action::CheckPods { except_job_set } => {
                self.readings.pods = match cluster.running_pods(except_job_set.as_deref()) {
                    0 => Reading::Absent,
                    count => Reading::Found(RunningPods(count)),
                };
            }
            Action::DeleteTrainJob(deletion) => match cluster.delete_train_job(deletion) {
                Err(Refusal::NotFound) => self.job = None,
                left => self.job = left?,
            },
            Action::Tell(_) | Action::TellOutOfMemory { .. } => {}
            Action::ProbeSecret { .. }
            | Action::CreateSecret(_)
            | Action::CreateConfigMap(_)
            | Action::DeleteConfigMap { .. }
            | Action::CreatePodGroup(_)
            | Action::UpdatePodGroup { .. }
            | Action::DeletePodGroup { .. } => unreachable!("no runtime here asks for {action:?}"),
        }
        Ok(())
    }
}

fn read<T: Clone>(object: Option<&T>) -> Reading<T> {
    object.cloned().map_or(Reading::Absent, Reading::Found)
}
