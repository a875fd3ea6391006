//! What an operator remembers of a job between its passes.

use std::{collections::HashMap, time::Duration};

use super::retry::{Retries, Retry};
use crate::{
    facts::{JobFacts, JobSetFacts, ObjectKey},
    observed::{Reading, Readings},
    priority::Priority,
    running_pods::RunningPods,
};

/// What is remembered of a job beside the objects that are watched. A restart loses it, and nothing depends on it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobMemory {
    pub(super) readings: Readings,
    pub(super) retries: Retries,
    /// When counts were last written.
    pub(super) counts_written: Option<Duration>,
    /// When it was last written why the job is not released.
    pub(super) text_written: Option<Duration>,
    /// When the check for running Pods that is under way was begun.
    pub(super) pod_check: Option<Duration>,
}

/// Who showed an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownBy {
    /// A watch, or the list it begins with.
    Watch,
    /// The reply to a request of our own.
    Reply,
}

impl JobMemory {
    /// What was read of the job, as far as it still holds.
    #[must_use]
    pub fn readings(&self) -> Readings {
        let mut readings = self.readings.clone();
        if let Some(edited) = readings.edited {
            readings.applied_spec_hash = None;
            readings.job_set = readings.job_set.filter(|job_set| {
                let version = job_set.metadata.resource_version.as_deref();
                version_number(version.unwrap_or_default()) >= edited
            });
        }
        readings
    }

    /// Whether Pods of its JobSet still run, read after the JobSet was gone.
    #[must_use]
    pub const fn pods(&self) -> &Reading<RunningPods> {
        &self.readings.pods
    }

    /// A pass over the job with this priority has ended otherwise than by itself: when to try again.
    pub fn broken_off(&mut self, priority: Priority) -> Retry {
        self.pod_check = None;
        self.retries.again(priority, Duration::ZERO)
    }

    /// Takes in a JobSet of the job's name, of which `before` was known; `news` unless a newer version was.
    pub fn job_set_shown(
        &mut self,
        before: Option<&JobSetFacts>,
        shown: &JobSetFacts,
        news: bool,
        by: ShownBy,
    ) {
        let version = version_number(&shown.resource_version);
        match (before.filter(|before| before.uid == shown.uid), by) {
            // What was seen of Pods before says nothing about those of this one.
            (None, _) if news => self.forget_job_set(),
            (Some(before), ShownBy::Watch) if news && before.generation != shown.generation => {
                self.readings.edited = Some(version);
            }
            // It was our own write, which the watch had delivered before its reply came.
            (_, ShownBy::Reply) if self.readings.edited == Some(version) => {
                self.readings.edited = None;
            }
            _ => {}
        }
    }

    /// Takes in that the JobSet of the name of `job` is gone. An unfinished job of its own may be gone with it, without
    /// its watch having said so.
    pub fn job_set_gone(&mut self, gone: &JobSetFacts, job: &JobFacts) {
        self.forget_job_set();
        let own = gone.train_job_uid.as_ref() == Some(&job.uid);
        self.readings.needs_existence_check |= own && job.finished.is_none();
    }

    /// Takes in that a PodGroup of the job's name is gone: a suspended job gets it again before it is resumed.
    pub const fn pod_group_gone(&mut self) {
        self.readings.applied_spec_hash = None;
    }

    /// The JobSet is made from inputs with this digest, unless somebody has changed it since `edited` was known.
    pub(super) fn spec_applied(&mut self, digest: u64, edited: Option<u64>) {
        if self.readings.edited.is_none() || self.readings.edited == edited {
            self.readings.edited = None;
            self.readings.applied_spec_hash = Some(digest);
        }
        self.forget_documents();
    }

    /// What was read for one plan is old by the next pass.
    pub(super) fn forget_documents(&mut self) {
        self.readings.snapshot = Reading::NotRead;
        self.readings.job_set = None;
    }

    fn forget_job_set(&mut self) {
        self.forget_pods();
        self.readings.edited = None;
        self.readings.applied_spec_hash = None;
        self.readings.job_set = None;
    }
}

/// What is remembered of all jobs, by their names; that of one UID is of no use for a successor of the same name.
#[derive(Debug, Default)]
pub struct Memories(HashMap<ObjectKey, (String, JobMemory)>);

impl Memories {
    /// What is remembered of a job.
    #[must_use]
    pub fn get(&self, key: &ObjectKey, uid: &str) -> Option<&JobMemory> {
        self.0.get(key).filter(|(of, _)| of == uid).map(|(_, memory)| memory)
    }

    /// Changes what is remembered of a job. Nothing takes no room.
    pub fn change<T>(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        change: impl FnOnce(&mut JobMemory) -> T,
    ) -> T {
        let (of, mut memory) = self.0.remove(key).unwrap_or_default();
        if of != uid {
            memory = JobMemory::default();
        }
        let changed = change(&mut memory);
        if memory != JobMemory::default() {
            self.0.insert(key.clone(), (uid.to_owned(), memory));
        }
        changed
    }

    /// Changes what is remembered of the job whose UID is `known` under this key; of the one with `uid` alone, if that
    /// is named. Of any other nothing is remembered.
    pub fn change_known<T>(
        &mut self,
        key: &ObjectKey,
        known: Option<&str>,
        uid: Option<&str>,
        change: impl FnOnce(&mut JobMemory) -> T,
    ) -> T {
        match known.filter(|known| uid.is_none_or(|uid| uid == *known)) {
            Some(uid) => self.change(key, uid, change),
            None => change(&mut JobMemory::default()),
        }
    }

    /// The job is gone.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

/// A resource version as a number (comparable: KEP-5504). One that is no number counts as 0.
fn version_number(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running_pods::PodCheck;

    #[test]
    fn nothing_is_remembered_for_a_successor_and_nothing_takes_no_room() {
        let key = ObjectKey { namespace: "ns".into(), name: "job".into() };
        let mut memories = Memories::default();
        memories.change(&key, "U", JobMemory::pod_group_gone);
        assert!(memories.get(&key, "U").is_none());
        memories.change(&key, "U", |memory| memory.pods_checked(PodCheck::default()));
        assert!(memories.get(&key, "U").is_some());
        assert!(memories.get(&key, "V").is_none());
        let pods = memories.change(&key, "V", |memory| memory.pods().clone());
        assert_eq!(pods, Reading::NotRead);
        assert!(memories.get(&key, "U").is_none());
        memories.change(&key, "U", |_| ());
        assert!(memories.get(&key, "U").is_none());
    }
}
