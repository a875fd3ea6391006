//! Whether a TrainJob that its deadline failed is released: no JobSet of it exists, and no Pod that one made runs
//! (`docs/retention.md`, R13; `docs/semantics.md`, 4).
//!
//! The JobSet is asked for first. While it is there it may make Pods, so only a list that follows its end counts.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::ListParams};
use trainjob_api::{
    constants::{JOBSET_NAME_LABEL, JOBSET_UID_LABEL},
    jobset::JobSet,
};
use trainjob_core::{facts::ObjectKey, running_pods::Maker};
use trainjob_engine::{
    answer::timed,
    controller::Passed,
    error::RequestError,
    shares::{Flow, Operation, Verb},
};
use trainjob_process::server_time::boot_time;
use trainjob_retention_core::{plan::Release, uid::Uid};

use super::{Place, Remover, requests};
use crate::{
    cluster_state::{Resource, Right, Verb as RightVerb},
    key::Key,
};

/// The question whether a TrainJob is released.
const ASK_RELEASE: Operation = Operation { verb: Verb::Get, kind: "jobsets" };
/// Pods that run.
const RUNNING: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// How long it is until another try, where there was no answer.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How many Pods are asked for at a time. Normally there is none.
const PAGE: u32 = 100;

impl Remover {
    /// Asks whether the TrainJob with this UID is released. `None` if the state knows it then.
    pub(super) async fn ask_release(&self, key: &Key, uid: &Uid, place: &Place) -> Option<Passed> {
        let namespace = Arc::clone(&key.object.namespace);
        if !place.enter(&Flow { namespace, operation: ASK_RELEASE }) {
            return Some(Passed::WaitsFor(ASK_RELEASE));
        }
        let answer = ask(&self.client, &key.object, uid);
        match place.ask().answer(answer).await.flatten() {
            Ok(answer) => {
                let now = self.clock.now();
                let effects = self.state().release_answered(key, uid, answer, now, boot_time());
                self.apply(effects);
                None
            }
            Err(error) => {
                tracing::debug!(object = %key.object, %error, "cannot ask whether it is released");
                if requests::is_forbidden(&error) {
                    let now = self.clock.now();
                    self.state().release_refused(key, &rights(), now, boot_time());
                }
                self.queue.retry(key, Some(ASK_AGAIN));
                Some(Passed::Failed)
            }
        }
    }
}

/// What is needed to ask.
pub(super) fn rights() -> Vec<Right> {
    let right = |group: &str, name: &str, verb| {
        let resource = Resource { group: group.into(), name: name.into() };
        Right { resource, verb }
    };
    vec![right("jobset.x-k8s.io", "jobsets", RightVerb::Get), right("", "pods", RightVerb::List)]
}

/// Whether the TrainJob with this UID is released.
pub(crate) async fn ask(
    client: &Client,
    job: &ObjectKey,
    uid: &Uid,
) -> Result<Release, RequestError> {
    let job_sets: Api<JobSet> = Api::namespaced(client.clone(), &job.namespace);
    let foreign = match timed(job_sets.get_metadata(&job.name)).await {
        Ok(job_set) if is_controlled_by(&job_set.metadata, uid) => return Ok(Release::Pending),
        Ok(job_set) => job_set.metadata.uid,
        Err(error) if error.says_absent() => None,
        Err(error) => return Err(error),
    };
    let runs = runs_pods(client, job, foreign.as_deref()).await?;
    Ok(if runs { Release::Pending } else { Release::Done })
}

/// Whether a Pod runs that a JobSet of the job made. `foreign` is the UID of a JobSet of its name that is not the job's.
async fn runs_pods(
    client: &Client,
    job: &ObjectKey,
    foreign: Option<&str>,
) -> Result<bool, RequestError> {
    let mut labels = format!("{JOBSET_NAME_LABEL}={}", job.name);
    if let Some(foreign) = foreign {
        labels = format!("{labels},{JOBSET_UID_LABEL}!={foreign}");
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &job.namespace);
    let mut params = ListParams::default().labels(&labels).fields(RUNNING).limit(PAGE);
    loop {
        let page = timed(pods.list_metadata(&params)).await?;
        let counts = |metadata: &ObjectMeta| Maker::of(metadata, foreign) == Maker::JobSet;
        if page.items.iter().any(|pod| counts(&pod.metadata)) {
            return Ok(true);
        }
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(false);
        }
    }
}

pub(super) fn is_controlled_by(object: &ObjectMeta, uid: &Uid) -> bool {
    let mut owners = object.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && Uid::from(owner.uid.as_str()) == *uid)
}

#[cfg(test)]
mod tests;
