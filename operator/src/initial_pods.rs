//! The initial Pod list after a start.
//!
//! Every job that its deadline failed has to be seen released, and after a restart nothing is known of any of them. One
//! list of the running Pods of all JobSets answers for all jobs at once. Everything else goes on meanwhile. What ended a
//! short while ago waits a moment for the list, and is then asked for job by job; what is older waits until the list has
//! ended, so that a hundred thousand old jobs cost no list each.

use std::{
    future::pending,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use tokio::time::sleep;
use trainjob_api::{constants::JOBSET_NAME_LABEL, time::Timestamp};
use trainjob_core::{
    facts::ObjectKey,
    pass::{PodList, PodListUse},
};
use trainjob_engine::{answer::timed, clock::monotonic, error::RequestError};

use crate::{cache::Cache, execute::pods::RUNNING};

/// How long a job that ended a short while ago may wait for the list.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pods asked for at once.
const PAGE: u32 = 500;

/// The jobs that wait for the list.
#[derive(Debug)]
pub struct Awaiting {
    /// When the list was asked for.
    asked: Duration,
    /// Those that wait a moment.
    recent: Vec<(ObjectKey, String)>,
    /// Those that wait until it has ended.
    old: Vec<(ObjectKey, String)>,
}

impl Awaiting {
    /// Those of these jobs of whose Pods nothing is known at `now`, when this process takes over. From here on they wait.
    #[must_use]
    pub fn begin(cache: &Cache, jobs: Vec<ObjectKey>, now: Timestamp) -> Self {
        let (mut recent, mut old) = (Vec::new(), Vec::new());
        for key in jobs {
            let asked = cache.with_job(&key, |job, job_set, pods| {
                (PodListUse::of(job, job_set.is_some(), pods, now), job.uid.clone())
            });
            match asked {
                Some((PodListUse::Moment, uid)) => recent.push((key, uid)),
                Some((PodListUse::Patient, uid)) => old.push((key, uid)),
                Some((PodListUse::None, _)) | None => {}
            }
        }
        let asked = monotonic();
        for (key, uid) in recent.iter().chain(&old) {
            cache.remember(key, Some(uid), |memory| memory.pod_list_asked(asked));
        }
        Self { asked, recent, old }
    }

    /// Asks for the list, and hands every job to `wake` once it is known of it or it waits no longer.
    pub async fn end(self, client: &Client, cache: &Cache, wake: impl Fn(ObjectKey)) {
        let Self { asked, recent, old } = self;
        if recent.is_empty() && old.is_empty() {
            return;
        }
        let list = Mutex::new(PodList::default());
        let tell = |jobs: &[(ObjectKey, String)]| {
            let list = list.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, uid) in jobs {
                cache.remember(key, Some(uid), |memory| memory.pods_listed(asked, &list, key));
                wake(key.clone());
            }
        };
        let moment = async {
            sleep(PATIENCE).await;
            if !recent.is_empty() {
                tracing::info!("listing Pods takes long; jobs that ended lately ask for their own");
            }
            tell(&recent);
            pending::<()>().await;
        };
        tokio::select! {
            listed = receive(client, &list) => if let Err(error) = listed {
                tracing::warn!(%error, "cannot list all Pods; the others are asked for job by job");
            },
            () = moment => {}
        }
        // Those that have been told already have a check of their own, or know.
        tell(&recent);
        tell(&old);
    }
}

/// Receives the list, page by page. What was received when it fails, or is given up, stays.
async fn receive(client: &Client, list: &Mutex<PodList>) -> Result<(), RequestError> {
    let api: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    let mut params = ListParams::default().labels(JOBSET_NAME_LABEL).fields(RUNNING).limit(PAGE);
    loop {
        let page = timed(api.list(&params)).await?;
        let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
        page.items.iter().for_each(|pod| list.received(&pod.metadata));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            list.ended();
            return Ok(());
        }
    }
}
