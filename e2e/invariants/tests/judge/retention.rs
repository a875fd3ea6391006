//! The judge of the retention engine judged.

use std::collections::BTreeMap;

use invariants::retention::{
    Action, Delete, End, Invariant, Limits, Matching, Outcome, Owned, Policy, Rule, Target, Terms,
    Trip, Ttl, check,
};
use invariants::{Hold, Millis, Object, Request, State};
use trainjob_api::time::Timestamp;

use super::scenario::{Scenario, object, request};

/// When objects have ended, in seconds; due is a minute later.
const ENDED: i64 = 1_000;
/// When the good life deletes.
pub(crate) const DELETED: Millis = 1_060_200;
pub(crate) const END: Millis = 1_120_000;

pub(crate) fn ttl(seconds: i64) -> Rule {
    of_all(Action::Ttl(seconds))
}

/// A rule for all objects.
fn of_all(action: Action) -> Rule {
    Rule { matching: Matching::default(), action, delete: Delete::Object }
}

pub(crate) fn policy(rules: Vec<Rule>) -> Policy {
    Policy {
        is_of_cluster: false,
        resource: "jobs".into(),
        selector: BTreeMap::new(),
        namespaces: None,
        namespace_labels: BTreeMap::new(),
        enforces: true,
        priority: 0,
        rules,
        owned: Owned::Skip,
        allows_annotations: true,
        respects_own_ttl: true,
        maximum_hold: 2_592_000,
        limits: Limits::default(),
        trip: None,
    }
}

pub(crate) fn target() -> Target {
    Target {
        resource: "jobs".into(),
        labels: BTreeMap::new(),
        end: Some(End { outcome: Outcome::Succeeded, at: Some(Timestamp(ENDED)) }),
        own_ttl: None,
        annotation: None,
        hold: None,
        is_copy: false,
    }
}

fn of_target(uid: &str, target: Target) -> Object {
    object(uid, uid, None, 900, State::Target(Box::new(target)))
}

pub(crate) fn of_policy(name: &str, policy: Policy) -> Object {
    object(name, name, None, 900, State::Policy(Box::new(policy)))
}

pub(crate) fn deletion(uid: &str, version: u64, sent: Millis) -> Request {
    let deletion = request(sent, "delete", "jobs", uid);
    Request { uid: Some(uid.into()), version: Some(version), ..deletion }
}

/// A history in which a policy and an object are stored, and deleted at this instant if any.
fn life(policy: Policy, target: Object, deleted: Option<Millis>) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.history.end = END;
    scenario.store(950_000, of_policy("policy", policy));
    let uid = target.uid.clone();
    let version = scenario.store(1_000_100, target);
    if let Some(sent) = deleted {
        scenario.history.requests.push(deletion(&uid, version, sent));
        scenario.gone(sent + 3, &uid);
    }
    scenario
}

fn good() -> Scenario {
    life(policy(vec![ttl(60)]), of_target("a", target()), Some(DELETED))
}

fn broken(scenario: &Scenario) -> Vec<Invariant> {
    let mut broken: Vec<_> = check(&scenario.history, &Terms::default())
        .into_iter()
        .map(|violation| violation.invariant)
        .collect();
    broken.dedup();
    broken
}

#[test]
fn good_run_breaks_nothing() {
    assert_eq!(broken(&good()), []);
    let never = life(policy(vec![ttl(3_600)]), of_target("a", target()), None);
    assert_eq!(broken(&never), []);
}

#[test]
fn each_defect_breaks_the_invariant_that_it_is_to_break() {
    let with = |policy: Policy| life(policy, of_target("a", target()), Some(DELETED));
    let about = |target| life(policy(vec![ttl(60)]), target, Some(DELETED));
    let plain = || policy(vec![ttl(60)]);
    let without_uid = {
        let mut it = good();
        it.history.requests[0].uid = None;
        it
    };
    let without_version = {
        let mut it = good();
        it.history.requests[0].version = None;
        it
    };
    let labelled = {
        let mut it = good();
        let mut patch = request(DELETED, "patch", "jobs", "a");
        patch.uid = Some("a".into());
        it.history.requests.push(patch);
        it
    };
    let twice = {
        let mut it = good();
        let again = Request { sent: DELETED + 40, ..it.history.requests[0].clone() };
        it.history.requests.push(again);
        it
    };
    let selects_others = BTreeMap::from([("team".to_owned(), "b".to_owned())]);
    let running = Target { end: None, ..target() };
    let terminating = Object { deleting: Some(Timestamp(1_010)), ..of_target("a", target()) };
    let owned = Object { owner: Some("owner".into()), ..of_target("a", target()) };
    let held = Target { hold: Some(Hold::Until(Timestamp(1_100))), ..target() };
    let own = Target { own_ttl: Some(60), ..target() };
    let elsewhere = Trip::Namespaces(vec!["other".into()]);
    let here = Trip::Namespaces(vec!["ns".into()]);
    for (what, scenario, expected) in [
        ("no UID", without_uid, vec![Invariant::Preconditions]),
        ("no version", without_version, vec![Invariant::Preconditions]),
        ("a change", labelled, vec![Invariant::OnlyDeletes]),
        ("twice", twice, vec![Invariant::Once]),
        ("Audit", with(Policy { enforces: false, ..plain() }), vec![Invariant::Governed]),
        ("others", with(Policy { selector: selects_others, ..plain() }), vec![Invariant::Governed]),
        ("early", with(policy(vec![ttl(61)])), vec![Invariant::Due]),
        ("kept", with(policy(vec![Rule { action: Action::Keep, ..ttl(0) }])), vec![Invariant::Due]),
        (
            "tripped",
            with(Policy { trip: Some(Trip::Everywhere), ..plain() }),
            vec![Invariant::Held],
        ),
        ("tripped here", with(Policy { trip: Some(here), ..plain() }), vec![Invariant::Held]),
        ("tripped elsewhere", with(Policy { trip: Some(elsewhere), ..plain() }), vec![]),
        ("running", about(of_target("a", running)), vec![Invariant::Exempt]),
        ("terminating", about(terminating), vec![Invariant::Exempt]),
        ("owned", about(owned), vec![Invariant::Due]),
        ("on hold", about(of_target("a", held)), vec![Invariant::Due]),
        ("its own TTL", about(of_target("a", own)), vec![Invariant::Due]),
        ("not gone", life(plain(), of_target("a", target()), None), vec![Invariant::Absence]),
    ] {
        assert_eq!(broken(&scenario), expected, "{what}");
    }
}

#[test]
fn paused_time_and_the_number_under_way_are_judged() {
    let scenario = good();
    let paused = Terms { pauses: vec![(DELETED - 100, DELETED + 100)], ..Terms::default() };
    let found = check(&scenario.history, &paused);
    assert!(
        found.iter().all(|it| it.invariant == Invariant::Held) && found.len() == 1,
        "{found:?}"
    );

    let mut scenario = Scenario::default();
    scenario.history.end = END;
    scenario.store(950_000, of_policy("policy", policy(vec![ttl(60)])));
    for uid in ["a", "b", "c"] {
        let version = scenario.store(1_000_100, of_target(uid, target()));
        scenario.history.requests.push(deletion(uid, version, DELETED));
        scenario.gone(DELETED + 3, uid);
    }
    let two = Terms { in_flight: 2, ..Terms::default() };
    let found = check(&scenario.history, &two);
    assert!(found.iter().all(|it| it.invariant == Invariant::Few) && found.len() == 1, "{found:?}");
}

#[test]
fn an_engine_may_decide_on_what_was_so_a_moment_ago_and_no_longer() {
    for (edited, expected) in
        [(DELETED - 1_000, vec![]), (DELETED - 3_000, vec![Invariant::Governed])]
    {
        let mut scenario = good();
        let audit = Policy { enforces: false, ..policy(vec![ttl(60)]) };
        let mut audit = of_policy("policy", audit);
        audit.generation = 2;
        scenario.store(edited, audit);
        assert_eq!(broken(&scenario), expected, "{edited}");
    }
}

#[test]
fn precedence_is_that_of_r30() {
    let cluster = |limits| Policy { is_of_cluster: true, limits, ..policy(vec![ttl(90)]) };
    let bounds = Limits { minimum: Some(80), maximum: Some(110), maximum_hold: None };
    let with = |change: fn(&mut Target)| {
        let mut it = target();
        change(&mut it);
        it
    };
    for (what, own, target, due) in [
        ("a plain one", vec![ttl(85)], target(), 85),
        ("below the minimum", vec![ttl(60)], target(), 80),
        ("annotation", vec![ttl(85)], with(|it| it.annotation = Some(Ttl::Seconds(100))), 100),
        ("own TTL", vec![ttl(85)], with(|it| it.own_ttl = Some(20)), 110),
        ("kept", vec![Rule { action: Action::Keep, ..ttl(0) }], target(), 110),
        ("deferred", vec![Rule { action: Action::Defer, ..ttl(0) }], target(), 90),
        (
            "held",
            vec![ttl(85)],
            with(|it| it.hold = Some(Hold::Until(Timestamp(ENDED + 105)))),
            105,
        ),
    ] {
        for (late, expected) in [(0, vec![]), (-1, vec![Invariant::Due])] {
            let sent = (ENDED + due + late) * 1_000 + 10;
            let mut scenario =
                life(policy(own.clone()), of_target("a", target.clone()), Some(sent));
            scenario.store(950_001, of_policy("cluster", cluster(bounds)));
            assert_eq!(broken(&scenario), expected, "{what}, {late}");
        }
    }
}

#[test]
fn the_last_of_a_group_are_kept() {
    let keep = |count| Action::KeepLast {
        count,
        group_by: vec!["group".into()],
        minimum_age: 0,
        maximum_age: None,
    };
    let member = |uid: &str, ended: i64| {
        let labels = BTreeMap::from([("group".to_owned(), "g".to_owned())]);
        let end = End { outcome: Outcome::Succeeded, at: Some(Timestamp(ended)) };
        of_target(uid, Target { labels, end: Some(end), ..target() })
    };
    for (count, expected) in [(2, vec![]), (3, vec![Invariant::Due])] {
        let rules = vec![of_all(keep(count))];
        let mut scenario = life(policy(rules), member("a", 1_000), Some(DELETED));
        scenario.store(1_000_200, member("b", 1_001));
        scenario.store(1_000_300, member("c", 1_002));
        assert_eq!(broken(&scenario), expected, "the last {count}");
    }
}

#[test]
fn cluster_policy_is_about_the_namespaces_that_have_its_labels() {
    for (team, expected) in [("a", vec![]), ("b", vec![Invariant::Governed])] {
        let labelled = |team: &str| BTreeMap::from([("team".to_owned(), team.to_owned())]);
        let namespace_labels = labelled("a");
        let selecting = Policy { is_of_cluster: true, namespace_labels, ..policy(vec![ttl(60)]) };
        let mut scenario = life(selecting, of_target("a", target()), Some(DELETED));
        let state = State::Namespace(labelled(team));
        let namespace = Object { namespace: String::new(), ..object("n", "ns", None, 900, state) };
        scenario.store(940_000, namespace);
        assert_eq!(broken(&scenario), expected, "team {team}");
    }
}
