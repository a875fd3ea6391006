//! The operator around the product's pass machine: what it knows, and an API server that answers at once.

mod known;

use std::time::Duration;

use trainjob_api::{JobSet, TrainJob};
use trainjob_core::{
    Action, Plan,
    build::Runtime,
    facts::{JobFacts, JobSetFacts},
    observed::{ReadJobSet, Reading, Settings},
    pass::{self, Call, Class, End, Failure, JobMemory, Next, Reply, ShownBy},
    priority::Priority,
};

use self::known::Known;
pub(crate) use self::known::but_for_held;
use crate::{
    cluster::{Cluster, Refusal, uid},
    common::facts,
};

/// What the operator knows of one job's name.
#[derive(Default)]
pub(crate) struct Operator {
    job: Option<TrainJob>,
    job_set: Option<JobSet>,
    runtime: Option<Runtime>,
    /// Whether the runtime has made room for others.
    is_runtime_evicted: bool,
    memory: JobMemory,
    settings: Settings,
    job_sets_gone: usize,
    /// Time goes on by a second with every step, so that no count has to wait.
    steps: u64,
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

impl Operator {
    /// An operator that knows nothing yet.
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A restart: everything is forgotten, and then listed anew.
    pub(crate) fn crash(&mut self, cluster: &Cluster) {
        self.memory = JobMemory::default();
        self.deliver(cluster);
    }

    /// The watches have caught up.
    pub(crate) fn deliver(&mut self, cluster: &Cluster) {
        self.deliver_job(cluster);
        self.deliver_job_set(cluster);
        if self.runtime != cluster.runtime {
            self.runtime.clone_from(&cluster.runtime);
            self.is_runtime_evicted = false;
        }
    }

    /// The runtime makes room for others.
    pub(crate) const fn evict_runtime(&mut self) {
        self.is_runtime_evicted = true;
    }

    /// The watch of TrainJobs has caught up.
    pub(crate) fn deliver_job(&mut self, cluster: &Cluster) {
        self.saw_job(cluster.job.clone());
    }

    /// Nothing is remembered of a predecessor.
    fn saw_job(&mut self, job: Option<TrainJob>) {
        let of = |job: &Option<TrainJob>| job.as_ref().map(|job| uid(&job.metadata));
        if of(&self.job) != of(&job) {
            self.memory = JobMemory::default();
        }
        self.job = job;
    }

    /// The watch of JobSets has caught up.
    pub(crate) fn deliver_job_set(&mut self, cluster: &Cluster) {
        for gone in &cluster.job_sets_gone[self.job_sets_gone..] {
            self.saw_job_set(gone.clone(), ShownBy::Watch);
            self.forget_job_set();
        }
        self.job_sets_gone = cluster.job_sets_gone.len();
        if let Some(job_set) = &cluster.job_set {
            self.saw_job_set(job_set.clone(), ShownBy::Watch);
        }
    }

    fn saw_job_set(&mut self, job_set: JobSet, by: ShownBy) {
        let before = self.job_set.as_ref().map(facts);
        let shown = facts(&job_set);
        let version = |facts: &JobSetFacts| facts.resource_version.parse::<u64>().unwrap();
        let news = before.as_ref().is_none_or(|before| version(before) < version(&shown));
        self.memory.job_set_shown(before.as_ref(), &shown, news, by);
        self.job_set = Some(job_set);
    }

    fn forget_job_set(&mut self) {
        if let (Some(gone), Some(job)) = (self.job_set.take(), &self.job) {
            self.memory.job_set_gone(&facts(&gone), &JobFacts::of(job));
        }
    }

    /// Works on the job until there is nothing to do for now.
    pub(crate) fn work(&mut self, cluster: &mut Cluster) -> Pass {
        let mut pass = pass::Pass::new(Priority::Live);
        let mut settled: Option<Settled> = None;
        loop {
            self.steps += 1;
            let now = Duration::from_secs(self.steps);
            match pass.next(&mut self.memory, None, now) {
                Next::Plan => {
                    let Some(job) = self.job.clone() else { return Pass::NoJob };
                    let known = Known {
                        job,
                        job_set: self.job_set.clone(),
                        runtime: self.runtime.clone(),
                        is_runtime_evicted: self.is_runtime_evicted,
                        readings: self.memory.readings(),
                        settings: self.settings,
                    };
                    let plan = known.plan(cluster.now.0);
                    known.judge(&plan);
                    known.with_observed(|observed| {
                        pass.planned(observed, plan.clone(), &self.memory, now);
                    });
                    settled = Some(Settled { known, plan });
                }
                Next::Call => {
                    let by = settled.as_ref().map(|settled| settled.known.job.clone()).unwrap();
                    let answer = self.send(cluster, &by, pass.call().unwrap()).map_err(failure);
                    // Of a job that is gone nothing is remembered.
                    let known = self.job.as_ref().map(|job| uid(&job.metadata));
                    let gone = &mut JobMemory::default();
                    let is_it = known == Some(uid(&by.metadata));
                    let memory = if is_it { &mut self.memory } else { gone };
                    pass.answered(memory, answer, None, now);
                }
                Next::Over(over) if over.end == End::Settled => {
                    return Pass::Settled(Box::new(settled.unwrap()));
                }
                Next::Over(_) => return Pass::Retried,
            }
        }
    }

    fn send(
        &mut self,
        cluster: &mut Cluster,
        by: &TrainJob,
        call: Call<'_>,
    ) -> Result<Reply, Refusal> {
        match call {
            Call::Act(action) => self.execute(cluster, by, action),
            Call::Inspect(Action::CreateSnapshot(_)) => Ok(snapshot(cluster)),
            Call::Inspect(Action::CreateJobSet { .. }) => {
                let there = cluster.job_set.clone();
                if let Some(there) = there.clone() {
                    self.saw_job_set(there, ShownBy::Reply);
                }
                Ok(Reply::JobSetOfName(there.as_ref().map(facts).map(Box::new)))
            }
            Call::Inspect(action) => unreachable!("no runtime here asks for {action:?}"),
        }
    }

    fn execute(
        &mut self,
        cluster: &mut Cluster,
        by: &TrainJob,
        action: &Action,
    ) -> Result<Reply, Refusal> {
        match action {
            Action::WriteStatus(write) => self.job = Some(cluster.write_status(write)?),
            Action::CreateSnapshot(config_map) => cluster.create_snapshot(config_map)?,
            Action::ReadTrainJob => {
                let job = cluster.job.clone().ok_or(Refusal::NotFound)?;
                let there = uid(&job.metadata);
                self.saw_job(Some(job));
                return Ok(Reply::TrainJob(there));
            }
            Action::ReadRuntime(_) => {
                let runtime = cluster.runtime.as_ref().ok_or(Refusal::NotFound)?;
                // One that is not known yet is for the watch to show.
                self.is_runtime_evicted &= self.runtime.as_ref() != Some(runtime);
            }
            Action::ReadSnapshot => return Ok(snapshot(cluster)),
            Action::CreateJobSet { job_set, .. } => {
                let created = cluster.create_job_set(by, &job_set.read().unwrap())?;
                self.saw_job_set(created, ShownBy::Reply);
            }
            Action::ReadJobSet => {
                let job_set = cluster.job_set.clone().ok_or(Refusal::NotFound)?;
                return Ok(Reply::JobSet(ReadJobSet::of(&job_set).unwrap()));
            }
            Action::UpdateJobSet { uid, resource_version, patch } => {
                let updated = cluster.update_job_set(by, (uid, resource_version), patch)?;
                self.saw_job_set(updated, ShownBy::Reply);
            }
            Action::SuspendJobSet { uid, resource_version, suspend } => {
                let suspended = cluster.suspend_job_set(by, uid, resource_version, *suspend)?;
                self.saw_job_set(suspended, ShownBy::Reply);
            }
            Action::DeleteJobSet { uid, reason } => {
                match cluster.delete_job_set(by, uid, reason.resource_version()) {
                    Err(Refusal::NotFound) => self.forget_job_set(),
                    deleted => self.saw_job_set(deleted?, ShownBy::Reply),
                }
            }
            Action::WriteWaiting(write) => self.job = Some(cluster.write_waiting(write)?),
            Action::CheckPods { except_job_set, name_them } => {
                let except = except_job_set.as_deref();
                return Ok(Reply::Pods(cluster.check_pods(except, *name_them)));
            }
            Action::DeleteTrainJob(deletion) => match cluster.delete_train_job(deletion) {
                Err(Refusal::NotFound) => self.saw_job(None),
                left => self.saw_job(left?),
            },
            Action::RecordEvent(_) | Action::RecordOutOfMemory { .. } => {}
            Action::ProbeSecret { .. }
            | Action::CreateSecret(_)
            | Action::CreateConfigMap(_)
            | Action::DeleteConfigMap { .. }
            | Action::CreatePodGroup(_)
            | Action::UpdatePodGroup { .. }
            | Action::DeletePodGroup { .. } => unreachable!("no runtime here asks for {action:?}"),
        }
        Ok(Reply::Done)
    }
}

fn snapshot(cluster: &Cluster) -> Reply {
    let snapshot = cluster.snapshot.clone();
    Reply::ConfigMap(Box::new(snapshot.map_or(Reading::Absent, Reading::Found)))
}

const fn failure(refusal: Refusal) -> Failure {
    let class = match refusal {
        Refusal::Conflict => Class::Conflict,
        Refusal::Exists => Class::Exists,
        Refusal::NotFound => Class::Gone,
        Refusal::Broken => Class::Transient,
    };
    Failure { class, reached: !matches!(refusal, Refusal::Broken) }
}
