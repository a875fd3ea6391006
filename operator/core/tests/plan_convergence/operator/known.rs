//! What one decision is made on, and what holds for every decision.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use trainjob_api::{JobSet, TrainJob, time::Timestamp};
use trainjob_core::{
    Action, Now, Observed, Plan,
    build::Runtime,
    event::Event,
    facts::{JobFacts, JobSetFacts},
    mark::Accounting,
    observed::{KnownRuntime, Listed, PodGroups, Reading, Readings, Settings},
    plan,
    take_over::Comparison,
};

use crate::{
    cluster::{brief, conditions, is_ours, terminal, uid},
    common::facts,
};

/// What one decision is made on.
#[derive(Clone)]
pub(crate) struct Known {
    pub(super) job: TrainJob,
    pub(super) job_set: Option<JobSet>,
    pub(super) runtime: Option<Runtime>,
    pub(super) is_runtime_evicted: bool,
    pub(super) readings: Readings,
    pub(super) settings: Settings,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, job_set, runtime, is_runtime_evicted, readings, settings } = self;
        let image = runtime.as_ref().map(|runtime| brief(&runtime.spec));
        write!(
            f,
            "job {}, JobSet {}, runtime {image:?} (evicted: {is_runtime_evicted}), ",
            brief(job),
            brief(job_set)
        )?;
        let Readings {
            snapshot,
            job_set,
            pods,
            stray_pod: _,
            applied_spec_hash,
            needs_existence_check,
            ended,
            name_conflict,
            edited,
            hold: _,
            loop_closed_by: _,
        } = readings;
        let snapshot = match snapshot {
            Reading::NotRead => "not read".into(),
            Reading::Absent => "absent".into(),
            Reading::Found(snapshot) => brief(snapshot),
        };
        write!(f, "snapshot {snapshot}, read JobSet {job_set:?}, {pods:?}, ")?;
        write!(
            f,
            "{applied_spec_hash:?}, {edited:?}, in doubt: {needs_existence_check}, ended: {ended:?}, {name_conflict:?}, {settings:?}"
        )
    }
}

impl Known {
    /// What is planned at `now`. Asks twice: the answer may not differ.
    pub(crate) fn plan(&self, now: i64) -> Plan {
        self.with_observed(|observed| {
            let answer = plan(observed, Now::at(Timestamp(now)));
            let again = plan(observed, Now::at(Timestamp(now)));
            assert_eq!(answer, again, "the same question has the same answer");
            answer
        })
    }

    /// What is planned at `now`, [but for the event of a hold](but_for_held).
    pub(crate) fn work(&self, now: i64) -> Plan {
        but_for_held(self.plan(now))
    }

    pub(super) fn with_observed<T>(&self, ask: impl FnOnce(&Observed<'_>) -> T) -> T {
        let job = JobFacts::of(&self.job);
        let job_set: Option<JobSetFacts> = self.job_set.as_ref().map(facts);
        ask(&Observed {
            job: &job,
            manifest: job.finished.is_none().then_some(&self.job),
            job_set: job_set.as_ref(),
            pod_groups: PodGroups::default(),
            runtime: self.known_runtime(),
            readings: &self.readings,
            settings: &self.settings,
            accounting: Accounting::default(),
            comparison: Comparison::Due,
            listed: Listed::Everything,
        })
    }

    fn known_runtime(&self) -> KnownRuntime<'_> {
        match self.runtime.as_ref() {
            Some(_) if self.is_runtime_evicted => KnownRuntime::Evicted,
            runtime => runtime.into(),
        }
    }

    /// What holds for every plan, however old the knowledge it is made on.
    pub(super) fn judge(&self, plan: &Plan) {
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
                Action::WriteWaiting(write) => {
                    let fence = (write.uid.clone(), write.resource_version.clone());
                    assert_eq!(fence, version(&job.metadata));
                    let by_deadline =
                        terminal(job).is_some_and(|end| end.reason == "DeadlineExceeded");
                    assert!(by_deadline, "waits for no release: {self:?}");
                }
                Action::DeleteTrainJob(deletion) => {
                    let fence = (deletion.uid.clone(), deletion.resource_version.clone());
                    assert_eq!(fence, version(&job.metadata));
                    let others =
                        plan.actions.iter().filter(|a| !matches!(a, Action::RecordEvent(_)));
                    assert_eq!(others.count(), 1, "a deletion goes alone: {plan:?}");
                    let by_deadline =
                        terminal(job).is_some_and(|end| end.reason == "DeadlineExceeded");
                    let released = own.is_none() && self.readings.pods == Reading::Absent;
                    assert!(released || !by_deadline || !is_ours(job), "unreleased: {self:?}");
                }
                Action::DeleteJobSet { uid: of, reason } => {
                    assert_eq!(Some(of), own.map(|own| uid(&own.metadata)).as_ref());
                    let to_be_remade = own.is_some_and(|own| {
                        let version = own.metadata.resource_version.as_ref();
                        version.map(|it| &**it) == reason.resource_version()
                            && facts(own).never_ran
                            && !over
                    });
                    let calls_for_it = end_is_stored || to_be_remade;
                    assert!(calls_for_it, "the end is stored first: {plan:?}");
                }
                Action::SuspendJobSet { uid, resource_version, suspend } => {
                    let fence = (uid.clone(), resource_version.clone());
                    assert_eq!(Some(fence), own.map(|own| version(&own.metadata)));
                    assert!(!over || *suspend, "resumed after the end: {self:?}");
                }
                Action::UpdateJobSet { uid: of, resource_version, .. } => {
                    let read = self.readings.job_set.as_ref().unwrap();
                    assert_eq!(resource_version, &read.resource_version);
                    assert_eq!(
                        Some(of),
                        own.map(|own| uid(&own.metadata)).as_ref(),
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
                | Action::CreateJobSet { .. } => {
                    assert!(!over, "made after the end: {self:?}");
                }
                Action::DeletePodGroup { .. } => {
                    assert!(end_is_stored, "the end is stored first: {plan:?}");
                }
                Action::ReadTrainJob
                | Action::ReadRuntime(_)
                | Action::ProbeSecret { .. }
                | Action::ReadSnapshot
                | Action::ReadJobSet
                | Action::CheckPods { .. }
                | Action::RecordEvent(_)
                | Action::RecordOutOfMemory { .. } => {}
            }
        }
        if !is_ours(job) && !matches!(plan.actions.first(), Some(Action::DeleteTrainJob(_))) {
            let only_told = plan.actions.iter().all(|it| matches!(it, Action::RecordEvent(_)));
            assert!(only_told, "somebody else's job: {plan:?}");
        }
    }
}

/// A plan without the event of a hold, which an operator that begins late does not record.
pub(crate) fn but_for_held(mut plan: Plan) -> Plan {
    plan.actions.retain(|action| !matches!(action, Action::RecordEvent(Event::Held(_))));
    plan
}
