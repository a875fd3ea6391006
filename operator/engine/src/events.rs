//! Tells users what happened, in events. Best effort: never in the way of anything else.
//!
//! Warnings are told once: the same note about the same object is not repeated, and a new one for the same
//! reason at most once a minute, so that a job that fails for hours leaves a bounded number of objects.
//! The event's name is made from what it says; after a restart the API server has it already.
//! Normal events take tokens from a bucket; in a storm most are dropped, and counted. Namespaces take turns, so that
//! what one of them causes displaces and delays nothing of another.

mod backlog;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff,
};
use kube::{Api, Client, api::PostParams};
use prometheus::IntCounter;
use tokio::{sync::Notify, task::JoinSet, time::Instant};
use trainjob_core::{event::Severity, pass::Class, queue_position::QueuePriority};
use trainjob_process::config::Rate;

use self::backlog::Backlog;
use crate::{
    answer::within,
    clock::Clock,
    leader::LeaderGuard,
    limit::{Bucket, Limiter},
};

/// How many events may wait to be sent.
const BACKLOG: usize = 1_000;
/// How many events are sent at the same time, each of another namespace.
const AT_ONCE: usize = 4;
/// How long the API server may take for an event. A slow answer holds up the other events of its namespace.
const SEND_WITHIN: Duration = Duration::from_secs(4);
/// How long an event waits before it is sent. Jobs come due together, on whole seconds: what is to be done
/// for the others must not wait for the API server to take in what was done for the first.
const AFTER: Duration = Duration::from_millis(50);
/// A new note for the same reason about the same object, at most this often.
const WARN_EVERY: Duration = Duration::from_mins(1);
/// How long a told warning is remembered. The same note is told anew after that.
const REMEMBER: Duration = Duration::from_hours(1);
/// How many warnings are remembered before old ones are looked for.
const REMEMBER_AT_LEAST: usize = 4_096;

/// Something to tell the users of an object.
#[derive(Debug, Clone)]
pub struct Event {
    /// The object. Its name and UID must be there, and its namespace if it has one.
    pub regarding: ObjectReference,
    /// Good news or bad.
    pub severity: Severity,
    /// In CamelCase; people alert on it.
    pub reason: &'static str,
    /// What was being done.
    pub action: &'static str,
    /// What a person reads; at most 1,024 bytes.
    pub note: String,
}

impl Event {
    fn uid(&self) -> String {
        self.regarding.uid.clone().unwrap_or_default()
    }

    /// Where it is stored. The API server takes events about objects without a namespace only in this one.
    fn namespace(&self) -> String {
        self.regarding.namespace.clone().unwrap_or_else(|| "default".to_owned())
    }
}

/// An event that may be known only when it is its turn: an answer of the API server may be needed for it.
pub type LateEvent = BoxFuture<'static, Option<Event>>;

/// Where events are handed in.
#[derive(Clone)]
pub struct EventRecorder {
    state: Arc<State>,
}

/// What is to be told, and when it was handed in.
type HandedIn = (Instant, Pending);

enum Pending {
    Known(Box<Event>),
    Late(LateEvent),
}

struct State {
    backlog: Mutex<Backlog<HandedIn>>,
    /// Something was handed in.
    news: Notify,
    normal: Option<Mutex<Bucket>>,
    warnings: Mutex<Warnings>,
    /// All that were not sent, or not stored.
    dropped: IntCounter,
}

/// What was told, by UID of the object and reason.
struct Warnings {
    told: HashMap<(String, &'static str), Warned>,
    /// At this length old entries are looked for.
    sweep_at: usize,
}

struct Warned {
    note: u64,
    at: Instant,
}

/// Sends what was handed in.
pub struct Sender<P> {
    state: Arc<State>,
    line: Arc<Line<P>>,
}

/// How events are sent.
struct Line<P> {
    client: Client,
    limiter: Option<Arc<Limiter<P>>>,
    leader: LeaderGuard,
    reporter: Reporter,
    /// Whether the API server was seen to refuse events.
    refused: AtomicBool,
    clock: Clock,
}

/// The API server did not take an event, and may another time.
struct NotStored;

/// Who tells.
struct Reporter {
    controller: &'static str,
    /// In a Pod this is the Pod's name.
    instance: String,
}

/// The two ends of telling, as `reporter`. `normal` limits Normal events; `None` sends none. What is not sent because
/// there was too much, or because the API server was overloaded, is counted by `dropped`.
#[must_use]
pub fn channel<P>(
    reporter: &'static str,
    client: Client,
    clock: Clock,
    limiter: Option<Arc<Limiter<P>>>,
    leader: LeaderGuard,
    normal: Option<Rate>,
    dropped: IntCounter,
) -> (EventRecorder, Sender<P>) {
    let bucket = normal.map(|rate| Mutex::new(Bucket::new(rate.per_second, rate.burst.get())));
    let warnings = Mutex::new(Warnings { told: HashMap::new(), sweep_at: REMEMBER_AT_LEAST });
    let backlog = Mutex::new(Backlog::new(BACKLOG));
    let news = Notify::new();
    let state = Arc::new(State { backlog, news, normal: bucket, warnings, dropped });
    let instance = std::env::var("HOSTNAME").unwrap_or_else(|_| reporter.to_owned());
    let reporter = Reporter { controller: reporter, instance };
    let recorder = EventRecorder { state: Arc::clone(&state) };
    let refused = AtomicBool::new(false);
    let line = Arc::new(Line { client, limiter, leader, reporter, refused, clock });
    (recorder, Sender { state, line })
}

impl EventRecorder {
    /// Hands in an event, unless it is no news. Never waits.
    pub fn record(&self, event: Event) {
        let wanted = match event.severity {
            Severity::Normal => self.has_token(),
            Severity::Warning => self.is_news(&event),
        };
        if !wanted {
            return;
        }
        let namespace = event.namespace();
        self.hand_in(&namespace, Pending::Known(Box::new(event)));
    }

    /// Hands in an event about an object of this namespace that is known only when it is its turn. Never waits.
    pub fn record_late(&self, namespace: &str, event: LateEvent) {
        self.hand_in(namespace, Pending::Late(event));
    }

    fn hand_in(&self, namespace: &str, pending: Pending) {
        let displaced = self.state.backlog().push(namespace, (Instant::now(), pending));
        self.state.news.notify_one();
        match displaced {
            Some((_, Pending::Known(event))) => self.state.not_told(&event),
            Some((_, Pending::Late(_))) => self.state.dropped.inc(),
            None => {}
        }
    }

    fn has_token(&self) -> bool {
        let Some(bucket) = &self.state.normal else { return false };
        let token = bucket.lock().unwrap_or_else(PoisonError::into_inner).take(1.0);
        if token.is_err() {
            self.state.dropped.inc();
        }
        token.is_ok()
    }

    fn is_news(&self, event: &Event) -> bool {
        let (key, note, now) = ((event.uid(), event.reason), digest(&event.note), Instant::now());
        let mut warnings = self.state.warnings();
        // An API server keeps an event for an hour by default. What is still so is told anew then.
        let is_too_soon = warnings.told.get(&key).is_some_and(|last| {
            let every = if last.note == note { REMEMBER } else { WARN_EVERY };
            now.duration_since(last.at) < every
        });
        if is_too_soon {
            return false;
        }
        if warnings.told.len() >= warnings.sweep_at {
            warnings.told.retain(|_, told| now.duration_since(told.at) < REMEMBER);
            warnings.sweep_at = REMEMBER_AT_LEAST.max(2 * warnings.told.len());
        }
        warnings.told.insert(key, Warned { note, at: now });
        true
    }
}

impl State {
    fn warnings(&self) -> MutexGuard<'_, Warnings> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog<HandedIn>> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An event was not told after all. It may be the next time it is handed in.
    fn not_told(&self, event: &Event) {
        self.dropped.inc();
        self.warnings().told.remove(&(event.uid(), event.reason));
    }

    /// Whose turn it is, and what is to be told.
    fn next(&self) -> Option<(String, HandedIn)> {
        self.backlog().next()
    }
}

impl<P: QueuePriority> Sender<P> {
    /// Sends events, for ever.
    pub async fn run(self) {
        let mut sending = JoinSet::new();
        let (mut reported, mut told) = (Instant::now(), 0);
        loop {
            while sending.len() < AT_ONCE
                && let Some((namespace, handed_in)) = self.state.next()
            {
                let line = Arc::clone(&self.line);
                let turn = Turn { state: Arc::clone(&self.state), namespace };
                // In a box, for the same reason as a pass (`controller.rs`).
                sending.spawn(Box::pin(async move {
                    if let Some(event) = line.tell(handed_in).await {
                        turn.state.not_told(&event);
                    }
                }));
            }
            tokio::select! {
                () = self.state.news.notified(), if sending.len() < AT_ONCE => {}
                Some(_) = sending.join_next() => {}
            }
            if reported.elapsed() >= WARN_EVERY {
                reported = Instant::now();
                let dropped = self.state.dropped.get();
                match dropped - told {
                    0 => {}
                    dropped => tracing::info!(dropped, "events dropped; there were too many"),
                }
                told = dropped;
            }
        }
    }
}

/// A namespace's turn, which ends however the telling does.
struct Turn {
    state: Arc<State>,
    namespace: String,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.state.backlog().told(&self.namespace);
    }
}

impl<P: QueuePriority> Line<P> {
    /// Tells what was handed in. Returns the event if it was sent in vain.
    async fn tell(&self, (handed_in, pending): HandedIn) -> Option<Event> {
        tokio::time::sleep_until(handed_in + AFTER).await;
        let event = self.find(pending).await?;
        self.send(&event).await.err().map(|NotStored| event)
    }

    /// What there is to tell, if this process may.
    async fn find(&self, pending: Pending) -> Option<Event> {
        let event = match pending {
            Pending::Known(event) => *event,
            Pending::Late(event) => {
                if !self.may_send().await {
                    return None;
                }
                event.await?
            }
        };
        self.may_send().await.then_some(event)
    }

    async fn may_send(&self) -> bool {
        if let Some(limiter) = &self.limiter {
            limiter.acquire(P::EVENTS).await;
        }
        self.leader.holds()
    }

    async fn send(&self, event: &Event) -> Result<(), NotStored> {
        let namespace = event.namespace();
        let api: Api<v1::Event> = Api::namespaced(self.client.clone(), &namespace);
        let stored = self.reporter.stored(event.clone(), &self.clock);
        let answer = within(SEND_WITHIN, api.create(&PostParams::default(), &stored)).await;
        let Err(error) = answer else { return Ok(()) };
        match error.class() {
            Class::Exists | Class::NamespaceGoing | Class::Gone => Ok(()),
            Class::Denied => {
                if !self.refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%namespace, %error, "event not sent; this is said once");
                }
                Ok(())
            }
            _ => {
                tracing::debug!(%namespace, reason = event.reason, %error, "event not sent");
                Err(NotStored)
            }
        }
    }
}

impl Reporter {
    /// The event as it is stored.
    fn stored(&self, event: Event, clock: &Clock) -> v1::Event {
        let told = digest(&(event.uid(), event.reason, &event.note));
        let namespace = event.namespace();
        let Event { regarding, severity, reason, action, note } = event;
        let now = jiff::Timestamp::try_from(clock.likely()).unwrap_or_default();
        v1::Event {
            metadata: ObjectMeta {
                name: Some(format!(
                    "{}.{told:016x}",
                    regarding.name.as_deref().unwrap_or_default()
                )),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            reporting_controller: Some(self.controller.into()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(match severity {
                Severity::Normal => "Normal".into(),
                Severity::Warning => "Warning".into(),
            }),
            reason: Some(reason.into()),
            action: Some(action.into()),
            note: Some(note),
            regarding: Some(regarding),
            ..v1::Event::default()
        }
    }
}

fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
