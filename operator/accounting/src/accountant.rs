//! Does what the [book](crate::book) says, with the queue and the places of `trainjob-engine`.
//!
//! A pass over a record sends one request about it at a time; the release of each Pod is a key of its own, so a webhook
//! that hangs in one namespace takes no more than its share of places.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube::Client;
use tokio::sync::Notify;
use trainjob_accounting_core::{
    clock::Now,
    keeper::{Answer, Call},
    settings::Settings,
    tracked::Tracked,
};
use trainjob_api::time::Timestamp;
use trainjob_engine::{
    clock::{Clock, monotonic},
    controller::{Controller, Passed},
    error::RequestError,
    events::EventRecorder,
    leader::LeaderGuard,
    shares::{Flow, Operation, Verb},
};

use crate::{
    book::{Book, Step},
    key::{JobKey, Key, Position, Priority},
    metrics::{LostReason, Metrics},
    news,
    requests::{Listed, Requests, failed, list_pods},
};

/// The queue.
pub type Queue = trainjob_engine::queue::Queue<Key, Priority>;
/// A place for requests.
type Place = trainjob_engine::places::Place<Priority>;

/// What is asked and told by everybody.
pub struct Accountant {
    /// What is known.
    pub book: Mutex<Book>,
    /// What waits.
    pub queue: Queue,
    /// The time.
    pub clock: Clock,
    /// For its requests.
    pub client: Client,
    /// Whether it may act.
    pub leader: LeaderGuard,
    /// Where events are handed in.
    pub events: EventRecorder,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// What decisions depend on.
    pub settings: Settings,
    /// A Pod may have our finalizer and none of our labels.
    pub lost_labels: Notify,
    /// Whether the API server does not answer, as the watches find.
    pub unreachable: Arc<AtomicBool>,
}

impl Accountant {
    /// What is known.
    pub fn book(&self) -> MutexGuard<'_, Book> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_silent(&self) -> bool {
        self.unreachable.load(Ordering::Relaxed)
    }

    /// The time, by both clocks.
    #[must_use]
    pub fn now(&self) -> Now {
        Now { server: self.clock.likely().into(), clock: monotonic() }
    }

    /// Has a record looked at.
    pub fn look(&self, key: JobKey) {
        self.wake(Key::Record(key), Position { priority: Priority::Unawaited, due: NEVER });
    }

    async fn record(self: &Arc<Self>, job: &JobKey, place: &Place) -> Passed {
        let key = Key::Record(job.clone());
        loop {
            if let Some(rest) = self.book().rests(job, self.now()) {
                self.queue.retry(&key, Some(rest));
                return Passed::Settled;
            }
            let (step, releases) = self.step(job);
            for uid in releases {
                self.look_at_pod(job, uid);
            }
            let call = match step {
                Step::Done => {
                    self.queue.retry(&key, None);
                    return Passed::Gone;
                }
                Step::Wait(after) => {
                    self.queue.retry(&key, after);
                    return Passed::Settled;
                }
                Step::Share => {
                    self.queue.retry(&key, None);
                    self.look_at_list(Arc::clone(&job.namespace));
                    return Passed::Settled;
                }
                Step::Send(call) => call,
            };
            let operation = operation(&call);
            if !place.enter(&Flow { namespace: Arc::clone(&job.namespace), operation }) {
                return Passed::WaitsFor(operation);
            }
            let answer = place.ask().answer(self.send(job, &call)).await.flatten();
            let answer = answer.unwrap_or_else(|error| self.failure(job, &call, &error));
            self.take(job, &call, answer);
        }
    }

    fn step(&self, job: &JobKey) -> (Step, Vec<Arc<str>>) {
        let mut book = self.book();
        let begun = self.now();
        let step = book.step(job, &self.settings, begun);
        let now = self.now();
        book.looked(job, now.clock.saturating_sub(begun.clock), now);
        step
    }

    fn look_at_pod(&self, job: &JobKey, uid: Arc<str>) {
        let key = Key::Pod(job.clone(), uid);
        if let Some(position) = self.position(&key) {
            self.queue.add(key, position);
        }
    }

    fn look_at_list(&self, namespace: Arc<str>) {
        let key = Key::SharedList(namespace);
        if let Some(position) = self.position(&key) {
            self.queue.add(key, position);
        }
    }

    /// Lists the Pods of those that have asked for them in a namespace.
    async fn shared_list(&self, namespace: &Arc<str>, place: &Place) -> Passed {
        loop {
            let asked = self.book().shared_list(namespace);
            if asked.is_empty() {
                return Passed::Settled;
            }
            if !place.enter(&Flow { namespace: Arc::clone(namespace), operation: LIST }) {
                return Passed::WaitsFor(LIST);
            }
            tracing::debug!(%namespace, jobs = asked.len(), "the Pods of TrainJobs are listed");
            let uids: Vec<_> = asked.iter().map(|(job, _)| &*job.uid).collect();
            let listed =
                place.ask().answer(list_pods(&self.client, namespace, &uids)).await.flatten();
            match listed {
                Ok(mut listed) => {
                    for (job, call) in &asked {
                        let answer = self.pods_of(job, &mut listed);
                        self.take(job, call, answer);
                    }
                }
                Err(error) => {
                    for (job, call) in &asked {
                        self.take(job, call, self.failure(job, call, &error));
                    }
                }
            }
            for (job, _) in asked {
                self.look(JobKey::clone(&job));
            }
        }
    }

    async fn pod(self: &Arc<Self>, job: &JobKey, uid: &str, place: &Place) -> Passed {
        let (call, tracked) = {
            let book = self.book();
            (book.release(job, uid), book.pod(job, uid).cloned())
        };
        let Some(call) = call else { return Passed::Gone };
        let operation = operation(&call);
        if !place.enter(&Flow { namespace: Arc::clone(&job.namespace), operation }) {
            return Passed::WaitsFor(operation);
        }
        let answer = place.ask().answer(self.send(job, &call)).await.flatten();
        let passed = if answer.is_ok() { Passed::Settled } else { Passed::Failed };
        // As it was before: the watch may have shown its release, after which nothing is known of it.
        if let (Call::Release { is_counted, .. }, true, Some(tracked)) =
            (&call, answer.is_ok(), tracked)
        {
            self.tell_release(job, &tracked, *is_counted);
        }
        let answer = answer.unwrap_or_else(|error| self.failure(job, &call, &error));
        self.take(job, &call, answer);
        self.look(job.clone());
        passed
    }

    /// Sends a request.
    async fn send(&self, job: &JobKey, call: &Call) -> Result<Answer, RequestError> {
        let requests = Requests { client: &self.client, job };
        let Operation { verb, kind } = operation(call);
        tracing::debug!(namespace = %job.namespace, job = %job.name, ?verb, kind, "a request is sent");
        match call {
            Call::Create { long_name } => {
                // What the record says of the TrainJob never changes, and the watch may be behind.
                let is_known = self.book().jobs.has(job);
                if !is_known {
                    self.read_job(&requests).await?;
                }
                self.leader.check()?;
                let (spec, labels) = self.book().jobs.record(job);
                requests.create(*long_name, spec, labels).await
            }
            Call::Get { long_name } => requests.get(*long_name).await,
            Call::List { .. } => {
                let mut listed = list_pods(&self.client, &job.namespace, &[&job.uid]).await?;
                Ok(self.pods_of(job, &mut listed))
            }
            Call::ReadJob => {
                if self.read_job(&requests).await? {
                    return Ok(Answer::Job);
                }
                Ok(Answer::without_job(&self.book().jobs.job(job)))
            }
            Call::Store(store) => {
                self.leader.check()?;
                let (spec, _) = self.book().jobs.record(job);
                requests.store(spec, store).await
            }
            Call::Release { uid, name, .. } => {
                self.leader.check()?;
                requests.release(name, uid).await
            }
        }
    }

    fn pods_of(&self, job: &JobKey, listed: &mut Listed) -> Answer {
        let book = self.book();
        listed.take(&job.uid, |pod| book.belongs(job, pod))
    }

    /// Whether it is there.
    async fn read_job(&self, requests: &Requests<'_>) -> Result<bool, RequestError> {
        let read = requests.train_job().await?;
        if let Some(read) = &read {
            self.book().jobs.saw(read);
        }
        Ok(read.is_some())
    }

    /// What a failed request means, which is told of.
    fn failure(&self, job: &JobKey, call: &Call, error: &RequestError) -> Answer {
        tracing::debug!(namespace = %job.namespace, job = %job.name, ?call, %error, "a request failed");
        if let Some(event) = news::failed(job, self.record_of(job), call, error) {
            self.events.record(event);
        }
        failed(error, self.is_silent())
    }

    /// Takes an answer: into the book, the log, events and metrics.
    fn take(&self, job: &JobKey, call: &Call, answer: Answer) {
        let queue = self.book().jobs.queue(job).unwrap_or_default().to_owned();
        let answered = self.book().answered(job, call, answer, self.now());
        for tracked in &answered.forgotten {
            self.tell_loss(job, tracked, LostReason::NamespaceTerminating);
        }
        if let Some(change) = &answered.change {
            self.metrics.stored((&job.namespace, &queue), change, &self.settings);
            if let Some(event) = news::lost(job, self.record_of(job), change) {
                self.events.record(event);
            }
        }
    }

    fn tell_release(&self, job: &JobKey, tracked: &Tracked, is_counted: bool) {
        let is_ending = self.book().is_ending(job);
        let waited =
            tracked.ended_seen.map_or(Duration::ZERO, |seen| monotonic().saturating_sub(seen));
        self.metrics.released(tracked.pod.deletion.is_some(), waited);
        if !is_counted {
            let reason = if is_ending {
                LostReason::NamespaceTerminating
            } else {
                LostReason::RecordUnwritable
            };
            self.tell_loss(job, tracked, reason);
        }
    }

    /// What is not counted is logged whole: that line is its receipt.
    fn tell_loss(&self, job: &JobKey, tracked: &Tracked, reason: LostReason) {
        let state = self.book().jobs.job(job);
        let share = news::share(tracked, &state, self.now().server);
        tracing::warn!(
            namespace = %job.namespace, job = %job.name, job_uid = %job.uid,
            pod = share.pod, uid = share.uid, reason = reason.as_str(),
            verdict = ?share.verdict, seconds = ?share.seconds,
            "a Pod is not counted: there is no record that can be written"
        );
        self.metrics.lost(reason);
    }

    fn record_of(&self, job: &JobKey) -> Option<(String, String)> {
        self.book().record(job)
    }
}

/// Later than anything that is due.
const NEVER: Timestamp = Timestamp(i64::MAX);
/// What lists Pods.
const LIST: Operation = Operation { verb: Verb::List, kind: "pods" };

const fn operation(call: &Call) -> Operation {
    let (verb, kind) = match call {
        Call::Create { .. } => (Verb::Create, "trainjobrecords"),
        Call::Get { .. } => (Verb::Get, "trainjobrecords"),
        Call::List { .. } => return LIST,
        Call::ReadJob => (Verb::Get, "trainjobs"),
        Call::Store(_) => (Verb::Update, "trainjobrecords"),
        Call::Release { .. } => (Verb::Patch, "pods"),
    };
    Operation { verb, kind }
}

impl Controller for Accountant {
    type Key = Key;
    type Priority = Priority;

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn keys(&self) -> Vec<Key> {
        self.book().keys().into_iter().map(Key::Record).collect()
    }

    fn take_over(&self) -> Vec<Key> {
        self.book().take_over();
        self.queue.open();
        let positioned = |key| Some((self.position(&key)?, key));
        self.queue.add_all(self.keys().into_iter().filter_map(positioned));
        Vec::new()
    }

    fn position(&self, key: &Key) -> Option<Position> {
        let book = self.book();
        let (is_there, is_awaited) = match key {
            Key::Record(job) => (book.has(job), book.is_awaited(job)),
            Key::Pod(job, uid) => (book.release(job, uid).is_some(), book.is_awaited(job)),
            // Among so many there may be one that is awaited.
            Key::SharedList(namespace) => (book.is_asked(namespace), true),
        };
        let priority = if is_awaited { Priority::Awaited } else { Priority::Unawaited };
        is_there.then_some(Position { priority, due: NEVER })
    }

    async fn pass(self: &Arc<Self>, key: &Key, _: Priority, place: &Place) -> Passed {
        match key {
            Key::Record(job) => self.record(job, place).await,
            Key::Pod(job, uid) => self.pod(job, uid, place).await,
            Key::SharedList(namespace) => self.shared_list(namespace, place).await,
        }
    }
}
