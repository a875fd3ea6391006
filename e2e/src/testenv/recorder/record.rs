//! What has been written down, and whether that is everything.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use invariants::Change;
use tokio::sync::Notify;

/// The changes so far.
#[derive(Debug, Default)]
pub(super) struct Record {
    notes: Mutex<Notes>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    spaces: HashMap<String, Space>,
    gap: Option<String>,
}

/// What happened in one namespace: of thousands, a test wants to know of its own.
#[derive(Debug, Default)]
struct Space {
    changes: Vec<Change>,
    /// By UID, the last revision, and whether the object is gone.
    last: HashMap<String, (u64, bool)>,
}

/// What is stored at one moment.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The version of each object, by UID.
    pub(super) objects: HashMap<String, u64>,
    /// The oldest of the revisions at which this was so.
    pub(super) revision: Option<u64>,
}

impl Stored {
    pub(super) fn merge(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.revision = self.revision.into_iter().chain(other.revision).min();
    }
}

impl Record {
    pub(super) fn add(&self, change: Change) {
        let mut notes = self.notes();
        let space = notes.spaces.entry(change.object.namespace.clone()).or_default();
        space.last.insert(change.object.uid.clone(), (change.revision, change.gone));
        space.changes.push(change);
        drop(notes);
        self.news.notify_waiters();
    }

    pub(super) fn has_a_gap(&self, why: String) {
        self.notes().gap.get_or_insert(why);
        self.news.notify_waiters();
    }

    /// Sorted, because each kind is followed for itself.
    pub(super) fn changes(&self, namespace: Option<&str>) -> Vec<Change> {
        let notes = self.notes();
        let all = notes.of(namespace).flat_map(|space| &space.changes);
        let mut changes: Vec<Change> = all.cloned().collect();
        changes.sort_by_key(|change| change.revision);
        changes
    }

    pub(super) async fn wait_for(&self, stored: &Stored, namespace: Option<&str>) -> Result<()> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if self.notes().has(stored, namespace)? {
                return Ok(());
            }
            news.await;
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes {
    /// What happened in one namespace, or in all.
    fn of<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Space> + Clone {
        let one = namespace.and_then(|namespace| self.spaces.get(namespace));
        let all = namespace.is_none().then(|| self.spaces.values());
        one.into_iter().chain(all.into_iter().flatten())
    }

    fn has(&self, stored: &Stored, namespace: Option<&str>) -> Result<bool> {
        if let Some(gap) = &self.gap {
            bail!("the record has a gap: {gap}");
        }
        let spaces = self.of(namespace);
        let known = |(uid, version): (&String, &u64)| {
            let mut last = spaces.clone().filter_map(|space| space.last.get(uid));
            last.any(|(seen, _)| seen >= version)
        };
        let ended = |(uid, (seen, gone)): (&String, &(u64, bool))| {
            let newer = stored.revision.is_none_or(|revision| *seen > revision);
            *gone || newer || stored.objects.contains_key(uid)
        };
        let mut last = self.of(namespace).flat_map(|space| &space.last);
        Ok(stored.objects.iter().all(known) && last.all(ended))
    }
}

#[cfg(test)]
mod tests {
    use invariants::{Object, State};
    use trainjob_api::time::Timestamp;

    use super::*;

    fn change(uid: &str, revision: u64, gone: bool) -> Change {
        let object = Object {
            namespace: uid.to_owned(),
            name: String::new(),
            uid: uid.to_owned(),
            created: Timestamp(0),
            deleting: None,
            generation: 0,
            finalizers: Vec::new(),
            owner: None,
            state: State::ConfigMap,
        };
        Change { revision, at: 0, object, gone }
    }

    #[test]
    fn the_record_is_complete_when_it_has_what_is_there_and_the_end_of_what_is_not() {
        let stored = Stored { objects: HashMap::from([("a".into(), 5)]), revision: Some(9) };
        for (changes, complete) in [
            (vec![], false),
            (vec![change("a", 4, false)], false),
            (vec![change("a", 5, false)], true),
            (vec![change("a", 11, true)], true),
            (vec![change("a", 5, false), change("b", 7, false)], false),
            (vec![change("a", 5, false), change("b", 8, true)], true),
            (vec![change("a", 5, false), change("b", 10, false)], true),
        ] {
            let record = Record::default();
            for change in &changes {
                record.add(change.clone());
            }
            assert_eq!(record.notes().has(&stored, None).unwrap(), complete, "{changes:?}");
        }
    }

    #[test]
    fn one_namespace_is_complete_whatever_is_missing_of_others() {
        let record = Record::default();
        record.add(change("a", 5, false));
        record.add(change("b", 6, false));
        let stored = |uid: &str, version| Stored {
            objects: HashMap::from([(uid.into(), version)]),
            revision: Some(9),
        };
        let complete = |stored: &Stored, namespace| record.notes().has(stored, namespace).unwrap();
        assert!(complete(&stored("a", 5), Some("a")));
        assert!(!complete(&stored("a", 5), None), "the end of b is missing");
        assert!(!complete(&stored("a", 6), Some("a")));
        assert!(!complete(&stored("c", 7), Some("c")));
        assert!(complete(&Stored::default(), Some("d")));
    }

    #[test]
    fn a_gap_is_an_error() {
        let record = Record::default();
        record.has_a_gap("expired".into());
        assert!(record.notes().has(&Stored::default(), None).is_err());
    }

    #[test]
    fn changes_come_in_the_order_of_their_revisions() {
        let record = Record::default();
        for (uid, revision) in [("a", 3), ("b", 1), ("a", 4), ("b", 2)] {
            record.add(change(uid, revision, false));
        }
        let revisions = |namespace: Option<&str>| -> Vec<u64> {
            record.changes(namespace).iter().map(|change| change.revision).collect()
        };
        assert_eq!(revisions(None), [1, 2, 3, 4]);
        assert_eq!(revisions(Some("a")), [3, 4]);
    }
}
