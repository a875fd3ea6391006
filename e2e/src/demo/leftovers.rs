//! What is left in a namespace when everything should be gone.

use std::time::Duration;

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, ResourceExt};

use crate::testenv::until::until_ok;

/// How long the garbage collector may take for the last objects.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many kinds are listed at a time.
const AT_ONCE: usize = 8;

/// Every object of a namespace that is left, such as `Pod a`, of whatever kind the API server
/// knows. Waits for the last of them to go.
pub async fn find(client: &Client, namespace: &str) -> Result<Vec<String>> {
    let kinds = kinds(client).await?;
    let last = std::sync::Mutex::new(Vec::new());
    let gone = until_ok("nothing is left", PATIENCE, || async {
        let left = list(client, namespace, &kinds).await?;
        let count = left.len();
        if let Ok(mut last) = last.lock() {
            *last = left;
        }
        if count > 0 {
            bail!("{count} objects are left");
        }
        Ok(())
    })
    .await;
    let left = last.into_inner().unwrap_or_default();
    // Nothing in the list, and yet not gone: they could not even be listed.
    if left.is_empty() { gone.map(|()| left) } else { Ok(left) }
}

/// The kinds of which a namespace can have objects.
async fn kinds(client: &Client) -> Result<Vec<ApiResource>> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let all = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let listed = all.filter(|(kind, can)| {
        // Events tell of what was, and go by themselves.
        can.scope == Scope::Namespaced
            && can.supports_operation(verbs::LIST)
            && kind.kind != "Event"
    });
    Ok(listed.map(|(kind, _)| kind).collect())
}

async fn list(client: &Client, namespace: &str, kinds: &[ApiResource]) -> Result<Vec<String>> {
    let lists = stream::iter(kinds)
        .map(|kind| async move {
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, kind);
            let objects = api.list_metadata(&ListParams::default()).await?;
            let names = objects.items.into_iter().map(|object| object.name_any());
            let left = names.filter(|name| !belongs(&kind.kind, name));
            anyhow::Ok(left.map(|name| format!("{} {name}", kind.kind)).collect::<Vec<_>>())
        })
        .buffered(AT_ONCE);
    Ok(lists.try_collect::<Vec<_>>().await?.concat())
}

/// Whether an object is part of every namespace, or of what was applied to this one.
fn belongs(kind: &str, name: &str) -> bool {
    match kind {
        "ConfigMap" => name == "kube-root-ca.crt",
        "ServiceAccount" => name == "default",
        // No TrainJob owns a runtime, and a record is what stays of a TrainJob.
        "TrainingRuntime" | "TrainJobRecord" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_exclude_objects_of_the_namespace_itself() {
        assert!(belongs("ConfigMap", "kube-root-ca.crt"));
        assert!(belongs("ServiceAccount", "default"));
        assert!(belongs("TrainJobRecord", "my-training-3f2a9c1e"));
        assert!(!belongs("ConfigMap", "my-training-runtime-snapshot"));
        assert!(!belongs("Pod", "default"));
    }
}
