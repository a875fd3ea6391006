//! What policies find, counted in slices.

use std::time::Duration;

use trainjob_core::Now;
use trainjob_retention_core::breaker::News;

use super::{
    ClusterState,
    book::{PolicyKey, Stored},
    numbers::Numbers,
    tally::{KindState, Survey},
};
use crate::key::{Key, TargetId};

impl ClusterState {
    /// Counts so many objects more of a kind. True if there are more.
    pub fn survey(
        &mut self,
        target: TargetId,
        survey: &mut Survey,
        count: usize,
        now: Now,
    ) -> bool {
        let time = now.reached().unwrap_or(now.stamp());
        let Some(kind) = self.kinds.get_mut(target.0) else { return false };
        let keys = kind.slice(survey.after.as_ref(), count);
        for key in &keys {
            let policies = kind.there(&mut self.namespaces, &key.namespace);
            let Some(object) = kind.objects.get(key) else { continue };
            let loops = self.recreations.is_loop(&Key { target, object: key.clone() }, time);
            let governing = policies.governing(&object.facts).into_iter();
            for governed in governing.chain(policies.audited(&object.facts)) {
                let plan = governed.plan(&object.known_answers(), &kind.groups, time);
                let tally = survey.tallies.entry(governed.policy.uid.clone()).or_default();
                tally.count(&governed, &plan, time);
                tally.counts.recreated += u64::from(loops);
            }
        }
        for object in &keys {
            self.observe(&Key { target, object: object.clone() }, News::Other, now);
        }
        survey.after = keys.last().cloned();
        keys.len() == count
    }

    /// Counts so many objects more of a kind for its metrics, and changes nothing by that. True if there are more. Of a kind
    /// that is not known completely nothing is counted.
    pub fn count(
        &mut self,
        target: TargetId,
        numbers: &mut Numbers,
        count: usize,
        now: Now,
    ) -> bool {
        let time = now.reached().unwrap_or(now.stamp());
        let Some(kind) = self.kinds.get_mut(target.0) else { return false };
        if !kind.is_listed || !kind.evaluation.is_judged() {
            return false;
        }
        let keys = kind.slice(numbers.after.as_ref(), count);
        for key in &keys {
            let policies = kind.there(&mut self.namespaces, &key.namespace);
            let Some(object) = kind.objects.get(key) else { continue };
            let answers = object.known_answers();
            if let Some(governed) = policies.governing(&object.facts) {
                let plan = governed.plan(&answers, &kind.groups, time);
                numbers.govern(&governed, &plan, time);
                numbers.expect(&plan, time);
            }
            for governed in policies.audited(&object.facts) {
                numbers.expect(&governed.plan(&answers, &kind.groups, time), time);
            }
        }
        numbers.after = keys.last().cloned();
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

    /// A survey of a kind that began at `began` has ended, so all that was due then was looked at (R40). That counts if
    /// the watches were live.
    pub fn surveyed(&mut self, target: TargetId, began: Now, monotonic: Duration) {
        let is_live = self.liveness.is_live(Self::sources(target), monotonic);
        let is_judged = self.kinds.get(target.0).is_some_and(|kind| kind.evaluation.is_judged());
        if let Some(began) = began.reached().filter(|_| is_live && is_judged) {
            self.breakers.looked(target, began);
        }
    }
}
