//! Owners: who has to have finished, or goes instead (`docs/retention.md`, R23 to R26).

use trainjob_retention_core::{
    facts::{Facts, Owner},
    keep_last::Groups,
    outcome::{Bond, Outcome},
    plan::{Act, Answers, Delay, FoundOwner, HoldEnd, OwnerAnswer, Plan, Question, State, plan},
    policies::NamespacePolicies,
    policy::{Annotation, Owned, Policy},
    seconds::Seconds,
    wish::{HoldWish, TtlWish, Wishes},
};

use crate::scene::{
    at, controller, delete_owner, job, job_with, owned, policy, seconds, there, ttl,
};

/// A plan with this answer about the owner.
fn plan_with<'p>(
    object: &Facts,
    owner: Option<OwnerAnswer>,
    policies: &'p NamespacePolicies,
    now: i64,
) -> Plan<'p> {
    let answers = Answers { owner, ..Answers::default() };
    plan(object, &answers, &Groups::default(), policies, at(now)).unwrap()
}

fn found(finished: Option<i64>) -> OwnerAnswer {
    OwnerAnswer::Found(FoundOwner { finished: finished.map(at), ..FoundOwner::default() })
}

const GONE: Option<OwnerAnswer> = Some(OwnerAnswer::Gone);
const ASK: Act = Act::Ask(Question::Owner);

fn by(owned: Owned) -> Policy {
    Policy { owned, annotation: Annotation::Allowed, ..policy(ttl(60)) }
}

#[test]
fn a_rule_waits_for_the_owner_as_the_policy_says() {
    for (owned, answer, now, state, act, due) in [
        (Owned::Skip, None, 60, State::Owned, Act::Nothing, None),
        (Owned::Skip, GONE, 60, State::Owned, Act::Nothing, None),
        (Owned::Any, None, 59, State::Pending, Act::Nothing, Some(60)),
        (Owned::Any, None, 60, State::Due, Act::DeleteObject, Some(60)),
        (Owned::AfterOwner, None, 59, State::Pending, Act::Nothing, Some(60)),
        (Owned::AfterOwner, None, 60, State::Owned, ASK, Some(60)),
        (Owned::AfterOwner, GONE, 60, State::Due, Act::DeleteObject, Some(60)),
        (Owned::AfterOwner, Some(found(None)), 9999, State::Owned, Act::Nothing, None),
        (Owned::AfterOwner, Some(found(Some(-5))), 60, State::Due, Act::DeleteObject, Some(60)),
        (Owned::AfterOwner, Some(found(Some(90))), 89, State::Pending, Act::Nothing, Some(90)),
        (Owned::AfterOwner, Some(found(Some(90))), 90, State::Due, Act::DeleteObject, Some(90)),
    ] {
        let policies = there(vec![by(owned)]);
        let plan = plan_with(&crate::scene::owned(), answer, &policies, now);
        let found = (plan.state, plan.act, plan.due.map(|due| due.at));
        assert_eq!(found, (state, act, due.map(at)), "{owned:?} {answer:?} {now}");
    }
}

#[test]
fn an_object_that_an_answer_keeps_is_planned_again_when_it_is_due() {
    // The answer may be from before an edit or a jump of the clock, by which the object is due later than when its owner was
    // asked for.
    for (owned, answer, now, next) in [
        (Owned::AfterOwner, Some(found(None)), 59, Some(at(60))),
        (Owned::AfterOwner, Some(found(None)), 60, None),
        (Owned::Skip, Some(found(None)), 59, None),
        (Owned::AfterOwner, None, 59, Some(at(60))),
    ] {
        let policies = there(vec![by(owned)]);
        let plan = plan_with(&crate::scene::owned(), answer, &policies, now);
        assert_eq!((plan.act, plan.next), (Act::Nothing, next), "{owned:?} {answer:?} {now}");
    }
}

#[test]
fn an_owner_who_finished_later_is_named_as_the_delay() {
    let policies = there(vec![by(Owned::AfterOwner)]);
    for (finished, expected) in [(90, Some(Delay::Owner)), (60, None), (30, None)] {
        let due = plan_with(&owned(), Some(found(Some(finished))), &policies, 0).due.unwrap();
        assert_eq!(due.delay, expected, "{finished}");
    }
}

#[test]
fn owners_that_do_not_manage_an_object_do_not_matter() {
    let policies = there(vec![by(Owned::Skip)]);
    for owner in [Owner::None, Owner::Others] {
        let object = Facts { owner, ..job() };
        assert_eq!(plan_with(&object, None, &policies, 60).act, Act::DeleteObject);
    }
}

#[test]
fn an_object_s_own_wish_waits_for_no_owner() {
    let by_annotation = Wishes { ttl: Seconds::new(60).map(TtlWish::Seconds), hold: None };
    let own_ttl = job_with(|finish| finish.own_ttl = Some(seconds(0)));
    let wishing =
        [Facts { wishes: by_annotation, ..owned() }, Facts { owner: controller(), ..own_ttl }];
    for object in wishing {
        for owned in [Owned::Skip, Owned::AfterOwner, Owned::Any] {
            let policies = there(vec![by(owned)]);
            let plan = plan_with(&object, None, &policies, 60);
            assert_eq!((plan.state, plan.act), (State::Due, Act::DeleteObject), "{owned:?}");
        }
    }
}

#[test]
fn the_owner_goes_instead_after_a_look_at_it() {
    let is = |owner: FoundOwner| Some(OwnerAnswer::Found(owner));
    let idle = FoundOwner::default();
    let with_owner = FoundOwner { owned: true, ..idle };
    let terminating = FoundOwner { terminating: true, ..idle };
    let held = FoundOwner { hold: Some(HoldWish::Until(at(90))), ..idle };
    for (owned, answer, now, state, act) in [
        (Owned::Skip, None, 59, State::Pending, Act::Nothing),
        (Owned::Skip, None, 60, State::Owned, ASK),
        (Owned::AfterOwner, None, 60, State::Owned, ASK),
        (Owned::Skip, is(idle), 60, State::Due, Act::DeleteOwner),
        (Owned::AfterOwner, is(idle), 60, State::Due, Act::DeleteOwner),
        (Owned::Skip, is(with_owner), 60, State::Owned, Act::Nothing),
        (Owned::AfterOwner, is(with_owner), 60, State::Owned, Act::Nothing),
        (Owned::Any, is(with_owner), 60, State::Due, Act::DeleteOwner),
        (Owned::Any, is(terminating), 60, State::Terminating, Act::Nothing),
        (Owned::Any, is(held), 89, State::Held, Act::Nothing),
        (Owned::Any, is(held), 90, State::Due, Act::DeleteOwner),
        (Owned::Any, GONE, 60, State::Owned, Act::Nothing),
    ] {
        let policies = there(vec![Policy { owned, ..policy(delete_owner(60)) }]);
        let plan = plan_with(&crate::scene::owned(), answer, &policies, now);
        assert_eq!((plan.state, plan.act), (state, act), "{owned:?} {answer:?} {now}");
    }
}

#[test]
fn the_longer_of_two_holds_counts() {
    let policies = there(vec![policy(delete_owner(60))]);
    let hold = |seconds| HoldWish::Until(at(seconds));
    for (own, of_owner, expected, end) in [
        (hold(100), hold(200), 200, HoldEnd::AsWished),
        (hold(200), hold(100), 200, HoldEnd::AsWished),
        (hold(200), HoldWish::Unreadable, 2_592_060, HoldEnd::Unreadable),
        (hold(i64::MAX), hold(100), 2_592_060, HoldEnd::Capped),
    ] {
        let object = Facts { wishes: Wishes { hold: Some(own), ttl: None }, ..owned() };
        let owner = FoundOwner { hold: Some(of_owner), ..FoundOwner::default() };
        let plan = plan_with(&object, Some(OwnerAnswer::Found(owner)), &policies, 0);
        let due = plan.due.unwrap();
        assert_eq!((due.at, due.delay), (at(expected), Some(Delay::Hold(end))), "{own:?}");
    }
}

#[test]
fn an_object_without_a_controller_cannot_take_its_owner_with_it() {
    let policies = there(vec![policy(delete_owner(60))]);
    for owner in [Owner::None, Owner::Others] {
        let plan = plan_with(&Facts { owner, ..job() }, None, &policies, 9999);
        assert_eq!((plan.state, plan.act, plan.due), (State::NeedsOwner, Act::Nothing, None));
    }
}

#[test]
fn a_ttl_that_is_about_the_object_says_nothing_about_its_owner() {
    let own_ttl = job_with(|finish| finish.own_ttl = Some(seconds(0)));
    let object = Facts { owner: controller(), ..own_ttl };
    let policies = there(vec![policy(delete_owner(3600))]);
    assert_eq!(plan_with(&object, None, &policies, 0).due.unwrap().at, at(3600));
}

#[test]
fn a_workload_that_would_make_its_job_run_again_stays_without_it() {
    let workload = |bond, outcome, owner| {
        let object = job_with(|finish| (finish.bond, finish.outcome) = (bond, outcome));
        Facts { owner, ..object }
    };
    let deactivated = |owner| workload(Bond::OnlyWithOwner, Outcome::Deactivated, owner);
    let replaced = |owner| workload(Bond::UntilOwnerFinished, Outcome::Other, owner);
    let (needs_owner, owned) = (State::NeedsOwner, State::Owned);
    for (object, owned_is, answer, state, act) in [
        (deactivated(controller()), Owned::Any, Some(found(Some(0))), needs_owner, Act::Nothing),
        (deactivated(controller()), Owned::AfterOwner, GONE, needs_owner, Act::Nothing),
        (deactivated(Owner::None), Owned::Any, None, needs_owner, Act::Nothing),
        (replaced(controller()), Owned::Any, None, owned, ASK),
        (replaced(controller()), Owned::Any, Some(found(None)), owned, Act::Nothing),
        (replaced(controller()), Owned::Any, Some(found(Some(0))), State::Due, Act::DeleteObject),
        (replaced(controller()), Owned::AfterOwner, GONE, State::Due, Act::DeleteObject),
        (replaced(controller()), Owned::Skip, GONE, owned, Act::Nothing),
        (replaced(Owner::Others), Owned::Any, None, needs_owner, Act::Nothing),
        (replaced(Owner::None), Owned::Any, None, State::Due, Act::DeleteObject),
    ] {
        let policies = there(vec![by(owned_is)]);
        let plan = plan_with(&object, answer, &policies, 60);
        assert_eq!((plan.state, plan.act), (state, act), "{object:?} {owned_is:?} {answer:?}");
    }
    let instead = there(vec![Policy { owned: Owned::Any, ..policy(delete_owner(0)) }]);
    for (object, answer, state, act) in [
        (replaced(controller()), found(None), owned, Act::Nothing),
        (replaced(controller()), found(Some(0)), State::Due, Act::DeleteOwner),
        (deactivated(controller()), found(None), State::Due, Act::DeleteOwner),
    ] {
        let plan = plan_with(&object, Some(answer), &instead, 60);
        assert_eq!(
            (plan.state, plan.act),
            (state, act),
            "its owner instead: {object:?} {answer:?}"
        );
    }
    let asking = Wishes { ttl: Seconds::new(0).map(TtlWish::Seconds), hold: None };
    let object = Facts { wishes: asking, ..replaced(controller()) };
    let policies = there(vec![by(Owned::Skip)]);
    assert_eq!(plan_with(&object, None, &policies, 60).act, ASK, "its own wish waits, too");
}
