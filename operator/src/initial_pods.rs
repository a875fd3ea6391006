//! The initial Pod list after a start.
//!
//! Every job that its deadline failed has to be seen released, and after a restart nothing is known of
//! any of them. One list of the running Pods of all JobSets answers for all jobs at once, as far as it is received in
//! time; what it leaves open is asked for job by job.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use tokio::time::{Instant, timeout_at};
use trainjob_api::constants::JOBSET_NAME_LABEL;
use trainjob_core::{facts::Outcome, pass::PodList};
use trainjob_engine::{answer::timed, error::RequestError};

use crate::{cache::Cache, execute::pods::RUNNING};

/// How long work may wait for the list.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pods asked for at once.
const PAGE: u32 = 500;

/// Notes what the list shows of every job that its deadline failed and that has no JobSet.
pub async fn pods(client: &Client, cache: &Cache) {
    let jobs = cache.jobs_where(|job, job_set| {
        let by_deadline = job.finished.is_some_and(|end| end.outcome == Outcome::DeadlineExceeded);
        // While there is a JobSet, what is seen of Pods now says nothing about when it is gone.
        by_deadline && job_set.is_none()
    });
    if jobs.is_empty() {
        return;
    }
    let mut list = PodList::default();
    match timeout_at(Instant::now() + PATIENCE, receive(client, &mut list)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot list all Pods; the others are asked for job by job");
        }
        Err(_) => tracing::info!("listing Pods takes long; the others are asked for job by job"),
    }
    for (key, uid) in &jobs {
        cache.remember(key, Some(uid), |memory| memory.pods_listed(&list, key));
    }
}

/// Receives the list, page by page. What was received when it fails, or is given up, stays.
async fn receive(client: &Client, list: &mut PodList) -> Result<(), RequestError> {
    let api: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    let mut params = ListParams::default().labels(JOBSET_NAME_LABEL).fields(RUNNING).limit(PAGE);
    loop {
        let page = timed(api.list(&params)).await?;
        page.items.iter().for_each(|pod| list.received(&pod.metadata));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            list.ended();
            return Ok(());
        }
    }
}
