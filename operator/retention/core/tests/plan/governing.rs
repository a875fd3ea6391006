//! Which policy and which rule say what becomes of an object (`docs/retention.md`, R20).

use std::sync::Arc;

use trainjob_retention_core::{
    facts::{Facts, Finish},
    finished::Definition,
    kind::BuiltIn,
    labels::LabelKeys,
    outcome::Outcome,
    pattern::ReasonPattern,
    policies::Policies,
    policy::{Limits, Match, Mode, Namespace, Policy, RuleAction, SYSTEM_NAMESPACES, Scope},
    uid::Uid,
};

use crate::scene::{
    at, cluster_policy, definition, finish, job, labels, namespace, policy, rules, selector, there,
    ttl,
};

fn named(name: &str, policy: Policy) -> Policy {
    Policy { name: name.into(), uid: Uid::from(name), ..policy }
}

fn cluster(name: &str) -> Policy {
    named(name, cluster_policy(ttl(0), Limits::default()))
}

fn namespaced(name: &str) -> Policy {
    named(name, policy(ttl(0)))
}

/// The name of the policy that governs the Job.
fn governor(policies: Vec<Policy>, object: &Facts) -> Option<String> {
    there(policies).governing(object).map(|governed| governed.policy.name.to_string())
}

#[test]
fn scope_priority_age_and_name_make_the_order_whatever_it_was_before() {
    let older = Policy { created: at(-2000), ..cluster("z") };
    let prior = Policy { priority: 1, ..cluster("z") };
    let last = Policy { priority: -1, created: at(-2000), ..cluster("a") };
    for (one, other, expected) in [
        (namespaced("z"), Policy { priority: 9, created: at(-9999), ..cluster("a") }, "z"),
        (prior, Policy { created: at(-9999), ..cluster("a") }, "z"),
        (older, cluster("a"), "z"),
        (last, cluster("z"), "z"),
        (cluster("a"), cluster("z"), "a"),
    ] {
        let both = |one: &Policy, other: &Policy| vec![one.clone(), other.clone()];
        assert_eq!(governor(both(&one, &other), &job()).as_deref(), Some(expected));
        assert_eq!(governor(both(&other, &one), &job()).as_deref(), Some(expected));
    }
}

#[test]
fn the_first_policy_that_selects_the_object_and_does_not_defer_governs_it() {
    let deferring = || named("a", policy(RuleAction::Defer));
    let of_team = |team: &str| Policy { selector: selector(&[("team", team)]), ..namespaced("b") };
    let auditing = || Policy { mode: Mode::Audit, ..namespaced("a") };
    let object = Facts { labels: labels(&[("team", "x")]), ..job() };
    for (policies, expected) in [
        (vec![deferring(), cluster("c")], Some("c")),
        (vec![auditing(), cluster("c")], Some("c")),
        (vec![of_team("x"), cluster("c")], Some("b")),
        (vec![of_team("y"), cluster("c")], Some("c")),
        (vec![of_team("y"), deferring()], None),
    ] {
        assert_eq!(governor(policies, &object).as_deref(), expected);
    }
}

#[test]
fn a_policy_to_which_the_object_has_not_finished_keeps_it_from_those_after_it() {
    let other: Arc<Definition> = Arc::new(Definition::BuiltIn(BuiltIn::Pod));
    let unfinished = || Policy { definition: Arc::clone(&other), ..namespaced("a") };
    assert_eq!(governor(vec![unfinished(), cluster("c")], &job()), None);
    let ends = [finish(), Finish { definition: Arc::clone(&other), ..finish() }];
    let both = Facts { finishes: ends.into(), ..job() };
    assert_eq!(governor(vec![unfinished(), cluster("c")], &both).as_deref(), Some("a"));
    let auditing = Policy { mode: Mode::Audit, ..unfinished() };
    assert_eq!(governor(vec![auditing, cluster("c")], &job()).as_deref(), Some("c"));
    assert_eq!(definition(), finish().definition);
}

#[test]
fn a_policy_that_audits_is_shown_what_no_enforcing_one_before_it_governs() {
    let audits = |policy| Policy { mode: Mode::Audit, ..policy };
    let defers = |policy| Policy { rules: rules(Vec::new(), RuleAction::Defer), ..policy };
    for (policies, expected) in [
        (vec![audits(namespaced("a")), cluster("c")], vec!["a"]),
        (vec![namespaced("a"), audits(cluster("c"))], vec![]),
        (vec![defers(namespaced("a")), audits(cluster("c"))], vec!["c"]),
        (vec![audits(namespaced("a")), audits(namespaced("b"))], vec!["a", "b"]),
        (vec![defers(audits(namespaced("a"))), audits(cluster("c"))], vec!["c"]),
    ] {
        let policies = there(policies);
        let job = job();
        let shown: Vec<_> = policies.audited(&job).map(|it| &*it.policy.name).collect();
        assert_eq!(shown, expected);
        let remote = Facts { remote_copy: true, ..job };
        assert_eq!(policies.audited(&remote).count(), 0);
    }
}

#[test]
fn the_first_rule_that_fits_in_all_its_parts_speaks() {
    let matches = |outcomes: Option<Vec<Outcome>>, reasons: &[&str], labels: &[(&str, &str)]| {
        let reasons = (!reasons.is_empty())
            .then(|| reasons.iter().map(|it| ReasonPattern::from(*it)).collect());
        (Match::new(outcomes, reasons, selector(labels)).unwrap(), ttl(0))
    };
    let succeeded = || Some(vec![Outcome::Succeeded, Outcome::Other]);
    let failed = || Some(vec![Outcome::Other, Outcome::Failed]);
    for (before, expected) in [
        (vec![], "r0"),
        (vec![matches(None, &[], &[])], "r0"),
        (vec![matches(succeeded(), &[], &[])], "r1"),
        (vec![matches(failed(), &[], &[])], "r0"),
        (vec![matches(failed(), &["Backoff*"], &[])], "r0"),
        (vec![matches(failed(), &["Backoff"], &[])], "r1"),
        (vec![matches(None, &["A", "BackoffLimitExceeded"], &[])], "r0"),
        (vec![matches(failed(), &["Backoff*"], &[("team", "x")])], "r0"),
        (vec![matches(failed(), &["Backoff*"], &[("team", "y")])], "r1"),
        (vec![matches(succeeded(), &["Backoff*"], &[("team", "x")])], "r1"),
        (vec![matches(succeeded(), &[], &[]), matches(failed(), &[], &[])], "r1"),
    ] {
        let policy = Policy { rules: rules(before, ttl(0)), ..policy(ttl(0)) };
        let object = Facts { labels: labels(&[("team", "x")]), ..job() };
        let policies = there(vec![policy]);
        let rule = &policies.governing(&object).unwrap().rule.name;
        assert_eq!(&**rule, expected, "{policies:?}");
    }
}

#[test]
fn a_cluster_policy_has_to_name_an_excluded_namespace() {
    let name = "kubernetes.io/metadata.name";
    let scope = |labels: &[(&str, &str)]| Scope::Cluster {
        namespaces: selector(labels),
        limits: Limits::default(),
    };
    for (scope, excluded, expected) in [
        (scope(&[]), false, true),
        (scope(&[]), true, false),
        (scope(&[(name, "kube-system")]), true, true),
        (scope(&[(name, "kube-system")]), false, true),
        (scope(&[(name, "other")]), false, false),
        (scope(&[(name, "kube-system"), ("team", "x")]), true, false),
        (Scope::Namespace("kube-system".into()), true, true),
        (Scope::Namespace("other".into()), false, false),
    ] {
        let there = Namespace { excluded, ..namespace("kube-system") };
        assert_eq!(scope.includes(&there), expected, "{scope:?} {excluded}");
    }
    assert!(SYSTEM_NAMESPACES.contains(&"kube-system"));
}

#[test]
fn what_policies_read_is_known() {
    let of_team = Policy { selector: selector(&[("team", "x")]), ..namespaced("a") };
    let scope =
        Scope::Cluster { namespaces: selector(&[("stage", "x")]), limits: Limits::default() };
    let policies = [of_team, Policy { scope, ..cluster("c") }, cluster("d")].map(Arc::new);
    let policies = Policies::new(Some(BuiltIn::Job), policies.into(), Vec::new());
    let keys = |keys: &LabelKeys| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(keys(policies.label_keys()), ["team"]);
    assert_eq!(keys(policies.namespace_label_keys()), ["stage"]);
    assert_eq!(policies.definitions(), [definition()]);
}
