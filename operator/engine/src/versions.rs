//! The newest version known of each object of one kind.
//!
//! News of an object comes two ways that are not ordered with each other: by the watch, and in the
//! replies to our own writes. The API server numbers all changes of a kind with increasing resource
//! versions (comparable as numbers: KEP-5504), which settles what is newer. A reply that is older than
//! what the watch has already delivered says nothing new; in particular it does not bring back an
//! object whose deletion the watch has delivered.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
//! use trainjob_core::facts::ObjectKey;
//! use trainjob_engine::versions::{Source, Versions};
//!
//! let key = ObjectKey::of(&ObjectMeta { name: Some("job".into()), ..ObjectMeta::default() });
//! let mut jobs = Versions::default();
//! assert!(jobs.put(&key, (7, "suspended"), Source::Watch));
//! // The reply to a write that the watch has not delivered yet is newer,
//! assert!(jobs.put(&key, (9, "resumed"), Source::Reply { lists: jobs.lists() }));
//! // so the watch, which comes to the version in between, says nothing new.
//! assert!(!jobs.put(&key, (8, "labelled"), Source::Watch));
//! assert_eq!(jobs.get(&key), Some(&(9, "resumed")));
//! ```

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use trainjob_core::facts::ObjectKey;

/// Who showed an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A watch, or the list it starts with.
    Watch,
    /// The reply to a request of our own.
    Reply {
        /// How many lists of its kind were complete when it was asked for.
        lists: u64,
    },
}

/// A resource version as a number. One that is no number counts as 0: older than everything, but
/// taken from a watch all the same.
#[must_use]
pub fn parse(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(0)
}

/// What knows its version.
pub trait Versioned {
    /// The resource version as a number, see [`parse`].
    fn version(&self) -> u64;
}

impl<T> Versioned for (u64, T) {
    fn version(&self) -> u64 {
        self.0
    }
}

impl<T: Versioned> Versioned for Arc<T> {
    fn version(&self) -> u64 {
        (**self).version()
    }
}

/// Objects of one kind, by key.
#[derive(Debug)]
pub struct Versions<T> {
    objects: HashMap<ObjectKey, T>,
    /// The last known version of objects that a reply has shown to be gone: what the watch has yet to
    /// deliver of them is older news.
    forgotten: HashMap<ObjectKey, u64>,
    /// How many lists were complete so far.
    lists: u64,
    /// The newest version that the watch has delivered.
    delivered: u64,
    relist: Option<Relist>,
}

/// A complete list that is being delivered.
#[derive(Debug, Default)]
struct Relist {
    listed: HashSet<ObjectKey>,
    /// Objects that replies have shown, or shown to be gone, since the list began; the list may be older.
    replied: HashSet<ObjectKey>,
    newest: u64,
    /// Whether it shows older versions than are known: the store was restored from a backup.
    restored: bool,
}

impl<T> Default for Versions<T> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            forgotten: HashMap::new(),
            lists: 0,
            delivered: 0,
            relist: None,
        }
    }
}

impl<T: Versioned> Versions<T> {
    /// How many lists were complete so far.
    #[must_use]
    pub const fn lists(&self) -> u64 {
        self.lists
    }

    /// The newest version that the watch has delivered of any object; 0 before the first.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The newest known version of an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.objects.get(key)
    }

    /// The key of a known object, as it is kept.
    #[must_use]
    pub fn key(&self, key: &ObjectKey) -> Option<&ObjectKey> {
        self.objects.get_key_value(key).map(|(kept, _)| kept)
    }

    /// How many objects there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// The keys of all objects.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.keys()
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &T)> {
        self.objects.iter()
    }

    /// Whether a watch that has come to this version of an object says something new; then the object is to be [put](Self::put).
    /// Otherwise it is noted that the watch has come so far.
    pub fn is_shown_anew(&mut self, key: &ObjectKey, version: u64) -> bool {
        // Of what is new nothing is noted before it is put: a reply that comes in between must not be taken for old.
        self.objects.get(key).is_none_or(|known| known.version() < version)
            || self.is_news(key, version, Source::Watch)
    }

    /// Takes in an object; false when that version or a newer one is known.
    pub fn put(&mut self, key: &ObjectKey, object: T, source: Source) -> bool {
        self.put_with(key, object.version(), source, || object)
    }

    /// Like [`Self::put`], for an object of this version that is made when it is news.
    pub fn put_with(
        &mut self,
        key: &ObjectKey,
        version: u64,
        source: Source,
        object: impl FnOnce() -> T,
    ) -> bool {
        if !self.is_news(key, version, source) {
            return false;
        }
        self.forgotten.remove(key);
        self.objects.insert(key.clone(), object());
        true
    }

    fn is_news(&mut self, key: &ObjectKey, version: u64, source: Source) -> bool {
        let forgotten = self.forgotten.get(key).copied().unwrap_or(0);
        let known = self.objects.get(key).map_or(forgotten, Versioned::version);
        match (source, &mut self.relist) {
            (Source::Watch, Some(relist)) => {
                relist.listed.insert(key.clone());
                relist.newest = relist.newest.max(version);
                let restored = version < known && !relist.replied.contains(key);
                relist.restored |= restored;
                version > known || restored
            }
            (Source::Watch, None) => {
                self.delivered = self.delivered.max(version);
                version > known || version == 0
            }
            (Source::Reply { lists }, relist) => {
                // What a list since then has not shown may be gone. If it is not, the watch shows it.
                let unlisted = known == 0 && lists < self.lists;
                let news = version > self.delivered && version > known && !unlisted;
                if let (Some(relist), true) = (relist, news) {
                    relist.replied.insert(key.clone());
                }
                news
            }
        }
    }

    /// Takes in that an object is gone since `version`, and returns it; `None` when something newer is
    /// known, or nothing.
    pub fn remove(&mut self, key: &ObjectKey, version: u64) -> Option<T> {
        self.delivered = self.delivered.max(version);
        if self.forgotten.get(key).is_some_and(|known| *known <= version) {
            self.forgotten.remove(key);
        }
        let newer = |known: &T| known.version() > version && version != 0;
        if self.objects.get(key).is_none_or(newer) {
            return None;
        }
        self.objects.remove(key)
    }

    /// Forgets an object that a reply has shown to be gone, if it is still the one that `is_it` knows,
    /// and returns it.
    pub fn forget(&mut self, key: &ObjectKey, is_it: impl FnOnce(&T) -> bool) -> Option<T> {
        if !self.get(key).is_some_and(is_it) {
            return None;
        }
        let object = self.objects.remove(key)?;
        self.forgotten.insert(key.clone(), object.version());
        if let Some(relist) = &mut self.relist {
            relist.replied.insert(key.clone());
        }
        Some(object)
    }

    /// A complete list begins.
    pub fn relist(&mut self) {
        self.relist = Some(Relist::default());
    }

    /// The list is complete: what it did not contain is gone. Returns what that was. It may be something
    /// that a reply has shown since the list was made; then the watch, which goes on from there, shows it
    /// again. To keep it could be to keep for ever what was deleted before the list was made.
    pub fn listed(&mut self) -> Vec<(ObjectKey, T)> {
        let Some(relist) = self.relist.take() else { return Vec::new() };
        self.lists += 1;
        self.delivered =
            if relist.restored { relist.newest } else { self.delivered.max(relist.newest) };
        let Relist { listed, replied, .. } = relist;
        self.forgotten.retain(|key, _| replied.contains(key));
        let gone = self.objects.extract_if(|key, _| !listed.contains(key));
        gone.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply to what was asked before the first list was complete.
    const REPLY: Source = Source::Reply { lists: 0 };

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    #[test]
    fn an_older_watch_event_does_not_undo_our_own_write() {
        let mut jobs = Versions::default();
        assert!(jobs.put(&key("a"), (5, "created"), Source::Watch));
        assert!(jobs.put(&key("a"), (9, "written"), REPLY));
        assert!(!jobs.put(&key("a"), (7, "older"), Source::Watch));
        assert_eq!(jobs.get(&key("a")), Some(&(9, "written")));
        assert!(!jobs.put(&key("a"), (9, "delivered"), Source::Watch));
        assert!(jobs.put(&key("a"), (10, "newer"), Source::Watch));
    }

    #[test]
    fn a_late_reply_does_not_bring_back_what_is_gone() {
        let mut jobs = Versions::default();
        assert!(jobs.put(&key("a"), (5, "created"), Source::Watch));
        assert_eq!(jobs.remove(&key("a"), 8), Some((5, "created")));
        assert!(!jobs.put(&key("a"), (5, "late"), REPLY));
        assert_eq!(jobs.get(&key("a")), None);
    }

    #[test]
    fn reply_that_comes_while_the_same_version_is_read_is_news() {
        let mut jobs = Versions::default();
        assert!(jobs.is_shown_anew(&key("a"), 5));
        assert!(jobs.put(&key("a"), (5, "created"), Source::Watch));
        assert!(!jobs.is_shown_anew(&key("a"), 5));
        assert!(jobs.is_shown_anew(&key("a"), 9));
        assert!(jobs.put(&key("a"), (9, "reply"), REPLY));
        assert!(!jobs.put(&key("a"), (9, "read"), Source::Watch));
        assert_eq!(jobs.get(&key("a")), Some(&(9, "reply")));
    }

    #[test]
    fn object_of_a_restored_store_is_shown_anew() {
        let mut jobs = Versions::default();
        assert!(jobs.put(&key("a"), (9, "before"), Source::Watch));
        assert!(!jobs.is_shown_anew(&key("a"), 7), "an old event");
        jobs.relist();
        assert!(jobs.is_shown_anew(&key("a"), 7));
        assert!(jobs.put(&key("a"), (7, "restored"), Source::Watch));
        assert_eq!(jobs.listed(), []);
        assert_eq!(jobs.get(&key("a")), Some(&(7, "restored")));
    }

    #[test]
    fn the_deletion_of_a_predecessor_does_not_remove_its_successor() {
        let mut jobs = Versions::default();
        assert!(jobs.put(&key("a"), (5, "old"), Source::Watch));
        assert!(jobs.put(&key("a"), (9, "successor"), REPLY));
        assert_eq!(jobs.remove(&key("a"), 8), None);
        assert_eq!(jobs.get(&key("a")), Some(&(9, "successor")));
    }

    #[test]
    fn what_vanished_while_nobody_watched_is_found_at_the_end_of_a_list() {
        let mut jobs = Versions::default();
        for name in ["stays", "goes"] {
            assert!(jobs.put(&key(name), (5, name), Source::Watch));
        }
        jobs.relist();
        assert!(!jobs.put(&key("stays"), (5, "stays"), Source::Watch), "unchanged, so no news");
        assert!(jobs.put(&key("made meanwhile"), (11, "new"), REPLY));
        let mut gone = jobs.listed();
        gone.sort_unstable_by_key(|(_, object)| *object);
        let expected = [(key("goes"), (5, "goes")), (key("made meanwhile"), (11, "new"))];
        assert_eq!(gone, expected, "what was made meanwhile may have been deleted before the list");
        assert!(jobs.put(&key("made meanwhile"), (11, "new"), Source::Watch), "the watch shows it");
    }

    #[test]
    fn what_the_watch_has_yet_to_deliver_does_not_bring_back_what_a_reply_has_shown_to_be_gone() {
        for listed in [false, true] {
            let mut jobs = Versions::default();
            assert!(jobs.put(&key("a"), (5, "created"), Source::Watch));
            if listed {
                jobs.relist();
            }
            assert!(jobs.put(&key("a"), (7, "written"), REPLY));
            assert!(jobs.forget(&key("a"), |_| true).is_some());
            assert!(!jobs.put(&key("a"), (6, "older"), Source::Watch), "listed: {listed}");
            assert_eq!(jobs.listed(), vec![]);
            assert_eq!(jobs.get(&key("a")), None);
            assert_eq!(jobs.remove(&key("a"), 8), None);
            assert!(jobs.forgotten.is_empty());
            assert!(jobs.put(&key("a"), (9, "successor"), Source::Watch));
        }
    }

    #[test]
    fn a_reply_that_is_older_than_the_list_does_not_keep_what_is_gone() {
        let mut jobs = Versions::default();
        jobs.relist();
        assert!(jobs.put(&key("gone since"), (5, "late"), REPLY));
        assert!(jobs.put(&key("other"), (9, "other"), Source::Watch));
        assert_eq!(jobs.listed(), vec![(key("gone since"), (5, "late"))]);
        assert!(!jobs.put(&key("gone since"), (5, "later"), REPLY));
    }

    #[test]
    fn a_reply_to_what_was_asked_before_a_list_does_not_bring_back_what_the_list_did_not_show() {
        let mut jobs = Versions::default();
        assert!(jobs.put(&key("a"), (5, "created"), Source::Watch));
        jobs.relist();
        assert_eq!(jobs.listed(), vec![(key("a"), (5, "created"))]);
        assert!(!jobs.put(&key("a"), (7, "before it was gone"), REPLY));
        let asked_since = Source::Reply { lists: jobs.lists() };
        assert!(jobs.put(&key("a"), (9, "successor"), asked_since));
    }

    #[test]
    fn a_list_from_a_restored_store_wins_over_what_was_known() {
        let mut jobs = Versions::default();
        assert!(jobs.put(&key("a"), (900, "before"), Source::Watch));
        jobs.relist();
        assert!(jobs.put(&key("a"), (40, "restored"), Source::Watch));
        assert!(jobs.listed().is_empty());
        assert!(jobs.put(&key("a"), (41, "changed"), REPLY));
        assert_eq!(jobs.get(&key("a")), Some(&(41, "changed")));
    }
}
