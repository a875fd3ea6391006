//! What is remembered of all jobs between their passes, in as little room as it takes.
//!
//! Of a job for which there is nothing to do, nothing is remembered, or one of three things: what its JobSet was made from,
//! that somebody has changed that, or that it is released. These are kept without the rest.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{counted::Counted, memory::JobMemory};
use crate::{
    facts::{ObjectKey, uuid_of},
    observed::{Reading, Readings},
    running_pods::RunningPods,
};

/// What is remembered of all jobs, by their names; that of one UID is of no use for a successor of the same name.
#[derive(Debug, Default)]
pub struct Memories {
    of: HashMap<ObjectKey, (ShortUid, Kept)>,
    /// Apart from the rest, because it matters for a moment only.
    counted: Counted,
}

/// What is kept of the memory of a job.
#[derive(Debug)]
enum Kept {
    /// What its JobSet was made from.
    Applied(u64),
    /// That somebody has changed its JobSet. A follower remembers that of each job that its leader resumes.
    Edited(u64),
    /// That no Pods run of a JobSet that is gone.
    Released,
    /// Everything.
    All(Box<JobMemory>),
}

impl Kept {
    /// `None` when there is nothing to keep.
    fn of(memory: JobMemory) -> Option<Self> {
        if memory == JobMemory::default() {
            return None;
        }
        if let Some(spec_hash) = memory.readings.applied_spec_hash
            && memory == JobMemory::of_applied(spec_hash)
        {
            return Some(Self::Applied(spec_hash));
        }
        if let Some(version) = memory.readings.edited
            && memory == JobMemory::of_edited(version)
        {
            return Some(Self::Edited(version));
        }
        let is_released = memory == JobMemory::of_released();
        Some(if is_released { Self::Released } else { Self::All(Box::new(memory)) })
    }

    fn memory(self) -> JobMemory {
        match self {
            Self::Applied(spec_hash) => JobMemory::of_applied(spec_hash),
            Self::Edited(version) => JobMemory::of_edited(version),
            Self::Released => JobMemory::of_released(),
            Self::All(memory) => *memory,
        }
    }
}

impl Memories {
    /// What is remembered of a job, but for when its counts were written.
    #[must_use]
    pub fn get(&self, key: &ObjectKey, uid: &str) -> Option<Cow<'_, JobMemory>> {
        Some(match self.kept(key, uid)? {
            Kept::Applied(spec_hash) => Cow::Owned(JobMemory::of_applied(*spec_hash)),
            Kept::Edited(version) => Cow::Owned(JobMemory::of_edited(*version)),
            Kept::Released => Cow::Owned(JobMemory::of_released()),
            Kept::All(memory) => Cow::Borrowed(memory),
        })
    }

    /// What was read of a job, as far as it still holds.
    #[must_use]
    pub fn readings(&self, key: &ObjectKey, uid: &str) -> Readings {
        self.get(key, uid).map(|memory| memory.readings()).unwrap_or_default()
    }

    /// Whether Pods of the JobSet of a job run, as far as that was read.
    #[must_use]
    pub fn pods(&self, key: &ObjectKey, uid: &str) -> &Reading<RunningPods> {
        match self.kept(key, uid) {
            Some(Kept::All(memory)) => memory.pods(),
            Some(Kept::Released) => &Reading::Absent,
            Some(Kept::Applied(_) | Kept::Edited(_)) | None => &Reading::NotRead,
        }
    }

    /// Whether anything is remembered under this key.
    #[must_use]
    pub fn has(&self, key: &ObjectKey) -> bool {
        self.of.contains_key(key)
    }

    /// Whether a check for the Pods of a job is under way.
    #[must_use]
    pub fn checks_pods(&self, key: &ObjectKey, uid: &str) -> bool {
        match self.kept(key, uid) {
            Some(Kept::All(memory)) => memory.checks_pods(),
            Some(Kept::Applied(_) | Kept::Edited(_) | Kept::Released) | None => false,
        }
    }

    fn kept(&self, key: &ObjectKey, uid: &str) -> Option<&Kept> {
        let (of, kept) = self.of.get(key)?;
        (*of == ShortUid::of(uid)).then_some(kept)
    }

    /// Changes what is remembered of a job. Nothing takes no room.
    pub fn change<T>(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        change: impl FnOnce(&mut JobMemory) -> T,
    ) -> T {
        let short = ShortUid::of(uid);
        let known = self.of.remove(key).filter(|(of, _)| *of == short);
        let mut memory = known.map(|(_, kept)| kept.memory()).unwrap_or_default();
        memory.counts_written = self.counted.get(key);
        let changed = change(&mut memory);
        self.counted.set(key, memory.counts_written.take());
        if let Some(kept) = Kept::of(memory) {
            self.of.insert(key.clone(), (short, kept));
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
        self.of.remove(key);
        self.counted.set(key, None);
    }
}

/// A UID in sixteen bytes: the UUID that it is, or, of another text, two digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShortUid(u128);

impl ShortUid {
    fn of(uid: &str) -> Self {
        let digests = || (u128::from(digest(uid, 0)) << 64) | u128::from(digest(uid, 1));
        Self(uuid_of(uid).map_or_else(digests, |uuid| uuid.as_u128()))
    }
}

fn digest(text: &str, salt: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    (salt, text).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::running_pods::PodCheck;

    fn key() -> ObjectKey {
        ObjectKey::new("ns", "job")
    }

    #[test]
    fn nothing_is_remembered_for_a_successor_and_nothing_takes_no_room() {
        let key = key();
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

    #[test]
    fn nothing_is_remembered_of_a_job_that_is_gone() {
        let mut memories = Memories::default();
        memories.change(&key(), "U", |memory| memory.pods_checked(PodCheck::default()));
        memories.forget(&key());
        assert!(memories.get(&key(), "U").is_none());
    }

    #[test]
    fn that_counts_were_written_is_remembered_and_takes_no_room_for_long() {
        let (mut memories, now) = (Memories::default(), Duration::from_mins(1));
        memories.change(&key(), "U", |memory| memory.counts_written = Some(now));
        assert!(!memories.has(&key()));
        let written = memories.change(&key(), "U", |memory| memory.counts_written);
        assert_eq!(written, Some(now));
        memories.forget(&key());
        let written = memories.change(&key(), "U", |memory| memory.counts_written);
        assert_eq!(written, None);
    }

    #[test]
    fn change_is_remembered_of_the_job_that_is_known_unless_another_is_meant() {
        for (known, meant, remembered) in [
            (Some("U"), None, true),
            (Some("U"), Some("U"), true),
            (Some("U"), Some("V"), false),
            (None, None, false),
        ] {
            let mut memories = Memories::default();
            memories.change_known(&key(), known, meant, |memory| {
                memory.pods_checked(PodCheck::default());
            });
            let there = memories.get(&key(), "U").is_some();
            assert_eq!(there, remembered, "{known:?} is known, {meant:?} is meant");
        }
    }

    #[test]
    fn job_with_nothing_to_do_takes_sixteen_bytes_and_its_uid() {
        assert_eq!((size_of::<Kept>(), size_of::<ShortUid>()), (16, 16));
        let found = PodCheck { running: Some(RunningPods::unnamed()), stray: None };
        for (what, memory, is_short) in [
            ("applied", JobMemory::of_applied(7), true),
            ("edited", JobMemory::of_edited(7), true),
            ("released", JobMemory::of_released(), true),
            ("Pods run", checked(found), false),
        ] {
            let mut memories = Memories::default();
            memories.change(&key(), "U", |it| *it = memory.clone());
            let kept = memories.kept(&key(), "U").unwrap();
            assert_eq!(!matches!(kept, Kept::All(_)), is_short, "{what}");
            assert_eq!(memories.get(&key(), "U").as_deref(), Some(&memory), "{what}");
            assert_eq!(memories.readings(&key(), "U"), memory.readings(), "{what}");
            assert_eq!(memories.pods(&key(), "U"), memory.pods(), "{what}");
            assert_eq!(memories.change(&key(), "U", |it| it.clone()), memory, "{what}");
        }
    }

    fn checked(check: PodCheck) -> JobMemory {
        let mut memory = JobMemory::default();
        memory.pods_checked(check);
        memory
    }

    #[test]
    fn uids_are_told_apart_whatever_they_look_like() {
        let uids = [
            "",
            "U",
            "V",
            "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "6f9619ff-8b86-d011-b42d-00cf4fc964fe",
            "6F9619ff-8b86-d011-b42d-00cf4fc964ff",
            "6f9619ff8b86d011b42d00cf4fc964ff",
            "6f9619ff-8b86-d011-b42d-00cf4fc964fg",
        ];
        for (n, one) in uids.iter().enumerate() {
            for (m, other) in uids.iter().enumerate() {
                assert_eq!(ShortUid::of(one) == ShortUid::of(other), n == m, "{one}, {other}");
            }
        }
    }
}
