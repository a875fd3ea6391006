//! What is to be done about one finished object, and when (`docs/retention.md`, R1 and R30).
//!
//! The steps, in this order:
//!
//! 1. An object that no policy governs is left alone, and so is one that is being deleted.
//! 2. Its value, the number of seconds it lives, comes from its annotation, its kind's own TTL, or the rule that fits.
//! 3. The value is brought within the bounds of cluster policies.
//! 4. Its owner, and what guards it, may have to be waited for.
//! 5. A hold moves what is due.
//!
//! The Pods of an object may go before it, by the same steps 3 to 5.
//!
//! Everything follows from the facts, the policies and the time. Where more has to be known (whether an owner has
//! finished, whether a TrainJob is released) the plan asks for it, and is made again with the [answer](Answers). Plans are
//! cheap, so nothing is remembered of them: one is made again right before a request is sent.

mod answers;
mod due;
mod hold;
mod notice;
mod owner;
mod pods;
mod state;
mod untold;
mod value;

use trainjob_api::time::Timestamp;

pub use self::{
    answers::{Answers, FoundOwner, OwnerAnswer, Release},
    due::{Delay, Due, HoldEnd, Source},
    notice::{Notice, STUCK_AFTER},
    pods::{PodAct, PodsBefore},
    state::{Act, Question, State},
    value::OverrideProblem,
};
use self::{owner::OwnerStep, value::Value};
use crate::{
    facts::Facts,
    keep_last::{Candidate, GroupKey, Groups, Rank},
    kind::BuiltIn,
    policies::{Governed, NamespacePolicies},
    policy::{Delete, Lifetime, Policy, Rule},
    wish::HoldWish,
};

/// What is to be done about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan<'p> {
    /// The policy that governs it.
    pub policy: &'p Policy,
    /// The rule that fits.
    pub rule: &'p Rule,
    /// As what it is counted.
    pub state: State,
    /// When it is due to be deleted, or its owner instead; `None`: never, as things are.
    pub due: Option<Due>,
    /// When it would be due if nothing held it; `None`: never, as things are.
    pub due_unheld: Option<Timestamp>,
    /// When the kind's own controller deletes it by its own TTL, if that is before it is due, and before it is held by
    /// anything that this controller heeds.
    pub native: Option<Timestamp>,
    /// When its Pods are due, if they go before it and are not known to be gone.
    pub pods_due: Option<Due>,
    /// Which Pods these are; `None` if none go before it.
    pub pods: Option<PodsBefore>,
    /// What is to be done now.
    pub act: Act,
    /// When to plan again if no fact and no answer changes before.
    pub next: Option<Timestamp>,
    /// What is wrong with its annotation for a TTL, if it may have one.
    pub override_problem: Option<OverrideProblem>,
}

/// Plans for a finished object under the enforcing policies of its namespace; `None` if it is left alone and not counted.
///
/// Total and deterministic.
#[must_use]
pub fn plan<'p>(
    object: &Facts,
    answers: &Answers,
    groups: &Groups,
    policies: &'p NamespacePolicies,
    now: Timestamp,
) -> Option<Plan<'p>> {
    policies.governing(object).map(|governed| governed.plan(answers, groups, now))
}

/// What is deleted at one time, and what follows from the owner for it.
#[derive(Debug, Clone, Copy)]
struct Stage {
    due: Option<Due>,
    /// When that would be without a hold.
    unheld: Option<Timestamp>,
    /// When its owner may have to be asked for again, because an answer that holds for a while is what keeps it.
    asks_at: Option<Timestamp>,
    owner: OwnerStep,
}

impl<'p> Governed<'p, '_> {
    /// What the policy that governs the object does at `now`, the earliest that the time can be. While that is not known,
    /// nothing of it may be done (`docs/retention.md`, R45).
    #[must_use]
    pub fn plan(&self, answers: &Answers, groups: &Groups, now: Timestamp) -> Plan<'p> {
        if self.object.terminating.get().is_some() {
            return self.still(State::Terminating);
        }
        let Some(start) = self.start() else { return self.still(State::NoFinishTime) };
        if self.in_doubt {
            return self.still(State::Kept);
        }
        let candidate = self.candidate(answers, now);
        let value = Value::of(self, candidate.as_ref(), groups, start);
        let object = self.stage(value.due, value.by_rule, answers);
        let pods = self.pods_stage(object, answers, start);
        let waiting = self.waiting(&value, object, start);
        let (state, act) = self.step([object, pods], waiting, answers, (start, now));
        let needs_turn =
            act == self.deletion() && object.due.is_some_and(|due| due.source == Source::Count);
        let turn = candidate.as_ref().filter(|_| needs_turn);
        let is_others = turn.is_some_and(|candidate| is_others_turn(candidate, groups));
        Plan {
            due: object.due,
            due_unheld: object.unheld,
            native: self.native(object, start),
            pods_due: pods.due,
            pods: pods.due.and_then(|_| self.pods_before(pods)),
            act: if is_others { Act::Nothing } else { act },
            next: self.next([object, pods], (start, now)),
            override_problem: value.override_problem,
            ..self.still(state)
        }
    }

    /// The object as a candidate for a group, if the rule keeps the last of each and it belongs to one. The place it takes
    /// is to be noted in [`Groups`] when that changes.
    #[must_use]
    pub fn candidate(&self, answers: &Answers, now: Timestamp) -> Option<Candidate> {
        let Lifetime::KeepLast(keep_last) = self.decide.lifetime() else { return None };
        let object = self.object;
        let group = GroupKey {
            policy: self.policy.uid.clone(),
            rule: self.rule.name.clone(),
            namespace: self.namespace.clone(),
            values: keep_last.group_of(&object.labels)?,
        };
        let finished = self.finish.time.get()?;
        let rank = Rank { finished, created: object.created, uid: object.uid.clone() };
        let left_alone = matches!(owner::step(self, true, None), OwnerStep::Kept(_));
        let guards = self.finish.guards;
        let guarded = guards.archive || guards.release && answers.release != Some(Release::Done);
        let kept = object.terminating.get().is_some()
            || hold::is_wished(self, now)
            || guarded
            || left_alone;
        let counts_from = hold::ended(self, now).map_or(finished, |end| end.max(finished));
        Some(Candidate { group, rank, counts_from, takes_place: !kept })
    }

    /// From when on the object is old. One restored with an old status is not due at once.
    fn start(&self) -> Option<Timestamp> {
        self.finish.time.get().map(|time| time.max(self.object.created))
    }

    /// Whether its controller owner is what is deleted.
    #[must_use]
    pub const fn deletes_owner(&self) -> bool {
        matches!(self.decide.delete(), Delete::Owner)
    }

    const fn deletion(&self) -> Act {
        match self.decide.delete() {
            Delete::Object => Act::DeleteObject,
            Delete::Owner => Act::DeleteOwner,
        }
    }

    /// A plan to leave the object alone.
    const fn still(&self, state: State) -> Plan<'p> {
        Plan {
            policy: self.policy,
            rule: self.rule,
            state,
            due: None,
            due_unheld: None,
            native: None,
            pods_due: None,
            pods: None,
            act: Act::Nothing,
            next: None,
            override_problem: None,
        }
    }

    /// Steps 4 and 5: what is due, moved by the owner and by holds.
    fn stage(&self, due: Option<Due>, by_rule: bool, answers: &Answers) -> Stage {
        let owner = owner::step(self, by_rule, answers.owner);
        let moved = match (due, owner) {
            (None, _) | (_, OwnerStep::Kept(_)) => None,
            (Some(due), OwnerStep::NotBefore(end)) if end > due.at => {
                Some(Due { at: end, delay: Some(Delay::Owner), ..due })
            }
            (due, _) => due,
        };
        let of_owner = if let OwnerStep::Instead(hold) = owner { hold } else { None };
        let maximum = hold::maximum(self);
        let held = |due: Due| {
            let own = hold::applied(due, hold::wish(self), maximum);
            let owners = hold::applied(due, of_owner, maximum);
            if owners.at > own.at { owners } else { own }
        };
        let is_kept_by_answer = matches!(owner, OwnerStep::Kept(_))
            && owner::step(self, by_rule, None) == OwnerStep::Ask;
        let asks_at = due.filter(|_| is_kept_by_answer).map(|due| held(due).at);
        Stage { due: moved.map(held), unheld: moved.map(|due| due.at), asks_at, owner }
    }

    /// The Pods, which go before the object or with it. The minimum of the object is theirs, too.
    fn pods_stage(&self, object: Stage, answers: &Answers, start: Timestamp) -> Stage {
        let pods = self.decide.pods().filter(|_| !answers.pods_deleted);
        let due = pods.map(|pods| Due {
            at: start.plus(pods.ttl.max(self.bounds.minimum()).get()),
            source: Source::Policy,
            delay: None,
        });
        let stage = self.stage(due, true, answers);
        let is_before = |due: &Due| object.due.is_none_or(|object| due.at < object.at);
        Stage { due: stage.due.filter(is_before), ..stage }
    }

    fn pods_before(&self, pods: Stage) -> Option<PodsBefore> {
        let (stage, unheld) = (self.decide.pods()?, pods.unheld?);
        Some(PodsBefore { stage, unheld, maximum_hold: hold::maximum(self) })
    }

    /// When the kind's own controller deletes the object, if that is before it is due.
    fn native(&self, object: Stage, start: Timestamp) -> Option<Timestamp> {
        let heeds_holds = self.kind.is_some_and(BuiltIn::own_ttl_waits_for_hold);
        let is_held = matches!(object.due, Some(Due { delay: Some(Delay::Hold(_)), .. }));
        let end = value::own_ttl_ends(self, start).filter(|_| !(heeds_holds && is_held));
        end.filter(|end| object.due.is_none_or(|due| *end < due.at))
    }

    /// As what the object is counted while it is not due.
    fn waiting(&self, value: &Value, object: Stage, start: Timestamp) -> State {
        if let OwnerStep::Kept(state) = object.owner {
            return state;
        }
        if value.ungrouped {
            return State::Ungrouped;
        }
        let waits_for_hold = self.kind.is_some_and(BuiltIn::own_ttl_waits_for_hold);
        let ours = if waits_for_hold { value.due } else { object.due };
        let is_earlier = |native| ours.is_none_or(|ours| native < ours.at);
        if value::backstop(self, start).is_some_and(is_earlier) {
            return State::NativeTtl;
        }
        match object.due {
            None => State::Kept,
            Some(Due { delay: Some(Delay::Hold(_)), .. }) => State::Held,
            Some(_) => State::Pending,
        }
    }

    /// The state at `now` and what is done then; `waiting` is the state as long as the object is not due.
    fn step(
        &self,
        [object, pods]: [Stage; 2],
        waiting: State,
        answers: &Answers,
        (start, now): (Timestamp, Timestamp),
    ) -> (State, Act) {
        let has_come = |stage: Stage| stage.due.is_some_and(|due| due.at <= now);
        let ranked = matches!(self.decide.lifetime(), Lifetime::KeepLast(_));
        if has_come(object) {
            return self.act(object, answers, (start, now), self.deletion());
        }
        if has_come(pods) {
            return match self.act(pods, answers, (start, now), Act::DeletePods) {
                (State::Due, act) => (waiting, act),
                impeded => impeded,
            };
        }
        // Whether an object takes a place in its group decides about others, so that is asked at once.
        let asks = ranked && self.finish.guards.release && answers.release.is_none();
        (waiting, if asks { Act::Ask(Question::Release) } else { Act::Nothing })
    }

    /// What is done at its time: the act, unless something has to be known first or guards the object.
    fn act(
        &self,
        stage: Stage,
        answers: &Answers,
        (start, now): (Timestamp, Timestamp),
        act: Act,
    ) -> (State, Act) {
        let guards = self.finish.guards;
        let archived = self.archive_guard_ends(start).is_some_and(|end| end <= now);
        match (stage.owner, answers.release) {
            (OwnerStep::Ask, _) => (State::Owned, Act::Ask(Question::Owner)),
            (_, None) if guards.release => (State::Guarded, Act::Ask(Question::Release)),
            (_, Some(Release::Pending)) if guards.release => (State::Guarded, Act::Nothing),
            _ if guards.archive && !archived => (State::Guarded, Act::Nothing),
            _ => (State::Due, act),
        }
    }

    /// When a maximum overrides what waits to be archived.
    fn archive_guard_ends(&self, start: Timestamp) -> Option<Timestamp> {
        self.bounds.maximum().map(|maximum| start.plus(maximum.get()))
    }

    /// The next instant at which time alone changes the plan. Until an object is due that an answer keeps, nobody asks again, so
    /// that is one, too: its due time may have moved since it was asked about.
    fn next(&self, stages: [Stage; 2], (start, now): (Timestamp, Timestamp)) -> Option<Timestamp> {
        let guard = self.archive_guard_ends(start).filter(|_| self.finish.guards.archive);
        let hold = match hold::wish(self) {
            Some(HoldWish::Until(end)) => Some(end),
            Some(HoldWish::Unreadable) | None => None,
        };
        let ranked = matches!(self.decide.lifetime(), Lifetime::KeepLast(_));
        let dues = stages.into_iter().filter_map(|stage| stage.due.map(|due| due.at));
        let asks = stages.into_iter().filter_map(|stage| stage.asks_at);
        let others = guard.into_iter().chain(hold.filter(|_| ranked));
        dues.chain(asks).chain(others).filter(|instant| *instant > now).min()
    }
}

fn is_others_turn(candidate: &Candidate, groups: &Groups) -> bool {
    let group = groups.get(&candidate.group);
    group.is_some_and(|group| group.is_deleting_other_than(&candidate.rank.uid))
}
