//! Deletes the Pods of objects before the objects (`docs/retention.md`, R22).
//!
//! Two things are asked of the API server. Before anything of a kind is judged, one list of metadata in all namespaces says
//! which objects have Pods at all. When the Pods of an object are due, a list by the label of its kind says which they are;
//! each is then deleted by itself, with its own UID and version. A pass deletes some, and asks before each of them whether
//! it still may.

use std::{convert::Infallible, sync::Arc, time::Duration};

use kube::{Api, Client, api::ListParams, core::Request};
use serde::Deserialize;
use tokio::time::{sleep, sleep_until};
use trainjob_api::{constants::JOBSET_NAME_LABEL, jobset::JobSet, time::Timestamp};
use trainjob_core::facts::ObjectKey;
use trainjob_engine::{
    answer::timed,
    controller::Passed,
    error::RequestError,
    jitter,
    shares::{Flow, Operation, Verb},
};
use trainjob_process::server_time::boot_time;
use trainjob_retention_core::{
    metadata::Metadata,
    plan::PodAct,
    pod_label::PodLabelValue,
    policy::{Phases, Propagation},
};

use super::{
    Place, Remover, collection, events,
    release::{self, is_controlled_by},
    requests::{self, Fence},
    served::Served,
};
use crate::{
    cluster_state::{PodHints, PodsDeletion, PodsLeft, PodsReply, PodsToList, Reply, Right},
    key::Key,
    second::next_second,
};

/// The question which Pods an object has.
const LIST_PODS: Operation = Operation { verb: Verb::List, kind: "pods" };
/// The deletion of one.
const DELETE_POD: Operation = Operation { verb: Verb::Delete, kind: "pods" };
/// Pods that have ended.
const ENDED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";
/// Pods that have not.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// How many Pods of an object are asked for at a time.
const PAGE: u32 = 100;
/// How many Pods of all objects are asked for at a time.
const LARGE_PAGE: u32 = 500;
/// First and longest wait before all Pods are listed again after that failed: it is a large list.
const LIST_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How many Pods a pass deletes at most.
const AT_ONCE: usize = 20;
/// How long it is until another look when a request has no turn, or the time is not known.
const NO_TURN: Duration = Duration::from_secs(1);

/// Pods of an object.
#[derive(Debug, Default)]
struct Found {
    /// The first that are to be deleted now: names and fences.
    due: Vec<(String, Fence)>,
    /// Whether there are more of them.
    more: bool,
    /// Whether there are some that may not go yet.
    later: bool,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    /// `null` if there are none: so the API server writes a list of metadata.
    items: Option<Vec<Item>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

impl Remover {
    /// Lists the Pods of kinds whose rules ask for that, while this process leads, for ever.
    pub async fn list_pods(&self) -> Infallible {
        let mut wait = LIST_AGAIN.0;
        loop {
            sleep_until(next_second()).await;
            if !self.leader.holds() {
                continue;
            }
            let lists = self.state().pods_to_list();
            let mut has_failed = false;
            for list in lists {
                let hints = self.hints(&list).await;
                has_failed |= hints.is_none();
                let effects = self.state().pods_listed(&list, hints.as_ref());
                self.apply(effects);
            }
            if has_failed {
                sleep(jitter(wait)).await;
                wait = wait.saturating_mul(2).min(LIST_AGAIN.1);
            } else {
                wait = LIST_AGAIN.0;
            }
        }
    }

    /// Which objects have Pods; `None`: that has to be asked again.
    async fn hints(&self, list: &PodsToList) -> Option<PodHints> {
        match hints(&self.client, list).await {
            Ok(hints) => Some(hints),
            // Pods are listed anew once the right is given. Until then nothing is deleted.
            Err(error)
                if requests::is_forbidden(&error)
                    && self.state().pods_list_refused(boot_time()) =>
            {
                Some(PodHints::default())
            }
            Err(error) => {
                tracing::warn!(%error, "cannot list Pods; trying again");
                None
            }
        }
    }

    /// Deletes the Pods of an object that are due, or some of them.
    pub(super) async fn delete_pods(
        &self,
        key: &Key,
        deletion: &PodsDeletion,
        place: &Place,
    ) -> Passed {
        let Some(served) = self.target(key.target) else { return Passed::Gone };
        if !place.enter(&flow(key, LIST_PODS)) {
            return Passed::WaitsFor(LIST_PODS);
        }
        let Some(now) = self.clock.now().reached() else {
            self.queue.retry(key, Some(NO_TURN));
            return Passed::Postponed;
        };
        let found = self.find_pods(key, &served, deletion, now);
        let found = place.ask().answer(found).await.flatten();
        let reply = match found {
            Ok(Some(found)) => self.delete_found(key, &served, deletion, found, place).await,
            Ok(None) => PodsReply { deleted: 0, left: PodsLeft::Unknown(Reply::Conflict) },
            Err(error) => {
                self.pods_failed(key, &served, deletion, &error);
                PodsReply { deleted: 0, left: PodsLeft::Unknown(requests::reply(&error)) }
            }
        };
        let replied = self.state().pods_replied(key, &deletion.of.uid, reply, boot_time());
        self.apply(replied.effects);
        self.queue.retry(key, replied.wait);
        if replied.told > 0 {
            self.record(events::pods_deleted(key, &served, &deletion.of, replied.told));
        }
        match reply.left {
            PodsLeft::Unknown(_) => Passed::Failed,
            PodsLeft::None | PodsLeft::Due | PodsLeft::Later => Passed::Settled,
        }
    }

    async fn delete_found(
        &self,
        key: &Key,
        served: &Served,
        deletion: &PodsDeletion,
        found: Found,
        place: &Place,
    ) -> PodsReply {
        let mut deleted = 0;
        for (name, fence) in found.due {
            let now = self.clock.now();
            if !self.state().may_delete_pods(key, deletion, now, boot_time()) {
                // Whatever it is now is found out by the next look.
                return PodsReply { deleted, left: PodsLeft::Due };
            }
            if !place.enter_soon(&flow(key, DELETE_POD)).await {
                let reply = Reply::Throttled(NO_TURN);
                return PodsReply { deleted, left: PodsLeft::Unknown(reply) };
            }
            let sent = self.send_pod(key, &name, fence);
            match place.ask().answer(sent).await.flatten() {
                Ok(()) => {
                    deleted += 1;
                    let kind = &served.target.kind;
                    self.metrics.pod_deleted(kind, &deletion.of, self.clock.likely());
                }
                Err(error) if error.says_absent() => {}
                Err(error) => {
                    self.pods_failed(key, served, deletion, &error);
                    let reply = requests::reply(&error);
                    return PodsReply { deleted, left: PodsLeft::Unknown(reply) };
                }
            }
        }
        let left = match (found.more, found.later) {
            (true, _) => PodsLeft::Due,
            (false, true) => PodsLeft::Later,
            (false, false) => PodsLeft::None,
        };
        PodsReply { deleted, left }
    }

    async fn send_pod(&self, key: &Key, name: &str, fence: Fence) -> Result<(), RequestError> {
        self.leader.check()?;
        let path = collection("", "v1", "pods").in_namespace(&key.object.namespace);
        // A Pod has no dependents.
        requests::delete_fenced(&self.client, &path, name, fence, Propagation::Background).await
    }

    fn pods_failed(
        &self,
        key: &Key,
        served: &Served,
        deletion: &PodsDeletion,
        error: &RequestError,
    ) {
        self.metrics.failed(&served.target.kind, error);
        tracing::debug!(object = %key.object, %error, "its Pods are not deleted");
        if requests::is_forbidden(error) {
            let mut rights = Right::to_delete_pods();
            if deletion.pods.stage.label.value() == PodLabelValue::JobSetUid {
                rights.extend(release::rights());
            }
            self.state().refused(key, rights, boot_time());
        }
        if let Some(event) = events::pods_failed(key, served, &deletion.of, error) {
            self.record(event);
        }
    }

    /// The Pods that go; `None` if the object has another version than was planned with, of which the watch will tell. A
    /// hold of the object holds its Pods, too (R32), and the fence of a Pod does not see it.
    async fn find_pods(
        &self,
        key: &Key,
        served: &Served,
        deletion: &PodsDeletion,
        now: Timestamp,
    ) -> Result<Option<Found>, RequestError> {
        if !served.target.pods {
            return Err(RequestError::Unbuildable(
                "the configuration lets no Pods be deleted".into(),
            ));
        }
        let Some(version) = &served.version else {
            return Err(RequestError::Unbuildable("the kind is not served".into()));
        };
        let found = find(&self.client, &key.object, deletion, now).await?;
        if found.due.is_empty() {
            return Ok(Some(found));
        }
        let objects = collection(&served.target.api_group, version, &served.target.resource);
        let objects = objects.in_namespace(&key.object.namespace);
        let current = requests::fence_of(&self.client, &objects, &key.object.name).await?;
        Ok(current.is_some_and(|it| it == Fence::of(&deletion.of)).then_some(found))
    }
}

fn flow(key: &Key, operation: Operation) -> Flow {
    Flow { namespace: Arc::clone(&key.object.namespace), operation }
}

/// The Pods of an object that go before it.
async fn find(
    client: &Client,
    object: &ObjectKey,
    deletion: &PodsDeletion,
    now: Timestamp,
) -> Result<Found, RequestError> {
    let PodsDeletion { of, pods } = deletion;
    let label = pods.stage.label;
    let value = match label.value() {
        PodLabelValue::Uid => of.uid.to_string(),
        PodLabelValue::Name => object.name.to_string(),
        PodLabelValue::JobSetUid => match job_set(client, object, deletion).await? {
            Some(uid) => uid,
            None => return Ok(Found::default()),
        },
    };
    let path = collection("", "v1", "pods").in_namespace(&object.namespace).to_string();
    let params = ListParams::default().labels(&format!("{}={value}", label.key())).limit(PAGE);
    let mut found = Found::default();
    let in_phases = match pods.stage.phases {
        Phases::Terminal => params.clone().fields(ENDED),
        Phases::All => params.clone(),
    };
    pages(client, &path, in_phases, |pod| {
        match pods.act(&pod, &of.uid, now) {
            PodAct::Leave => {}
            PodAct::Hold(_) => found.later = true,
            PodAct::Delete if found.due.len() >= AT_ONCE => found.more = true,
            PodAct::Delete => {
                let Metadata { name, uid, resource_version, .. } = pod;
                found.due.push((name, Fence { uid, resource_version }));
            }
        }
        !found.more
    })
    .await?;
    if pods.stage.phases == Phases::Terminal && !found.more && !found.later {
        // Those that run may end later.
        pages(client, &path, params.fields(NOT_ENDED), |pod| {
            found.later |= pods.act(&pod, &of.uid, now) != PodAct::Leave;
            !found.later
        })
        .await?;
    }
    Ok(found)
}

/// The UID of the JobSet that a TrainJob has made, if it is there.
async fn job_set(
    client: &Client,
    job: &ObjectKey,
    deletion: &PodsDeletion,
) -> Result<Option<String>, RequestError> {
    let job_sets: Api<JobSet> = Api::namespaced(client.clone(), &job.namespace);
    match timed(job_sets.get_metadata(&job.name)).await {
        Ok(found) if is_controlled_by(&found.metadata, &deletion.of.uid) => Ok(found.metadata.uid),
        Ok(_) => Ok(None),
        Err(error) if error.says_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Which objects may have Pods.
async fn hints(client: &Client, list: &PodsToList) -> Result<PodHints, RequestError> {
    let mut hints = PodHints::default();
    let (key, value) = (list.label.key(), list.label.value());
    let named = match value {
        PodLabelValue::Uid | PodLabelValue::Name => key,
        PodLabelValue::JobSetUid => JOBSET_NAME_LABEL,
    };
    let path = collection("", "v1", "pods").to_string();
    let params = ListParams::default().labels(key).limit(LARGE_PAGE);
    pages(client, &path, params, |pod| {
        if let (Some(text), None) = (pod.labels.get(named), &pod.deletion_timestamp) {
            hints.add(value, &pod.namespace, text);
        }
        true
    })
    .await?;
    Ok(hints)
}

/// Hands on the metadata of Pods, as long as `take` wants more.
async fn pages(
    client: &Client,
    path: &str,
    mut params: ListParams,
    mut take: impl FnMut(Metadata) -> bool,
) -> Result<(), RequestError> {
    loop {
        let request = Request::new(path).list_metadata(&params);
        let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
        let page: Page = timed(client.request(request)).await?;
        for item in page.items.unwrap_or_default() {
            if !take(item.metadata) {
                return Ok(());
            }
        }
        params.continue_token = page.metadata.next.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
