//! The Pods of a record, each in its newest known version.
//!
//! What the watch shows, what a list of our own shows and what replies show arrive in any order. Versions tell what is
//! newer. A UID never comes back, so a deletion needs none.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    clock::Now,
    pod::Pod,
    tracked::{Presence, Tracked},
};

/// Which Pods are forgotten that a list does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forget {
    /// None: nobody else has counted them, so they are news.
    Nothing,
    /// All of them: somebody else may have counted them.
    All,
}

/// Among how many Pods one with an equal template is looked for. Most records have few templates; without a bound, one in
/// which each Pod has its own would make every version of a Pod cost as much as there are Pods.
const SIBLINGS: usize = 64;

/// The Pods of a record.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// By UID. Of small values a tree wastes little.
    known: BTreeMap<Arc<str>, Box<Known>>,
    /// The version of the last list of our own. What the watch shows up to there is older.
    floor: u64,
    /// UIDs that went or were done with while a list was under way, which may still show them.
    past: Option<BTreeSet<String>>,
}

#[derive(Debug)]
struct Known {
    version: u64,
    tracked: Tracked,
    /// Whether the watch has shown that it left: nothing more will come of it.
    left: bool,
}

impl Pods {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Tracked> {
        self.known.values().map(|known| &known.tracked)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn get(&self, uid: &str) -> Option<&Tracked> {
        self.known.get(uid).map(|known| &known.tracked)
    }

    /// Whether the watch has shown that it left.
    pub(super) fn has_left(&self, uid: &str) -> bool {
        self.known.get(uid).is_none_or(|known| known.left)
    }

    pub(super) fn get_mut(&mut self, uid: &str) -> Option<&mut Tracked> {
        self.known.get_mut(uid).map(|known| &mut known.tracked)
    }

    /// Time has passed, by which some may have ended.
    pub(super) fn time_passes(&mut self, now: Now) {
        self.known.values_mut().for_each(|known| known.tracked.time_passes(now));
    }

    /// The watch shows a Pod.
    pub(super) fn watched(&mut self, version: u64, mut pod: Pod, now: Now) {
        let newest = self.known.get(&pod.uid).map_or(self.floor, |known| known.version);
        // The version of a reply is shown by the watch, too: only then nothing older can follow.
        if version < newest {
            return;
        }
        if pod.accounted && !pod.finalizer {
            return self.forget(&pod.uid);
        }
        self.share(&mut pod);
        self.saw(version, pod, now);
    }

    fn saw(&mut self, version: u64, pod: Pod, now: Now) {
        match self.known.get_mut(&pod.uid) {
            Some(known) if known.version < version => {
                (known.version, known.left) = (version, false);
                known.tracked.saw(pod, now);
            }
            Some(_) => {}
            None if version <= self.floor => {}
            None => self.insert(version, pod, now),
        }
    }

    fn insert(&mut self, version: u64, pod: Pod, now: Now) {
        let uid = Arc::clone(&pod.uid);
        let known = Known { version, tracked: Tracked::new(pod, now), left: false };
        self.known.insert(uid, Box::new(known));
    }

    /// What the version before and other Pods have in the same words is kept once.
    fn share(&self, pod: &mut Pod) {
        let before = self.known.get(&pod.uid);
        let mut all = before.into_iter().chain(self.known.values().take(SIBLINGS));
        let like = all.find(|known| known.tracked.pod.template == pod.template);
        for known in before.into_iter().chain(like) {
            pod.share_with(&known.tracked.pod);
        }
    }

    /// A Pod went.
    pub(super) fn went(&mut self, uid: &str, now: Now) {
        self.left(uid, |tracked| tracked.went(now));
    }

    /// A Pod has left the watch, and may still be there without our labels.
    pub(super) fn lost_labels(&mut self, uid: &str, now: Now) {
        self.left(uid, |tracked| tracked.stripped(now));
    }

    fn left(&mut self, uid: &str, note: impl FnOnce(&mut Tracked)) {
        self.note_past(uid);
        let Some(known) = self.known.get_mut(uid) else { return };
        note(&mut known.tracked);
        known.left = true;
        if known.tracked.presence == Presence::Released {
            self.known.remove(uid);
        }
    }

    /// A Pod is of no interest any more.
    pub(super) fn forget(&mut self, uid: &str) {
        self.note_past(uid);
        self.known.remove(uid);
    }

    /// Nor is any other.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Our PATCH of a Pod was answered with this version of it. Somebody may have put the finalizer back since, which the
    /// watch has shown before the answer came.
    pub(super) fn released(&mut self, uid: &str, version: u64) {
        let Some(known) = self.known.get_mut(uid) else { return };
        known.tracked.released();
        if known.version > version && known.tracked.pod.finalizer && !known.left {
            known.tracked.presence = Presence::Here;
        }
        known.version = known.version.max(version);
        if known.left {
            self.known.remove(uid);
        }
    }

    /// There is nothing to release: the Pod is gone, or another has its name. Whatever the watch still shows of it before
    /// its deletion is older.
    pub(super) fn absent(&mut self, uid: &str) {
        self.released(uid, u64::MAX);
        self.note_past(uid);
    }

    /// Forgets Pods that went and are in `settling`: they are counted, and must not count again once that is cleared.
    pub(super) fn settle(&mut self, settling: &[String]) {
        let gone = |known: &Known| known.tracked.presence == Presence::Gone;
        if self.known.values().any(|known| gone(known)) {
            let settling: BTreeSet<_> = settling.iter().map(String::as_str).collect();
            self.known.retain(|uid, known| !(gone(known) && settling.contains(&**uid)));
        }
    }

    /// A list of our own begins.
    pub(super) fn list_begins(&mut self) {
        self.past = Some(BTreeSet::new());
    }

    /// Whether one is under way.
    pub(super) const fn is_listing(&self) -> bool {
        self.past.is_some()
    }

    /// The list failed.
    pub(super) fn list_failed(&mut self) {
        self.past = None;
    }

    /// A list of our own: it is newer than what the watch has shown so far, or the watch knows better. What is not in it
    /// went, or has lost our labels; which of that is forgotten depends on what is known of the record (AG5).
    pub(super) fn listed(&mut self, version: u64, pods: Vec<(u64, Pod)>, forget: Forget, now: Now) {
        let past = self.past.take().unwrap_or_default();
        let there: BTreeSet<_> = pods.iter().map(|(_, pod)| Arc::clone(&pod.uid)).collect();
        // What is newer than the list was created after it.
        let went = |uid: &Arc<str>, known: &Known| !there.contains(uid) && known.version <= version;
        match forget {
            Forget::All => self.known.retain(|uid, known| !went(uid, known)),
            Forget::Nothing => self.left_list(&went, now),
        }
        for (version, mut pod) in pods {
            self.share(&mut pod);
            match self.known.contains_key(&pod.uid) {
                true => self.saw(version, pod, now),
                false if past.contains(&*pod.uid) || pod.accounted && !pod.finalizer => {}
                false => self.insert(version, pod, now),
            }
        }
        self.floor = self.floor.max(version);
    }

    fn left_list(&mut self, went: &impl Fn(&Arc<str>, &Known) -> bool, now: Now) {
        let gone = self.known.iter().filter(|(uid, known)| went(uid, known));
        let gone = gone.map(|(uid, known)| (Arc::clone(uid), known.tracked.pod.finalizer));
        let gone: Vec<_> = gone.collect();
        for (uid, had_finalizer) in gone {
            if had_finalizer { self.lost_labels(&uid, now) } else { self.went(&uid, now) }
        }
    }

    fn note_past(&mut self, uid: &str) {
        if let Some(past) = &mut self.past {
            past.insert(uid.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
