//! All that is known, and what follows from it: a state machine without I/O.
//!
//! Watches tell it what there is: policies, namespaces, and of target kinds the objects that have finished. It says for
//! each object where it stands in the queue, and what is to be done about it now; whoever does that tells it what came of
//! it. The decisions are those of `trainjob-retention-core`, made anew each time that somebody asks (`docs/retention.md`,
//! R4). What is remembered here is what they are made of: [facts](trainjob_retention_core::facts), policies, the groups
//! of `keepLast`, answers about owners.
//!
//! Before everything is known nothing is deleted: all policies and namespaces have to be listed, then the kind, then each
//! of its objects is evaluated, and each policy judged (R48, R64).
//!
//! Two clocks are told with the questions: the API server's, by which something is due, and one that nobody sets, for
//! everything else.

mod book;
mod breaker;
mod evaluate;
mod kind;
mod liveness;
mod look;
mod namespaces;
mod object;
mod rates;
mod source;
mod step;
mod survey;
mod tally;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use trainjob_core::{Now, facts::ObjectKey};
use trainjob_retention_core::{kind::GroupKind, metadata::Metadata, stored::PolicyKind, uid::Uid};

use self::{
    book::{Affected, Book},
    kind::Kind,
    liveness::Liveness,
    namespaces::Namespaces,
    rates::Rates,
};
pub use self::{
    book::{PolicyKey, Stored},
    breaker::{Breaker, Hold},
    source::Source,
    step::{Deletion, Reply, Step, Wait},
    survey::{KindState, Survey},
    tally::{Tally, source_name},
};
use crate::key::{Key, Position, TargetId, position};

/// All that is known.
#[derive(Debug)]
pub struct Room {
    kinds: Vec<Kind>,
    book: Book,
    namespaces: Namespaces,
    liveness: Liveness,
    rates: Rates,
    /// Since each policy was judged. One that is not here deletes nothing.
    breakers: BTreeMap<Uid, Breaker>,
    /// Whether policies have changed since they were judged.
    unjudged: BTreeSet<TargetId>,
}

/// What follows from news.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// These objects have to be looked at.
    pub look: Vec<Key>,
    /// Some kind has to be [evaluated](Room::evaluate).
    pub evaluate: bool,
    /// It has changed [which kinds are watched, and for what](Room::wanted).
    pub watches: bool,
}

/// A slice of an evaluation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// What is to be looked at now, and in which position.
    pub look: Vec<(Position, Key)>,
    /// What is to be looked at later.
    pub later: Vec<(Key, trainjob_api::time::Timestamp)>,
}

impl Room {
    /// Nothing is known. These are the target kinds, by their [`TargetId`]; these namespaces are excluded (R37); so many
    /// objects are deleted a second at most.
    #[must_use]
    pub fn new(
        targets: Vec<GroupKind>,
        excluded: BTreeSet<Arc<str>>,
        per_second: Option<f64>,
    ) -> Self {
        Self {
            kinds: targets.into_iter().map(Kind::new).collect(),
            book: Book::default(),
            namespaces: Namespaces::new(excluded),
            liveness: Liveness::default(),
            rates: Rates::new(per_second),
            breakers: BTreeMap::new(),
            unjudged: BTreeSet::new(),
        }
    }

    /// Whether policies are about a kind, and how often it has changed what has to be read of its objects. After each
    /// change of the number everything has to be listed anew.
    #[must_use]
    pub fn wanted(&self, target: TargetId) -> Option<u64> {
        self.kinds.get(target.0).filter(|kind| kind.is_wanted).map(|kind| kind.epoch)
    }

    /// Everything that there is to work on.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let kinds = self.kinds.iter().enumerate();
        let keys = kinds.flat_map(|(index, kind)| {
            kind.objects
                .keys()
                .map(move |object| Key { target: TargetId(index), object: object.clone() })
        });
        keys.collect()
    }

    /// Where an object stands in the queue; `None` if there is none.
    #[must_use]
    pub fn position(&self, key: &Key, now: Now) -> Option<Position> {
        let object = self.kinds.get(key.target.0)?.objects.get(&key.object)?;
        Some(position(object.due.filter(|due| now.has_come(*due)), now.reached()))
    }

    /// A watch has shown that it is live.
    pub fn heard(&mut self, source: Source, now: Duration) {
        self.liveness.heard(source, now);
    }

    /// A list of this begins.
    pub fn list_begins(&mut self, source: Source) {
        match source {
            Source::Policies(kind) => self.book.list_begins(kind),
            Source::Namespaces => self.namespaces.list_begins(),
            Source::Target(target) => {
                if let Some(kind) = self.kinds.get_mut(target.0) {
                    kind.list_begins();
                }
            }
        }
    }

    /// Everything of this was listed.
    pub fn list_ends(&mut self, source: Source, now: Duration) -> Effects {
        self.liveness.heard(source, now);
        match source {
            Source::Policies(kind) => {
                let was_listed = self.book.is_listed();
                let (_, affected) = self.book.list_ends(kind);
                let affected = if was_listed { affected } else { Affected::All };
                self.policies_changed(&affected, now)
            }
            Source::Namespaces => {
                let was_listed = self.namespaces.is_listed();
                let gone = self.namespaces.list_ends();
                if was_listed {
                    return self.namespaces_changed(&gone);
                }
                self.kinds.iter_mut().for_each(Kind::evaluate_anew);
                Effects { evaluate: true, ..Effects::default() }
            }
            Source::Target(target) => {
                let Some(kind) = self.kinds.get_mut(target.0) else { return Effects::default() };
                let was_listed = kind.is_listed;
                let look = kind.list_ends();
                Effects { evaluate: !was_listed, ..looked_at(target, look) }
            }
        }
    }

    /// A policy is there, in this version.
    pub fn policy(&mut self, key: PolicyKey, stored: Stored, now: Duration) -> Effects {
        let affected = self.book.seen(key, stored);
        self.policies_changed(&affected, now)
    }

    /// A policy is gone.
    pub fn policy_gone(&mut self, key: &PolicyKey, now: Duration) -> Effects {
        let affected = self.book.gone(key);
        self.policies_changed(&affected, now)
    }

    /// A namespace is there, in this version.
    pub fn namespace(&mut self, metadata: Metadata) -> Effects {
        let changed = self.namespaces.seen(metadata);
        self.namespaces_changed(&changed.into_iter().collect())
    }

    /// A namespace is gone.
    pub fn namespace_gone(&mut self, name: &str) -> Effects {
        self.namespaces.gone(name);
        self.namespaces_changed(&[Arc::from(name)].into())
    }

    /// An object is there, in this version. `listed` says that a list has shown it, so that nothing needs to be forgotten
    /// if it has not finished.
    pub fn object(
        &mut self,
        target: TargetId,
        text: &str,
        key: Option<&ObjectKey>,
        now: Now,
    ) -> Effects {
        let Some(kind) = self.kinds.get_mut(target.0).filter(|kind| kind.is_wanted) else {
            return Effects::default();
        };
        let Some(facts) = kind.read(text) else {
            return key.map_or_else(Effects::default, |key| self.object_gone(target, key));
        };
        let key =
            ObjectKey { namespace: Arc::clone(&facts.namespace), name: facts.name.as_ref().into() };
        if !kind.insert(&key, facts) {
            return Effects::default();
        }
        let mut look = vec![key.clone()];
        if self.book.is_listed() && self.namespaces.is_listed() {
            let policies = kind.there(&mut self.namespaces, &key.namespace);
            look.extend(kind.place(&key, &policies, now.reached().unwrap_or(now.stamp())));
        }
        looked_at(target, look)
    }

    /// An object is gone.
    pub fn object_gone(&mut self, target: TargetId, key: &ObjectKey) -> Effects {
        let Some(kind) = self.kinds.get_mut(target.0) else { return Effects::default() };
        let mut look = kind.remove(key);
        look.push(key.clone());
        looked_at(target, look)
    }

    /// A kind is not served any more, or in another version: what is known of its objects does not count.
    pub fn kind_gone(&mut self, target: TargetId) {
        if let Some(kind) = self.kinds.get_mut(target.0) {
            kind.forget_all();
        }
    }

    fn policies_changed(&mut self, affected: &Affected, now: Duration) -> Effects {
        if *affected == Affected::None || !self.book.is_listed() {
            return Effects::default();
        }
        let policies = self.book.uids();
        self.breakers.retain(|policy, _| policies.contains(policy));
        self.rates.retain(&policies);
        let mut watches = false;
        for (index, kind) in self.kinds.iter_mut().enumerate() {
            if !affected.includes(&kind.target) {
                continue;
            }
            let mut is_wanted = false;
            for stored in self.book.about(&kind.target) {
                is_wanted = true;
                let per_second = stored.deletes_per_second.map(|rate| rate.get().into());
                self.rates.set(&stored.policy.uid, per_second, now);
                self.breakers.remove(&stored.policy.uid);
            }
            self.unjudged.insert(TargetId(index));
            let epoch = kind.epoch;
            kind.take_over(self.book.policies(&kind.target, kind.built_in()), is_wanted);
            watches |= kind.epoch != epoch;
        }
        Effects { look: Vec::new(), evaluate: true, watches }
    }

    fn namespaces_changed(&mut self, changed: &BTreeSet<Arc<str>>) -> Effects {
        let mut look = Vec::new();
        for (index, kind) in self.kinds.iter_mut().enumerate() {
            for namespace in changed {
                kind.forget_namespace(namespace);
                let objects = kind.in_namespace(namespace).into_iter();
                look.extend(objects.map(|object| Key { target: TargetId(index), object }));
            }
        }
        Effects { look, ..Effects::default() }
    }

    /// The watches that a deletion of an object of a kind rests on.
    fn sources(target: TargetId) -> [Source; 4] {
        let policies = [PolicyKind::Namespaced, PolicyKind::Cluster].map(Source::Policies);
        let [namespaced, cluster] = policies;
        [namespaced, cluster, Source::Namespaces, Source::Target(target)]
    }
}

fn looked_at(target: TargetId, objects: impl IntoIterator<Item = ObjectKey>) -> Effects {
    let look = objects.into_iter().map(|object| Key { target, object }).collect();
    Effects { look, ..Effects::default() }
}
