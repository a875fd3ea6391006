//! What policies find, counted in slices.

use std::time::Duration;

use trainjob_api::time::Timestamp;
use trainjob_core::Now;
use trainjob_retention_core::breaker::DueObject;

use super::{
    ClusterState,
    book::{PolicyKey, Stored},
    found::{Finding, Found},
    kind::Kind,
    object::{Object, ObjectPods},
    surveys::Basis,
    tally::{KindState, Survey},
};
use crate::key::{Key, TargetId};

/// What has to be looked at within so many seconds is told, so that timers are armed for that alone. Surveys come far more
/// often.
pub const SOON: i64 = 3_600;
/// For so many seconds numbers are shown that time alone has changed. To count a hundred thousand objects takes longer than
/// all else that is done at rest.
const SHOWN: i64 = 300;

impl ClusterState {
    /// Counts so many objects more of a kind. True if there are more.
    ///
    /// It is planned anew for those alone of which something may have changed, and for a few others.
    pub fn survey(
        &mut self,
        target: TargetId,
        survey: &mut Survey,
        count: usize,
        now: Now,
    ) -> bool {
        let time = now.reached().unwrap_or(now.stamp());
        let Some(kind) = self.kinds.get_mut(target.0) else { return false };
        if survey.after.is_none() {
            kind.surveys.begin(kind.policies.len(), time);
        }
        if survey.register != kind.surveys.registers() {
            *survey = Survey::begin(kind.surveys.registers());
        }
        let after = survey.after.take();
        let is_disturbed = after.is_some() && survey.basis != Some(kind.basis());
        let has_loops = self.recreations.loops(time) > 0;
        let (mut plan_anew, mut last, mut counted) = (Vec::new(), None, 0);
        for object in kind.objects.after(after.as_ref()).take(count) {
            let key = &object.key;
            (last, counted) = (Some(key), counted + 1);
            let named = || Key { target, object: key.clone() };
            let is_planned_anew = kind.surveys.checks(survey.counted + counted)
                || has_loops && self.recreations.is_loop(&named(), time)
                || !survey.count_found(kind, object, time);
            if is_planned_anew {
                plan_anew.push(key.clone());
                continue;
            }
            survey.holds(time, object.found.until());
            if let Some(until) = soon(&object.found, time) {
                survey.soon.push((named(), until));
            }
        }
        (survey.after, survey.counted) = (last.cloned(), survey.counted + counted);
        for key in plan_anew {
            self.find(Key { target, object: key }, survey, now);
        }
        survey.holds(time, None);
        let basis = self.kinds.get(target.0).map(Kind::basis);
        let is_observed = now.reached().is_some();
        survey.basis = basis.filter(|_| is_observed && !is_disturbed && !has_loops);
        counted == count
    }

    /// Whether a survey that has ended would count the same now, but for how many objects go within an hour, a day or a week,
    /// which it then says as of some minutes ago.
    #[must_use]
    pub fn holds(&self, target: TargetId, survey: &Survey, now: Now) -> bool {
        let time = now.reached().unwrap_or(now.stamp());
        let is_same = self.kinds.get(target.0).map(Kind::basis) == survey.basis;
        let is_in_time = survey.holds.is_some_and(|(began, until)| {
            (began..began.plus(SHOWN)).contains(&time) && time < until
        });
        survey.basis.is_some() && is_same && is_in_time && self.recreations.loops(time) == 0
    }

    /// Plans for an object, counts it, and remembers what was found.
    fn find(&mut self, key: Key, survey: &mut Survey, now: Now) {
        let time = now.reached().unwrap_or(now.stamp());
        let is_loop = self.recreations.is_loop(&key, time);
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return };
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let until = kind.objects.get(&key.object).and_then(|object| object.found.until());
        if let Some(reached) = now.reached() {
            kind.note_end_of_hold(&key.object, &policies, &mut self.breakers, reached);
        }
        let Some(object) = kind.objects.get_mut(&key.object) else { return };
        let answers = object.known_answers();
        let (mut findings, mut next, mut due) = (Vec::new(), None, None);
        let governing = policies.governing(&object.facts).map(|governed| (governed, true));
        let audited = policies.audited(&object.facts).map(|governed| (governed, false));
        for (governed, is_governing) in governing.into_iter().chain(audited) {
            let plan = governed.plan(&answers, &kind.groups, time);
            let finding =
                Finding::of((&governed, is_governing), &plan, kind.surveys.register_mut());
            if let Some(tally) = survey.of(finding.policy, kind.surveys.register()) {
                tally.count(&finding, &key.object, &object.facts, time);
                tally.counts.recreated += u64::from(is_loop);
                tally.expect(&key.object, &governed, &plan, &finding);
            }
            next = next.into_iter().chain(plan.next).min();
            if is_governing {
                next = next.into_iter().chain(governed.next_notice(&plan, time)).min();
                let observed = DueObject::of(&plan, &key.object.namespace, time);
                due = observed.map(|due| (&governed.policy.uid, due));
            }
            findings.push(finding);
        }
        let edition = kind.surveys.edition(object, &kind.groups);
        let found = Found::new(findings, next, edition, answers.pods_deleted);
        let is_due = due.is_some();
        if let Some(reached) = now.reached() {
            self.breakers.observe(object, due, reached);
        }
        // If its time has come since, it is looked at once more: a timer may be lost. So it is if others of its group made it due.
        let is_news = is_due && object.due.get().is_none_or(|due| due > time);
        let passed = until.filter(|until| *until <= time).or(is_news.then_some(time));
        survey.holds(time, found.until());
        if let Some(until) = passed.or_else(|| soon(&found, time)) {
            survey.soon.push((key, until));
        }
        // Without the time no breaker was told, so that the next survey has to find it anew.
        object.found = if now.reached().is_some() { found } else { Found::default() };
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

/// When an object of which this was found has to be looked at, if that is soon.
fn soon(found: &Found, now: Timestamp) -> Option<Timestamp> {
    found.until().filter(|until| *until <= now.plus(SOON))
}

impl Kind {
    fn basis(&self) -> Basis {
        self.surveys.basis(&self.objects, &self.groups)
    }
}

impl Survey {
    /// Of an object another plan may come from `until` on.
    fn holds(&mut self, began: Timestamp, until: Option<Timestamp>) {
        let (_, earliest) = self.holds.get_or_insert((began, Timestamp(i64::MAX)));
        *earliest = until.map_or(*earliest, |until| until.min(*earliest));
    }

    /// Counts an object by what was found of it. False if that does not hold, or does not say enough.
    fn count_found(&mut self, kind: &Kind, object: &Object, now: Timestamp) -> bool {
        let edition = kind.surveys.edition(object, &kind.groups);
        let pods_deleted = object.pods == ObjectPods::None;
        let Some(findings) = object.found.valid(now, edition, pods_deleted) else { return false };
        let register = kind.surveys.register();
        for finding in findings {
            // Of the earliest to go more is said.
            if self.of(finding.policy, register).is_none_or(|tally| tally.is_early(finding)) {
                return false;
            }
        }
        for finding in findings {
            if let Some(tally) = self.of(finding.policy, register) {
                tally.count(finding, &object.key, &object.facts, now);
            }
        }
        true
    }
}
