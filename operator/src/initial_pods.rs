//! The initial Pod list after a start.
//!
//! Every job that its deadline failed has to be seen released, and after a restart nothing is known of
//! any of them. One list of the running Pods of all JobSets answers for all jobs at once; what it
//! leaves open is asked for job by job.

use std::{collections::HashSet, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use trainjob_api::constants::JOBSET_NAME_LABEL;
use trainjob_core::{
    facts::{ObjectKey, Outcome},
    pass::JobMemory,
};
use trainjob_engine::{answer::timed, error::RequestError};

use crate::{cache::Cache, execute::RUNNING};

/// How long work may wait for the list.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pods asked for at once.
const PAGE: u32 = 500;

/// Notes that the Pods are gone for every job that its deadline failed, that has no JobSet, and of whose
/// name no Pod runs.
///
/// Gives up when the list cannot be had in time; then each job is asked for by itself.
pub async fn pods(client: &Client, cache: &Cache) {
    let jobs = cache.jobs_where(|job, job_set| {
        let by_deadline = job.finished.is_some_and(|end| end.outcome == Outcome::DeadlineExceeded);
        // While there is a JobSet, what is seen of Pods now says nothing about when it is gone.
        by_deadline && job_set.is_none()
    });
    if jobs.is_empty() {
        return;
    }
    match tokio::time::timeout(PATIENCE, running(client)).await {
        Ok(Ok(running)) => {
            for (key, uid) in jobs.iter().filter(|(key, _)| !running.contains(key)) {
                cache.remember(key, Some(uid), JobMemory::no_pods_run);
            }
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot list Pods; each job is asked for by itself");
        }
        Err(_) => tracing::info!("listing Pods takes long; each job is asked for by itself"),
    }
}

/// Namespaces and names of the JobSets that Pods are running of.
async fn running(client: &Client) -> Result<HashSet<ObjectKey>, RequestError> {
    let api: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    let mut params = ListParams::default().labels(JOBSET_NAME_LABEL).fields(RUNNING).limit(PAGE);
    let mut running = HashSet::new();
    loop {
        let page = timed(api.list(&params)).await?;
        running.extend(page.items.into_iter().filter_map(|pod| {
            let labels = pod.metadata.labels?;
            let name = labels.get(JOBSET_NAME_LABEL)?.clone();
            Some(ObjectKey { namespace: pod.metadata.namespace?.into(), name: name.into() })
        }));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(running),
        }
    }
}
