//! One pass over one job: look at it, ask the core what to do, do it.
//!
//! [`Pass`] of the core decides what comes next; here it is given what is known of the job, and the answers to its
//! calls. What happened is logged, counted and told here.

mod late;
mod report;
mod timings;
mod turns;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use trainjob_api::time::Timestamp;
use trainjob_core::{
    action::{Action, DeletionReason, StatusWrite},
    facts::{JobFacts, ObjectKey, Outcome},
    job_stats,
    observed::{Listed, Settings},
    pass::{self, Answered, Call, JobMemory, Next, Pass, Retry},
    plan,
    priority::{self, Priority, QueuePosition},
    running_pods::PodCheck,
};
use trainjob_engine::{
    clock::{Clock, monotonic},
    controller::{Controller, Passed},
    error::RequestError,
    jitter,
    queue::Placement,
    shares::{Flow, Operation},
};

use self::{
    report::{complaint, name, report},
    timings::Timings,
    turns::Turns,
};
use crate::{
    accounting::Counting,
    cache::{Cache, JobRecord},
    execute::{Context, Executor, Replied, operation},
    metrics::Metrics,
    queue::{Place, Queue},
};

/// What works on jobs.
pub struct Reconciler {
    /// What is known.
    pub cache: Arc<Cache>,
    /// What waits.
    pub queue: Arc<Queue>,
    /// What sends requests.
    pub executor: Executor,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
    /// The operator's settings.
    pub settings: Settings,
    /// Whether new Pods are marked.
    pub counting: Arc<Counting>,
    timings: Timings,
    turns: Turns,
}

/// The job that a pass works on, as it was planned last.
struct Planned {
    job: JobRecord,
    /// When its deadline comes due, if it will.
    due: Option<Timestamp>,
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
        counting: Arc<Counting>,
    ) -> Self {
        let clock = executor.clock.clone();
        let (timings, turns) = Default::default();
        Self { cache, queue, executor, metrics, clock, settings, counting, timings, turns }
    }

    /// Plans what a pass does next; `None` when there is no such job.
    async fn plan(&self, key: &ObjectKey, pass: &mut Pass) -> Option<Planned> {
        let _turn = self.turns.wait(self.cache.text_length(key), || self.priority(key)).await;
        let (view, now) = (self.cache.view(key)?, self.clock.now());
        let listed = if self.queue.is_open() { Listed::Everything } else { Listed::TheJob };
        let observed = view.observed(&self.settings, self.counting.now(), listed);
        let plan = plan(&observed, now);
        if view.lacks_manifest() && plan.actions.first() == Some(&Action::ReadTrainJob) {
            self.metrics.work.manifests_read.inc();
        }
        self.queue.requeue_at(key, plan.next);
        let due = priority::rises_at(observed.job, &self.settings, now)
            .filter(|_| observed.job.finished.is_none());
        self.cache.remember(key, Some(&observed.job.uid), |memory| {
            pass.planned(&observed, plan, memory, monotonic());
        });
        Some(Planned { job: view.job, due })
    }

    /// Carries out the next call of a pass.
    async fn call(
        self: &Arc<Self>,
        key: &ObjectKey,
        pass: &mut Pass,
        planned: &Planned,
        place: &Place,
    ) {
        let job = &planned.job.facts;
        let Some(call) = pass.call() else { return };
        let (priority, due) = (pass.priority(), planned.due);
        let context = Context { job, priority, due, lists: self.cache.lists(), place };
        let (answer, error) = match self.executor.execute(context, call).await {
            Ok(Replied::Later(answer)) => {
                self.await_late(planned, pass, call, answer);
                (Ok(pass::Reply::Later), None)
            }
            Ok(Replied::Now(reply)) => {
                if let Call::Act(action) = call {
                    self.done(job, action, &reply);
                }
                (Ok(reply), None)
            }
            Err(error) => (Err(error.failure()), Some(error)),
        };
        let (worked_in, priority) = (pass.priority(), self.priority(key));
        let answered = self.remember(key, Some(planned), |memory| {
            pass.answered(memory, answer, priority, monotonic())
        });
        let (tell, error) = match (answered, error) {
            (Answered::Failed { tell }, Some(error)) => (tell, error),
            (Answered::Foreign { tell }, _) => {
                (tell, RequestError::Foreign { kind: "JobSet", key: key.clone() })
            }
            _ => return,
        };
        if let Some(action) = pass.failed_action() {
            self.failed(job, worked_in, action, &error, tell);
        }
    }

    fn done(&self, job: &JobFacts, action: &Action, reply: &pass::Reply) {
        match (action, reply) {
            (Action::WriteStatus(write), _) => self.count(job, write),
            (Action::CheckPods { .. }, pass::Reply::Pods(PodCheck { running: None, .. })) => {
                let now = self.clock.likely();
                let is_news = self.timings.released(&job.key, now);
                if let (true, Some(finished)) = (is_news, job.finished) {
                    self.metrics.jobs.released(finished.at, now);
                }
            }
            (Action::DeleteTrainJob(deletion), _) => {
                // T9: a job that its deadline failed may not go before it is released.
                let released = self.timings.released_at(&job.key);
                let due = SystemTime::from(deletion.due);
                let due = released.map_or(due, |at| at.max(due));
                self.metrics.jobs.ttl_deleted(&job.key, deletion.outcome, due, self.clock.likely());
            }
            (Action::CreateJobSet { marking, .. }, _) => self.metrics.jobs.marked(*marking),
            (Action::ReadRuntime(_), _) => self.metrics.work.runtimes_read.inc(),
            _ => {}
        }
        report(job, action);
    }

    /// Counts what a job has come to with this status. What is stored after its end is about the past.
    fn count(&self, job: &JobFacts, write: &StatusWrite) {
        if job.finished.is_some() {
            return;
        }
        let did_run = job_stats::is_running(&job.jobs_status);
        let runs = write.jobs_status.as_deref().map_or(did_run, job_stats::is_running);
        let jobs = &self.metrics.jobs;
        if runs && !did_run {
            let resumed = job.suspended.map_or(job.created_at, |condition| condition.since);
            jobs.started(&job.key, resumed.max(job.created_at), self.clock.likely());
        }
        if let Some(due) = write.deadline_due {
            jobs.deadline_exceeded(&job.key, due, self.clock.likely());
        }
        let end = write.end();
        let ran = self.timings.runs(&job.key, did_run, runs, end.is_some());
        if let Some((finished, reason)) = end {
            jobs.finished(&job.key, finished.outcome, reason, ran);
        }
    }

    fn failed(
        &self,
        job: &JobFacts,
        priority: Priority,
        action: &Action,
        error: &RequestError,
        tell: bool,
    ) {
        let (key, uid, class) = (&job.key, &job.uid, error.class());
        self.count_failure(job, priority, action, error);
        if !tell {
            tracing::debug!(job = %key, uid, ?class, %error, "{} failed", name(action));
            return;
        }
        tracing::warn!(job = %key, uid, %error, "{} failed", name(action));
        if let Some(event) = complaint(action, error) {
            self.executor.events.record(job, &event);
        }
    }

    fn count_failure(
        &self,
        job: &JobFacts,
        priority: Priority,
        action: &Action,
        error: &RequestError,
    ) {
        let Some(reason) = error.reason() else { return };
        // In the pass that fails a job by its deadline, its facts do not say so yet.
        let by_deadline = job.finished.map_or(priority == Priority::Stop, |finished| {
            finished.outcome == Outcome::DeadlineExceeded
        });
        match action {
            Action::DeleteTrainJob(_) => self.metrics.jobs.ttl_deletion_failed(&job.key, reason),
            Action::DeleteJobSet { reason: DeletionReason::JobEnded, .. }
            | Action::CheckPods { .. }
                if by_deadline =>
            {
                self.metrics.jobs.release_failed(&job.key, reason);
            }
            _ => {}
        }
    }

    fn priority(&self, key: &ObjectKey) -> Option<Priority> {
        self.position(key).map(|position| position.priority)
    }

    fn remember<T>(
        &self,
        key: &ObjectKey,
        planned: Option<&Planned>,
        change: impl FnOnce(&mut JobMemory) -> T,
    ) -> T {
        let uid = planned.map(|planned| &*planned.job.facts.uid);
        self.cache.remember(key, uid, change)
    }

    /// Arms the next try, or none.
    fn arm(&self, key: &ObjectKey, retry: Option<Retry>) {
        let wait = |Retry { backoff, at_least }: Retry| jitter(backoff).max(at_least);
        self.queue.retry(key, retry.map(wait));
    }

    fn forget(&self, key: &ObjectKey) {
        self.queue.requeue_at(key, None);
        self.queue.retry(key, None);
        self.timings.forget(key);
    }
}

impl Controller for Reconciler {
    type Key = ObjectKey;
    type Priority = Priority;

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn keys(&self) -> Vec<ObjectKey> {
        self.cache.keys()
    }

    fn position(&self, key: &ObjectKey) -> Option<QueuePosition> {
        let now = self.clock.now();
        self.cache.with_job(key, |job, job_set, pods| {
            priority::position(job, job_set, pods, &self.settings, now)
        })
    }

    fn placement(&self, key: &ObjectKey) -> Option<Placement<Priority>> {
        let (now, settings) = (self.clock.now(), &self.settings);
        self.cache.with_job(key, |job, job_set, pods| {
            let position = priority::position(job, job_set, pods, settings, now);
            Placement {
                position,
                rises_at: priority::rises_at(job, settings, now),
                begins: priority::begins(job, job_set, position, settings, now),
            }
        })
    }

    fn take_over(&self) -> Vec<ObjectKey> {
        for key in self.queue.open() {
            if !self.cache.awaits_pods(&key)
                && let Some(placement) = self.placement(&key)
            {
                self.queue.place(key, placement);
            }
        }
        self.keys()
    }

    fn wake(&self, key: ObjectKey, _gone: QueuePosition) {
        // A pass would have a place for requests until it sees that there is nothing to do.
        let needed = || (!self.cache.needs_nothing(&key)).then(|| self.placement(&key)).flatten();
        let placement = needed();
        if self.queue.note(&key, placement) {
            return;
        }
        // Another watch may take in a successor of this name meanwhile, whose timers are forgotten then.
        let placement = placement.or_else(|| {
            self.forget(&key);
            needed()
        });
        if let Some(placement) = placement {
            self.queue.place(key, placement);
        }
    }

    async fn pass(self: &Arc<Self>, key: &ObjectKey, priority: Priority, place: &Place) -> Passed {
        let mut pass = Pass::new(priority);
        let mut planned: Option<Planned> = None;
        let mut begun = false;
        loop {
            let priority = self.priority(key);
            let next = self
                .remember(key, planned.as_ref(), |memory| pass.next(memory, priority, monotonic()));
            match (next, &planned) {
                (Next::Plan, _) => {
                    planned = self.plan(key, &mut pass).await;
                    if planned.is_none() {
                        self.forget(key);
                        return Passed::Gone;
                    }
                }
                (Next::Call, Some(planned)) => {
                    if let Some(operation) = must_wait_for(key, &pass, place, begun).await {
                        self.remember(key, Some(planned), |memory| pass.give_way(memory));
                        return Passed::WaitsFor(operation);
                    }
                    self.call(key, &mut pass, planned, place).await;
                    begun = true;
                }
                // A pass has nothing to call before it has a plan.
                (Next::Call, None) => {}
                (Next::Over(over), planned) => {
                    self.arm(key, over.retry);
                    if let (pass::End::Settled, Some(planned)) = (over.end, planned) {
                        self.timings.settled(&planned.job.facts, over.retry.is_none());
                    }
                    return passed(over.end);
                }
            }
        }
    }

    fn begun(&self, priority: Priority, waited: Duration) {
        self.metrics.work.begun(priority, waited);
    }

    fn ended(&self, priority: Priority, passed: Passed, took: Duration) {
        self.metrics.work.ended(priority, passed, took);
    }

    fn broken_off(&self, key: &ObjectKey, priority: Priority) {
        let retry = self.cache.remember(key, None, |memory| memory.broken_off(priority));
        self.arm(key, Some(retry));
    }
}

/// How a pass has ended, as the engine names it.
const fn passed(end: pass::End) -> Passed {
    match end {
        pass::End::Settled => Passed::Settled,
        pass::End::Failed => Passed::Failed,
        pass::End::Postponed => Passed::Postponed,
    }
}

/// The operation of the next call, if it may not be sent yet. A pass that has `begun` waits a moment for that, because
/// what it has read would be read again.
async fn must_wait_for(
    key: &ObjectKey,
    pass: &Pass,
    place: &Place,
    begun: bool,
) -> Option<Operation> {
    let operation = operation(pass.call()?)?;
    let flow = Flow { namespace: Arc::clone(&key.namespace), operation };
    let entered = if begun { place.enter_soon(&flow).await } else { place.enter(&flow) };
    (!entered).then_some(operation)
}
