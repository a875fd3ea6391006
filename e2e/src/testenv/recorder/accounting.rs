//! Somebody who writes down every version of marked Pods and of records, for the judge of the accounting program.
//!
//! What a Pod is charged for is worked out once more, in [`charge`].

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use invariants::Millis;
use invariants::accounting::{AccountingHistory, PodVersion, RecordVersion, Terms, Written, check};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinSet;
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecord;
use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_UID_LABEL,
};

use super::charge::charge;
use crate::faults::proxy::Call;
use crate::testenv::until::until_ok;

/// Before an API server that is not there is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a watch may be behind on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Watches marked Pods and records of all namespaces until it is dropped.
pub struct AccountingRecorder {
    client: Client,
    history: Arc<Mutex<Noted>>,
    _tasks: JoinSet<()>,
}

/// What was noted, and whether something may be missing.
#[derive(Default)]
struct Noted {
    history: AccountingHistory,
    gap: Option<String>,
}

impl AccountingRecorder {
    /// Begins to record; what is there already is the first that is noted.
    pub async fn start(client: Client) -> Result<Self> {
        let history = Arc::new(Mutex::default());
        let mut tasks = JoinSet::new();
        let (pods, noted) = (Api::all(client.clone()), Arc::clone(&history));
        tasks.spawn(
            follow(pods, TRAIN_JOB_UID_LABEL, noted, |history, pod, gone| {
                history.pods.extend(pod_version(pod, gone));
            })
            .await?,
        );
        let (records, noted) = (Api::all(client.clone()), Arc::clone(&history));
        tasks.spawn(
            follow(records, "", noted, |history, record, gone| {
                history.records.extend(record_version(record, gone));
            })
            .await?,
        );
        Ok(Self { client, history, _tasks: tasks })
    }

    /// Waits until everything is noted that is stored now, and judges what happened in these namespaces. `calls` are those
    /// of the program, where they are known.
    pub async fn judge(
        &self,
        namespaces: &[&str],
        calls: &[Arc<Call>],
        terms: &Terms,
    ) -> Result<()> {
        let history = self.history(namespaces, calls).await?;
        ensure!(!history.records.is_empty(), "no record was seen, so nothing would be judged");
        let found = check(&history, terms);
        let told: Vec<_> = found.iter().map(ToString::to_string).collect();
        ensure!(told.is_empty(), "{}", told.join("\n"));
        Ok(())
    }

    /// What happened in these namespaces, once everything is noted that is stored now.
    pub async fn history(
        &self,
        namespaces: &[&str],
        calls: &[Arc<Call>],
    ) -> Result<AccountingHistory> {
        for namespace in namespaces {
            self.caught_up(namespace).await?;
        }
        let mut history = {
            let noted = lock(&self.history);
            ensure!(noted.gap.is_none(), "the record has a gap: {:?}", noted.gap);
            noted.history.clone()
        };
        let is_here = |name: &str| {
            let namespace = name.split('/').next();
            namespaces.iter().any(|it| Some(*it) == namespace)
        };
        history.pods.retain(|pod| is_here(&pod.name));
        history.records.retain(|record| is_here(&record.name));
        history.end = now();
        let written = calls.iter().filter_map(|call| written(call));
        history.written = written.map(|written| (history.end, written)).collect();
        Ok(history)
    }

    async fn caught_up(&self, namespace: &str) -> Result<()> {
        let api: Api<TrainJobRecord> = Api::namespaced(self.client.clone(), namespace);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        until_ok("everything is noted", PATIENCE, || async {
            let records = api.list(&ListParams::default()).await?;
            let pods = pods.list(&ListParams::default().labels(TRAIN_JOB_UID_LABEL)).await?;
            let noted = lock(&self.history);
            let known: BTreeSet<_> = noted.history.records.iter().map(|it| it.revision).collect();
            let seen: BTreeSet<_> = noted.history.pods.iter().map(|it| it.revision).collect();
            let missing = records.iter().filter(|it| !known.contains(&revision(*it))).count()
                + pods.iter().filter(|it| !seen.contains(&revision(*it))).count();
            ensure!(missing == 0, "{missing} versions are missing");
            Ok(())
        })
        .await
    }
}

fn lock(noted: &Mutex<Noted>) -> MutexGuard<'_, Noted> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

fn revision(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Notes what is there, and gives what notes everything from then on.
async fn follow<K, F>(
    api: Api<K>,
    labels: &'static str,
    noted: Arc<Mutex<Noted>>,
    note: F,
) -> Result<impl Future<Output = ()> + Send + use<K, F>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    F: Fn(&mut AccountingHistory, &K, bool) + Send + 'static,
{
    let list = api.list(&ListParams::default().labels(labels)).await?;
    let mut version = list.metadata.resource_version.context("a list without a version")?;
    for item in &list.items {
        note(&mut lock(&noted).history, item, false);
    }
    let how = WatchParams::default().labels(labels);
    Ok(async move {
        loop {
            if let Ok(events) = api.watch(&how, &version).await {
                let mut events = pin!(events);
                // An error is a watch that is interrupted; it goes on where it was.
                while let Some(Ok(event)) = events.next().await {
                    let (item, gone) = match event {
                        WatchEvent::Added(item) | WatchEvent::Modified(item) => (item, false),
                        WatchEvent::Deleted(item) => (item, true),
                        WatchEvent::Bookmark(mark) => {
                            version = mark.metadata.resource_version;
                            continue;
                        }
                        WatchEvent::Error(status) if status.code == 410 => {
                            lock(&noted).gap = Some(status.message);
                            return;
                        }
                        WatchEvent::Error(_) => break,
                    };
                    version = item.resource_version().unwrap_or(version);
                    note(&mut lock(&noted).history, &item, gone);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
}

fn name(object: &impl ResourceExt) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn record_version(record: &TrainJobRecord, gone: bool) -> Option<RecordVersion> {
    Some(RecordVersion {
        revision: revision(record),
        at: now(),
        name: name(record),
        uid: record.uid()?,
        job: record.spec.train_job.uid.clone(),
        status: record.status.clone().unwrap_or_default(),
        gone,
    })
}

fn pod_version(pod: &Pod, gone: bool) -> Option<PodVersion> {
    let uid = pod.uid()?;
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let deleted = pod.metadata.deletion_timestamp.is_some();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    Some(PodVersion {
        revision: revision(pod),
        at: now(),
        name: name(pod),
        job: pod.labels().get(TRAIN_JOB_UID_LABEL)?.clone(),
        finalizer: pod.finalizers().iter().any(|it| it == ACCOUNTING_FINALIZER),
        accounted: pod.annotations().get(ACCOUNTED_ANNOTATION) == Some(&uid),
        ended: matches!(phase, Some("Succeeded" | "Failed")) || deleted && node.is_none(),
        deleted,
        gone,
        charge: charge(pod),
        uid,
    })
}

/// What a call of the program wrote, if it did.
fn written(call: &Call) -> Option<Written> {
    let body = call.json();
    Some(match (call.verb, call.resource.as_str(), call.subresource.as_str()) {
        ("get" | "list" | "watch", ..) => return None,
        ("patch", "pods", "") => Written::Pod(fields("", &body).into_iter().collect()),
        ("update", "trainjobrecords", "status") => Written::Status {
            with_version: body.pointer("/metadata/resourceVersion").is_some_and(Value::is_string),
        },
        ("create", "trainjobrecords" | "events", "") | ("create" | "update", "leases", "") => {
            return None;
        }
        (verb, resource, subresource) => Written::Other(format!("{verb} {resource} {subresource}")),
    })
}

/// The paths of all values.
fn fields(path: &str, value: &Value) -> Vec<String> {
    let Some(map) = value.as_object() else { return vec![path.to_owned()] };
    let dot = if path.is_empty() { "" } else { "." };
    map.iter().flat_map(|(key, value)| fields(&format!("{path}{dot}{key}"), value)).collect()
}
