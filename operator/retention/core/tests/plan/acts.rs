//! What is done about an object that is due, and what keeps one.

use std::sync::Arc;

use trainjob_retention_core::{
    facts::Facts,
    keep_last::Groups,
    kind::BuiltIn,
    maybe_timestamp::MaybeTimestamp,
    outcome::Guards,
    plan::{Act, Answers, Question, Release, State, plan},
    policies::Policies,
    policy::{Lifetime, Mode, Namespace, Policy, Reach, RuleAction, Scope, UnreadablePolicy},
    selector::Selector,
};

use crate::scene::{
    at, cluster_policy, decide, job, job_with, labels, limits, namespace, plan_at, policy,
    selector, selector_without, there, ttl,
};

#[test]
fn an_object_goes_from_its_second_on_and_not_before() {
    let policies = there(vec![policy(ttl(60))]);
    for (now, state, act, next) in [
        (0, State::Pending, Act::Nothing, Some(at(60))),
        (59, State::Pending, Act::Nothing, Some(at(60))),
        (60, State::Due, Act::DeleteObject, None),
        (99_999, State::Due, Act::DeleteObject, None),
    ] {
        let plan = plan_at(&job(), &policies, now).unwrap();
        assert_eq!((plan.state, plan.act, plan.next), (state, act, next), "{now}");
    }
    let at_once = there(vec![policy(ttl(0))]);
    assert_eq!(plan_at(&job(), &at_once, 0).unwrap().act, Act::DeleteObject);
}

#[test]
fn some_objects_are_left_alone_and_counted() {
    let kept = || vec![policy(decide(Lifetime::Never))];
    for (object, policies, expected) in [
        (Facts { terminating: at(9).into(), ..job() }, vec![policy(ttl(0))], State::Terminating),
        (
            job_with(|finish| finish.time = MaybeTimestamp::NONE),
            vec![policy(ttl(0))],
            State::NoFinishTime,
        ),
        (job(), kept(), State::Kept),
    ] {
        let policies = there(policies);
        let plan = plan_at(&object, &policies, 9999).unwrap();
        assert_eq!((plan.state, plan.act, plan.due), (expected, Act::Nothing, None));
    }
}

#[test]
fn some_objects_are_not_even_counted() {
    let enforcing = || vec![policy(ttl(0))];
    let elsewhere = Policy { scope: Scope::Namespace("b".into()), ..policy(ttl(0)) };
    let auditing = Policy { mode: Mode::Audit, ..policy(ttl(0)) };
    for (object, policies) in [
        (Facts { remote_copy: true, ..job() }, enforcing()),
        (Facts { finishes: [].into(), ..job() }, enforcing()),
        (job(), vec![elsewhere]),
        (job(), vec![auditing]),
        (job(), vec![policy(RuleAction::Defer)]),
        (job(), vec![]),
    ] {
        assert_eq!(plan_at(&object, &there(policies), 9999), None);
    }
}

#[test]
fn nothing_is_deleted_in_a_namespace_that_is_being_deleted() {
    let policies =
        vec![Arc::new(policy(ttl(0))), Arc::new(cluster_policy(ttl(0), limits(None, None)))];
    let policies = Policies::new(Some(BuiltIn::Job), policies, Vec::new());
    for (terminating, expected) in [(false, true), (true, false)] {
        let there = policies.in_namespace(&Namespace { terminating, ..namespace("a") });
        assert_eq!(plan_at(&job(), &there, 9999).is_some(), expected, "{terminating}");
    }
}

#[test]
fn nothing_is_deleted_that_an_unreadable_policy_might_select() {
    let team = |team: &str| selector(&[("team", team)]);
    let in_namespace = |name: &str| Reach::Scope(Scope::Namespace(name.into()));
    let of_cluster =
        |namespaces| Reach::Scope(Scope::Cluster { namespaces, limits: limits(None, None) });
    for (reach, selector, kept) in [
        (in_namespace("a"), Selector::default(), true),
        (in_namespace("a"), team("x"), true),
        (in_namespace("a"), team("y"), false),
        (in_namespace("b"), Selector::default(), false),
        (of_cluster(Selector::default()), Selector::default(), true),
        (of_cluster(team("x")), Selector::default(), false),
        (Reach::Everywhere, team("x"), true),
        (Reach::Everywhere, team("y"), false),
    ] {
        let unreadable = vec![UnreadablePolicy { reach, selector }];
        let policies =
            Policies::new(Some(BuiltIn::Job), vec![Arc::new(policy(ttl(0)))], unreadable);
        let object = Facts { labels: labels(&[("team", "x")]), ..job() };
        let there = policies.in_namespace(&namespace("a"));
        let plan = plan_at(&object, &there, 9999).unwrap();
        let expected =
            if kept { (State::Kept, Act::Nothing) } else { (State::Due, Act::DeleteObject) };
        assert_eq!((plan.state, plan.act), expected, "{policies:?}");
    }
}

#[test]
fn an_excluded_namespace_is_kept_by_a_policy_that_might_name_it() {
    let all = Scope::Cluster { namespaces: Selector::default(), limits: limits(None, None) };
    let excluded = Namespace { excluded: true, ..namespace("a") };
    for (reach, kept) in [(Reach::Scope(all), false), (Reach::Everywhere, true)] {
        let unreadable = vec![UnreadablePolicy { reach, selector: Selector::default() }];
        let policies = vec![Arc::new(policy(ttl(0)))];
        let there = Policies::new(Some(BuiltIn::Job), policies, unreadable).in_namespace(&excluded);
        assert_eq!(plan_at(&job(), &there, 9999).unwrap().act == Act::Nothing, kept);
    }
}

#[test]
fn nothing_is_deleted_while_labels_that_a_policy_reads_are_not_known() {
    let unlabelled = || selector_without("keep");
    let of_cluster = |namespaces, selector| {
        let scope = Scope::Cluster { namespaces, limits: limits(None, None) };
        Policy { scope, selector, ..policy(ttl(0)) }
    };
    let all = Selector::default;
    for (policy, kept) in [
        (of_cluster(all(), unlabelled()), true),
        (of_cluster(unlabelled(), all()), true),
        (of_cluster(all(), all()), false),
    ] {
        let policies = there(vec![policy]);
        let plan = plan_at(&job(), &policies, 9999).unwrap();
        let expected =
            if kept { (State::Kept, Act::Nothing) } else { (State::Due, Act::DeleteObject) };
        assert_eq!((plan.state, plan.act), expected, "{policies:?}");
    }
}

#[test]
fn a_train_job_that_its_deadline_failed_goes_when_it_is_released() {
    let guards = Guards { release: true, archive: false };
    let object = job_with(|finish| finish.guards = guards);
    let policies = there(vec![policy(ttl(60)), cluster_policy(ttl(0), limits(None, 100))]);
    let ask = Act::Ask(Question::Release);
    for (release, now, state, act) in [
        (None, 59, State::Pending, Act::Nothing),
        (None, 60, State::Guarded, ask),
        (Some(Release::Pending), 60, State::Guarded, Act::Nothing),
        (Some(Release::Pending), 99_999, State::Guarded, Act::Nothing),
        (Some(Release::Done), 59, State::Pending, Act::Nothing),
        (Some(Release::Done), 60, State::Due, Act::DeleteObject),
    ] {
        let answers = Answers { release, ..Answers::default() };
        let plan = plan(&object, &answers, &Groups::default(), &policies, at(now)).unwrap();
        assert_eq!((plan.state, plan.act), (state, act), "{release:?} {now}");
    }
}

#[test]
fn an_object_waits_to_be_archived_until_its_maximum() {
    let guards = Guards { archive: true, release: false };
    let object = job_with(|finish| finish.guards = guards);
    for (maximum, now, state, act, next) in [
        (None, 59, State::Pending, Act::Nothing, Some(at(60))),
        (None, 60, State::Guarded, Act::Nothing, None),
        (None, 99_999, State::Guarded, Act::Nothing, None),
        (Some(100), 99, State::Guarded, Act::Nothing, Some(at(100))),
        (Some(100), 100, State::Due, Act::DeleteObject, None),
        (Some(50), 50, State::Due, Act::DeleteObject, None),
    ] {
        let policies = there(vec![policy(ttl(60)), cluster_policy(ttl(0), limits(None, maximum))]);
        let plan = plan_at(&object, &policies, now).unwrap();
        assert_eq!((plan.state, plan.act, plan.next), (state, act, next), "{maximum:?} {now}");
    }
}
