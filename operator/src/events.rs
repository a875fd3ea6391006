//! Tells users what happened, in events. Best effort: never in the way of anything else.
//!
//! Warnings are told once: the same note about the same job is not repeated, and a new one for the same
//! reason at most once a minute, so that a job that fails for hours leaves a bounded number of objects.
//! The event's name is made from what it says; after a restart the API server has it already.
//! Normal events take tokens from a bucket; in a storm most are dropped, and counted.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use k8s_openapi::{
    api::{
        core::v1::{ObjectReference, Pod},
        events::v1::Event,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff,
};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use prometheus::IntCounter;
use tokio::{sync::mpsc, time::Instant};
use trainjob_api::constants::{API_VERSION, EVENT_REPORTER, JOBSET_UID_LABEL, TRAIN_JOB_KIND};
use trainjob_core::{
    facts::JobFacts,
    notice::{Notice, Severity},
    out_of_memory,
    pass::Class,
    priority::Priority,
};
use trainjob_process::config::Rate;

use crate::{
    answer::{timed, within},
    leader::LeaderGuard,
    limit::{Bucket, Limiter},
};

/// How many events may wait to be sent.
const BACKLOG: usize = 1_000;
/// How long an event waits before it is sent. Jobs come due together, on whole seconds: what is to be done
/// for the others must not wait for the API server to take in what was done for the first.
const AFTER: Duration = Duration::from_millis(50);
/// A new note for the same reason about the same job, at most this often.
const WARN_EVERY: Duration = Duration::from_mins(1);
/// How long a told warning is remembered.
const REMEMBER: Duration = Duration::from_hours(1);
/// Pods that have ended badly, and how many of one JobSet are looked at: what an answer may weigh has a limit.
const FAILED: &str = "status.phase=Failed";
const LOOK_AT: u32 = 100;
/// How long that may take, because other events wait behind it.
const LOOK_FOR: Duration = Duration::from_secs(4);
/// How many warnings are remembered before old ones are looked for.
const REMEMBER_AT_LEAST: usize = 4_096;

/// Where notices are handed in.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<HandedIn>,
    state: Arc<State>,
    instance: String,
}

/// What is to be told, and when it was handed in.
type HandedIn = (Instant, Told);

enum Told {
    Event(Box<Event>),
    /// Whether a container of this JobSet was out of memory: its Pods are still to be asked for.
    OutOfMemory {
        job: Box<JobFacts>,
        job_set: String,
    },
}

struct State {
    normal: Option<Mutex<Bucket>>,
    warnings: Mutex<Warnings>,
    /// All that were not sent.
    dropped: IntCounter,
}

/// What was told, by UID of the job and reason.
struct Warnings {
    told: HashMap<(String, &'static str), Warned>,
    /// At this length old entries are looked for.
    sweep_at: usize,
}

struct Warned {
    note: u64,
    at: Instant,
}

/// Sends what was handed in, until every [`Events`] is dropped.
pub struct Sender {
    receiver: mpsc::Receiver<HandedIn>,
    client: Client,
    limiter: Option<Arc<Limiter>>,
    leader: LeaderGuard,
    state: Arc<State>,
    instance: String,
}

/// The two ends of event telling. `normal` limits Normal events; `None` sends none. What is not sent because
/// there was too much is counted by `dropped`.
#[must_use]
pub fn channel(
    client: Client,
    limiter: Option<Arc<Limiter>>,
    leader: LeaderGuard,
    normal: Option<Rate>,
    dropped: IntCounter,
) -> (Events, Sender) {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let bucket = normal.map(|rate| Mutex::new(Bucket::new(rate.per_second, rate.burst.get())));
    let warnings = Mutex::new(Warnings { told: HashMap::new(), sweep_at: REMEMBER_AT_LEAST });
    let state = Arc::new(State { normal: bucket, warnings, dropped });
    // In a Pod this is the Pod's name.
    let instance = std::env::var("HOSTNAME").unwrap_or_else(|_| EVENT_REPORTER.to_owned());
    let events = Events { sender, state: Arc::clone(&state), instance: instance.clone() };
    (events, Sender { receiver, client, limiter, leader, state, instance })
}

impl Events {
    /// Hands in a notice about a job. Never waits.
    pub fn tell(&self, job: &JobFacts, notice: &Notice) {
        let wanted = match notice.severity() {
            Severity::Normal => self.has_token(),
            Severity::Warning => self.is_news(job, notice),
        };
        if !wanted {
            return;
        }
        let event = event(job, notice, &self.instance);
        if !self.hand_in(Told::Event(Box::new(event))) {
            // It was not told after all, and may be once there is room.
            self.state.warnings().told.remove(&(job.uid.clone(), notice.reason()));
        }
    }

    /// Hands in the question whether a container of a job's failed JobSet was out of memory. Never waits.
    pub fn tell_out_of_memory(&self, job: &JobFacts, job_set: &str) {
        let (job, job_set) = (Box::new(job.clone()), job_set.to_owned());
        self.hand_in(Told::OutOfMemory { job, job_set });
    }

    fn hand_in(&self, told: Told) -> bool {
        let fits = self.sender.try_send((Instant::now(), told)).is_ok();
        if !fits {
            self.state.dropped.inc();
        }
        fits
    }

    fn has_token(&self) -> bool {
        let Some(bucket) = &self.state.normal else { return false };
        let token = bucket.lock().unwrap_or_else(PoisonError::into_inner).take(1.0);
        if token.is_err() {
            self.state.dropped.inc();
        }
        token.is_ok()
    }

    fn is_news(&self, job: &JobFacts, notice: &Notice) -> bool {
        let (key, note, now) =
            ((job.uid.clone(), notice.reason()), digest(&notice.note()), Instant::now());
        let mut warnings = self.state.warnings();
        if let Some(last) = warnings.told.get(&key)
            && (last.note == note || now.duration_since(last.at) < WARN_EVERY)
        {
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
}

impl Sender {
    /// Sends events one after the other; returns when there will be no more.
    pub async fn run(mut self) {
        let (mut reported, mut told) = (Instant::now(), 0);
        let mut refused = false;
        while let Some((handed_in, news)) = self.receiver.recv().await {
            tokio::time::sleep_until(handed_in + AFTER).await;
            let event = match news {
                Told::Event(event) => Some(*event),
                Told::OutOfMemory { job, job_set } => self.out_of_memory(&job, &job_set).await,
            };
            let Some(event) = event else { continue };
            if !self.may_send().await {
                continue;
            }
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
            if let Err(error) = timed(api.create(&PostParams::default(), &event)).await {
                match error.class() {
                    Class::Exists | Class::NamespaceGoing | Class::Gone => {}
                    Class::Denied if !refused => {
                        refused = true;
                        tracing::warn!(%namespace, %error, "event not sent; this is said once");
                    }
                    _ => {
                        tracing::debug!(%namespace, reason = event.reason, %error, "event not sent");
                    }
                }
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

    async fn may_send(&self) -> bool {
        if let Some(limiter) = &self.limiter {
            limiter.acquire(Priority::Cleanup).await;
        }
        self.leader.holds()
    }

    /// What there is to tell of a failed JobSet. Its Pods may be gone by now; then nobody knows.
    async fn out_of_memory(&self, job: &JobFacts, job_set: &str) -> Option<Event> {
        if !self.may_send().await {
            return None;
        }
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &job.key.namespace);
        let labels = format!("{JOBSET_UID_LABEL}={job_set}");
        let params = ListParams::default().labels(&labels).fields(FAILED).limit(LOOK_AT);
        match within(LOOK_FOR, api.list(&params)).await {
            Ok(pods) => {
                let notice = out_of_memory::find(&pods.items)?;
                Some(event(job, &notice, &self.instance))
            }
            Err(error) => {
                tracing::debug!(job = %job.key, uid = job.uid, %error, "failed Pods not read");
                None
            }
        }
    }
}

fn event(job: &JobFacts, notice: &Notice, instance: &str) -> Event {
    let note = notice.note();
    let told = digest(&(&job.uid, notice.reason(), &note));
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{told:016x}", job.key.name)),
            namespace: Some(job.key.namespace.to_string()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(
            jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default(),
        )),
        reporting_controller: Some(EVENT_REPORTER.into()),
        reporting_instance: Some(instance.to_owned()),
        type_: Some(match notice.severity() {
            Severity::Normal => "Normal".into(),
            Severity::Warning => "Warning".into(),
        }),
        reason: Some(notice.reason().into()),
        action: Some(notice.action().into()),
        note: Some(note),
        regarding: Some(ObjectReference {
            api_version: Some(API_VERSION.into()),
            kind: Some(TRAIN_JOB_KIND.into()),
            namespace: Some(job.key.namespace.to_string()),
            name: Some(job.key.name.to_string()),
            uid: Some(job.uid.clone()),
            resource_version: Some(job.resource_version.clone()),
            ..ObjectReference::default()
        }),
        ..Event::default()
    }
}

fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
