//! The first look at Pods after a start.
//!
//! Every job that its deadline failed has to be seen released, and after a restart nothing is known of
//! any of them. One list of the running Pods of all JobSets answers for all jobs at once; what it
//! leaves open is asked for job by job.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use trainjob_api::constants::JOBSET_NAME_LABEL;
use trainjob_core::{
    facts::{ObjectKey, Outcome},
    observed::Reading,
};

use crate::{
    cache::Cache,
    error::RequestError,
    execute::{RUNNING, timed},
};

/// Pods asked for at once.
const PAGE: u32 = 500;

/// Notes for every job that its deadline failed and of whose name no Pod runs that its Pods are gone.
///
/// # Errors
///
/// When the Pods cannot be listed. Nothing is noted then, and each job is asked for by itself.
pub async fn pods(client: &Client, cache: &Cache) -> Result<(), RequestError> {
    let deadline = |outcome| outcome == Outcome::DeadlineExceeded;
    let jobs = cache.jobs_where(|job| job.finished.is_some_and(|end| deadline(end.outcome)));
    if jobs.is_empty() {
        return Ok(());
    }
    let running = running(client).await?;
    for key in jobs.iter().filter(|key| !running.contains(*key)) {
        if let Some(uid) = cache.with_job(key, |job, _| job.uid.clone()) {
            cache.read(key, &uid, |readings| readings.pods = Reading::Absent);
        }
    }
    Ok(())
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
            Some(ObjectKey { namespace: pod.metadata.namespace?, name })
        }));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(running),
        }
    }
}
