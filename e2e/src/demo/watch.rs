//! The eyes of the demo: one watch a kind, each change stamped the moment it is delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event as Told;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::demo::clock::now;
use crate::demo::seen::{Change, JobState, PodState, Seen, TrainJob, has_ended, job_of};
use crate::testenv::kinds::{job_sets, train_jobs};

/// The watches; dropped, they end.
#[derive(Debug)]
pub struct Watches {
    changes: UnboundedReceiver<Seen>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Begins to watch a namespace.
    #[must_use]
    pub fn begin(client: &Client, namespace: &str) -> Self {
        let (sender, changes) = unbounded_channel();
        let client = || client.clone();
        let mut tasks = JoinSet::new();
        let jobs: Api<TrainJob> = Api::namespaced_with(client(), namespace, &train_jobs());
        tasks.spawn(follow(jobs, sender.clone()));
        let job_sets: Api<DynamicObject> = Api::namespaced_with(client(), namespace, &job_sets());
        tasks.spawn(follow(job_sets, sender.clone()));
        tasks.spawn(follow::<Pod>(Api::namespaced(client(), namespace), sender.clone()));
        tasks.spawn(follow::<Told>(Api::namespaced(client(), namespace), sender));
        Self { changes, _tasks: tasks }
    }

    /// The next change; waits for one.
    pub async fn next(&mut self) -> Option<Seen> {
        self.changes.recv().await
    }
}

/// An object of a kind that is watched.
trait Watched {
    /// The job it is about, and what its appearance or change means.
    fn here(&self) -> Option<(String, Change)>;

    /// The job it was about, and what its disappearance means.
    fn gone(&self) -> Option<(String, Change)>;

    /// Whether it is news only when it appears.
    const ONCE: bool = false;
}

impl Watched for TrainJob {
    fn here(&self) -> Option<(String, Change)> {
        Some((self.name_any(), Change::Job(Box::new(JobState::from(self)))))
    }

    fn gone(&self) -> Option<(String, Change)> {
        Some((self.name_any(), Change::JobGone))
    }
}

/// A JobSet, which has the name of its TrainJob.
impl Watched for DynamicObject {
    fn here(&self) -> Option<(String, Change)> {
        Some((self.name_any(), Change::JobSet { ended: has_ended(self) }))
    }

    fn gone(&self) -> Option<(String, Change)> {
        Some((self.name_any(), Change::JobSetGone))
    }
}

impl Watched for Pod {
    fn here(&self) -> Option<(String, Change)> {
        Some((job_of(self)?, Change::Pod(self.name_any(), PodState::from(self))))
    }

    fn gone(&self) -> Option<(String, Change)> {
        Some((job_of(self)?, Change::PodGone(self.name_any())))
    }
}

impl Watched for Told {
    fn here(&self) -> Option<(String, Change)> {
        let about = self.regarding.as_ref().filter(|it| it.kind.as_deref() == Some("TrainJob"))?;
        let (reason, note) = (self.reason.as_deref()?, self.note.as_deref()?);
        Some((about.name.clone()?, Change::Told(format!("{reason}: {note}"))))
    }

    fn gone(&self) -> Option<(String, Change)> {
        None
    }

    const ONCE: bool = true;
}

/// Hands on what a watch delivers, for as long as somebody wants it. What vanished while the watch
/// was interrupted is found when it is there again.
async fn follow<K>(api: Api<K>, changes: UnboundedSender<Seen>)
where
    K: Resource + Watched + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut known: BTreeMap<String, K> = BTreeMap::new();
    let mut listed = BTreeSet::new();
    let mut events = pin!(watcher(api, Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let at = now();
        let mut news = Vec::new();
        // An error is a watch that is interrupted; it comes back by itself.
        let Ok(event) = event else { continue };
        if let Event::InitApply(object) = &event {
            listed.insert(object.name_any());
        }
        match event {
            Event::Apply(object) | Event::InitApply(object) => {
                let told = known.insert(object.name_any(), object.clone()).is_some() && K::ONCE;
                news.extend(object.here().filter(|_| !told));
            }
            Event::Delete(object) => {
                known.remove(&object.name_any());
                news.extend(object.gone());
            }
            Event::Init => listed.clear(),
            Event::InitDone => {
                let vanished = known.extract_if(.., |name, _| !listed.contains(name));
                news.extend(vanished.filter_map(|(_, object)| object.gone()));
            }
        }
        for (job, change) in news {
            if changes.send(Seen { at, job, change }).is_err() {
                return;
            }
        }
    }
}
