//! Everything that is known: a keeper for each record with something left to do, TrainJobs, and which Pods there are.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod as StoredPod;
use trainjob_accounting_core::{
    clock::Now,
    keeper::{Answer, Call, Keeper},
    pod::Pod,
    settings::Settings,
    tracked::{Presence, Tracked},
};
use trainjob_api::lifecycle::v1alpha1::record::{TrainJobRecord, TrainJobRecordStatus};

use crate::{key::JobKey, requests::versioned, train_jobs::TrainJobs};

/// Everything that is known.
#[derive(Debug)]
pub struct Book {
    entries: HashMap<JobKey, Entry>,
    /// The TrainJobs.
    pub jobs: TrainJobs,
    /// Which Pods the watch has shown, by UID.
    pods: HashMap<String, JobKey>,
    /// UIDs of the Pods in a list that is being delivered.
    listed: Option<HashSet<String>>,
}

/// A record with something left to do.
#[derive(Debug, Default)]
struct Entry {
    keeper: Keeper,
    /// The request about the record that is to be sent.
    call: Option<Call>,
    /// The releases that are to be sent, by UID of the Pod.
    releases: BTreeMap<Arc<str>, Call>,
}

/// What to do about a record.
#[derive(Debug)]
pub enum Step {
    /// There is nothing left to do.
    Done,
    /// Send this; then ask again.
    Send(Call),
    /// Ask again after this time.
    Wait(Option<Duration>),
}

/// The news of a status that was stored.
#[derive(Debug)]
pub struct Change {
    /// The status before.
    pub before: TrainJobRecordStatus,
    /// The status that was stored.
    pub after: TrainJobRecordStatus,
}

/// What gauges show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Pods that are marked and not counted.
    pub open: usize,
    /// Pods that have ended, are deleted, and are held by our finalizer.
    pub held: usize,
    /// For how long the Pod is held that is held longest.
    pub longest: Duration,
    /// Pods whose release was refused.
    pub refused: usize,
    /// Records that cannot be written.
    pub unwritable: usize,
    /// Records with something left to do.
    pub records: usize,
}

impl Book {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(jobs: TrainJobs) -> Self {
        Self { entries: HashMap::new(), jobs, pods: HashMap::new(), listed: None }
    }

    /// The records with something left to do.
    #[must_use]
    pub fn keys(&self) -> Vec<JobKey> {
        self.entries.keys().cloned().collect()
    }

    /// Whether there is something left to do about a record.
    #[must_use]
    pub fn has(&self, key: &JobKey) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether somebody waits for Pods of a record to go.
    #[must_use]
    pub fn is_awaited(&self, key: &JobKey) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.keeper.pods().any(is_held))
    }

    /// The watch of Pods shows one; returns the record that this is news for.
    pub fn pod_seen(&mut self, stored: &StoredPod, now: Now) -> Option<JobKey> {
        let (version, pod) = versioned(stored)?;
        let key = key_of(stored, &pod)?;
        if let Some(listed) = &mut self.listed {
            listed.insert(pod.uid.clone());
        }
        self.pods.insert(pod.uid.clone(), key.clone());
        let is_done = pod.accounted && !pod.finalizer;
        if is_done && !self.has(&key) {
            return None;
        }
        self.entries.entry(key.clone()).or_default().keeper.saw(version, pod, now);
        Some(key)
    }

    /// The watch of Pods shows that one went, or that it has lost our labels.
    pub fn pod_gone(&mut self, stored: &StoredPod, now: Now) -> Option<JobKey> {
        let uid = stored.metadata.uid.as_deref()?;
        let key = self.pods.remove(uid)?;
        let entry = self.entries.get_mut(&key)?;
        let finalizers = stored.metadata.finalizers.as_ref();
        // What has a finalizer goes by a deletion, so one that nobody deleted is there: it lost our labels (AG10).
        let is_there = finalizers.is_some_and(|all| !all.is_empty());
        if is_there && stored.metadata.deletion_timestamp.is_none() {
            entry.keeper.lost_labels(uid, now);
        } else {
            entry.keeper.went(uid, now);
        }
        Some(key)
    }

    /// The watch of Pods begins with a list.
    pub fn pods_relist(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// The list is complete. What it did not show is gone; what else was missed, a list of our own tells.
    pub fn pods_listed(&mut self, now: Now) -> Vec<JobKey> {
        let listed = self.listed.take().unwrap_or_default();
        let gone: Vec<_> = self.pods.extract_if(|uid, _| !listed.contains(uid)).collect();
        for (uid, key) in gone {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.keeper.went(&uid, now);
            }
        }
        self.entries.values_mut().for_each(|entry| entry.keeper.recheck());
        self.keys()
    }

    /// The watch of records shows one that is not final, so something is left to do.
    pub fn record_seen(&mut self, key: JobKey, record: &TrainJobRecord) -> Option<JobKey> {
        let conditions = record.status.iter().flat_map(|status| &status.conditions);
        let mut is_final = conditions.filter(|it| it.type_ == "Final" && it.status == "True");
        if is_final.next().is_some() {
            return None;
        }
        self.entries.entry(key.clone()).or_default();
        Some(key)
    }

    /// The watch of records shows that one went.
    pub fn record_gone(&mut self, key: &JobKey, uid: &str) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.keeper.record_went(uid);
        }
    }

    /// What to do about a record, and the Pods of it that are to be released now.
    pub fn step(
        &mut self,
        key: &JobKey,
        settings: &Settings,
        now: Now,
    ) -> (Step, Vec<Arc<str>>) {
        let job = self.jobs.job(key);
        let Some(entry) = self.entries.get_mut(key) else { return (Step::Done, Vec::new()) };
        if let Some(call) = &entry.call {
            return (Step::Send(call.clone()), Vec::new());
        }
        if entry.keeper.is_done() && entry.releases.is_empty() {
            self.entries.remove(key);
            return (Step::Done, Vec::new());
        }
        let calls = entry.keeper.next(&job, settings, now);
        let mut releases = Vec::new();
        for call in calls.now {
            match &call {
                Call::Release { uid, .. } => {
                    let uid: Arc<str> = uid.as_str().into();
                    releases.push(Arc::clone(&uid));
                    entry.releases.insert(uid, call);
                }
                Call::Create { .. }
                | Call::Get { .. }
                | Call::List { .. }
                | Call::ReadJob
                | Call::Store(_) => entry.call = Some(call),
            }
        }
        let step = entry.call.clone().map_or(Step::Wait(calls.after), Step::Send);
        (step, releases)
    }

    /// The release of a Pod that is to be sent.
    #[must_use]
    pub fn release(&self, key: &JobKey, uid: &str) -> Option<Call> {
        self.entries.get(key)?.releases.get(uid).cloned()
    }

    /// A Pod, with what is known of it.
    #[must_use]
    pub fn pod(&self, key: &JobKey, uid: &str) -> Option<Tracked> {
        self.entries.get(key)?.keeper.pods().find(|it| it.pod.uid == uid).cloned()
    }

    /// The name and the UID of the record, if there is one.
    #[must_use]
    pub fn record(&self, key: &JobKey) -> Option<(String, String)> {
        let fence = self.entries.get(key)?.keeper.fence()?;
        Some((fence.name.clone(), fence.uid.clone()))
    }

    /// Takes the answer to a call about a record. What it stored is returned.
    pub fn answered(
        &mut self,
        key: &JobKey,
        call: &Call,
        answer: Answer,
        now: Now,
    ) -> Option<Change> {
        let entry = self.entries.get_mut(key)?;
        let change = match (call, &answer) {
            (Call::Store(store), Answer::Stored { .. }) => Some(Change {
                before: entry.keeper.status().cloned().unwrap_or_default(),
                after: store.status.clone(),
            }),
            _ => None,
        };
        match call {
            Call::Release { uid, .. } => {
                entry.releases.remove(uid.as_str());
            }
            Call::Create { .. }
            | Call::Get { .. }
            | Call::List { .. }
            | Call::ReadJob
            | Call::Store(_) => entry.call = None,
        }
        entry.keeper.answered(call, answer, now);
        change
    }

    /// What gauges show.
    #[must_use]
    pub fn numbers(&self, now: Now) -> Numbers {
        let mut numbers = Numbers { records: self.entries.len(), ..Numbers::default() };
        for entry in self.entries.values() {
            numbers.unwritable += usize::from(entry.keeper.is_unwritable());
            let status = entry.keeper.status();
            let active = status.map_or(0, |status| status.totals.pods.active);
            numbers.open += usize::try_from(active).unwrap_or(usize::MAX);
            for tracked in entry.keeper.pods().filter(|tracked| is_held(tracked)) {
                let Some(seen) = tracked.ended_seen else { continue };
                numbers.held += 1;
                numbers.longest = numbers.longest.max(now.clock.saturating_sub(seen));
                numbers.refused += usize::from(!tracked.backoff.wait(now.clock).is_zero());
            }
        }
        numbers
    }
}

/// Whether somebody waits for it, and our finalizer is on it.
fn is_held(tracked: &Tracked) -> bool {
    match tracked.presence {
        Presence::Here | Presence::Releasing | Presence::Stripped => {
            tracked.pod.deletion.is_some() && tracked.pod.finalizer
        }
        Presence::Gone | Presence::Released => false,
    }
}

fn key_of(stored: &StoredPod, pod: &Pod) -> Option<JobKey> {
    Some(JobKey {
        namespace: stored.metadata.namespace.as_deref()?.into(),
        name: pod.job_name.as_str().into(),
        uid: pod.job_uid.as_str().into(),
    })
}
