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

mod audit;
mod book;
mod breakers;
mod evaluate;
mod flows;
mod found;
mod hold_end;
mod judge;
mod kind;
mod liveness;
mod look;
mod loops;
mod namespaces;
mod news;
mod notices;
mod numbers;
mod object;
mod objects;
mod pod_hints;
mod pods;
mod rates;
mod reviews;
mod rights;
mod source;
mod stale;
mod step;
mod still_wanted;
mod survey;
mod surveys;
mod tally;
#[cfg(test)]
mod tests;
mod turn;
mod without_deletion;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use trainjob_core::{
    Now,
    facts::{self, ObjectKey},
    recreation::Recreations,
};
use trainjob_retention_core::{selection::Selection, stored::PolicyKind};

use self::{
    book::Book, breakers::Breakers, flows::Flows, kind::Kind, liveness::Liveness,
    namespaces::Namespaces, notices::News, rates::Rates, rights::Rights,
};
pub use self::{
    book::{PolicyKey, Stored},
    breakers::Judgement,
    notices::{ObjectNews, What},
    numbers::Numbers,
    pod_hints::{PodHints, PodsLeft, PodsReply, PodsToList},
    rights::{Resource, Right, RightChange, Verb},
    source::Source,
    step::{Deletion, PodsDeletion, Reply, Step, Wait},
    survey::SOON,
    tally::{KindState, Survey, Tally, Unreadable, source_name},
};
use crate::{
    config::Target,
    key::{Key, Position, TargetId, position},
};

/// All that is known.
#[derive(Debug)]
pub struct ClusterState {
    kinds: Vec<Kind>,
    book: Book,
    namespaces: Namespaces,
    /// The namespaces that keys have in common.
    of_keys: facts::Namespaces,
    liveness: Liveness,
    rates: Rates,
    breakers: Breakers,
    flows: Flows,
    rights: Rights,
    /// By how many seconds the API server's clock was ahead of the one that nobody sets, when it was last looked at.
    clock_offset: Option<i64>,
    /// Whether this process acts, and so evaluates anything.
    leads: bool,
    /// What users are to be told of objects.
    news: News,
    /// The names that policies have deleted lately (R47).
    recreations: Recreations,
}

/// What follows from news.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// These objects have to be looked at.
    pub look: Vec<Key>,
    /// Some kind has to be [evaluated](ClusterState::evaluate).
    pub evaluate: bool,
    /// It has changed [which kinds are watched, and for what](ClusterState::wanted).
    pub watches: bool,
}

/// What follows from what came of the deletion of the Pods of an object.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PodsReplied {
    /// When the object is looked at again.
    pub wait: Option<Duration>,
    /// So many Pods were deleted that users are to be told of now.
    pub told: u32,
    /// What else is to be done.
    pub effects: Effects,
}

/// A slice of an evaluation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// What is to be looked at now, and in which position.
    pub look: Vec<(Position, Key)>,
    /// What is to be looked at later.
    pub later: Vec<(Key, trainjob_api::time::Timestamp)>,
}

impl ClusterState {
    /// Nothing is known. These are the target kinds, by their [`TargetId`]; these namespaces are excluded (R37); so many
    /// objects are deleted a second at most.
    #[must_use]
    pub fn new(targets: &[Target], excluded: BTreeSet<Arc<str>>, per_second: Option<f64>) -> Self {
        Self {
            kinds: targets.iter().map(Kind::new).collect(),
            book: Book::default(),
            namespaces: Namespaces::new(excluded),
            of_keys: facts::Namespaces::default(),
            liveness: Liveness::default(),
            rates: Rates::new(per_second),
            breakers: Breakers::default(),
            flows: Flows::default(),
            rights: Rights::default(),
            clock_offset: None,
            leads: true,
            news: News::default(),
            recreations: Recreations::default(),
        }
    }

    /// Another process acts: nothing is evaluated before [`take_over`](Self::take_over). All that is told is remembered.
    pub fn stand_by(&mut self) {
        self.leads = false;
    }

    /// From now on this process acts. Everything is evaluated, and judged by what the statuses of policies store.
    pub fn take_over(&mut self) -> Effects {
        if std::mem::replace(&mut self.leads, true) {
            return Effects::default();
        }
        for kind in &mut self.kinds {
            kind.list_pods_again();
            kind.evaluate_anew();
        }
        Effects { evaluate: true, ..Effects::default() }
    }

    /// Whether policies are about a kind, and how often it has changed what has to be read of its objects. After each
    /// change of the number everything has to be listed anew.
    #[must_use]
    pub fn wanted(&self, target: TargetId) -> Option<u64> {
        self.kinds.get(target.0).filter(|kind| kind.is_wanted).map(|kind| kind.epoch)
    }

    /// What has to be read of a kind.
    #[must_use]
    pub fn selection(&self, target: TargetId) -> Selection {
        self.kinds.get(target.0).map(|kind| kind.selection.clone()).unwrap_or_default()
    }

    /// Everything that there is to work on.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let kinds = self.kinds.iter().enumerate();
        let keys = kinds.flat_map(|(index, kind)| {
            kind.objects
                .iter()
                .map(move |object| Key { target: TargetId(index), object: object.key.clone() })
        });
        keys.collect()
    }

    /// Where an object stands in the queue; `None` if there is none.
    #[must_use]
    pub fn position(&self, key: &Key, now: Now) -> Option<Position> {
        let object = self.kinds.get(key.target.0)?.objects.get(&key.object)?;
        Some(position(object.due.get().filter(|due| now.has_come(*due)), now.reached()))
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
