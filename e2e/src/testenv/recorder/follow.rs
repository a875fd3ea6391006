//! Following one kind from version to version.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use futures::StreamExt;
use invariants::{Change, Millis, Object};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::read::{Recorded, object};
use super::record::{Record, Stored};

/// Before an API server that is not there is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// A kind that is recorded, and what rules look at of its objects.
pub(super) struct Followed<K, R = fn(&K) -> Object> {
    pub(super) api: Api<K>,
    pub(super) read: R,
}

impl<K: Recorded + Resource> Followed<K> {
    pub(super) fn of(api: Api<K>) -> Self {
        Self { api, read: object }
    }
}

impl<K, R> Followed<K, R>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    R: Fn(&K) -> Object + Send + 'static,
{
    /// Notes what is there, and gives what notes everything from then on.
    pub(super) async fn begin(
        self,
        record: &Arc<Record>,
    ) -> Result<impl Future<Output = ()> + Send + use<K, R>> {
        let list = self.api.list(&ListParams::default()).await?;
        let version = list.metadata.resource_version.context("a list without a version")?;
        for item in &list.items {
            self.note(record, item, false);
        }
        Ok(self.follow(Arc::clone(record), version))
    }

    async fn follow(self, record: Arc<Record>, mut version: String) {
        let how = WatchParams::default();
        loop {
            if let Ok(events) = self.api.watch(&how, &version).await {
                let mut events = pin!(events);
                // An error is a watch that is interrupted; it goes on where it was.
                while let Some(Ok(event)) = events.next().await {
                    match event {
                        WatchEvent::Added(item) | WatchEvent::Modified(item) => {
                            version = item.resource_version().unwrap_or(version);
                            self.note(&record, &item, false);
                        }
                        WatchEvent::Deleted(item) => {
                            version = item.resource_version().unwrap_or(version);
                            self.note(&record, &item, true);
                        }
                        WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                        WatchEvent::Error(status) if status.code == 410 => {
                            return record.has_a_gap(status.message);
                        }
                        WatchEvent::Error(_) => break,
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What the API server has stored now.
    pub(super) async fn stored(&self) -> Result<Stored> {
        let list = self.api.list_metadata(&ListParams::default()).await?;
        let known = |item: &PartialObjectMeta<K>| {
            Some((item.uid()?, item.resource_version()?.parse().ok()?))
        };
        let revision = list.metadata.resource_version.context("a list without a version")?;
        Ok(Stored {
            objects: list.items.iter().filter_map(known).collect(),
            revision: Some(revision.parse()?),
        })
    }

    fn note(&self, record: &Record, item: &K, gone: bool) {
        let version = item.resource_version().and_then(|version| version.parse().ok());
        let Some(revision) = version else {
            return record.has_a_gap(format!("{} has no version", item.name_any()));
        };
        record.add(Change { revision, at: now(), object: (self.read)(item), gone });
    }
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
