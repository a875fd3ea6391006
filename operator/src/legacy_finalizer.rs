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
use trainjob_core::runtime::{RuntimeKey, without_legacy_finalizer};

use crate::{
    answer,
    error::{Class, RequestError},
};

/// How long before what failed is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Takes in runtimes as the watches see them.
#[derive(Debug, Clone)]
pub struct Finder(mpsc::UnboundedSender<Held>);

/// Removes the finalizer from the runtimes that have it.
pub struct Remover {
    client: Client,
    found: mpsc::UnboundedReceiver<Held>,
}

/// A runtime that has the finalizer.
#[derive(Debug)]
struct Held {
    key: RuntimeKey,
    uid: Option<String>,
    resource_version: Option<String>,
    /// The finalizers it may keep.
    others: Vec<String>,
}

/// What finds runtimes that have the finalizer, and what removes it from them.
#[must_use]
pub fn channel(client: Client) -> (Finder, Remover) {
    let (finder, found) = mpsc::unbounded_channel();
    (Finder(finder), Remover { client, found })
}

impl Finder {
    /// Looks at a runtime.
    pub fn look(&self, key: RuntimeKey, metadata: &ObjectMeta) {
        let Some(others) = without_legacy_finalizer(metadata) else { return };
        let (uid, resource_version) = (metadata.uid.clone(), metadata.resource_version.clone());
        // It cannot be taken in any more when the operator ends.
        let _ = self.0.send(Held { key, uid, resource_version, others });
    }
}

impl Remover {
    /// Removes the finalizer from what is found, until nothing can be found any more.
    pub async fn run(mut self) {
        let mut held = HashMap::new();
        loop {
            let found = tokio::select! {
                found = self.found.recv() => found,
                () = sleep(AGAIN), if !held.is_empty() => None,
            };
            match found {
                Some(found) => {
                    let key = found.key.clone();
                    if !self.release(&found).await {
                        held.insert(key, found);
                    }
                }
                None if self.found.is_closed() => return,
                None => self.try_again(&mut held).await,
            }
        }
    }

    async fn try_again(&self, held: &mut HashMap<RuntimeKey, Held>) {
        for runtime in std::mem::take(held).into_values() {
            if !self.release(&runtime).await {
                held.insert(runtime.key.clone(), runtime);
            }
        }
    }

    /// Whether nothing is left to do for what was seen. A newer version is seen in its own time.
    async fn release(&self, runtime: &Held) -> bool {
        match self.patch(runtime).await {
            Ok(()) => {
                tracing::info!(runtime = %runtime.key, "removed {LEGACY_FINALIZER}");
                true
            }
            Err(error) if matches!(error.class(), Class::Conflict | Class::Gone) => true,
            Err(error) => {
                tracing::warn!(runtime = %runtime.key, %error, "cannot remove {LEGACY_FINALIZER}");
                false
            }
        }
    }

    async fn patch(&self, runtime: &Held) -> Result<(), RequestError> {
        let path = match &runtime.key {
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
            .patch(runtime.key.name(), &params, &Patch::Merge(freed))
            .map_err(kube::Error::BuildRequest)?;
        answer::timed(self.client.request_text(request)).await?;
        Ok(())
    }
}
