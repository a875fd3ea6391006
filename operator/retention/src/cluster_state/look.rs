//! What is to be done about one object now, and what came of it.

use std::time::Duration;

use trainjob_api::time::Timestamp;
use trainjob_core::Now;
use trainjob_retention_core::{
    breaker::{DueObject, Hold},
    keep_last::Groups,
    maybe_timestamp::MaybeTimestamp,
    plan::{Act, Due, OwnerAnswer, Plan, Release},
    policies::Governed,
    uid::Uid,
};

use super::{
    ClusterState, Effects, audit,
    flows::{Flow, Flows},
    looked_at,
    notices::Told,
    object::{Object, Progress},
    rates::Rates,
    step::{Deletion, PodsDeletion, Reply, Step, Wait},
    turn::Turn,
    without_deletion::without_deletion,
};
use crate::key::Key;

/// How long it is until another look when a watch is not live.
const UNTIL_LIVE: Duration = Duration::from_secs(1);
/// Until the time is known: any instant has come by then. What led to the look may have changed when the object is due.
const WAIT_FOR_TIME: Wait = Wait { until: Some(Timestamp(0)), longest: None };

impl ClusterState {
    /// What is to be done about an object now. `monotonic` is a time that nobody sets.
    ///
    /// The plan is made anew, on all that is known at this moment. A deletion has the UID and the version of the facts that
    /// it was planned on (R33).
    pub fn look(&mut self, key: &Key, now: Now, monotonic: Duration) -> Step {
        let (step, turn) = self.plan_step(key, now, monotonic);
        if let Some(kind) = self.kinds.get_mut(key.target.0) {
            kind.note_turn(&key.object, turn);
        }
        step
    }

    /// What is to be done about an object now, and what that means for the turns in its groups.
    fn plan_step(&mut self, key: &Key, now: Now, monotonic: Duration) -> (Step, Turn) {
        let is_live = self.liveness.is_live(Self::sources(key.target), monotonic);
        let is_known = self.book.is_listed() && self.namespaces.is_listed();
        let gone = (Step::Gone, Turn::Stays);
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return gone };
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        if let Some(reached) = now.reached() {
            kind.note_end_of_hold(&key.object, &policies, &mut self.breakers, reached);
        }
        let Some(object) = kind.objects.get_mut(&key.object) else { return gone };
        if !is_known || !kind.is_listed || !kind.evaluation.is_judged() {
            // The evaluation puts it into the queue.
            lose_leave(object);
            return (Step::Idle, Turn::Stays);
        }
        let Some(reached) = now.reached() else {
            lose_leave(object);
            return (Step::Wait(WAIT_FOR_TIME), Turn::Stays);
        };
        let governed = policies.governing(&object.facts);
        let Some(governed) = governed else {
            object.due = MaybeTimestamp::NONE;
            lose_leave(object);
            self.breakers.forget(object);
            let times = (reached, monotonic);
            let step = audit::step(&policies, object, &kind.groups, &self.rights, times);
            return (step, Turn::PassesOn);
        };
        let mut plan = governed.plan(&object.answers(monotonic), &kind.groups, reached);
        let told = Told::of(&governed, &plan, object, reached);
        plan.next = plan.next.into_iter().chain(told.next).min();
        let reference = governed.policy.reference();
        let (policy, due) = (governed.policy.uid.clone(), due_of(&plan));
        let is_paused = self.rights.is_paused(&policy);
        let step = without_deletion(&governed, &plan, object.asks_again_in(monotonic), is_paused);
        // An owner that is asked for again is as it was until the answer is there.
        let known = governed.plan(&object.known_answers(), &kind.groups, reached);
        let observed = DueObject::of(&known, &key.object.namespace, reached);
        let deletion = due.filter(|_| !is_paused).and_then(|due| deletion(&governed, &plan, due));
        let observed = observed.map(|object| (&policy, object));
        self.breakers.observe(object, observed, reached);
        object.due = due.map(|due| due.at).into();
        told.tell(object, (key, reference), &mut self.news);
        let Some((deletion, due)) = deletion.zip(object.due.get()) else {
            object.leave_line(&mut self.rates, &policy, key);
            lose_leave(object);
            let times = (reached, monotonic);
            let audited = || audit::step(&policies, object, &kind.groups, &self.rights, times);
            return (step.or_before(audited), Turn::without_deletion(&plan, is_paused));
        };
        let may = self.breakers.may_delete(&policy, &object.facts.uid);
        let rests = object.rests(monotonic, &plan);
        let turn = Turn::before(&deletion, may, rests);
        let hindrance = hindrance(may, rests, is_live, plan.next);
        let (groups, rates, flows) = (&mut kind.groups, &mut self.rates, &mut self.flows);
        let (since, next) = (object.in_line_since(due, reached), plan.next);
        let go = Go { groups, rates, flows, key, policy: &policy, since, next, monotonic };
        let step = go.on(object, deletion, hindrance);
        let turn = if matches!(step, Step::Delete(_)) { Turn::Takes } else { turn };
        (step, turn)
    }

    /// Gives leave to the object whose turn it is in the lines of its policy, and returns it.
    ///
    /// # Errors
    ///
    /// How long it is until there is leave for one; `None` if nobody waits, or the time is not known.
    pub fn give_leave(&mut self, now: Now, monotonic: Duration) -> Result<Key, Option<Duration>> {
        let reached = now.reached().ok_or(None)?;
        let kinds = &self.kinds;
        let waits = |policy: &Uid, key: &Key| {
            let object = kinds.get(key.target.0).and_then(|kind| kind.objects.get(&key.object));
            // Under another policy by now, it stands in the line of that.
            object.is_some_and(|object| {
                matches!(object.progress, Progress::Waits(_))
                    && object.judged_by.as_deref() == Some(policy)
            })
        };
        let key = self.rates.next(reached, monotonic, waits)?;
        let kind = self.kinds.get_mut(key.target.0);
        if let Some(object) = kind.and_then(|kind| kind.objects.get_mut(&key.object))
            && matches!(object.progress, Progress::Waits(_))
        {
            object.progress = Progress::HasLeave;
        }
        Ok(key)
    }

    /// Takes in how the owner with this UID of an object is. By now another object may have the name, with another owner.
    pub fn answered(
        &mut self,
        key: &Key,
        owner: &Uid,
        answer: OwnerAnswer,
        now: Now,
        monotonic: Duration,
    ) {
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return };
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let is_its = |object: &&mut Object| {
            object.facts.controller().is_some_and(|controller| controller.uid == *owner)
        };
        let Some(object) = kind.objects.get_mut(&key.object).filter(is_its) else { return };
        if object.answered(answer, monotonic) {
            // That lets go what waits for it, and is no reason to delete the owner itself.
            let governed = policies.governing(&object.facts);
            object.end_is_news |= governed.is_some_and(|governed| !governed.deletes_owner());
            self.observe(key, now);
        }
    }

    /// There was no answer about the owner of an object. Returns how long it is until the next try, 10 seconds to 5 minutes (R24);
    /// `None` if the object is gone.
    pub fn ask_failed(&mut self, key: &Key) -> Option<Duration> {
        let kind = self.kinds.get_mut(key.target.0)?;
        Some(kind.objects.get_mut(&key.object)?.ask_failed())
    }

    /// Takes in whether the TrainJob with this UID is released (R13). Then it takes a place among those that a rule keeps.
    pub fn release_answered(
        &mut self,
        key: &Key,
        uid: &Uid,
        answer: Release,
        now: Now,
        monotonic: Duration,
    ) -> Effects {
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return Effects::default() };
        let object = kind.objects.get_mut(&key.object).filter(|object| object.facts.uid == *uid);
        let Some(object) = object else { return Effects::default() };
        object.release_answered(answer, monotonic);
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let look = kind.place(&key.object, &policies, now.reached().unwrap_or(now.stamp()));
        looked_at(key.target, look)
    }

    /// Takes in what came of the deletion of the object with this UID. Says how long it is until the next try; `None`:
    /// until the watch tells something.
    pub fn replied(
        &mut self,
        key: &Key,
        uid: &Uid,
        reply: Reply,
        monotonic: Duration,
    ) -> (Option<Duration>, Effects) {
        let nothing = (None, Effects::default());
        if reply == Reply::Accepted {
            self.note_deleted(key, uid, monotonic);
        }
        let may_others_go =
            self.flows.replied(&Flow::of(key, false), &key.object, reply, monotonic);
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return nothing };
        if may_others_go {
            kind.stale.add([&*key.object.namespace]);
        }
        let object = kind.objects.get_mut(&key.object).filter(|object| object.facts.uid == *uid);
        // The watch was faster.
        let Some(object) = object else { return nothing };
        if reply == Reply::Accepted {
            object.accepted();
            return nothing;
        }
        let wait = object.failed(reply.wait(), monotonic);
        let places = object.places.clone();
        let mut look = Vec::new();
        for place in &places {
            kind.groups.end_deletion(&place.candidate);
            look.extend(kind.next_in_turn(&place.candidate.group));
        }
        // Whose turn it is not waits for that; this one is tried again in its time.
        look.retain(|other| *other != key.object);
        (Some(wait), looked_at(key.target, look))
    }
}

/// What keeps an object that is due from being deleted now, and until when; `None`: nothing does.
fn hindrance(
    may: Option<Result<(), Hold>>,
    rests: Option<Duration>,
    is_live: bool,
    next: Option<Timestamp>,
) -> Option<Wait> {
    let at_most = |longest| Some(Wait { until: next, longest: Some(longest) });
    match (may, rests) {
        // It is queued again when it may go.
        (None | Some(Err(_)), _) => Some(Wait { until: next, longest: None }),
        (Some(Ok(())), Some(rest)) => at_most(rest),
        (Some(Ok(())), None) if !is_live => at_most(UNTIL_LIVE),
        (Some(Ok(())), None) => None,
    }
}

/// Leave that is not used at once is lost: saved up, it would exceed the rate later.
fn lose_leave(object: &mut Object) {
    if object.progress == Progress::HasLeave {
        object.progress = Progress::None;
    }
}

/// What is needed to go on with an object that is due.
struct Go<'s> {
    groups: &'s mut Groups,
    rates: &'s mut Rates,
    flows: &'s mut Flows,
    key: &'s Key,
    policy: &'s Uid,
    /// Since when it counts in the line of the policy.
    since: Timestamp,
    /// When its plan changes.
    next: Option<Timestamp>,
    monotonic: Duration,
}

impl Go<'_> {
    /// The next thing that is done with the object, which is `deletion` in the end.
    fn on(mut self, object: &mut Object, deletion: Step, hindrance: Option<Wait>) -> Step {
        let flow = Flow::of(self.key, matches!(deletion, Step::DeletePods(_)));
        if self.flows.blocks(&flow, &self.key.object, self.monotonic) {
            // Others of the policy do not wait behind it. It is looked at again when its flow may be probed, and goes on.
            self.give_up_turn(object);
            let longest = hindrance.and_then(|wait| wait.longest);
            return Step::Wait(Wait { until: self.next, longest });
        }
        if let Some(wait) = hindrance {
            object.leave_line(self.rates, self.policy, self.key);
            lose_leave(object);
            return Step::Wait(wait);
        }
        match object.progress {
            // The watch tells how it goes on.
            Progress::Accepted => Step::Wait(Wait::default()),
            Progress::HasLeave => {
                let is_object = matches!(deletion, Step::Delete(_));
                for place in object.places.iter().filter(|_| is_object) {
                    self.groups.begin_deletion(&place.candidate);
                }
                self.flows.begin(&flow, &self.key.object, self.monotonic);
                deletion
            }
            Progress::None | Progress::Waits(_) => {
                object.leave_line(self.rates, self.policy, self.key);
                object.progress = Progress::Waits(self.since);
                self.rates.wait(self.policy, self.key, self.since);
                Step::Line
            }
        }
    }

    fn give_up_turn(&mut self, object: &mut Object) {
        object.leave_line(self.rates, self.policy, self.key);
        if object.progress == Progress::HasLeave {
            object.progress = Progress::None;
            self.rates.give_back(self.policy);
        }
    }
}

/// What is due first of an object: its Pods, if they go before it, or itself.
pub(super) fn due_of(plan: &Plan<'_>) -> Option<Due> {
    match plan.act {
        Act::DeleteObject | Act::DeleteOwner => plan.due,
        Act::DeletePods | Act::Ask(_) | Act::Nothing => plan.pods_due.or(plan.due),
    }
}

/// What is deleted now; `None`: nothing.
pub(super) fn deletion(governed: &Governed<'_, '_>, plan: &Plan<'_>, due: Due) -> Option<Step> {
    let of = deletion_of(governed, plan, due);
    match (plan.act, plan.pods) {
        (Act::DeleteObject | Act::DeleteOwner, _) => Some(Step::Delete(Box::new(of))),
        (Act::DeletePods, Some(pods)) => {
            Some(Step::DeletePods(Box::new(PodsDeletion { of, pods })))
        }
        (Act::DeletePods, None) | (Act::Ask(_) | Act::Nothing, _) => None,
    }
}

fn deletion_of(governed: &Governed<'_, '_>, plan: &Plan<'_>, due: Due) -> Deletion {
    let object = governed.object;
    Deletion {
        uid: object.uid.clone(),
        resource_version: object.resource_version.to_string().into(),
        propagation: governed.policy.propagation,
        owner: object.controller().filter(|_| plan.act == Act::DeleteOwner).cloned(),
        policy: governed.policy.reference(),
        rule: governed.rule.name.clone(),
        due,
        outcome: governed.finish.outcome,
    }
}
