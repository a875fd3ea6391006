//! Watches: what happens in the cluster, as records in the cache and keys in the queue.
//!
//! One watch a kind, from `kube::runtime::watcher`, which lists and watches and begins anew when it has
//! to. What vanished while nobody watched is found by comparing at the end of each list. A watch that
//! fails is tried again for ever; the log says so once, says what to do about it, and says when it is
//! over.

use std::{
    collections::HashSet,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, Resource,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, Event, watcher},
    },
};
use tokio::{sync::watch, time::Instant};
use trainjob_api::{
    ClusterTrainingRuntime, TrainJob, TrainingRuntime,
    constants::{CLUSTER_TRAINING_RUNTIME_KIND, TRAIN_JOB_KIND, TRAINING_RUNTIME_KIND},
    jobset::{self, JobSetView},
    podgroup::{CoschedulingPodGroup, VolcanoPodGroup},
};
use trainjob_core::{
    facts::{JobSetFacts, ObjectKey, PodGroupFacts, PodGroupSpec, Scheduler},
    runtime::{Runtime, RuntimeKey},
};

use super::{
    Cache, Source,
    readable::{Readable, Unreadable},
};
use crate::{health::Readiness, legacy_finalizer::Finder};

/// First and longest wait before a watch that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// Seconds after which the API server ends a watch that is then begun anew where it was. The client
/// library gives up a silent one five seconds later, so a dead connection is noticed within nine and
/// replaced within ten; the price is one request per kind and so many seconds.
const WATCH_SECONDS: u32 = 4;
/// A watch that has not failed for so long begins again with the first wait.
const QUIET: Duration = Duration::from_secs(15);

/// The longest wait before another look for a kind that need not be there.
const LOOK_FOR_OPTIONAL: Duration = Duration::from_secs(30);

/// How to get the kinds that others install.
const INSTALL_CRDS: &str =
    "install them with: kubectl apply --server-side -f charts/trainjob-operator/crds";
const INSTALL_JOBSET: &str =
    "install JobSet 0.12 or later: https://jobset.sigs.k8s.io/docs/installation";

/// What a watch tells the rest of the operator.
pub struct Watcher {
    /// The client for watches.
    pub client: Client,
    /// Where records go.
    pub cache: Arc<Cache>,
    /// Puts a key to be worked on.
    pub wake: Box<dyn Fn(ObjectKey) + Send + Sync>,
    /// Shown every runtime.
    pub legacy: Finder,
    /// Told when a kind's first list is complete.
    pub readiness: Readiness,
    /// The kinds whose first list is complete.
    pub listed: watch::Sender<HashSet<&'static str>>,
    /// The kinds that were listed, or could not be.
    pub tried: watch::Sender<HashSet<&'static str>>,
    /// Whether the API server could not be reached when last tried; said once for all kinds.
    pub unreachable: AtomicBool,
}

/// Names of the kinds that are watched, as readiness shows them.
pub const KINDS: [&str; 6] = [
    TRAIN_JOB_KIND,
    jobset::KIND,
    TRAINING_RUNTIME_KIND,
    CLUSTER_TRAINING_RUNTIME_KIND,
    COSCHEDULING_KIND,
    VOLCANO_KIND,
];

/// Two kinds of the same name.
const COSCHEDULING_KIND: &str = "PodGroup of scheduler-plugins";
const VOLCANO_KIND: &str = "PodGroup of Volcano";

impl Watcher {
    /// Watches everything; never returns.
    ///
    /// TrainJobs are listed after JobSets, if those can be: a job that was deleted between two lists in the
    /// other order would be seen without its JobSet, and be given one more.
    pub async fn run(&self) {
        tokio::join!(
            self.train_jobs(),
            self.job_sets(),
            self.runtimes::<TrainingRuntime>(TRAINING_RUNTIME_KIND, |key| {
                RuntimeKey::Namespaced {
                    namespace: key.namespace.as_ref().into(),
                    name: key.name.as_ref().into(),
                }
            }),
            self.runtimes::<ClusterTrainingRuntime>(CLUSTER_TRAINING_RUNTIME_KIND, |key| {
                RuntimeKey::Cluster { name: key.name.as_ref().into() }
            }),
            self.pod_groups::<CoschedulingPodGroup>(
                Scheduler::Coscheduling,
                COSCHEDULING_KIND,
                |group| (group.metadata, PodGroupSpec::Coscheduling(group.spec)),
            ),
            self.pod_groups::<VolcanoPodGroup>(Scheduler::Volcano, VOLCANO_KIND, |group| {
                (group.metadata, PodGroupSpec::Volcano(group.spec))
            }),
        );
    }

    async fn train_jobs(&self) {
        let mut tried = self.tried.subscribe();
        // It cannot fail while the sender is held.
        let _ = tried.wait_for(|kinds| kinds.contains(jobset::KIND)).await;
        let remove = |metadata: &ObjectMeta| {
            let key = ObjectKey::of(metadata);
            if self.cache.remove_job(&key, metadata.resource_version.as_deref().unwrap_or_default())
            {
                (self.wake)(key);
            }
        };
        let put = |job: Readable<TrainJob>| match job.0 {
            Ok(job) => {
                let key = ObjectKey::of(&job.metadata);
                if self.cache.put_job(job, Source::Watch) {
                    (self.wake)(key);
                }
            }
            Err(invalid) => {
                unreadable(TRAIN_JOB_KIND, &invalid);
                remove(&invalid.metadata);
            }
        };
        self.follow::<Readable<TrainJob>>(
            TRAIN_JOB_KIND,
            Some(INSTALL_CRDS),
            |event| match event {
                Event::Init => self.cache.jobs_relist(),
                Event::InitApply(job) | Event::Apply(job) => put(job),
                Event::InitDone => self.cache.jobs_listed().into_iter().for_each(&self.wake),
                Event::Delete(job) => remove(job.meta()),
            },
        )
        .await;
    }

    async fn job_sets(&self) {
        let remove = |metadata: &ObjectMeta| {
            let key = ObjectKey::of(metadata);
            let version = metadata.resource_version.as_deref().unwrap_or_default();
            if self.cache.remove_job_set(&key, version) {
                (self.wake)(key);
            }
        };
        let put = |job_set: Readable<JobSetView>| match job_set.0 {
            Ok(job_set) => {
                let key = ObjectKey::of(&job_set.metadata);
                if self.cache.put_job_set(&key, JobSetFacts::of(&job_set), Source::Watch) {
                    (self.wake)(key);
                }
            }
            Err(invalid) => {
                unreadable(jobset::KIND, &invalid);
                remove(&invalid.metadata);
            }
        };
        self.follow::<Readable<JobSetView>>(
            jobset::KIND,
            Some(INSTALL_JOBSET),
            |event| match event {
                Event::Init => self.cache.job_sets_relist(),
                Event::InitApply(job_set) | Event::Apply(job_set) => put(job_set),
                Event::InitDone => self.cache.job_sets_listed().into_iter().for_each(&self.wake),
                Event::Delete(job_set) => remove(job_set.meta()),
            },
        )
        .await;
    }

    async fn pod_groups<K>(
        &self,
        scheduler: Scheduler,
        kind: &'static str,
        spec: fn(K) -> (ObjectMeta, PodGroupSpec),
    ) where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
        K: Send + 'static,
    {
        let remove = |metadata: &ObjectMeta| {
            let key = ObjectKey::of(metadata);
            let version = metadata.resource_version.as_deref().unwrap_or_default();
            if self.cache.remove_pod_group(scheduler, &key, version) {
                (self.wake)(key);
            }
        };
        let put = |group: Readable<K>| match group.0 {
            Ok(group) => {
                let (metadata, spec) = spec(group);
                let (key, facts) = (ObjectKey::of(&metadata), PodGroupFacts::of(&metadata, spec));
                if self.cache.put_pod_group(scheduler, &key, facts, Source::Watch) {
                    (self.wake)(key);
                }
            }
            Err(invalid) => {
                unreadable(kind, &invalid);
                remove(&invalid.metadata);
            }
        };
        let served = || self.cache.pod_groups_served(scheduler).into_iter().for_each(&self.wake);
        self.follow::<Readable<K>>(kind, None, |event| match event {
            Event::Init => self.cache.pod_groups_relist(scheduler),
            Event::InitApply(group) => {
                served();
                put(group);
            }
            Event::InitDone => {
                served();
                self.cache.pod_groups_listed(scheduler).into_iter().for_each(&self.wake);
            }
            Event::Apply(group) => put(group),
            Event::Delete(group) => remove(group.meta()),
        })
        .await;
    }

    async fn runtimes<K>(&self, kind: &'static str, key_of: fn(ObjectKey) -> RuntimeKey)
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
        K: Into<Runtime> + Send + 'static,
    {
        let mut listed = HashSet::new();
        let remove = |metadata: &ObjectMeta| {
            let key = key_of(ObjectKey::of(metadata));
            self.cache.remove_runtime(&key).into_iter().for_each(&self.wake);
        };
        let look = |metadata: &ObjectMeta| {
            self.legacy.look(key_of(ObjectKey::of(metadata)), metadata);
        };
        let put = |runtime: Readable<K>| match runtime.0 {
            Ok(runtime) => {
                let runtime: Runtime = runtime.into();
                let key = runtime.key.clone();
                self.cache.put_runtime(runtime).into_iter().for_each(&self.wake);
                Some(key)
            }
            Err(invalid) => {
                unreadable(kind, &invalid);
                remove(&invalid.metadata);
                None
            }
        };
        self.follow::<Readable<K>>(kind, Some(INSTALL_CRDS), |event| match event {
            Event::Init => listed.clear(),
            Event::InitApply(runtime) => {
                look(runtime.meta());
                listed.extend(put(runtime));
            }
            Event::InitDone => {
                self.cache.retain_runtimes(kind, &listed).into_iter().for_each(&self.wake);
            }
            Event::Apply(runtime) => {
                look(runtime.meta());
                put(runtime);
            }
            Event::Delete(runtime) => remove(runtime.meta()),
        })
        .await;
    }

    /// Hands every event of a kind to `take`, for ever. A kind that need not be there has no `install`.
    async fn follow<K>(
        &self,
        kind: &'static str,
        install: Option<&'static str>,
        mut take: impl FnMut(Event<K>),
    ) where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
        K: Send + 'static,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let longest = if install.is_some() { BACKOFF.1 } else { LOOK_FOR_OPTIONAL };
        let mut events = pin!(stream(api, longest));
        let mut trouble =
            Trouble { kind, install, last: None, said: None, unreachable: &self.unreachable };
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let listed = matches!(event, Event::InitDone);
                    // A list that begins or is under way may still fail.
                    let works = listed || matches!(event, Event::Apply(_) | Event::Delete(_));
                    take(event);
                    if listed {
                        self.known(kind);
                        self.tried.send_if_modified(|kinds| kinds.insert(kind));
                    }
                    if works {
                        trouble.over();
                    }
                }
                Err(error) => {
                    if install.is_none() && is_refused(&error) {
                        self.known(kind);
                    }
                    trouble.with(&error);
                    self.tried.send_if_modified(|kinds| kinds.insert(kind));
                }
            }
        }
    }

    /// It is known which objects of a kind there are, or that there can be none.
    fn known(&self, kind: &'static str) {
        self.readiness.set(kind, true);
        self.listed.send_if_modified(|kinds| kinds.insert(kind));
    }
}

/// Whether the API server says that there is no such kind, or that it may not be seen.
fn is_refused(error: &watcher::Error) -> bool {
    matches!(cause(error), Some((Cause::NotInstalled | Cause::Forbidden, _)))
}

fn stream<K>(api: Api<K>, longest: Duration) -> impl Stream<Item = Result<Event<K>, watcher::Error>>
where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    K: Send + 'static,
{
    let wait = Wait { longest, failures: 0, last: None };
    watcher(api, watcher::Config::default().timeout(WATCH_SECONDS)).backoff(wait)
}

fn unreadable(kind: &str, invalid: &Unreadable) {
    let key = ObjectKey::of(&invalid.metadata);
    tracing::warn!(kind, object = %key, error = invalid.error, "cannot be read and is left alone");
}

/// Doubling waits between two tries of a watch, spread so that not all kinds come at once.
///
/// A watch that begins a list has not succeeded yet, though to the library it has; so what counts as
/// success is that it has been quiet for a while.
#[derive(Debug)]
struct Wait {
    longest: Duration,
    failures: u32,
    last: Option<Instant>,
}

impl Iterator for Wait {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let (first, _) = BACKOFF;
        let now = Instant::now();
        let quiet = QUIET.max(self.longest * 2);
        if self.last.replace(now).is_some_and(|last| now.duration_since(last) > quiet) {
            self.failures = 0;
        }
        let wait = first.saturating_mul(1 << self.failures.min(8)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        Some(crate::backoff::spread(wait))
    }
}

impl Backoff for Wait {
    fn reset(&mut self) {}
}

/// What is wrong with a watch, said once.
struct Trouble<'a> {
    kind: &'static str,
    /// How to install the kind, unless it need not be there.
    install: Option<&'static str>,
    last: Option<Cause>,
    said: Option<Cause>,
    unreachable: &'a AtomicBool,
}

/// Why a watch fails, as far as it makes a difference to who reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    NotInstalled,
    Forbidden,
    Unreachable,
}

impl Trouble<'_> {
    fn with(&mut self, error: &watcher::Error) {
        let Some((cause, error)) = cause(error) else {
            tracing::debug!(kind = self.kind, %error, "watch begins anew");
            return;
        };
        // An API server that has just come back knows neither rights nor kinds for a moment.
        let doubtful = self.said == Some(Cause::Unreachable) && self.last != Some(cause);
        self.last = Some(cause);
        if self.said == Some(cause) || doubtful {
            return;
        }
        self.said = Some(cause);
        let (kind, install) = (self.kind, self.install);
        match cause {
            Cause::NotInstalled => {
                let Some(install) = install else { return };
                tracing::error!(
                    kind,
                    "the CRD of {kind} is not installed; {install}. Waiting for it"
                );
            }
            Cause::Forbidden => {
                tracing::error!(kind, %error, "not allowed to list and watch {kind}. Waiting for the right");
            }
            Cause::Unreachable if self.unreachable.swap(true, Ordering::Relaxed) => {}
            Cause::Unreachable => {
                tracing::error!(
                    error,
                    "cannot reach the API server. Trying again until it answers"
                );
            }
        }
    }

    fn over(&mut self) {
        self.last = None;
        if self.unreachable.swap(false, Ordering::Relaxed) {
            tracing::info!("the API server answers again");
        }
        if let Some(Cause::NotInstalled | Cause::Forbidden) = self.said.take() {
            tracing::info!(kind = self.kind, "watching {}", self.kind);
        }
    }
}

/// The cause of a failure and what the API server or the network says of it, unless it belongs to the
/// normal life of a watch: one that ends, or an API server that is busy for a moment.
fn cause(error: &watcher::Error) -> Option<(Cause, String)> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) =
        error
    else {
        return None;
    };
    match error {
        kube::Error::Api(status) if status.code == 429 => None,
        kube::Error::Api(status) => {
            let cause = match status.code {
                404 => Cause::NotInstalled,
                401 | 403 => Cause::Forbidden,
                _ => Cause::Unreachable,
            };
            Some((cause, status.message.clone()))
        }
        _ => Some((Cause::Unreachable, chain(error))),
    }
}

/// An error with what caused it, down to the system's own words.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |error| error.source())
        .fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_while_a_watch_fails_and_begin_anew_after_a_quiet_time() {
        let mut wait = Wait { longest: BACKOFF.1, failures: 0, last: None };
        for expected in [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000] {
            let next = wait.next().unwrap();
            wait.reset();
            assert!((expected / 2..=expected).contains(&next.as_millis()), "{expected}: {next:?}");
            tokio::time::advance(next).await;
        }
        tokio::time::advance(QUIET * 2).await;
        assert!(wait.next().unwrap() <= BACKOFF.0);
    }
}
