//! Everything that is known: a keeper for each record with something left to do, TrainJobs, and which Pods there are.
//!
//! Of a Pod that is counted and released nothing is kept. While another process acts, nothing is kept either of a Pod that
//! went: the other one counts it.

mod asked;
mod entry;
mod nameless;
mod numbers;
mod records;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod as StoredPod;
use trainjob_accounting_core::{
    clock::Now,
    keeper::{Answer, Call},
    pod::Pod,
    settings::Settings,
    tracked::{Presence, Tracked},
};
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecord;
use trainjob_core::facts::ObjectKey;

use self::{asked::Asked, entry::Entry, records::Records};
pub use self::{
    entry::{Answered, Change, Step},
    nameless::Nameless,
    numbers::{Numbers, Running, Source},
};
use crate::{key::JobKey, requests::versioned, train_jobs::TrainJobs};

/// A look that takes less may follow at once upon another.
const LONG_LOOK: Duration = Duration::from_millis(1);
/// For how many times as long as a look took the next one waits, so that looks take a twentieth of one core.
const REST: u32 = 20;
/// A record is stored four times a second at most (AG9), so nothing is lost by a look in a quarter of one.
const LONGEST_REST: Duration = Duration::from_millis(250);

/// Everything that is known.
#[derive(Debug)]
pub struct Book {
    /// Boxed: a table has room for up to twice as many as there are.
    entries: HashMap<Arc<JobKey>, Box<Entry>>,
    /// The TrainJobs.
    pub jobs: TrainJobs,
    /// Which open Pods the watch has shown, by UID. The keeper of each has the same UID, and its record the same key.
    pods: HashMap<Arc<str>, Arc<JobKey>>,
    /// UIDs of the Pods in a list that is being delivered.
    listed: Option<HashSet<Arc<str>>>,
    /// Pods that are held and whose labels can name no TrainJob.
    pub nameless: Nameless,
    records: Records,
    /// TrainJobs whose Pods are listed together.
    asked: Asked,
    /// Whether this process acts.
    leads: bool,
    /// Whether a Pod has left the watch that may have our finalizer and none of our labels.
    lost_labels: bool,
}

impl Book {
    /// Nothing is known yet, and another process acts.
    #[must_use]
    pub fn new(jobs: TrainJobs) -> Self {
        Self {
            entries: HashMap::new(),
            jobs,
            pods: HashMap::new(),
            listed: None,
            nameless: Nameless::default(),
            records: Records::default(),
            asked: Asked::default(),
            leads: false,
            lost_labels: false,
        }
    }

    /// From now on this process acts.
    pub const fn take_over(&mut self) {
        self.leads = true;
    }

    /// The records with something left to do.
    #[must_use]
    pub fn keys(&self) -> Vec<JobKey> {
        self.entries.keys().map(|key| JobKey::clone(key)).collect()
    }

    /// Those of TrainJobs of this name.
    #[must_use]
    pub fn keys_of(&self, namespace: &str, name: &str) -> Vec<JobKey> {
        let keys = self.entries.keys().map(|key| &**key);
        keys.filter(|key| *key.namespace == *namespace && *key.name == *name).cloned().collect()
    }

    /// Whether there is something left to do about a record.
    #[must_use]
    pub fn has(&self, key: &JobKey) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether somebody waits for Pods of a record to go.
    #[must_use]
    pub fn is_awaited(&self, key: &JobKey) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_awaited)
    }

    /// The name and the UID of the record, if there is one.
    #[must_use]
    pub fn record(&self, key: &JobKey) -> Option<(String, String)> {
        let fence = self.entries.get(key)?.keeper.fence()?;
        Some((fence.name.clone(), fence.uid.clone()))
    }

    /// Whether no record can be made, because the namespace terminates.
    #[must_use]
    pub fn is_ending(&self, key: &JobKey) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.keeper.is_ending())
    }

    /// A Pod, with what is known of it.
    #[must_use]
    pub fn pod(&self, key: &JobKey, uid: &str) -> Option<&Tracked> {
        self.entries.get(key)?.keeper.pod(uid)
    }
}

/// News of Pods.
impl Book {
    /// The watch shows one; returns the record that this is news for.
    pub fn pod_seen(&mut self, stored: &StoredPod, now: Now) -> Option<JobKey> {
        let Some((version, mut pod)) = versioned(stored) else {
            return self.pod_unnamed(stored, now);
        };
        if let Some(listed) = &mut self.listed {
            listed.insert(Arc::clone(&pod.uid));
        }
        let key = match (self.pods.get_key_value(&pod.uid), JobKey::of_pod(stored, &pod)) {
            // One whose labels somebody changed stays with the record that knows it.
            (Some((uid, key)), _) => {
                pod.uid = Arc::clone(uid);
                Arc::clone(key)
            }
            (None, Some(key)) => self.shared(key),
            (None, None) => {
                self.nameless.saw(stored);
                return None;
            }
        };
        self.nameless.forget(&pod.uid);
        let uid = Arc::clone(&pod.uid);
        if pod.accounted && !pod.finalizer {
            self.pods.remove(&uid);
            self.entries.get_mut(&key)?.keeper.saw(version, pod, now);
            self.prune(&key);
            return Some(JobKey::clone(&key));
        }
        self.pods.entry(uid).or_insert_with(|| Arc::clone(&key));
        self.entries.entry(Arc::clone(&key)).or_default().saw(version, pod, now);
        Some(JobKey::clone(&key))
    }

    /// The key itself that is known, if one is: the Pods of a record share it.
    fn shared(&self, key: JobKey) -> Arc<JobKey> {
        let known = self.entries.get_key_value(&key).map(|(known, _)| Arc::clone(known));
        known.unwrap_or_else(|| Arc::new(key))
    }

    /// The watch shows that one went, or that it has lost our labels.
    pub fn pod_gone(&mut self, stored: &StoredPod, now: Now) -> Option<JobKey> {
        let uid = stored.metadata.uid.as_deref()?;
        self.nameless.forget(uid);
        let key = self.pods.remove(uid)?;
        // What has a finalizer goes by a deletion, so one that nobody deleted is there without our labels (AG10).
        let has_finalizer = stored.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        let is_there = has_finalizer && stored.metadata.deletion_timestamp.is_none();
        self.left(&key, uid, is_there, now);
        Some(JobKey::clone(&key))
    }

    /// The watch shows one that has lost the name of its TrainJob, and not its UID.
    fn pod_unnamed(&mut self, stored: &StoredPod, now: Now) -> Option<JobKey> {
        let uid = stored.metadata.uid.as_deref()?;
        let key = self.pods.remove(uid)?;
        self.left(&key, uid, true, now);
        Some(JobKey::clone(&key))
    }

    /// Whether a Pod of the same TrainJob is one of this record. One whose labels somebody changed stays with the record
    /// that knows it.
    #[must_use]
    pub fn belongs(&self, key: &JobKey, pod: &Pod) -> bool {
        let by_name = || pod.template.job_name == key.name;
        self.pods.get(&pod.uid).map_or_else(by_name, |known| **known == *key)
    }

    fn left(&mut self, key: &JobKey, uid: &str, is_there: bool, now: Now) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !self.leads {
            entry.keeper.forget(uid);
            return self.prune(key);
        }
        // One that was seen with our finalizer may still have it, whatever became of our labels: its release tells.
        let may_be_held = entry.keeper.pod(uid).is_some_and(|tracked| tracked.pod.finalizer);
        if is_there || may_be_held {
            let was_here = entry.keeper.pod(uid).is_some_and(|it| it.presence == Presence::Here);
            self.lost_labels |= was_here;
            entry.keeper.lost_labels(uid, now);
        } else {
            entry.keeper.went(uid, now);
        }
    }

    /// Whether a Pod has left the watch, since this was last asked, that may have our finalizer and none of our labels.
    pub const fn take_lost_labels(&mut self) -> bool {
        std::mem::replace(&mut self.lost_labels, false)
    }

    /// The watch of Pods begins with a list.
    pub fn pods_relist(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// The list is complete. What it did not show has left; what else was missed, a list of our own tells.
    pub fn pods_listed(&mut self, now: Now) -> Vec<JobKey> {
        let listed = self.listed.take().unwrap_or_default();
        self.nameless.keep_only(&listed);
        let gone: Vec<_> = self.pods.extract_if(|uid, _| !listed.contains(uid)).collect();
        for (uid, key) in gone {
            self.left(&key, &uid, false, now);
        }
        if self.leads {
            self.entries.values_mut().for_each(|entry| entry.keeper.recheck());
        }
        self.keys()
    }

    /// While another process acts, nothing is kept that only it needs.
    fn prune(&mut self, key: &JobKey) {
        let is_idle = self
            .entries
            .get(key)
            .is_some_and(|entry| entry.keeper.is_empty() && !entry.is_open && entry.call.is_none());
        if !self.leads && is_idle {
            self.entries.remove(key);
            self.jobs.forget(&key.uid);
        }
    }
}

/// News of TrainJobs.
impl Book {
    /// The watch shows that one went, in this last version if that can be read. Returns what this is news for.
    pub fn train_job_gone(&mut self, gone: &ObjectKey, uid: &str) -> Vec<JobKey> {
        self.jobs.gone(gone, uid);
        let keys = self.keys_of(&gone.namespace, &gone.name);
        if !keys.iter().any(|key| *key.uid == *uid) {
            self.jobs.forget(uid);
        }
        keys
    }

    /// The list of TrainJobs is complete: there are no others.
    pub fn train_jobs_listed(&mut self, listed: &[ObjectKey]) -> Vec<JobKey> {
        self.jobs.keep_only(listed);
        self.forget_departed();
        self.keys()
    }

    /// How a TrainJob finished is of interest as long as something is left to do about its record.
    fn forget_departed(&mut self) {
        let known: HashSet<_> = self.entries.keys().map(|key| &*key.uid).collect();
        let idle = self.jobs.departed().filter(|uid| !known.contains(uid));
        let idle: Vec<_> = idle.map(str::to_owned).collect();
        for uid in idle {
            self.jobs.forget(&uid);
        }
    }
}

/// News of records.
impl Book {
    /// The watch of records begins with a list.
    pub fn records_relist(&mut self) {
        self.records.list_begins();
    }

    /// The list is complete.
    pub fn records_listed(&mut self) {
        self.records.list_ends();
    }

    /// The watch shows a version of one, or its list does. Returns the key if something is left to do.
    pub fn record_seen(
        &mut self,
        key: JobKey,
        record: &TrainJobRecord,
        is_listed: bool,
    ) -> Option<JobKey> {
        if self.records.saw(record, is_listed) {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.is_open = false;
                self.prune(&key);
            }
            return None;
        }
        // What this process writes is shown to it, too, perhaps after it is done with it.
        if self.leads && !is_listed {
            return None;
        }
        let shared = self.shared(key.clone());
        self.entries.entry(shared).or_default().is_open = true;
        Some(key)
    }

    /// The watch shows that one went.
    pub fn record_gone(&mut self, key: &JobKey, uid: &str) {
        self.records.gone(uid);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.is_open = false;
            entry.keeper.record_went(uid);
            self.prune(key);
        }
    }
}

/// What to do, and what came of it.
impl Book {
    /// What to do about a record, and the Pods of it that are to be released now.
    pub fn step(&mut self, key: &JobKey, settings: &Settings, now: Now) -> (Step, Vec<Arc<str>>) {
        let job = self.jobs.job(key);
        let Some(entry) = self.entries.get_mut(key) else { return (Step::Done, Vec::new()) };
        let (step, releases) = entry.step(&job, settings, now);
        match step {
            Step::Done => {
                self.entries.remove(key);
                self.jobs.forget(&key.uid);
            }
            Step::Share if !std::mem::replace(&mut entry.is_asked, true) => {
                let shared = self.shared(key.clone());
                self.asked.ask(shared);
            }
            Step::Share | Step::Send(_) | Step::Wait(_) => {}
        }
        (step, releases)
    }

    /// A look at a record took so long. It grows with its Pods, and every release is a reason for another.
    pub fn looked(&mut self, key: &JobKey, took: Duration, now: Now) {
        if let Some(entry) = self.entries.get_mut(key).filter(|_| took >= LONG_LOOK) {
            entry.rests_until = now.clock + (took * REST).min(LONGEST_REST);
        }
    }

    /// How long a record is not looked at again; `None`: it may be, or a request about it is due.
    #[must_use]
    pub fn rests(&self, key: &JobKey, now: Now) -> Option<Duration> {
        let entry = self.entries.get(key).filter(|entry| entry.call.is_none())?;
        let left = entry.rests_until.saturating_sub(now.clock);
        (!left.is_zero()).then_some(left)
    }

    /// The TrainJobs that the next shared list of a namespace is about, each with its call.
    #[must_use]
    pub fn shared_list(&self, namespace: &str) -> Vec<(Arc<JobKey>, Call)> {
        let asked = self.asked.next(namespace).into_iter();
        asked
            .filter_map(|key| Some((Arc::clone(&key), self.entries.get(&key)?.call.clone()?)))
            .collect()
    }

    /// Whether there is anybody in a namespace whom a shared list would be about.
    #[must_use]
    pub fn is_asked(&self, namespace: &str) -> bool {
        self.asked.waits(namespace)
    }

    /// The release of a Pod that is to be sent.
    #[must_use]
    pub fn release(&self, key: &JobKey, uid: &str) -> Option<Call> {
        self.entries.get(key)?.releases.get(uid).cloned()
    }

    /// Takes the answer to a call.
    pub fn answered(&mut self, key: &JobKey, call: &Call, answer: Answer, now: Now) -> Answered {
        let Some(entry) = self.entries.get_mut(key) else { return Answered::default() };
        if matches!(call, Call::List { .. }) && std::mem::take(&mut entry.is_asked) {
            self.asked.answered(key);
        }
        entry.answered(call, answer, now)
    }
}
