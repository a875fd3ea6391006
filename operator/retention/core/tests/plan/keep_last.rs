//! The newest of each group are kept (`docs/retention.md`, R21).

use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    facts::Facts,
    keep_last::{Candidate, Groups},
    kind::BuiltIn,
    outcome::Guards,
    plan::{Act, Answers, Plan, Question, Release, Source, State, plan},
    policies::NamespacePolicies,
    policy::{KeepLast, Lifetime, Limits, Owned, Policy, RuleAction},
    seconds::Seconds,
    uid::Uid,
    wish::{HoldWish, TtlWish, Wishes},
};

use crate::scene::{
    at, cluster_policy, decide, hold, in_namespace, job, job_with, labels, limits, owned, policy,
    seconds, there,
};

const NOBODY: Answers = Answers { owner: None, release: None, pods_deleted: false };

/// Keeps this many of each experiment.
fn keeps(count: i64, minimum_age: i64, maximum_age: Option<i64>) -> RuleAction {
    let maximum_age = maximum_age.map(seconds);
    let keys = vec!["experiment".into()];
    let keep_last = KeepLast::new(count, keys, seconds(minimum_age), maximum_age).unwrap();
    decide(Lifetime::KeepLast(keep_last))
}

/// A Job of experiment `e` that finished then.
fn finished(uid: &str, seconds: i64) -> Facts {
    let job = job_with(|finish| finish.time = at(seconds).into());
    let labels = labels(&[("experiment", "e")]);
    Facts { uid: Uid::from(uid), labels, ..job }
}

fn candidate(object: &Facts, policies: &NamespacePolicies, now: i64) -> Option<Candidate> {
    policies.governing(object).unwrap().candidate(&NOBODY, at(now))
}

fn groups(objects: &[Facts], policies: &NamespacePolicies) -> Groups {
    let mut groups = Groups::default();
    for object in objects {
        groups.enter(&candidate(object, policies, 0).unwrap());
    }
    groups
}

fn plan_in<'p>(
    object: &Facts,
    groups: &Groups,
    policies: &'p NamespacePolicies,
    now: i64,
) -> Plan<'p> {
    plan(object, &NOBODY, groups, policies, at(now)).unwrap()
}

fn times(objects: &[Facts], policies: &NamespacePolicies) -> Vec<Option<(i64, Source)>> {
    let groups = groups(objects, policies);
    let due = |object| plan_in(object, &groups, policies, 0).due;
    objects.iter().map(|it| due(it).map(|due| (due.at.since(at(0)), due.source))).collect()
}

#[test]
fn an_object_is_due_when_enough_newer_ones_have_finished() {
    let objects = [("a", 10), ("b", 20), ("c", 30), ("d", 40)].map(|(uid, at)| finished(uid, at));
    let (count, age) = (|at| Some((at, Source::Count)), |at| Some((at, Source::Policy)));
    for (action, expected) in [
        (keeps(1, 0, None), [count(20), count(30), count(40), None]),
        (keeps(2, 0, None), [count(30), count(40), None, None]),
        (keeps(4, 0, None), [None, None, None, None]),
        (keeps(2, 15, None), [count(30), count(40), None, None]),
        (keeps(2, 25, None), [count(35), count(45), None, None]),
        (keeps(2, 0, Some(100)), [count(30), count(40), age(130), age(140)]),
        (keeps(2, 0, Some(20)), [count(30), count(40), age(50), age(60)]),
        (keeps(2, 0, Some(5)), [age(15), age(25), age(35), age(45)]),
    ] {
        let policies = there(vec![policy(action.clone())]);
        assert_eq!(times(&objects, &policies), expected, "{action:?}");
    }
}

#[test]
fn objects_of_the_same_second_are_told_apart() {
    let policies = there(vec![policy(keeps(2, 0, None))]);
    let older = Facts { created: at(-500), ..finished("z", 10) };
    let objects = [finished("b", 10), finished("a", 10), older, finished("c", 10)];
    let due = |at| Some((at, Source::Count));
    assert_eq!(times(&objects, &policies), [None, due(10), due(10), None]);
}

#[test]
fn groups_are_made_of_a_policy_a_namespace_and_the_values_of_labels() {
    let everywhere = || vec![cluster_policy(keeps(1, 0, None), Limits::default())];
    let policies = there(everywhere());
    let labels = labels(&[("experiment", "f")]);
    let apart = Facts { labels, ..finished("b", 20) };
    let mut groups = groups(&[apart], &policies);
    let elsewhere = in_namespace("b", BuiltIn::Job, everywhere());
    groups.enter(&candidate(&finished("c", 20), &elsewhere, 0).unwrap());
    assert_eq!(plan_in(&finished("a", 10), &groups, &policies, 99).state, State::Kept);
    let groups = self::groups(&[finished("b", 20)], &policies);
    assert_eq!(plan_in(&finished("a", 10), &groups, &policies, 99).act, Act::DeleteObject);
    let [one] = everywhere().try_into().unwrap();
    let other = there(vec![Policy { uid: Uid::from("other"), ..one }]);
    assert_eq!(plan_in(&finished("a", 10), &groups, &other, 99).state, State::Kept);
}

#[test]
fn an_object_without_the_label_is_kept_and_counted() {
    let object = Facts { labels: labels(&[("other", "e")]), ..job() };
    for (maximum, state, due) in
        [(None, State::Ungrouped, None), (Some(500), State::Ungrouped, Some(at(500)))]
    {
        let limits = cluster_policy(RuleAction::Defer, limits(None, maximum));
        let policies = there(vec![policy(keeps(1, 0, Some(5))), limits]);
        assert_eq!(candidate(&object, &policies, 0), None);
        let plan = plan_in(&object, &Groups::default(), &policies, 99);
        assert_eq!((plan.state, plan.due.map(|due| due.at)), (state, due), "{maximum:?}");
    }
}

#[test]
fn what_is_kept_for_another_reason_takes_no_place() {
    let policies = there(vec![policy(keeps(1, 0, None))]);
    let guarded = |guards| {
        let labels = labels(&[("experiment", "e")]);
        Facts { labels, ..job_with(|finish| finish.guards = guards) }
    };
    let wishing = |wishes| Facts { wishes, ..finished("b", 20) };
    let unreadable = Wishes { hold: Some(HoldWish::Unreadable), ttl: None };
    for (object, now, expected) in [
        (finished("b", 20), 30, true),
        (Facts { terminating: at(9).into(), ..finished("b", 20) }, 30, false),
        (wishing(hold(31)), 30, false),
        (wishing(hold(31)), 31, true),
        (wishing(unreadable), i64::MAX, false),
        (guarded(Guards { archive: true, release: false }), 30, false),
        (guarded(Guards { release: true, archive: false }), 30, false),
        (Facts { owner: owned().owner, ..finished("b", 20) }, 30, false),
    ] {
        let takes_place = candidate(&object, &policies, now).unwrap().takes_place;
        assert_eq!(takes_place, expected, "{object:?} {now}");
    }
    let without_holds =
        Policy { maximum_hold: Seconds::ZERO, owned: Owned::Any, ..policy(keeps(1, 0, None)) };
    let policies = there(vec![without_holds]);
    for object in [wishing(unreadable), Facts { owner: owned().owner, ..finished("b", 20) }] {
        assert!(candidate(&object, &policies, 30).unwrap().takes_place, "{object:?}");
    }
}

#[test]
fn what_takes_no_place_is_ranked_all_the_same() {
    let policies = there(vec![policy(keeps(1, 0, None))]);
    let held = Facts { wishes: hold(50), ..finished("a", 10) };
    let mut groups = groups(&[finished("b", 20), held.clone()], &policies);
    let plan = plan_in(&held, &groups, &policies, 30);
    assert_eq!((plan.state, plan.due.unwrap().at), (State::Held, at(50)));
    assert_eq!(plan_in(&held, &groups, &policies, 50).act, Act::DeleteObject);
    // The newest is held: the one before it stays.
    let newest = Facts { wishes: hold(500), ..finished("c", 30) };
    groups.enter(&candidate(&newest, &policies, 40).unwrap());
    assert_eq!(plan_in(&finished("b", 20), &groups, &policies, 40).state, State::Kept);
    assert_eq!(plan_in(&newest, &groups, &policies, 40).next, Some(at(500)));
    groups.enter(&candidate(&newest, &policies, 500).unwrap());
    assert_eq!(plan_in(&finished("b", 20), &groups, &policies, 500).act, Act::DeleteObject);
}

#[test]
fn one_object_of_a_group_goes_at_a_time() {
    let policies = there(vec![policy(keeps(1, 0, None))]);
    let objects = [("a", 10), ("b", 20), ("c", 30)].map(|(uid, at)| finished(uid, at));
    let [first, second, _] = &objects;
    let mut groups = groups(&objects, &policies);
    let acts = |groups: &Groups| [first, second].map(|it| plan_in(it, groups, &policies, 99).act);
    let of_first = candidate(first, &policies, 99).unwrap();
    assert_eq!(acts(&groups), [Act::DeleteObject; 2]);
    groups.begin_deletion(&of_first);
    assert_eq!(acts(&groups), [Act::DeleteObject, Act::Nothing]);
    assert_eq!(plan_in(second, &groups, &policies, 99).state, State::Due);
    groups.end_deletion(&of_first);
    assert_eq!(acts(&groups), [Act::DeleteObject; 2]);
    groups.begin_deletion(&of_first);
    groups.leave(&of_first);
    assert_eq!(plan_in(second, &groups, &policies, 99).act, Act::DeleteObject);
}

#[test]
fn an_object_that_is_too_old_waits_for_no_turn() {
    let policies = there(vec![policy(keeps(1, 0, Some(5)))]);
    let objects = [("a", 10), ("b", 20), ("c", 30)].map(|(uid, at)| finished(uid, at));
    let [first, second, _] = &objects;
    let mut groups = groups(&objects, &policies);
    groups.begin_deletion(&candidate(first, &policies, 99).unwrap());
    assert_eq!(plan_in(second, &groups, &policies, 99).act, Act::DeleteObject);
}

#[test]
fn whether_a_train_job_is_released_is_asked_before_it_is_due() {
    let policies = there(vec![policy(keeps(1, 0, None))]);
    let guards = Guards { release: true, archive: false };
    let labels = labels(&[("experiment", "e")]);
    let object = Facts { labels, ..job_with(|finish| finish.guards = guards) };
    for (release, takes_place, act) in [
        (None, false, Act::Ask(Question::Release)),
        (Some(Release::Pending), false, Act::Nothing),
        (Some(Release::Done), true, Act::Nothing),
    ] {
        let answers = Answers { release, ..NOBODY };
        let candidate = policies.governing(&object).unwrap().candidate(&answers, at(0)).unwrap();
        assert_eq!(candidate.takes_place, takes_place, "{release:?}");
        let plan = plan(&object, &answers, &Groups::default(), &policies, at(0)).unwrap();
        assert_eq!((plan.state, plan.act), (State::Kept, act), "{release:?}");
    }
}

#[test]
fn an_annotation_goes_before_the_rank() {
    use trainjob_retention_core::policy::Annotation;
    let allowing = Policy { annotation: Annotation::Allowed, ..policy(keeps(1, 0, None)) };
    let policies = there(vec![allowing]);
    let wishes = Wishes { ttl: Some(TtlWish::Seconds(seconds(7))), hold: None };
    let object = Facts { wishes, ..finished("a", 10) };
    let due = plan_in(&object, &Groups::default(), &policies, 0).due.unwrap();
    assert_eq!((due.at, due.source), (Timestamp(at(17).0), Source::Annotation));
}
