//! The finalizer that earlier versions of Kubeflow Trainer put on runtimes in use.
//!
//! Nobody else removes it, and while it is there the runtime cannot be deleted. Runtimes are deletable: a
//! TrainJob keeps its own snapshot of the one it began with.

use std::{collections::HashMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Client, Resource,
    api::{Patch, PatchParams},
    core::Request,
};
use serde_json::json;
use tokio::{sync::mpsc, time::sleep};
use trainjob_api::{
    ClusterTrainingRuntime, TrainingRuntime,
    constants::{FIELD_MANAGER, LEGACY_FINALIZER},
};
use trainjob_core::{
    build::{RuntimeKey, without_legacy_finalizer},
    pass::Class,
};
use trainjob_engine::{answer, error::RequestError, leader::LeaderGuard};

/// How long before what failed is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Takes in runtimes as the watches see them.
#[derive(Debug, Clone)]
pub struct Finder(mpsc::UnboundedSender<Found>);

/// A runtime, with what is to be done about it if it has the finalizer.
type Found = (RuntimeKey, Option<Held>);

/// Removes the finalizer from the runtimes that have it.
pub struct Remover {
    client: Client,
    leader: LeaderGuard,
    found: mpsc::UnboundedReceiver<Found>,
}

/// A runtime that has the finalizer.
#[derive(Debug)]
struct Held {
    uid: Option<String>,
    resource_version: Option<String>,
    /// The finalizers it may keep.
    others: Vec<String>,
}

/// What finds runtimes that have the finalizer, and what removes it from them.
#[must_use]
pub fn channel(client: Client, leader: LeaderGuard) -> (Finder, Remover) {
    let (finder, found) = mpsc::unbounded_channel();
    (Finder(finder), Remover { client, leader, found })
}

impl Finder {
    /// Looks at a runtime.
    pub fn look(&self, key: RuntimeKey, metadata: &ObjectMeta) {
        let held = without_legacy_finalizer(metadata).map(|others| Held {
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            others,
        });
        // It cannot be taken in any more when the operator ends.
        let _ = self.0.send((key, held));
    }
}

/// Waits until what is held is tried: as soon as there is a leader, and a while after a failure.
async fn again(leader: &LeaderGuard) {
    if leader.holds() { sleep(AGAIN).await } else { leader.granted().await }
}

impl Remover {
    /// Removes the finalizer from what is found, until nothing can be found any more. Before there is a
    /// leader it is only remembered: whoever has one removes it, which is news then.
    pub async fn run(mut self) {
        let leader = self.leader.clone();
        let mut held = HashMap::new();
        loop {
            tokio::select! {
                found = self.found.recv() => match found {
                    None => return,
                    Some((key, None)) => {
                        held.remove(&key);
                    }
                    Some((key, Some(found))) if self.leader.holds() => {
                        self.release_or_keep(key, found, &mut held).await;
                    }
                    Some((key, Some(found))) => {
                        held.insert(key, found);
                    }
                },
                () = again(&leader), if !held.is_empty() => {
                    for (key, found) in std::mem::take(&mut held) {
                        self.release_or_keep(key, found, &mut held).await;
                    }
                }
            }
        }
    }

    async fn release_or_keep(
        &self,
        key: RuntimeKey,
        found: Held,
        held: &mut HashMap<RuntimeKey, Held>,
    ) {
        if self.release(&key, &found).await {
            held.remove(&key);
        } else {
            held.insert(key, found);
        }
    }

    /// Whether nothing is left to do for what was seen. A newer version is seen in its own time.
    async fn release(&self, key: &RuntimeKey, runtime: &Held) -> bool {
        match self.patch(key, runtime).await {
            Ok(()) => {
                tracing::info!(runtime = %key, "removed {LEGACY_FINALIZER}");
                true
            }
            Err(error) if matches!(error.class(), Class::Conflict | Class::Gone) => true,
            Err(error) => {
                tracing::warn!(runtime = %key, %error, "cannot remove {LEGACY_FINALIZER}");
                false
            }
        }
    }

    async fn patch(&self, key: &RuntimeKey, runtime: &Held) -> Result<(), RequestError> {
        self.leader.check()?;
        let path = match key {
            RuntimeKey::Cluster { .. } => ClusterTrainingRuntime::url_path(&(), None),
            RuntimeKey::Namespaced { namespace, .. } => {
                TrainingRuntime::url_path(&(), Some(namespace))
            }
        };
        let freed = json!({"metadata": {
            "uid": runtime.uid,
            "resourceVersion": runtime.resource_version,
            "finalizers": runtime.others,
        }});
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let request = Request::new(path)
            .patch(key.name(), &params, &Patch::Merge(freed))
            .map_err(kube::Error::BuildRequest)?;
        answer::timed(self.client.request_text(request)).await?;
        Ok(())
    }
}
