//! The manifests of unfinished jobs and of runtimes, as far as they find room.
//!
//! A manifest is needed when something is made from it or when its conditions change, which is soon after a watch has brought
//! it, or never. So as many bytes of them are kept as are allowed, and what had to make room is read again when it is
//! needed. Namespaces share the room: whoever has most of it makes room first, with what came first.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use trainjob_core::facts::ObjectKey;

/// What a manifest takes beside its text, measured with a hundred thousand.
const OVERHEAD: usize = 128;

/// Manifests by the keys of their jobs or [runtimes](super::runtimes), as JSON.
#[derive(Debug)]
pub(super) struct Manifests {
    budget: usize,
    held: usize,
    texts: HashMap<ObjectKey, (u64, Arc<str>)>,
    shares: HashMap<Arc<str>, Share>,
    /// The namespaces by the bytes that they have.
    by_size: BTreeSet<(usize, Arc<str>)>,
    /// How many were put so far.
    puts: u64,
    /// The numbers of those that came last.
    last: Last,
}

/// Of what a manifest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Of a TrainJob.
    Job,
    /// Of a runtime.
    Runtime,
}

/// The manifest that came last of a job, and of a runtime: somebody is about to make something from both.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    job: u64,
    runtime: u64,
}

/// What a namespace has, in the order in which it came.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    keys: BTreeMap<u64, ObjectKey>,
}

impl Manifests {
    /// None yet, and room for so many bytes.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            held: 0,
            texts: HashMap::new(),
            shares: HashMap::new(),
            by_size: BTreeSet::new(),
            puts: 0,
            last: Last::default(),
        }
    }

    /// A manifest, unless it had to make room.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<str>> {
        self.texts.get(key).map(|(_, text)| Arc::clone(text))
    }

    /// How many bytes of manifests are kept.
    #[cfg(test)]
    const fn held(&self) -> usize {
        self.held
    }

    /// Keeps a manifest. The one that came last, of a job and of a runtime, stays, however long it is: somebody is about to use it.
    pub(super) fn put(&mut self, of: Of, key: &ObjectKey, text: Arc<str>) {
        self.remove(key);
        self.puts += 1;
        let (bytes, number) = (room(&text), self.puts);
        match of {
            Of::Job => self.last.job = number,
            Of::Runtime => self.last.runtime = number,
        }
        self.resize(&key.namespace, |share| {
            share.bytes += bytes;
            share.keys.insert(number, key.clone());
        });
        self.held += bytes;
        self.texts.insert(key.clone(), (number, text));
        while self.held > self.budget
            && let Some(oldest) = self.first_to_go()
        {
            self.remove(&oldest);
        }
    }

    /// The oldest manifest of the namespace that has most, but for those that came last.
    fn first_to_go(&self) -> Option<ObjectKey> {
        let Last { job, runtime } = self.last;
        let mut largest = self.by_size.iter().rev().filter_map(|(_, namespace)| {
            let mut keys = self.shares.get(namespace)?.keys.iter();
            keys.find(|(number, _)| **number != job && **number != runtime)
        });
        largest.next().map(|(_, key)| key.clone())
    }

    /// Keeps a manifest no longer.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        let Some((number, text)) = self.texts.remove(key) else { return };
        self.held = self.held.saturating_sub(room(&text));
        self.resize(&key.namespace, |share| {
            share.bytes = share.bytes.saturating_sub(room(&text));
            share.keys.remove(&number);
        });
    }

    fn resize(&mut self, namespace: &Arc<str>, change: impl FnOnce(&mut Share)) {
        let mut share = self.shares.remove(namespace).unwrap_or_default();
        self.by_size.remove(&(share.bytes, Arc::clone(namespace)));
        change(&mut share);
        if !share.keys.is_empty() {
            self.by_size.insert((share.bytes, Arc::clone(namespace)));
            self.shares.insert(Arc::clone(namespace), share);
        }
    }
}

/// How many bytes a manifest takes, with its places in maps.
fn room(text: &str) -> usize {
    text.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: &str) -> ObjectKey {
        let (namespace, name) = key.split_once('/').unwrap();
        ObjectKey::new(namespace, name)
    }

    /// One that takes so many bytes, at least what none takes less than.
    fn text(bytes: usize) -> Arc<str> {
        "x".repeat(bytes - OVERHEAD).into()
    }

    /// Which of these are kept after all of these puts, of which each is of so many kilobytes.
    fn kept(budget: usize, puts: &[(&'static str, usize)]) -> Vec<&'static str> {
        let mut manifests = Manifests::new(budget * 1_000);
        for (job, kilobytes) in puts {
            manifests.put(Of::Job, &key(job), text(kilobytes * 1_000));
        }
        let mut jobs: Vec<_> = puts.iter().map(|(job, _)| *job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.retain(|job| manifests.get(&key(job)).is_some());
        let held = jobs.iter().filter_map(|job| manifests.get(&key(job))).map(|it| room(&it));
        assert_eq!(manifests.held(), held.sum::<usize>());
        jobs
    }

    #[test]
    fn whoever_has_most_makes_room_first_with_what_came_first() {
        for (what, puts, expected) in [
            ("all fit", &[("a/1", 50), ("b/1", 50)][..], vec!["a/1", "b/1"]),
            ("the oldest goes", &[("a/1", 50), ("a/2", 50), ("a/3", 50)], vec!["a/2", "a/3"]),
            (
                "a namespace with little keeps it",
                &[("b/1", 10), ("a/1", 45), ("a/2", 45), ("a/3", 45)],
                vec!["a/2", "a/3", "b/1"],
            ),
            (
                "one that comes takes from who has most",
                &[("a/1", 40), ("a/2", 40), ("b/1", 30)],
                vec!["a/2", "b/1"],
            ),
            ("a longer one replaces the old one", &[("a/1", 50), ("a/1", 90)], vec!["a/1"]),
            ("one that fits nowhere is kept alone", &[("a/1", 50), ("b/1", 500)], vec!["b/1"]),
            ("until the next comes", &[("b/1", 500), ("a/1", 50)], vec!["a/1"]),
        ] {
            assert_eq!(kept(100, puts), expected, "{what}");
        }
    }

    #[test]
    fn what_came_last_of_a_job_and_of_a_runtime_stays() {
        let mut manifests = Manifests::new(0);
        let puts =
            [(Of::Runtime, "a/r1"), (Of::Job, "a/1"), (Of::Runtime, "a/r2"), (Of::Job, "b/2")];
        let mut kept = Vec::new();
        for (of, name) in puts {
            manifests.put(of, &key(name), text(200));
            kept.push(puts.map(|(_, name)| manifests.get(&key(name)).is_some()));
        }
        let expected = [
            [true, false, false, false],
            [true, true, false, false],
            [false, true, true, false],
            [false, false, true, true],
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn what_is_gone_leaves_nothing_behind() {
        let mut manifests = Manifests::new(10_000);
        for number in 0..10 {
            manifests.put(Of::Job, &key(&format!("a/{number}")), text(200));
        }
        for number in 0..11 {
            manifests.remove(&key(&format!("a/{number}")));
        }
        assert_eq!((manifests.held(), manifests.texts.len()), (0, 0));
        assert!(manifests.shares.is_empty() && manifests.by_size.is_empty());
    }
}
