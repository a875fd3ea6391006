//! When somebody who watches a namespace first saw what its users wait for.

use std::collections::HashMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use trainjob_api::conditions::REASON_DEADLINE_EXCEEDED;
use trainjob_api::{JobSet, TrainJob};

use super::super::calls::Micros;
use crate::testenv::fixtures::status::is_failed_by_deadline;

/// Before a watch that was interrupted goes on.
const PAUSE: Duration = Duration::from_millis(50);

/// What users of a TrainJob wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sight {
    /// It has a JobSet.
    JobSet,
    /// Its deadline has failed it.
    Failed,
    /// An event says so.
    Told,
    /// Its deletion was asked for.
    Deleted,
    /// It is gone.
    Gone,
}

type First = Arc<Mutex<HashMap<(Sight, String), Micros>>>;

/// Watches a namespace until it is dropped.
#[derive(Debug)]
pub(super) struct Sightings {
    first: First,
    _watches: JoinSet<()>,
}

impl Sightings {
    /// Begins to watch.
    pub(super) async fn begin(client: &Client, namespace: &str) -> Result<Self> {
        let (first, mut watches) = (First::default(), JoinSet::new());
        let sets: Api<JobSet> = Api::namespaced(client.clone(), namespace);
        let jobs: Api<TrainJob> = Api::namespaced(client.clone(), namespace);
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        watches.spawn(follow(sets, &first, seen_of_set).await?);
        watches.spawn(follow(jobs, &first, seen_of_job).await?);
        watches.spawn(follow(events, &first, seen_of_event).await?);
        Ok(Self { first, _watches: watches })
    }

    /// When this was first seen of the job of this name, if it was.
    pub(super) fn of(&self, sight: Sight, name: &str) -> Option<Micros> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get(&(sight, name.to_owned())).copied()
    }
}

/// What a version of an object shows, or that it is gone, and of which job.
type Shown = Option<(Sight, String)>;

fn seen_of_set(set: &JobSet, is_gone: bool) -> Shown {
    (!is_gone).then(|| (Sight::JobSet, set.name_any()))
}

fn seen_of_job(job: &TrainJob, is_gone: bool) -> Shown {
    let is_deleted = job.metadata.deletion_timestamp.is_some();
    let sight = match (is_gone, is_deleted) {
        (true, _) => Sight::Gone,
        (false, true) => Sight::Deleted,
        (false, false) if is_failed_by_deadline(job) => Sight::Failed,
        (false, false) => return None,
    };
    Some((sight, job.name_any()))
}

fn seen_of_event(event: &Event, _: bool) -> Shown {
    let job = event.regarding.as_ref()?.name.clone()?;
    (event.reason.as_deref() == Some(REASON_DEADLINE_EXCEEDED)).then_some((Sight::Told, job))
}

/// Follows a kind from now on. What an interrupted watch has missed for good counts as not seen.
async fn follow<K>(
    api: Api<K>,
    first: &First,
    shows: fn(&K, bool) -> Shown,
) -> Result<impl Future<Output = ()> + Send + use<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let list = api.list_metadata(&ListParams::default()).await?;
    let mut version = list.metadata.resource_version.context("a list without a version")?;
    let first = Arc::clone(first);
    let note = move |object: &K, is_gone: bool| {
        let Some(sight) = shows(object, is_gone) else { return };
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        first.entry(sight).or_insert_with(Micros::now);
    };
    Ok(async move {
        loop {
            if let Ok(changes) = api.watch(&WatchParams::default(), &version).await {
                let mut changes = pin!(changes);
                while let Some(Ok(change)) = changes.next().await {
                    let (object, is_gone) = match change {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                        WatchEvent::Deleted(object) => (object, true),
                        WatchEvent::Bookmark(_) => continue,
                        WatchEvent::Error(_) => break,
                    };
                    version = object.resource_version().unwrap_or(version);
                    note(&object, is_gone);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
}
