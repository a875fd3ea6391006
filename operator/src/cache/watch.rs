//! Watches: what happens in the cluster, as records in the cache and keys in the queue.
//!
//! One watch a kind. What vanished while nobody watched is found by comparing at the end of each list.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client, Resource, runtime::watcher::Event};
use tokio::sync::watch;
use trainjob_api::{
    ClusterTrainingRuntime, TrainJob, TrainingRuntime, jobset::JobSetView, podgroup::PodGroup,
};
use trainjob_core::{
    build::{Runtime, RuntimeKey},
    facts::{JobSetFacts, ObjectKey, PodGroupFacts},
    scheduler::{PodGroupKind, Scheduler},
    with_scheduler,
};
use trainjob_engine::{
    Readable, Unread, Unreadable,
    versions::Source,
    watch::{Failed, Span, Subject, follow},
};
use trainjob_process::health::Readiness;

use super::Cache;
use crate::{kinds::Kind, legacy_finalizer::Finder, metrics::Metrics};

/// How long the operator waits at its start for a list of a kind that need not be there, once it has all others. Longer
/// than an API server that has just started needs to answer, so that it is not taken for one that cannot.
const OPTIONAL_PATIENCE: Duration = Duration::from_secs(10);

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
    /// The kinds whose list has begun to arrive, or could not be had.
    pub begun: watch::Sender<HashSet<&'static str>>,
    /// Whether the API server could not be reached when last tried; said once for all kinds.
    pub unreachable: Arc<AtomicBool>,
    /// Where failures are counted.
    pub metrics: Arc<Metrics>,
}

impl Watcher {
    /// Watches everything; never returns.
    ///
    /// TrainJobs are listed after JobSets, if those can be: a job that was deleted between two lists in the
    /// other order would be seen without its JobSet, and be given one more. All pages of a list are of the moment at which the
    /// first was asked for, so the second list begins when the first page of the first is there.
    pub async fn run(&self) {
        tokio::join!(
            self.train_jobs(),
            self.job_sets(),
            self.runtimes::<TrainingRuntime>(Kind::TrainingRuntime, |key| {
                RuntimeKey::Namespaced {
                    namespace: (**key.namespace).into(),
                    name: (*key.name).into(),
                }
            }),
            self.runtimes::<ClusterTrainingRuntime>(Kind::ClusterTrainingRuntime, |key| {
                RuntimeKey::Cluster { name: (*key.name).into() }
            }),
            join_all(Scheduler::ALL.map(|scheduler| self.pod_groups(scheduler))),
            self.go_without_optional_kinds(),
        );
    }

    /// Goes on without the kinds that need not be there and that could not be listed for [`OPTIONAL_PATIENCE`] after all
    /// others were. To jobs that need one it is as if it were not installed. Its watch goes on and takes it in.
    async fn go_without_optional_kinds(&self) {
        let optional = || Kind::ALL.iter().filter(|kind| kind.install().is_none());
        let needed = Kind::ALL.len() - optional().count();
        let mut listed = self.listed.subscribe();
        let all_needed = |kinds: &HashSet<&'static str>| {
            let known = Kind::ALL.iter().filter(|kind| kind.install().is_some());
            known.filter(|kind| kinds.contains(kind.name())).count() == needed
        };
        // It cannot fail while the sender is held.
        let _ = listed.wait_for(all_needed).await;
        tokio::time::sleep(OPTIONAL_PATIENCE).await;
        for kind in optional().map(|kind| kind.name()) {
            let is_listed = self.listed.borrow().contains(kind);
            if !is_listed {
                tracing::warn!(
                    kind,
                    "cannot list {kind}. TrainJobs that need one wait for it, all others go on"
                );
                self.known(kind);
            }
        }
    }

    async fn train_jobs(&self) {
        let mut begun = self.begun.subscribe();
        // It cannot fail while the sender is held.
        let _ = begun.wait_for(|kinds| kinds.contains(Kind::JobSet.name())).await;
        let remove = |metadata: &ObjectMeta| {
            let key = ObjectKey::of(metadata);
            if self.cache.remove_job(&key, metadata.resource_version.as_deref().unwrap_or_default())
            {
                (self.wake)(key);
            }
        };
        let put = |job: Unread<TrainJob>| {
            let version = job.meta().resource_version.as_deref().unwrap_or_default();
            if !self.cache.must_read_job(&ObjectKey::of(job.meta()), version) {
                return;
            }
            match job.read().0 {
                Ok(job) => {
                    self.cache.put_job(job, Source::Watch).into_iter().for_each(&self.wake);
                }
                Err(invalid) => {
                    unreadable(Kind::TrainJob, &invalid);
                    remove(&invalid.metadata);
                }
            }
        };
        self.follow::<Unread<TrainJob>>(Kind::TrainJob, |event| match event {
            Event::Init => self.cache.jobs_relist(),
            Event::InitApply(job) | Event::Apply(job) => put(job),
            Event::InitDone => self.cache.jobs_listed().into_iter().for_each(&self.wake),
            Event::Delete(job) => remove(job.meta()),
        })
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
        let put = |job_set: Readable<JobSetView, true>| {
            // One that cannot be read is there all the same: a deadline deletes it, and there is no second one.
            let job_set = job_set.0.unwrap_or_else(|invalid| {
                unreadable(Kind::JobSet, &invalid);
                JobSetView { metadata: invalid.metadata, ..JobSetView::default() }
            });
            let key = ObjectKey::of(&job_set.metadata);
            let facts = JobSetFacts::of(&job_set);
            if let Some(key) = self.cache.put_job_set(&key, &facts, Source::Watch) {
                (self.wake)(key);
            }
        };
        self.follow::<Readable<JobSetView, true>>(Kind::JobSet, |event| match event {
            Event::Init => self.cache.job_sets_relist(),
            Event::InitApply(job_set) | Event::Apply(job_set) => put(job_set),
            Event::InitDone => self.cache.job_sets_listed().into_iter().for_each(&self.wake),
            Event::Delete(job_set) => {
                let metadata = job_set.meta().clone();
                // Its last version may say how it ended, which no other did if it went at once.
                put(job_set);
                remove(&metadata);
            }
        })
        .await;
    }

    async fn pod_groups(&self, scheduler: Scheduler) {
        with_scheduler!(scheduler, S => self.pod_groups_of::<S>().await);
    }

    async fn pod_groups_of<S: PodGroupKind>(&self) {
        let (scheduler, kind) = (S::SCHEDULER, Kind::PodGroup(S::SCHEDULER));
        let remove = |metadata: &ObjectMeta| {
            let key = ObjectKey::of(metadata);
            let version = metadata.resource_version.as_deref().unwrap_or_default();
            if self.cache.remove_pod_group(scheduler, &key, version) {
                (self.wake)(key);
            }
        };
        let put = |group: Readable<PodGroup<S>>| match group.0 {
            Ok(group) => {
                let key = ObjectKey::of(&group.metadata);
                let facts = PodGroupFacts::of(&group.metadata, group.spec.into());
                if self.cache.put_pod_group(scheduler, &key, facts, Source::Watch) {
                    (self.wake)(key);
                }
            }
            Err(invalid) => {
                unreadable(kind, &invalid);
                remove(&invalid.metadata);
            }
        };
        self.follow::<Readable<PodGroup<S>>>(kind, |event| match event {
            Event::Init => self.cache.pod_groups_relist(scheduler),
            Event::InitApply(group) => {
                self.cache.pod_groups_served(scheduler);
                put(group);
            }
            Event::InitDone => {
                self.cache.pod_groups_served(scheduler);
                self.cache.pod_groups_listed(scheduler).into_iter().for_each(&self.wake);
            }
            Event::Apply(group) => put(group),
            Event::Delete(group) => remove(group.meta()),
        })
        .await;
    }

    async fn runtimes<K>(&self, kind: Kind, key_of: fn(ObjectKey) -> RuntimeKey)
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
        self.follow::<Readable<K>>(kind, |event| match event {
            Event::Init => listed.clear(),
            Event::InitApply(runtime) => {
                look(runtime.meta());
                listed.extend(put(runtime));
            }
            Event::InitDone => {
                self.cache.retain_runtimes(kind.name(), &listed).into_iter().for_each(&self.wake);
            }
            Event::Apply(runtime) => {
                look(runtime.meta());
                put(runtime);
            }
            Event::Delete(runtime) => remove(runtime.meta()),
        })
        .await;
    }

    /// Hands every event of a kind to `take`, for ever.
    async fn follow<K>(&self, kind: Kind, mut take: impl FnMut(Event<K>))
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
        K: Send + 'static,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let (kind, install) = (kind.name(), kind.install());
        let restarts = self.metrics.work.restarts(kind);
        let subject = Subject { kind, install, span: Span::Long, restarts };
        let mut awaited = true;
        follow(api, subject, &self.unreachable, |news| match news {
            Ok(event) => {
                let listed = matches!(event, Event::InitDone);
                let begun = listed || matches!(event, Event::InitApply(_));
                take(event);
                if begun {
                    self.begun.send_if_modified(|kinds| kinds.insert(kind));
                }
                if listed {
                    let gone_without = self.listed.borrow().contains(kind);
                    if std::mem::take(&mut awaited) && gone_without {
                        tracing::info!(kind, "{kind} is listed now; TrainJobs that need one go on");
                    }
                    self.known(kind);
                }
            }
            Err(Failed { is_refused }) => {
                if install.is_none() && is_refused {
                    // There is none to wait for.
                    awaited = false;
                    self.known(kind);
                }
                self.begun.send_if_modified(|kinds| kinds.insert(kind));
            }
        })
        .await;
    }

    /// It is known which objects of a kind there are, or that there can be none.
    fn known(&self, kind: &'static str) {
        self.readiness.set(kind, true);
        self.listed.send_if_modified(|kinds| kinds.insert(kind));
    }
}

fn unreadable(kind: Kind, invalid: &Unreadable) {
    let (kind, key) = (kind.name(), ObjectKey::of(&invalid.metadata));
    tracing::warn!(kind, object = %key, error = invalid.error, "cannot be read");
}
