//! Pods with our finalizer and without one of our labels (`docs/accounting.md`, AH7): no watch shows whose they are, so they
//! are looked for. Those whose labels can name no TrainJob, which the watch shows, are released in the same way.
//!
//! Somebody took their labels while no program watched, or before it was known what their record says; or an operator that
//! does not know them took them from the template of a suspended JobSet, in which the finalizer stays. Nobody knows which
//! record they belong to, so they are released without being counted.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
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
    fair::{self, Cut, Round},
    key::PodKey,
    metrics::LostReason,
    requests::{Annotation, is_gone, release as release_pod},
};

/// How long until they are looked for again, at least.
const SOONEST: Duration = Duration::from_mins(2);
/// And at most.
const LATEST: Duration = Duration::from_hours(1);
/// In between, as many times as long as it took: a cluster with a hundred thousand Pods that are not marked takes seconds.
const SHARE: u32 = 100;
/// How long until the next try after one that failed, and after a Pod has left.
const AGAIN: Duration = Duration::from_secs(30);

/// Releases them whenever this process leads: at the start, every two minutes or with a hundredth of its time, and after a
/// Pod has left the watch with our finalizer.
pub async fn release(accountant: Arc<Accountant>) -> Infallible {
    loop {
        accountant.leader.granted().await;
        let begun = Instant::now();
        let wait = match unlabelled(&accountant.client).await {
            Ok(found) => {
                let took = begun.elapsed();
                let all_released = release_all(&accountant, found).await;
                until_next(took, if all_released { SOONEST } else { AGAIN })
            }
            Err(error) => {
                tracing::warn!(%error, "cannot look for Pods that have lost our labels");
                until_next(begun.elapsed(), AGAIN).min(SOONEST)
            }
        };
        tokio::select! {
            () = sleep(wait) => {}
            // Most of them are counted and released before this is over.
            () = accountant.lost_labels.notified() => sleep(AGAIN).await,
        }
    }
}

/// Releases those whose labels can name no TrainJob, as the watch shows them, whenever this process leads.
pub async fn release_nameless(accountant: Arc<Accountant>) -> Infallible {
    loop {
        accountant.leader.granted().await;
        let held = accountant.book().nameless.held();
        release_all(&accountant, held).await;
        sleep(AGAIN).await;
    }
}

/// How long to wait after a search that took so long, at least so long.
fn until_next(took: Duration, soonest: Duration) -> Duration {
    took.saturating_mul(SHARE).clamp(soonest, LATEST)
}

/// Whether none of them is left.
async fn release_all(accountant: &Accountant, found: impl IntoIterator<Item = PodKey>) -> bool {
    let release = |pod| release_one(accountant, pod);
    let round = fair::round(found, |pod| &pod.namespace, release, Cut::OnlySlowLeft);
    let Round { ended, is_cut } = round.await;
    let error = ended.into_iter().find_map(Result::err);
    if let Some(error) = &error {
        tracing::warn!(%error, "cannot release Pods whose labels name no TrainJob");
    }
    error.is_none() && !is_cut
}

async fn release_one(accountant: &Accountant, pod: PodKey) -> Result<(), RequestError> {
    accountant.leader.check()?;
    let PodKey { namespace, name, uid } = &pod;
    let pods: Api<Pod> = Api::namespaced(accountant.client.clone(), namespace);
    match release_pod(&pods, name, uid, Annotation::Unset).await {
        Ok(_) => {
            tracing::warn!(
                namespace,
                pod = name,
                uid,
                "a Pod is not counted: its labels name no TrainJob, so nobody knows which it belonged to"
            );
            accountant.metrics.lost(LostReason::Unlabelled);
        }
        Err(error) if is_gone(&error) => {}
        Err(error) => return Err(error),
    }
    accountant.book().nameless.forget(uid);
    Ok(())
}

/// The Pods of JobSets that have our finalizer, and of our labels not both.
///
/// # Errors
///
/// What a request fails with.
pub async fn unlabelled(client: &Client) -> Result<BTreeSet<PodKey>, RequestError> {
    let without_uid = format!("{JOBSET_UID_LABEL},!{TRAIN_JOB_UID_LABEL}");
    let without_name = format!("{JOBSET_UID_LABEL},{TRAIN_JOB_UID_LABEL},!{TRAIN_JOB_NAME_LABEL}");
    let mut found = held(client, &without_uid).await?;
    found.extend(held(client, &without_name).await?);
    Ok(found)
}

/// Those of the Pods with these labels that have our finalizer.
async fn held(client: &Client, labels: &str) -> Result<BTreeSet<PodKey>, RequestError> {
    let url = Pod::url_path(&(), None);
    let mut found = BTreeSet::new();
    let take = |text: &str| {
        let Ok(pod) = stripped::read_view::<PartialObjectMeta<Pod>>(text) else { return };
        if pod.finalizers().iter().any(|finalizer| finalizer == ACCOUNTING_FINALIZER) {
            found.insert(PodKey::of(&pod.metadata));
        }
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
