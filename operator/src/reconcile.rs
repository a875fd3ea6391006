//! One pass over one job: look at it, ask the core what to do, do it.
//!
//! A pass repeats that until there is nothing more to do, because what the replies show may allow the
//! next step at once. The shell decides nothing about jobs; what it does decide is when a key is tried
//! again after a failure, and how long counts may wait to be written together.

mod progress;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;
use trainjob_core::{
    action::{Action, Plan, StatusWrite, Urgency, Waiting},
    census,
    facts::{JobFacts, JobSetFacts, ObjectKey, Outcome},
    lane::{self, Lane, Place},
    notice::Notice,
    observed::{Reading, Readings, Settings},
    plan,
    undiscovered::{self, Reaction},
};
use trainjob_process::spread;

use self::progress::{Progress, longest_throttle};

use crate::{
    backoff::backoff,
    cache::{Cache, View},
    clock,
    error::{Class, Failure, RequestError},
    execute::{Executor, Pass},
    metrics::{Metrics, work::End},
    queue::Queue,
};

/// Counts of one job are written at most this often (`docs/semantics.md` §7).
const COUNTS_EVERY: Duration = Duration::from_millis(250);
/// A pass that needs more rounds goes on later, so that no job keeps a worker for ever.
const ROUNDS: usize = 8;
/// A failure that may pass by itself is told to users from so many answers in a row on.
const TELL_FROM: u32 = 3;
/// A denial is told from so many in a row on: an API server that has just started knows no rights for a
/// moment.
const TELL_DENIALS_FROM: u32 = 2;
/// How long a job in a namespace that is being deleted is left alone.
const NAMESPACE_GOING: Duration = Duration::from_secs(30);

/// What works on jobs.
pub struct Reconciler {
    /// What is known.
    pub cache: Arc<Cache>,
    /// What waits.
    pub queue: Arc<Queue>,
    /// The hands.
    pub executor: Executor,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The operator's settings.
    pub settings: Settings,
    progress: Mutex<HashMap<ObjectKey, Progress>>,
}

/// How a round ended.
enum Round {
    /// Something was done; look again.
    Again,
    /// There is nothing to do for now.
    Settled,
    /// A request failed.
    Failed,
}

impl Reconciler {
    /// A worker pool's shared part.
    #[must_use]
    pub fn new(
        cache: Arc<Cache>,
        queue: Arc<Queue>,
        executor: Executor,
        metrics: Arc<Metrics>,
        settings: Settings,
    ) -> Self {
        Self { cache, queue, executor, metrics, settings, progress: Mutex::default() }
    }

    /// The place that a job's next pass belongs in; `None` when there is no such job.
    #[must_use]
    pub fn place(&self, key: &ObjectKey) -> Option<Place> {
        let now = clock::now();
        self.cache.with_job(key, |job, job_set, readings| {
            lane::place(job, job_set, readings, &self.settings, now)
        })
    }

    /// From now on there is somebody who works: every job that is known is looked at, and is told its next
    /// instant then.
    pub fn take_over(&self) {
        // What is news from here on is queued; what was before is in the cache.
        self.queue.open();
        let placed = |key| Some((self.place(&key)?, key));
        self.queue.add_all(self.cache.keys().into_iter().filter_map(placed).collect());
    }

    /// A pass over the job has ended otherwise than by itself: it is tried again.
    pub fn broken_off(&self, key: &ObjectKey, lane: Lane) {
        self.retry(key, lane, Duration::ZERO);
        self.queue.done(key);
    }

    /// Works on one job until there is nothing to do for now, and arms its timers.
    pub async fn work(&self, key: &ObjectKey, lane: Lane) -> End {
        for _ in 0..ROUNDS {
            let Some(view) = self.cache.view(key) else {
                self.forget(key);
                return End::Gone;
            };
            // The deadline may have come meanwhile.
            let lane = self.place(key).map_or(lane, |place| place.lane.min(lane));
            if let Some(wait) = self.wait(key, lane) {
                self.queue.retry(key, Some(wait));
                return End::Postponed;
            }
            match self.round(&view, lane).await {
                Round::Again => {}
                Round::Settled => return End::Settled,
                Round::Failed => return End::Failed,
            }
        }
        // What was read is old by the next pass.
        if let Some(view) = self.cache.view(key) {
            self.cache.read(key, &view.job.facts.uid, |readings| {
                readings.snapshot = Reading::NotRead;
                readings.job_set = None;
            });
        }
        self.retry(key, lane, Duration::ZERO);
        End::Postponed
    }

    async fn round(&self, view: &View, lane: Lane) -> Round {
        let job = &view.job.facts;
        let observed = view.observed(&self.settings);
        let mut plan = plan(&observed, clock::now());
        self.queue.alarm(&job.key, plan.next);
        let due = plan.next.filter(|_| job.finished.is_none());
        let postponed = self.postpone_counts(&job.key, &mut plan);
        let rendered = plan.rendered.filter(|digest| observed.readings.rendered != Some(*digest));
        let idle = plan.actions.iter().all(|action| matches!(action, Action::Tell(_)));
        for action in &plan.actions {
            let pass = Pass { job, lane, due, lists: self.cache.lists() };
            if let Err(error) = self.executor.execute(pass, action).await {
                return self.failed(job, lane, action, &error);
            }
            self.done(job, action);
        }
        if let Some(digest) = rendered {
            self.cache.rendered(view, digest);
        }
        if idle && rendered.is_none() {
            self.settle(job, lane, &plan, postponed);
            return Round::Settled;
        }
        Round::Again
    }

    /// Takes a write of nothing but counts out of the plan if the last one was a moment ago; says how
    /// long it has to wait.
    fn postpone_counts(&self, key: &ObjectKey, plan: &mut Plan) -> Option<Duration> {
        let counts = |action: &Action| {
            matches!(action, Action::WriteStatus(StatusWrite { urgency: Urgency::Coalesced, .. }))
        };
        if !plan.actions.iter().any(counts) {
            return None;
        }
        let last = self.with_progress(key, |progress| progress.counts_written)?;
        let wait = COUNTS_EVERY.checked_sub(last.elapsed())?;
        plan.actions.retain(|action| !counts(action));
        Some(wait)
    }

    fn done(&self, job: &JobFacts, action: &Action) {
        match action {
            Action::WriteStatus(write) => {
                if write.jobs_status.is_some() {
                    let now = Some(Instant::now());
                    self.with_progress(&job.key, |progress| progress.counts_written = now);
                }
                self.count(job, write);
            }
            Action::CheckPods { .. } => self.pods_checked(job),
            Action::DeleteTrainJob(deletion) => {
                // T9: a job that its deadline failed may not go before it is released.
                let released = self.with_progress(&job.key, |progress| progress.released);
                let due = SystemTime::from(deletion.due);
                let due = released.map_or(due, |at| at.max(due));
                self.metrics.jobs.ttl_deleted(deletion.outcome, due);
            }
            _ => {}
        }
        report(job, action);
    }

    /// Counts what a job has come to with this status. What is stored after its end is about the past.
    fn count(&self, job: &JobFacts, write: &StatusWrite) {
        if job.finished.is_some() {
            return;
        }
        let did_run = census::is_running(&job.jobs_status);
        let runs = write.jobs_status.as_deref().map_or(did_run, census::is_running);
        let jobs = &self.metrics.jobs;
        if runs && !did_run {
            let resumed = job.suspended.map_or(job.created_at, |condition| condition.since);
            jobs.started(resumed.max(job.created_at));
        }
        if let Some(due) = write.deadline_due {
            jobs.deadline_exceeded(due);
        }
        let (now, end) = (Instant::now(), write.end());
        let ran = self.with_progress(&job.key, |progress| {
            let since =
                progress.runs_since.filter(|_| did_run).or((!did_run && runs).then_some(now));
            progress.runs_since = since.filter(|_| runs && end.is_none());
            since.map(|since| now.duration_since(since))
        });
        if let Some((finished, reason)) = end {
            jobs.finished(finished.outcome, reason, ran);
        }
    }

    fn pods_checked(&self, job: &JobFacts) {
        let gone = |_: &JobFacts, _: Option<&JobSetFacts>, readings: &Readings| {
            readings.pods == Reading::Absent
        };
        let first = self.cache.with_job(&job.key, gone) == Some(true)
            && self.with_progress(&job.key, |progress| {
                progress.released.replace(SystemTime::now()).is_none()
            });
        if let (true, Some(finished)) = (first, job.finished) {
            self.metrics.jobs.released(finished.at);
        }
    }

    /// Nothing to do for now: what was read is forgotten, but for what later passes build on.
    fn settle(&self, job: &JobFacts, lane: Lane, plan: &Plan, postponed: Option<Duration>) {
        let ask_again = plan.waiting.as_ref().is_some_and(Waiting::must_ask_again);
        self.cache.read(&job.key, &job.uid, |readings| {
            readings.snapshot = Reading::NotRead;
            readings.job_set = None;
            if ask_again {
                readings.pods = Reading::NotRead;
                readings.taken = None;
            }
        });
        if ask_again {
            self.retry(&job.key, lane, Duration::ZERO);
            return;
        }
        self.queue.retry(&job.key, postponed);
        let finished = job.finished.is_some() && postponed.is_none();
        let mut all = self.progress();
        let released = all.get(&job.key).is_some_and(|progress| progress.released.is_some());
        if finished && !released {
            all.remove(&job.key);
        } else {
            let progress = all.entry(job.key.clone()).or_default();
            progress.recovered();
        }
    }

    fn failed(&self, job: &JobFacts, lane: Lane, action: &Action, error: &RequestError) -> Round {
        let class = error.class();
        if class == Class::Exists {
            return Round::Again;
        }
        // A JobSet whose update got no answer may have been updated all the same.
        let unsure = matches!(action, Action::CreateJobSet(_) | Action::UpdateJobSet(_));
        self.cache.read(&job.key, &job.uid, |readings| {
            readings.snapshot = Reading::NotRead;
            readings.job_set = None;
            readings.rendered = readings.rendered.filter(|_| !unsure);
        });
        if let Some(wait) = self.waits_out(job, class) {
            tracing::debug!(job = %job.key, uid = job.uid, ?class, %error, "{} failed", name(action));
            self.queue.retry(&job.key, Some(wait));
            return Round::Failed;
        }
        let at_least = match class {
            Class::Throttled(wait) => wait.min(longest_throttle(lane)),
            Class::NamespaceGoing => NAMESPACE_GOING,
            _ => Duration::ZERO,
        };
        if let Class::Throttled(wait) = class {
            let told = Some((Instant::now(), wait));
            self.with_progress(&job.key, |progress| progress.told_to_wait = told);
        }
        if let Some(failure) = error.failure() {
            self.count_failure(job, lane, action, failure);
        }
        // The deadline may have come meanwhile, and stopping is tried again sooner.
        let lane = self.place(&job.key).map_or(lane, |place| place.lane);
        self.retry(&job.key, lane, at_least);
        let reached = !matches!(error, RequestError::Unreachable(_) | RequestError::NotLeading);
        let refusals = self.with_progress(&job.key, |progress| {
            progress.refusals = progress.refusals.saturating_add(u32::from(reached));
            progress.refusals
        });
        let tell = match (class, action) {
            (Class::Denied, _) => refusals >= TELL_DENIALS_FROM,
            (Class::KindUndiscovered, _) => true,
            // The API server has no reason to call this one a conflict again and again; a webhook may.
            (Class::Transient, _) | (Class::Conflict, Action::DeleteJobSet { .. }) => {
                refusals >= TELL_FROM
            }
            _ => false,
        };
        if tell && reached {
            tracing::warn!(job = %job.key, uid = job.uid, refusals, %error, "{} failed", name(action));
            if let Some(notice) = complaint(action, error) {
                self.executor.events.tell(job, &notice);
            }
        } else {
            tracing::debug!(job = %job.key, uid = job.uid, ?class, %error, "{} failed", name(action));
        }
        Round::Failed
    }

    /// How long to wait before the next try, where the failure is waited out and nobody is told yet.
    fn waits_out(&self, job: &JobFacts, class: Class) -> Option<Duration> {
        if class != Class::KindUndiscovered {
            return None;
        }
        let refused = |progress: &mut Progress| progress.undiscovered(Instant::now());
        match undiscovered::react(self.with_progress(&job.key, refused)) {
            Reaction::Retry(after) => Some(spread(after)),
            Reaction::Tell => None,
        }
    }

    fn count_failure(&self, job: &JobFacts, lane: Lane, action: &Action, failure: Failure) {
        // In the pass that fails a job by its deadline, its facts do not say so yet.
        let by_deadline = job
            .finished
            .map_or(lane == Lane::Stop, |finished| finished.outcome == Outcome::DeadlineExceeded);
        match action {
            Action::DeleteTrainJob(_) => self.metrics.jobs.ttl_deletion_failed(failure),
            Action::DeleteJobSet { .. } | Action::CheckPods { .. } if by_deadline => {
                self.metrics.jobs.release_failed(failure);
            }
            _ => {}
        }
    }

    fn wait(&self, key: &ObjectKey, lane: Lane) -> Option<Duration> {
        self.progress().get(key)?.wait(lane, Instant::now())
    }

    /// Arms the next try.
    fn retry(&self, key: &ObjectKey, lane: Lane, at_least: Duration) {
        let failures = self.with_progress(key, |progress| {
            progress.failures = progress.failures.saturating_add(1);
            progress.failures
        });
        self.queue.retry(key, Some(backoff(failures, lane).max(at_least)));
    }

    fn forget(&self, key: &ObjectKey) {
        self.queue.alarm(key, None);
        self.queue.retry(key, None);
        self.progress().remove(key);
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Progress>> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_progress<T>(&self, key: &ObjectKey, change: impl FnOnce(&mut Progress) -> T) -> T {
        change(self.progress().entry(key.clone()).or_default())
    }
}

/// What users are told when an action fails.
fn complaint(action: &Action, error: &RequestError) -> Option<Notice> {
    let error = error.to_string();
    match action {
        Action::CreateSnapshot(_)
        | Action::ProbeSecret { .. }
        | Action::CreateSecret(_)
        | Action::CreateConfigMap(_)
        | Action::DeleteConfigMap { .. }
        | Action::CreatePodGroup(_)
        | Action::UpdatePodGroup { .. }
        | Action::ReadSnapshot
        | Action::ReadTrainJob
        | Action::CreateJobSet(_)
        | Action::ReadJobSet
        | Action::UpdateJobSet(_)
        | Action::SuspendJobSet { .. } => Some(Notice::CreationFailed(error)),
        Action::DeleteJobSet { .. } | Action::CheckPods { .. } => {
            Some(Notice::ReleaseFailed(error))
        }
        Action::DeleteTrainJob(_) => Some(Notice::TtlDeletionFailed(error)),
        Action::WriteStatus(_)
        | Action::DeletePodGroup { .. }
        | Action::Tell(_)
        | Action::TellOutOfMemory { .. } => None,
    }
}

/// Logs what was done: what changes a job's course for everybody, the rest for who looks closer.
fn report(job: &JobFacts, action: &Action) {
    let (key, uid, name) = (&job.key, &job.uid, name(action));
    match action {
        Action::WriteStatus(StatusWrite { deadline_due: Some(due), .. }) => {
            tracing::info!(job = %key, uid, %due, "failed by its deadline");
        }
        Action::DeleteTrainJob(deletion) => {
            tracing::info!(job = %key, uid, due = %deletion.due, "deleted by its TTL");
        }
        Action::CreateJobSet(_) | Action::DeleteJobSet { .. } | Action::DeleteConfigMap { .. } => {
            tracing::info!(job = %key, uid, "{name} done");
        }
        Action::SuspendJobSet { suspend, .. } => {
            tracing::info!(job = %key, uid, suspend, "{name} done");
        }
        _ => tracing::debug!(job = %key, uid, "{name} done"),
    }
}

const fn name(action: &Action) -> &'static str {
    match action {
        Action::WriteStatus(_) => "status write",
        Action::ReadTrainJob => "TrainJob read",
        Action::ProbeSecret { .. } => "Secret probe",
        Action::CreateSecret(_) => "Secret creation",
        Action::CreateConfigMap(_) => "ConfigMap creation",
        Action::DeleteConfigMap { .. } => "ConfigMap deletion",
        Action::CreatePodGroup(_) => "PodGroup creation",
        Action::UpdatePodGroup { .. } => "PodGroup update",
        Action::DeletePodGroup { .. } => "PodGroup deletion",
        Action::CreateSnapshot(_) => "snapshot creation",
        Action::ReadSnapshot => "snapshot read",
        Action::CreateJobSet(_) => "JobSet creation",
        Action::ReadJobSet => "JobSet read",
        Action::UpdateJobSet(_) => "JobSet update",
        Action::SuspendJobSet { .. } => "JobSet suspension",
        Action::DeleteJobSet { .. } => "JobSet deletion",
        Action::CheckPods { .. } => "Pod check",
        Action::DeleteTrainJob(_) => "TTL deletion",
        Action::Tell(_) | Action::TellOutOfMemory { .. } => "notice",
    }
}
