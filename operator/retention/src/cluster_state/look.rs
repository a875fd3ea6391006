//! What is to be done about one object now, and what came of it.

use std::time::Duration;

use trainjob_api::time::Timestamp;
use trainjob_core::Now;
use trainjob_retention_core::{
    breaker::{DueObject, Hold, News},
    keep_last::Groups,
    plan::{Act, Due, OwnerAnswer, Plan, Question, Release},
    policies::Governed,
    uid::Uid,
};

use super::{
    ClusterState, Effects, looked_at,
    object::{Object, Progress},
    rates::Rates,
    step::{Deletion, Reply, Step, Wait},
};
use crate::key::Key;

/// How long it is until another look when a watch is not live.
const UNTIL_LIVE: Duration = Duration::from_secs(1);
/// How long it is until another look at an object about which nothing is asked because its policy lacks a right.
const WHILE_PAUSED: Duration = Duration::from_mins(1);

impl ClusterState {
    /// What is to be done about an object now. `monotonic` is a time that nobody sets.
    ///
    /// The plan is made anew, on all that is known at this moment. A deletion has the UID and the version of the facts that
    /// it was planned on (R33).
    pub fn look(&mut self, key: &Key, now: Now, monotonic: Duration) -> Step {
        let is_live = self.liveness.is_live(Self::sources(key.target), monotonic);
        let is_known = self.book.is_listed() && self.namespaces.is_listed();
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return Step::Gone };
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let Some(object) = kind.objects.get_mut(&key.object) else { return Step::Gone };
        if !is_known || !kind.is_listed || !kind.evaluation.is_judged() {
            // The evaluation puts it into the queue.
            lose_leave(object);
            return Step::Idle;
        }
        let Some(reached) = now.reached() else {
            lose_leave(object);
            return Step::Wait(wait_for_time(object));
        };
        let governed = policies.governing(&object.facts);
        let Some(governed) = governed else {
            object.due = None;
            lose_leave(object);
            self.breakers.forget(object);
            return Step::Wait(Wait::default());
        };
        let plan = governed.plan(&object.answers(monotonic), &kind.groups, reached);
        let (policy, due) = (governed.policy.uid.clone(), plan.due);
        let is_paused = self.rights.is_paused(&policy);
        let step = without_deletion(&governed, &plan, object.asks_again_in(monotonic), is_paused);
        let observed = DueObject::of(&plan, &key.object.namespace, reached);
        let deletes = matches!(plan.act, Act::DeleteObject | Act::DeleteOwner) && !is_paused;
        let deletion = due.filter(|_| deletes).map(|due| deletion(&governed, &plan, due));
        let observed = observed.map(|object| (&policy, object));
        self.breakers.observe(object, observed, News::Other, reached);
        object.due = due.map(|due| due.at);
        let Some(deletion) = deletion else {
            leave_line((object, &mut self.rates), key, &policy);
            return step;
        };
        let may = self.breakers.may_delete(&policy, &object.facts.uid);
        if let Some(wait) = hindrance(may, object.rests(monotonic), is_live) {
            leave_line((object, &mut self.rates), key, &policy);
            return Step::Wait(wait);
        }
        go_on((&mut kind.groups, &mut self.rates), object, (key, &policy), deletion)
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
                    && object.judged_by.as_ref() == Some(policy)
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

    /// Takes in how the owner of an object is.
    pub fn answered(&mut self, key: &Key, answer: OwnerAnswer, monotonic: Duration) {
        let kind = self.kinds.get_mut(key.target.0);
        if let Some(object) = kind.and_then(|kind| kind.objects.get_mut(&key.object)) {
            object.answered(answer, monotonic);
        }
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
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return nothing };
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
            look.extend(kind.dispensable(&place.candidate.group, place.count));
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
) -> Option<Wait> {
    let at_most = |longest| Some(Wait { until: None, longest: Some(longest) });
    match (may, rests) {
        // It is queued again when it may go.
        (None | Some(Err(_)), _) => Some(Wait::default()),
        (Some(Ok(())), Some(rest)) => at_most(rest),
        (Some(Ok(())), None) if !is_live => at_most(UNTIL_LIVE),
        (Some(Ok(())), None) => None,
    }
}

/// An object that may not be deleted now leaves the line of its policy, and loses the leave that it has.
fn leave_line((object, rates): (&mut Object, &mut Rates), key: &Key, policy: &Uid) {
    if let Progress::Waits(since) = object.progress {
        rates.leave(policy, key, since);
        object.progress = Progress::None;
    }
    lose_leave(object);
}

/// Leave that is not used at once is lost: saved up, it would exceed the rate later.
fn lose_leave(object: &mut Object) {
    if object.progress == Progress::HasLeave {
        object.progress = Progress::None;
    }
}

/// The next thing that is done with an object that may be deleted.
fn go_on(
    (groups, rates): (&mut Groups, &mut Rates),
    object: &mut Object,
    (key, policy): (&Key, &Uid),
    deletion: Deletion,
) -> Step {
    let due = deletion.due.at;
    match object.progress {
        // The watch tells how it goes on.
        Progress::Accepted => Step::Wait(Wait::default()),
        Progress::HasLeave => {
            for place in &object.places {
                groups.begin_deletion(&place.candidate);
            }
            Step::Delete(Box::new(deletion))
        }
        Progress::None | Progress::Waits(_) => {
            if let Progress::Waits(since) = object.progress {
                rates.leave(policy, key, since);
            }
            object.progress = Progress::Waits(due);
            rates.wait(policy, key, due);
            Step::Line
        }
    }
}

fn wait_for_time(object: &Object) -> Wait {
    // A timer for an instant goes off once it is known to have come.
    Wait { until: object.due.or(Some(Timestamp(0))), longest: None }
}

/// What is done about an object that is not deleted now. `asks_again` is how long an answer holds that keeps it.
fn without_deletion(
    governed: &Governed<'_, '_>,
    plan: &Plan<'_>,
    asks_again: Option<Duration>,
    is_paused: bool,
) -> Step {
    match plan.act {
        Act::Ask(_) if is_paused => wait(plan, Some(WHILE_PAUSED)),
        // One whose policy pauses is queued again when the right is given.
        Act::DeleteObject | Act::DeleteOwner => Step::Idle,
        Act::Ask(Question::Owner) => ask_owner(governed),
        Act::Ask(Question::Release) => Step::AskRelease(governed.object.uid.clone()),
        // That is not done yet, so the object waits for its own time, or for good.
        Act::DeletePods => wait(plan, None),
        Act::Nothing => wait(plan, asks_again),
    }
}

fn wait(plan: &Plan<'_>, longest: Option<Duration>) -> Step {
    Step::Wait(Wait { until: plan.next, longest })
}

fn ask_owner(governed: &Governed<'_, '_>) -> Step {
    let owner = governed.object.controller().cloned();
    owner.map_or_else(|| Step::Wait(Wait::default()), Step::AskOwner)
}

fn deletion(governed: &Governed<'_, '_>, plan: &Plan<'_>, due: Due) -> Deletion {
    let object = governed.object;
    Deletion {
        uid: object.uid.clone(),
        resource_version: object.resource_version.clone(),
        propagation: governed.policy.propagation,
        owner: object.controller().filter(|_| plan.act == Act::DeleteOwner).cloned(),
        policy: governed.policy.name.clone(),
        rule: governed.rule.name.clone(),
        due,
        outcome: governed.finish.outcome,
    }
}
