//! Pods that go before their object (`docs/retention.md`, R22).

use serde_json::{Value, json};
use trainjob_retention_core::{
    facts::Facts,
    keep_last::Groups,
    metadata::Metadata,
    outcome::Guards,
    plan::{Act, Answers, OwnerAnswer, PodAct, Question, State, plan},
    policy::{Annotation, Decide, Delete, Lifetime, Owned, Phases, PodsStage, Policy, RuleAction},
    seconds::Seconds,
    wish::{HoldWish, TtlWish, Wishes},
};

use crate::scene::{
    at, cluster_policy, hold, job, job_with, limits, owned, plan_at, policy, seconds, there, ttl,
};

/// Pods after 60 seconds, the object so.
fn pods_before(lifetime: Lifetime) -> RuleAction {
    let pods = PodsStage::new(("batch", "Job"), seconds(60), Phases::All).unwrap();
    RuleAction::Decide(Decide::new(lifetime, Some(pods), Delete::Object).unwrap())
}

fn hour() -> RuleAction {
    pods_before(Lifetime::Ttl(seconds(3600)))
}

#[test]
fn pods_go_first_and_once() {
    let (ttl, never) = (hour(), pods_before(Lifetime::Never));
    let (pending, kept) = (State::Pending, State::Kept);
    for (action, deleted, now, state, act, next) in [
        (&ttl, false, 59, pending, Act::Nothing, Some(60)),
        (&ttl, false, 60, pending, Act::DeletePods, Some(3600)),
        (&ttl, true, 60, pending, Act::Nothing, Some(3600)),
        (&ttl, false, 3600, State::Due, Act::DeleteObject, None),
        (&never, false, 59, kept, Act::Nothing, Some(60)),
        (&never, false, 60, kept, Act::DeletePods, None),
        (&never, true, 60, kept, Act::Nothing, None),
    ] {
        let policies = there(vec![policy(action.clone())]);
        let answers = Answers { pods_deleted: deleted, ..Answers::default() };
        let plan = plan(&job(), &answers, &Groups::default(), &policies, at(now)).unwrap();
        let found = (plan.state, plan.act, plan.next);
        assert_eq!(found, (state, act, next.map(at)), "{action:?} {deleted} {now}");
    }
}

#[test]
fn pods_have_no_time_of_their_own_if_the_object_goes_as_early() {
    let soon = Wishes { ttl: Seconds::new(60).map(TtlWish::Seconds), hold: None };
    let object = Facts { wishes: soon, ..job() };
    let policies = there(vec![Policy { annotation: Annotation::Allowed, ..policy(hour()) }]);
    let plan = plan_at(&object, &policies, 60).unwrap();
    assert_eq!((plan.pods_due, plan.act), (None, Act::DeleteObject));
}

#[test]
fn minimum_and_hold_move_the_pods_too() {
    let due = |wishes, minimum| {
        let limits = cluster_policy(ttl(0), limits(minimum, None));
        let policies = there(vec![policy(hour()), limits]);
        let plan = plan_at(&Facts { wishes, ..job() }, &policies, 0).unwrap();
        (plan.pods_due.map(|due| due.at.since(at(0))), plan.due.unwrap().at.since(at(0)))
    };
    let unreadable = Wishes { hold: Some(HoldWish::Unreadable), ttl: None };
    for (wishes, minimum, expected) in [
        (Wishes::default(), None, (Some(60), 3600)),
        (Wishes::default(), Some(600), (Some(600), 3600)),
        (Wishes::default(), Some(7200), (None, 7200)),
        (hold(1000), None, (Some(1000), 3600)),
        (hold(5000), None, (None, 5000)),
        (unreadable, None, (Some(2_592_060), 2_595_600)),
    ] {
        assert_eq!(due(wishes, minimum), expected, "{wishes:?} {minimum:?}");
    }
}

#[test]
fn pods_wait_for_owner_and_guards_like_their_object() {
    let ask = |question| Act::Ask(question);
    let guarded = job_with(|finish| finish.guards = Guards { release: true, archive: false });
    let archiving = job_with(|finish| finish.guards = Guards { archive: true, release: false });
    let own_ttl = Wishes { ttl: Seconds::new(7200).map(TtlWish::Seconds), hold: None };
    let wishing = Facts { wishes: own_ttl, ..owned() };
    let gone = Some(OwnerAnswer::Gone);
    for (object, owned_is, owner, state, act) in [
        (owned(), Owned::Skip, None, State::Owned, Act::Nothing),
        (wishing, Owned::Skip, None, State::Pending, Act::Nothing),
        (owned(), Owned::Any, None, State::Pending, Act::DeletePods),
        (owned(), Owned::AfterOwner, None, State::Owned, ask(Question::Owner)),
        (owned(), Owned::AfterOwner, gone, State::Pending, Act::DeletePods),
        (guarded, Owned::Any, None, State::Guarded, ask(Question::Release)),
        (archiving, Owned::Any, None, State::Guarded, Act::Nothing),
    ] {
        let annotation = Annotation::Allowed;
        let policies = there(vec![Policy { owned: owned_is, annotation, ..policy(hour()) }]);
        let answers = Answers { owner, ..Answers::default() };
        let plan = plan(&object, &answers, &Groups::default(), &policies, at(60)).unwrap();
        assert_eq!((plan.state, plan.act), (state, act), "{object:?} {owned_is:?} {owner:?}");
    }
}

/// A Pod with these annotations, and a controller owner with this UID.
fn pod(annotations: &Value, controller: &str, deletion: Option<&str>) -> Metadata {
    let owner =
        json!({"apiVersion": "batch/v1", "kind": "Job", "uid": controller, "controller": true});
    let metadata = json!({"name": "p", "annotations": annotations, "ownerReferences": [owner],
        "deletionTimestamp": deletion});
    serde_json::from_value(metadata).unwrap()
}

#[test]
fn each_pod_is_asked_for_its_own_hold_and_whether_it_is_of_the_object() {
    let until = |seconds| json!({"lifecycle.trainjob.dev/hold-until": at(seconds).to_string()});
    let unreadable = json!({"lifecycle.trainjob.dev/hold-until": "tomorrow"});
    let longest = at(60 + 2_592_000);
    for (kind, pod, expected) in [
        (("batch", "Job"), pod(&json!({}), "u", None), PodAct::Delete),
        (("batch", "Job"), pod(&json!({}), "another", None), PodAct::Delete),
        (("kubeflow.org", "TFJob"), pod(&json!({}), "u", None), PodAct::Delete),
        (("kubeflow.org", "TFJob"), pod(&json!({}), "another", None), PodAct::Leave),
        (("batch", "Job"), pod(&json!({}), "u", Some("2026-11-22T06:30:00Z")), PodAct::Leave),
        (("batch", "Job"), pod(&until(61), "u", None), PodAct::Hold(at(61))),
        (("batch", "Job"), pod(&until(60), "u", None), PodAct::Delete),
        (("batch", "Job"), pod(&until(9_999_999), "u", None), PodAct::Hold(longest)),
        (("batch", "Job"), pod(&unreadable, "u", None), PodAct::Hold(longest)),
    ] {
        let stage = PodsStage::new(kind, seconds(60), Phases::All).unwrap();
        let action = Decide::new(Lifetime::Never, Some(stage), Delete::Object).unwrap();
        let policies = there(vec![policy(RuleAction::Decide(action))]);
        let pods = plan_at(&job(), &policies, 60).unwrap().pods.unwrap();
        assert_eq!(pods.act(&pod, &job().uid, at(60)), expected, "{kind:?} {pod:?}");
    }
}
