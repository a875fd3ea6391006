//! Somebody who writes down what happens to objects that retention policies are about, and to the policies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use invariants::{Change, Object};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use tokio::task::JoinSet;

use super::follow::Followed;
use super::record::{Record, Stored};
use super::targets;

/// How long a watch may be behind on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a kind is addressed.
#[must_use]
pub fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// What is read of an object of a kind.
type Read = Box<dyn Fn(&DynamicObject) -> Object + Send + Sync>;

/// Watches a namespace, its policies and objects of some kinds, and what is in no namespace, until it is dropped.
pub struct RetentionRecorder {
    followed: Vec<ApiResource>,
    namespace: String,
    client: Client,
    record: Arc<Record>,
    _tasks: JoinSet<()>,
}

impl RetentionRecorder {
    /// Begins to record; what is there already is the first that is noted.
    pub async fn start(client: Client, namespace: &str, targets: &[ApiResource]) -> Result<Self> {
        let own = |name| kind("lifecycle.trainjob.dev", "v1alpha1", name);
        let mut followed = vec![own("RetentionPolicy")];
        followed.extend_from_slice(targets);
        let (record, mut tasks) = (Arc::new(Record::default()), JoinSet::new());
        for resource in [kind("", "v1", "Namespace"), own("ClusterRetentionPolicy")] {
            let api = Api::all_with(client.clone(), &resource);
            let followed = Followed { api, read: read(&resource) };
            tasks.spawn(followed.begin(&record).await?);
        }
        for resource in &followed {
            let api = Api::namespaced_with(client.clone(), namespace, resource);
            let followed = Followed { api, read: read(resource) };
            tasks.spawn(followed.begin(&record).await?);
        }
        Ok(Self { followed, namespace: namespace.to_owned(), client, record, _tasks: tasks })
    }

    /// Every change so far, in the order in which they were stored.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.record.changes(None)
    }

    /// Waits until the record has everything of the namespace that was stored when this was called.
    pub async fn caught_up(&self) -> Result<()> {
        let mut stored = Stored::default();
        for resource in &self.followed {
            let api = Api::namespaced_with(self.client.clone(), &self.namespace, resource);
            stored.merge(Followed { api, read: read(resource) }.stored().await?);
        }
        let caught_up = self.record.wait_for(&stored, Some(&self.namespace));
        tokio::time::timeout(PATIENCE, caught_up).await.context("the record stays behind")?
    }
}

fn read(resource: &ApiResource) -> Read {
    let plural = resource.plural.clone();
    Box::new(move |object: &DynamicObject| targets::object(&plural, object))
}
