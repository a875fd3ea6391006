//! The watches: Pods with the label of the mark, TrainJobs and records.

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, atomic::AtomicBool},
};

use kube::{Api, Client, Resource as _, ResourceExt as _, runtime::watcher::Event};
use tokio::sync::watch;
use trainjob_api::{
    TrainJob,
    lifecycle::v1alpha1::{TRAIN_JOB_RECORD_KIND, TRAIN_JOB_UID_LABEL, record::TrainJobRecord},
};
use trainjob_core::facts::ObjectKey;
use trainjob_engine::{
    Readable,
    watch::{Span, Subject, follow, follow_labelled},
};

use crate::{
    accountant::Accountant,
    key::JobKey,
    pod_view::{ListedPod, stored},
};

/// How to get the kinds that are not part of Kubernetes.
const INSTALL: &str = "install the chart";
/// How many lists there are before work begins.
pub const LISTS: u8 = 3;

/// What the watches need.
pub struct Feed {
    /// Whom they tell.
    pub accountant: Arc<Accountant>,
    /// The client for watches.
    pub client: Client,
    /// How many kinds have been listed.
    pub listed: watch::Sender<u8>,
    /// Whether the API server could not be reached when last tried; said once for all kinds.
    pub unreachable: Arc<AtomicBool>,
}

impl Feed {
    fn note_listed(&self, was_listed: &mut bool) {
        if !*was_listed {
            *was_listed = true;
            self.listed.send_modify(|listed| *listed = listed.saturating_add(1));
        }
    }

    fn look(&self, keys: impl IntoIterator<Item = JobKey>) {
        keys.into_iter().for_each(|key| self.accountant.look(key));
    }

    /// Watches marked Pods, for ever.
    pub async fn pods(self: Arc<Self>) -> Infallible {
        let api: Api<ListedPod> = Api::all(self.client.clone());
        let restarts = self.accountant.metrics.restarts("Pod");
        let install = Some("it is part of Kubernetes");
        let subject = Subject { kind: "Pod", install, span: Span::Short, restarts: &restarts };
        let mut was_listed = false;
        follow_labelled(api, TRAIN_JOB_UID_LABEL, subject, &self.unreachable, |event| {
            let (book, now) = (|| self.accountant.book(), self.accountant.now());
            match event {
                Ok(Event::Init) => book().pods_relist(),
                Ok(Event::InitApply(pod) | Event::Apply(pod)) => {
                    let key = book().pod_seen(&stored(pod), now);
                    self.tell_lost_labels();
                    self.look(key);
                }
                Ok(Event::Delete(pod)) => {
                    let key = book().pod_gone(&stored(pod), now);
                    self.tell_lost_labels();
                    self.look(key);
                }
                Ok(Event::InitDone) => {
                    let keys = book().pods_listed(now);
                    self.look(keys);
                    self.note_listed(&mut was_listed);
                }
                Err(_) => {}
            }
        })
        .await;
        pending().await
    }

    /// Has Pods without our labels looked for, if one may have lost them.
    fn tell_lost_labels(&self) {
        if self.accountant.book().take_lost_labels() {
            self.accountant.lost_labels.notify_one();
        }
    }

    /// Watches TrainJobs, for ever.
    pub async fn train_jobs(self: Arc<Self>) -> Infallible {
        let api: Api<Readable<TrainJob>> = Api::all(self.client.clone());
        let restarts = self.accountant.metrics.restarts("TrainJob");
        let subject = Subject {
            kind: "TrainJob",
            install: Some(INSTALL),
            span: Span::Short,
            restarts: &restarts,
        };
        let (mut was_listed, mut listed) = (false, Vec::new());
        follow(api, subject, &self.unreachable, |event| {
            let changed =
                |key: &ObjectKey| self.accountant.book().keys_of(&key.namespace, &key.name);
            if let Ok(Event::InitApply(job)) = &event {
                listed.push(ObjectKey::of(job.meta()));
            }
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(job) | Event::Apply(job)) => {
                    let key = ObjectKey::of(job.meta());
                    // One that cannot be read is there, as it was before.
                    let Ok(job) = job.0 else { return };
                    let is_news = self.accountant.book().jobs.saw(&job);
                    if is_news && was_listed {
                        self.look(changed(&key));
                    }
                }
                Ok(Event::Delete(job)) => {
                    let key = ObjectKey::of(job.meta());
                    let uid = job.meta().uid.clone().unwrap_or_default();
                    // Its last version may say how it finished, which no other did if it went at once.
                    if let Ok(job) = &job.0 {
                        self.accountant.book().jobs.saw(job);
                    }
                    let keys = self.accountant.book().train_job_gone(&key, &uid);
                    self.look(keys);
                }
                Ok(Event::InitDone) => {
                    let keys = self.accountant.book().train_jobs_listed(&listed);
                    listed.clear();
                    self.look(keys);
                    self.note_listed(&mut was_listed);
                }
                Err(_) => {}
            }
        })
        .await;
        pending().await
    }

    /// Watches records, for ever. One that is not final has something left to do; one that goes leaves a line in the log.
    pub async fn records(self: Arc<Self>) -> Infallible {
        let api: Api<TrainJobRecord> = Api::all(self.client.clone());
        let restarts = self.accountant.metrics.restarts(TRAIN_JOB_RECORD_KIND);
        let kind = TRAIN_JOB_RECORD_KIND;
        let subject =
            Subject { kind, install: Some(INSTALL), span: Span::Short, restarts: &restarts };
        let mut was_listed = false;
        let saw = |record: &TrainJobRecord, is_listed: bool| {
            let key = key_of(record);
            let key =
                key.and_then(|key| self.accountant.book().record_seen(key, record, is_listed));
            self.look(key);
        };
        follow(api, subject, &self.unreachable, |event| match event {
            Ok(Event::Init) => self.accountant.book().records_relist(),
            Ok(Event::InitApply(record)) => saw(&record, true),
            Ok(Event::Apply(record)) => saw(&record, false),
            Ok(Event::Delete(record)) => {
                if let Some(key) = key_of(&record) {
                    if self.accountant.leader.holds() {
                        let receipt = serde_json::to_string(&record.status).unwrap_or_default();
                        tracing::info!(
                            namespace = %key.namespace, job = %key.name, job_uid = %key.uid,
                            receipt, "a record is gone; this is what it said"
                        );
                    }
                    let uid = record.uid().unwrap_or_default();
                    self.accountant.book().record_gone(&key, &uid);
                    self.look([key]);
                }
            }
            Ok(Event::InitDone) => {
                self.accountant.book().records_listed();
                self.note_listed(&mut was_listed);
            }
            Err(_) => {}
        })
        .await;
        pending().await
    }
}

fn key_of(record: &TrainJobRecord) -> Option<JobKey> {
    let job = &record.spec.train_job;
    Some(JobKey {
        namespace: record.metadata.namespace.as_deref()?.into(),
        name: job.name.as_str().into(),
        uid: job.uid.as_str().into(),
    })
}
