//! Owners that go instead of their objects, and objects that go only after them (R23 to R26).

use invariants::retention::{
    Action, Delete, End, Invariant, Outcome, Owned, Policy, Rule, Target, Terms, check,
};
use invariants::{Hold, Millis, Object, State};
use trainjob_api::time::Timestamp;

use super::retention::{DELETED, END, deletion, of_policy, policy, target, ttl};
use super::scenario::{Scenario, object};

fn of_kind(uid: &str, owner: Option<&str>, target: Target) -> Object {
    object(uid, uid, owner, 900, State::Target(Box::new(target)))
}

fn job(end: Option<End>) -> Target {
    Target { resource: "trainjobs".into(), end, ..target() }
}

fn workload(outcome: Outcome) -> Target {
    let end = Some(End { outcome, at: Some(Timestamp(1_000)) });
    Target { resource: "workloads".into(), end, ..target() }
}

/// A policy for Workloads.
fn of_workloads(owned: Owned, delete: Delete) -> Policy {
    let rules = vec![Rule { delete, ..ttl(60) }];
    Policy { resource: "workloads".into(), owned, ..policy(rules) }
}

/// A job and its Workload, of which one is deleted.
fn life(policy: Policy, [job, workload]: [Target; 2], deleted: (&str, Millis)) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.history.end = END;
    scenario.store(950_000, of_policy("policy", policy));
    scenario.store(1_000_100, of_kind("job", None, job));
    scenario.store(1_000_200, of_kind("workload", Some("job"), workload));
    let (uid, sent) = deleted;
    let mut deletion = deletion(uid, scenario.version(uid), sent);
    deletion.resource = format!("{}s", if uid == "job" { "trainjob" } else { "workload" });
    scenario.history.requests.push(deletion);
    for uid in ["workload", "job"] {
        if deleted.0 == "job" || uid == "workload" {
            scenario.gone(sent + 3, uid);
        }
    }
    scenario
}

fn broken(scenario: &Scenario) -> Vec<Invariant> {
    check(&scenario.history, &Terms::default()).into_iter().map(|it| it.invariant).collect()
}

#[test]
fn owner_goes_instead_of_its_object_if_the_rule_says_so_and_no_earlier() {
    let good = || [job(None), workload(Outcome::Deactivated)];
    let instead = || of_workloads(Owned::AfterOwner, Delete::Owner);
    let held = Target { hold: Some(Hold::Until(Timestamp(1_100))), ..job(None) };
    let kept = Rule { action: Action::Keep, delete: Delete::Owner, ..ttl(0) };
    let keeps = Policy { rules: vec![kept], ..instead() };
    for (what, policy, targets, deleted, expected) in [
        ("the owner", instead(), good(), ("job", DELETED), vec![]),
        ("early", instead(), good(), ("job", DELETED - 1_000), vec![Invariant::Exempt]),
        ("the object", instead(), good(), ("workload", DELETED), vec![Invariant::Due]),
        (
            "a hold of the owner",
            instead(),
            [held, workload(Outcome::Deactivated)],
            ("job", DELETED),
            vec![Invariant::Exempt],
        ),
        ("a rule that keeps", keeps, good(), ("job", DELETED), vec![Invariant::Exempt]),
        (
            "a rule about the object",
            of_workloads(Owned::Any, Delete::Object),
            good(),
            ("job", DELETED),
            vec![Invariant::Exempt],
        ),
    ] {
        assert_eq!(broken(&life(policy, targets, deleted)), expected, "{what}");
    }
}

#[test]
fn owner_that_should_have_gone_instead_is_missed() {
    let instead = of_workloads(Owned::AfterOwner, Delete::Owner);
    let mut scenario = Scenario::default();
    scenario.history.end = END;
    scenario.store(950_000, of_policy("policy", instead));
    scenario.store(1_000_100, of_kind("job", None, job(None)));
    scenario.store(1_000_200, of_kind("workload", Some("job"), workload(Outcome::Deactivated)));
    assert_eq!(broken(&scenario), [Invariant::Absence]);
}

#[test]
fn workload_without_which_its_job_would_run_again_goes_after_the_job() {
    let ended = Some(End { outcome: Outcome::Succeeded, at: Some(Timestamp(1_000)) });
    for (outcome, owned, end, expected) in [
        (Outcome::Succeeded, Owned::AfterOwner, ended, vec![]),
        (Outcome::Succeeded, Owned::AfterOwner, None, vec![Invariant::Due]),
        (Outcome::Succeeded, Owned::Any, None, vec![]),
        (Outcome::Other, Owned::Any, ended, vec![]),
        (Outcome::Other, Owned::Any, None, vec![Invariant::Due]),
        (Outcome::Deactivated, Owned::Any, ended, vec![Invariant::Due]),
    ] {
        let policy = of_workloads(owned, Delete::Object);
        let scenario = life(policy, [job(end), workload(outcome)], ("workload", DELETED));
        assert_eq!(broken(&scenario), expected, "{outcome:?}, {owned:?}, {end:?}");
    }
}
