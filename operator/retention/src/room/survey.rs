//! What policies find, counted in slices.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::uid::Uid;

use super::{
    Breaker, Room,
    book::{PolicyKey, Stored},
    tally::Tally,
};
use crate::key::TargetId;

/// What the policies of a kind find.
#[derive(Debug, Default)]
pub struct Survey {
    tallies: BTreeMap<Uid, Tally>,
    after: Option<ObjectKey>,
}

/// How it is with a target kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindState {
    /// The configuration does not name it.
    NotATarget,
    /// It is not known completely yet, or not evaluated.
    Syncing,
    /// All is known. So many objects could not be read.
    Known {
        /// How many objects could not be read.
        skipped: u64,
    },
}

impl Survey {
    /// What a policy finds.
    #[must_use]
    pub fn tally(&self, policy: &Uid) -> Option<&Tally> {
        self.tallies.get(policy)
    }
}

impl Room {
    /// Counts so many objects more of a kind. True if there are more.
    pub fn survey(
        &mut self,
        target: TargetId,
        survey: &mut Survey,
        count: usize,
        now: Timestamp,
    ) -> bool {
        let Some(kind) = self.kinds.get_mut(target.0) else { return false };
        let keys = kind.slice(survey.after.as_ref(), count);
        for key in &keys {
            let policies = kind.there(&mut self.namespaces, &key.namespace);
            let Some(object) = kind.objects.get(key) else { continue };
            let governing = policies.governing(&object.facts).into_iter();
            for governed in governing.chain(policies.audited(&object.facts)) {
                let plan = governed.plan(&object.known_answers(), &kind.groups, now);
                let tally = survey.tallies.entry(governed.policy.uid.clone()).or_default();
                tally.count(&governed, &plan, now);
            }
        }
        survey.after = keys.last().cloned();
        keys.len() == count
    }

    /// All policies as they are stored.
    pub fn policies(&self) -> impl Iterator<Item = (&PolicyKey, &Stored)> {
        self.book.iter()
    }

    /// A policy as it is stored.
    #[must_use]
    pub fn stored(&self, key: &PolicyKey) -> Option<&Stored> {
        self.book.get(key)
    }

    /// The target kind that a policy is about, and how it is with that.
    #[must_use]
    pub fn kind_of(&self, stored: &Stored) -> (Option<TargetId>, KindState) {
        let target = match stored {
            Ok(stored) => Some(&stored.target),
            Err(stored) => stored.target.as_ref(),
        };
        let index = self.kinds.iter().position(|kind| Some(&kind.target) == target);
        let Some((index, kind)) = index.and_then(|index| Some((index, self.kinds.get(index)?)))
        else {
            return (None, KindState::NotATarget);
        };
        let is_known = kind.is_listed && kind.evaluation.is_judged();
        let state =
            if is_known { KindState::Known { skipped: kind.skipped } } else { KindState::Syncing };
        (Some(TargetId(index)), state)
    }

    /// How a policy was judged; `None` if it has not been.
    #[must_use]
    pub fn breaker(&self, policy: &Uid) -> Option<&Breaker> {
        self.breakers.get(policy)
    }
}
