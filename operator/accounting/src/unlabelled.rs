//! Pods with our finalizer and without one of our labels (`docs/accounting.md`, AH7): no watch shows whose they are, so they
//! are looked for.
//!
//! Somebody took their labels while no program watched, or before it was known what their record says; or an operator that
//! does not know them took them from the template of a suspended JobSet, in which the finalizer stays. Nobody knows which
//! record they belong to, so they are released without being counted.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{ListParams, PartialObjectMeta, Request},
};
use tokio::time::{Instant, sleep};
use trainjob_api::{
    constants::JOBSET_UID_LABEL,
    lifecycle::v1alpha1::{ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL},
};
use trainjob_engine::{error::RequestError, list, stripped};

use crate::{
    accountant::Accountant,
    metrics::LostReason,
    requests::{Annotation, release as release_pod},
};

/// How long until they are looked for again, at least.
const SOONEST: Duration = Duration::from_mins(2);
/// And at most.
const LATEST: Duration = Duration::from_hours(1);
/// In between, as many times as long as it took: a cluster with a hundred thousand Pods that are not marked takes seconds.
const SHARE: u32 = 100;
/// How long until the next try after one that failed, and after a Pod has left.
const AGAIN: Duration = Duration::from_secs(30);
/// How many are released at once.
const AT_ONCE: usize = 16;

/// Releases them whenever this process leads: at the start, every two minutes or with a hundredth of its time, and after a
/// Pod has left the watch with our finalizer.
pub async fn release(accountant: Arc<Accountant>) -> Infallible {
    loop {
        accountant.leader.granted().await;
        let begun = Instant::now();
        let wait = match unlabelled(&accountant.client).await {
            Ok(found) => {
                let took = begun.elapsed();
                match release_all(&accountant, found).await {
                    Ok(()) => until_next(took, SOONEST),
                    Err(error) => {
                        tracing::warn!(%error, "cannot release Pods that have lost our labels");
                        until_next(took, AGAIN)
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot look for Pods that have lost our labels");
                AGAIN
            }
        };
        tokio::select! {
            () = sleep(wait) => {}
            // Most of them are counted and released before this is over.
            () = accountant.lost_labels.notified() => sleep(AGAIN).await,
        }
    }
}

/// How long to wait after a search that took so long, at least so long.
fn until_next(took: Duration, soonest: Duration) -> Duration {
    took.saturating_mul(SHARE).clamp(soonest, LATEST)
}

async fn release_all(
    accountant: &Accountant,
    found: Vec<PartialObjectMeta<Pod>>,
) -> Result<(), RequestError> {
    let releases = found.into_iter().map(|pod| async move {
        accountant.leader.check()?;
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let pods: Api<Pod> = Api::namespaced(accountant.client.clone(), &namespace);
        let uid = pod.uid().unwrap_or_default();
        match release_pod(&pods, &name, &uid, Annotation::Unset).await {
            Ok(_) => {
                tracing::warn!(
                    namespace, pod = name, uid,
                    "a Pod is not counted: somebody took its labels, so nobody knows which TrainJob it belonged to"
                );
                accountant.metrics.lost(LostReason::Unlabelled);
                Ok(())
            }
            Err(error) if error.says_absent() => Ok(()),
            Err(error) => Err(error),
        }
    });
    let results: Vec<_> = stream::iter(releases).buffer_unordered(AT_ONCE).collect().await;
    results.into_iter().collect()
}

/// The Pods of JobSets that have our finalizer, and of our labels not both.
///
/// # Errors
///
/// What a request fails with.
pub async fn unlabelled(client: &Client) -> Result<Vec<PartialObjectMeta<Pod>>, RequestError> {
    let without_uid = format!("{JOBSET_UID_LABEL},!{TRAIN_JOB_UID_LABEL}");
    let without_name = format!("{JOBSET_UID_LABEL},{TRAIN_JOB_UID_LABEL},!{TRAIN_JOB_NAME_LABEL}");
    let mut found = held(client, &without_uid).await?;
    found.extend(held(client, &without_name).await?);
    Ok(found)
}

/// Those of the Pods with these labels that have our finalizer.
async fn held(client: &Client, labels: &str) -> Result<Vec<PartialObjectMeta<Pod>>, RequestError> {
    let url = Pod::url_path(&(), None);
    let mut found = Vec::new();
    let take = |text: &str| {
        let Ok(pod) = stripped::read_view::<PartialObjectMeta<Pod>>(text) else { return };
        let is_held = pod.finalizers().iter().any(|finalizer| finalizer == ACCOUNTING_FINALIZER);
        // Of the rest nothing is needed, and it may be long.
        let ObjectMeta { name, namespace, uid, .. } = pod.metadata;
        let metadata = ObjectMeta { name, namespace, uid, ..ObjectMeta::default() };
        found.extend(
            is_held.then(|| PartialObjectMeta { metadata, ..PartialObjectMeta::default() }),
        );
    };
    let request = |params: &ListParams| Request::new(&*url).list_metadata(params);
    list::each(client, ListParams::default().labels(labels), request, take).await?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ah7_a_search_is_repeated_soon_unless_it_is_expensive() {
        for (took, expected) in [(0, 120), (1, 120), (10, 1_000), (60, 3_600)] {
            let expected = Duration::from_secs(expected);
            assert_eq!(until_next(Duration::from_secs(took), SOONEST), expected, "{took} s");
        }
    }
}
