//! Pages about Jobs of namespace `a`, at [`NOW`].

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    facts::Reader,
    finished::Definitions,
    interner::Interner,
    keep_last::Groups,
    kind::{BuiltIn, GroupKind},
    labels::Labels,
    plan::{Answers, FoundOwner, OwnerAnswer},
    policies::{Governed, Policies},
    policy::Namespace,
    stored::{self, PolicyKind},
};

use super::*;
use crate::status::SeenPolicy;

/// A minute after the Jobs ended.
const NOW: Timestamp = Timestamp(1_795_329_060);
const END: &str = "2026-11-22T06:30:00Z";

/// A policy of namespace `a` that enforces this rule, and does not wait for anything.
fn policy(rule: &Value, spec: &Value) -> Value {
    let mut policy = json!({
        "metadata": {"name": "p", "namespace": "a", "uid": "p", "generation": 1},
        "spec": {
            "target": {"apiGroup": "batch", "kind": "Job"}, "mode": "Enforce",
            "rules": [{"name": "all", "action": rule}],
        },
        "status": {"observedGeneration": 1, "conditions": [{
            "type": "Enforcing", "status": "True", "reason": "Enforcing", "message": "",
            "lastTransitionTime": END,
        }]},
    });
    merge(&mut policy["spec"], spec);
    policy
}

fn ttl(seconds: i64) -> Value {
    policy(&json!({"ttlSecondsAfterFinished": seconds}), &json!({}))
}

/// A Job that succeeded, with these fields of its metadata and its spec.
fn job(metadata: &Value, spec: &Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "j", "namespace": "a", "uid": "j", "resourceVersion": "7",
            "creationTimestamp": "2026-11-22T06:00:00Z"},
        "spec": spec,
        "status": {"conditions": [{"type": "Complete", "status": "True",
            "reason": "CompletionsReached", "lastTransitionTime": END}]},
    });
    merge(&mut job["metadata"], metadata);
    job
}

fn plain() -> Value {
    job(&json!({}), &json!({}))
}

fn annotated(name: &str, value: &str) -> Value {
    let annotations = [(format!("lifecycle.trainjob.dev/{name}"), json!(value))];
    job(&json!({"annotations": Value::Object(annotations.into_iter().collect())}), &json!({}))
}

fn owned() -> Value {
    let owner = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s",
        "uid": "s", "controller": true});
    job(&json!({"ownerReferences": [owner]}), &json!({}))
}

fn merge(into: &mut Value, more: &Value) {
    let more = more.as_object().cloned().unwrap_or_default();
    into.as_object_mut().unwrap().extend(more);
}

/// The case of an object of this kind under these policies, whose UIDs are their names.
fn case_of(built_in: BuiltIn, policies: &[Value], object: &Value) -> Case {
    let kind = GroupKind { group: built_in.group().into(), kind: built_in.kind().into() };
    let (mut definitions, mut seen) = (Definitions::default(), BTreeMap::new());
    let (mut understood, mut others, mut not_understood) = (Vec::new(), Vec::new(), Vec::new());
    for policy in policies {
        let of_namespace = policy["metadata"].get("namespace").is_some();
        let of = if of_namespace { PolicyKind::Namespaced } else { PolicyKind::Cluster };
        match stored::read(of, &policy.to_string(), &mut definitions) {
            Ok(stored) => {
                let uid = stored.policy.uid.clone();
                seen.insert(uid, SeenPolicy::read(&policy.to_string()));
                understood.push(stored.policy);
            }
            Err(other) => {
                let reference = understood.first().map(|policy| policy.reference()).unwrap();
                not_understood.push((reference, other.error.to_string()));
                others.push(other.policy);
            }
        }
    }
    let policies = Policies::new(Some(built_in), understood, others);
    let keys = policies.label_keys().clone();
    let reader = Reader::new(Some(built_in), policies.definitions(), keys);
    let mut interner = Interner::default();
    let labels = Labels::read(&BTreeMap::new(), policies.namespace_label_keys(), &mut interner);
    Case {
        kind,
        key: ObjectKey::new("a", "j"),
        now: NOW,
        namespace: Namespace { name: "a".into(), labels, terminating: false, excluded: false },
        facts: reader.read(&object.to_string(), &mut interner).unwrap().map(|it| it.facts),
        policies,
        not_understood,
        seen,
        finalizers: Vec::new(),
        annotations: serde_json::from_value(object["metadata"]["annotations"].clone())
            .unwrap_or_default(),
        groups: Groups::default(),
        is_configured: true,
    }
}

fn judged<'c>(case: &'c Case, governed: Governed<'c, 'c>, answers: &Answers) -> Judged<'c> {
    let plan = governed.plan(answers, &case.groups, case.now);
    Judged { governed, plan, unanswered: None }
}

/// The page about it if this was answered about its owner.
fn page(case: &Case, owner: Option<OwnerAnswer>) -> String {
    let there = case.policies.in_namespace(&case.namespace);
    let answers = Answers { owner, ..Answers::default() };
    let facts = case.facts.as_ref();
    let governing = facts.and_then(|facts| there.governing(facts));
    let governing = governing.map(|governed| judged(case, governed, &answers));
    let audited = facts.into_iter().flat_map(|facts| there.audited(facts));
    let audited: Vec<_> = audited.map(|governed| judged(case, governed, &answers)).collect();
    of(case, governing.as_ref(), &audited)
}

/// The answer of a page, its second section.
fn said(page: &str) -> String {
    page.split("\n\n").nth(1).unwrap().to_owned()
}

#[test]
fn a_page_says_what_becomes_of_an_object_and_by_which_policy() {
    let expected = "\
Job a/j, at 2026-11-22T06:31:00Z

It is deleted at 2026-11-22T07:30:00Z.

  finished:       2026-11-22T06:30:00Z, Succeeded, CompletionsReached
  governed by:    RetentionPolicy a/p, by rule all
  due:            2026-11-22T07:30:00Z, by Policy

Policies for Job.batch, in the order in which they are asked:
  RetentionPolicy a/p (Enforce): rule all decides
";
    assert_eq!(page(&case_of(BuiltIn::Job, &[ttl(3600)], &plain()), None), expected);
}

#[test]
fn each_reason_why_an_object_stays_has_an_answer() {
    let keep = || policy(&json!({"keep": true}), &json!({}));
    let defer = || policy(&json!({"defer": true}), &json!({}));
    let after_owner =
        || policy(&json!({"ttlSecondsAfterFinished": 0}), &json!({"owned": "AfterOwner"}));
    let last = || policy(&json!({"keepLast": {"count": 3, "groupBy": ["exp"]}}), &json!({}));
    let mut running = plain();
    running["status"] = json!({});
    let mut timeless = plain();
    timeless["status"]["conditions"][0]["lastTransitionTime"] = Value::Null;
    let going = job(&json!({"deletionTimestamp": END}), &json!({}));
    let copy = job(&json!({"labels": {"kueue.x-k8s.io/multikueue-origin": "m"}}), &json!({}));
    let waits = OwnerAnswer::Found(FoundOwner::default());
    for (policy, object, owner, expected) in [
        (ttl(0), running, None, "It has not finished, so no policy deletes it."),
        (
            defer(),
            plain(),
            None,
            "It stays: of the policies for Job.batch none in Enforce decides about it.",
        ),
        (keep(), plain(), None, "Rule all keeps it for ever."),
        (
            ttl(0),
            owned(),
            None,
            "It is left alone: JobSet s controls it, and owned of the policy is Skip",
        ),
        (
            after_owner(),
            owned(),
            Some(waits),
            "It waits for its owner JobSet s, which has not finished",
        ),
        (
            after_owner(),
            owned(),
            Some(OwnerAnswer::Gone),
            "It is due since 2026-11-22T06:30:00Z, and is deleted now.",
        ),
        (
            last(),
            plain(),
            None,
            "It is kept, because it lacks one of the labels by which rule all makes groups: exp.",
        ),
        (ttl(0), timeless, None, "It is kept, because nothing tells when it finished"),
        (ttl(0), going, None, "It is being deleted, since 2026-11-22T06:30:00Z."),
        (ttl(0), copy, None, "MultiKueue made it"),
        (ttl(0), plain(), None, "It is due since 2026-11-22T06:30:00Z, and is deleted now."),
    ] {
        let said = said(&page(&case_of(BuiltIn::Job, &[policy], &object), owner));
        assert!(said.starts_with(expected), "{said}, expected {expected}");
    }
}

#[test]
fn holds_and_own_ttls_say_who_deletes_and_when() {
    let allows =
        policy(&json!({"ttlSecondsAfterFinished": 0}), &json!({"overrides": {"annotation": true}}));
    let own = job(&json!({}), &json!({"ttlSecondsAfterFinished": 600}));
    let ignores = policy(&json!({"keep": true}), &json!({"overrides": {"ownTTL": "Ignore"}}));
    for (policy, object, expected) in [
        (
            ttl(0),
            annotated("hold-until", "2026-11-23T06:30:00Z"),
            "A hold keeps it until 2026-11-23T06:30:00Z; then it is deleted.",
        ),
        (
            ttl(0),
            annotated("hold-until", "2100-01-01T00:00:00Z"),
            "A hold keeps it until 2026-12-22T06:30:00Z; then it is deleted. Its hold asks for longer than it gets.",
        ),
        (
            ttl(0),
            annotated("hold-until", "tomorrow"),
            "A hold keeps it until 2026-12-22T06:30:00Z; then it is deleted. Its hold cannot be read, so it holds as long as a hold may. It says \"tomorrow\", and not a time such as 2026-12-22T06:30:00Z.",
        ),
        (
            allows,
            annotated("ttl-seconds-after-finished", "7d"),
            "A hold keeps it until 2026-12-22T06:30:00Z; then it is deleted. The TTL in its annotation cannot be read, so it holds as long as a hold may. It says \"7d\", and not a number of seconds such as 604800.",
        ),
        (
            ttl(0),
            own.clone(),
            "Its own controller deletes it at 2026-11-22T06:40:00Z, by the TTL in its own field. If it is still there at 2026-11-22T06:41:00Z, the engine deletes it.",
        ),
        (
            ignores,
            own,
            "Its own controller deletes it at 2026-11-22T06:40:00Z, by the TTL in its own field, and no policy stops that.",
        ),
    ] {
        let said = said(&page(&case_of(BuiltIn::Job, &[policy], &object), None));
        assert!(said.starts_with(expected), "{said}, expected {expected}");
    }
}

#[test]
fn a_question_that_failed_is_said() {
    let after_owner =
        policy(&json!({"ttlSecondsAfterFinished": 3600}), &json!({"owned": "AfterOwner"}));
    let case = case_of(BuiltIn::Job, &[after_owner], &owned());
    let there = case.policies.in_namespace(&case.namespace);
    let governed = there.governing(case.facts.as_ref().unwrap()).unwrap();
    let judged = judged(&case, governed, &Answers::default());
    let judged = Judged { unanswered: Some("forbidden".to_owned()), ..judged };
    let said = said(&of(&case, Some(&judged), &[]));
    let expected = "It is deleted at 2026-11-22T07:30:00Z. But the engine asks about another object first, and here that failed: forbidden.";
    assert_eq!(said, expected);
}

#[test]
fn every_policy_is_named_with_what_it_says_and_one_in_audit_with_what_it_would_do() {
    let named = |name: &str, mut policy: Value, spec: &Value| {
        merge(&mut policy["metadata"], &json!({"name": name, "uid": name}));
        merge(&mut policy["spec"], spec);
        policy
    };
    let selects = json!({"selector": {"matchLabels": {"team": "x"}}, "priority": 2});
    let mut of_cluster = named("everywhere", ttl(3600), &json!({"mode": "Audit"}));
    of_cluster["metadata"].as_object_mut().unwrap().remove("namespace");
    let defers = policy(&json!({"defer": true}), &json!({}));
    let page = page(
        &case_of(
            BuiltIn::Job,
            &[named("selects", ttl(0), &selects), named("defers", defers, &json!({})), of_cluster],
            &plain(),
        ),
        None,
    );
    for expected in [
        "It stays: of the policies for Job.batch none in Enforce decides about it.",
        "If ClusterRetentionPolicy everywhere enforced: It is deleted at 2026-11-22T07:30:00Z.",
        "\
Policies for Job.batch, in the order in which they are asked:
  RetentionPolicy a/selects (Enforce): its selector does not fit
  RetentionPolicy a/defers (Enforce): rule all defers to the next policy
  ClusterRetentionPolicy everywhere (Audit): rule all decides
",
    ] {
        assert!(page.contains(expected), "{page}");
    }
}

#[test]
fn a_policy_that_is_not_understood_keeps_what_it_may_select() {
    let mut unknown = ttl(0);
    merge(&mut unknown["spec"], &json!({"later": true}));
    let page = page(&case_of(BuiltIn::Job, &[ttl(0), unknown], &plain()), None);
    assert!(said(&page).starts_with("It is kept as long as it is not known"), "{page}");
    assert!(page.contains("not understood, so what it may select is kept: "), "{page}");
}

#[test]
fn a_deactivated_workload_needs_a_rule_that_deletes_its_owner() {
    let mut policy = ttl(0);
    merge(
        &mut policy["spec"],
        &json!({"target": {"apiGroup": "kueue.x-k8s.io", "kind": "Workload"}, "owned": "Any"}),
    );
    let mut workload = owned();
    workload["spec"] = json!({"active": false});
    workload["status"] = json!({"conditions": [{"type": "Evicted", "status": "True",
        "reason": "DeactivatedDueToRequeuingLimitExceeded", "lastTransitionTime": END}]});
    let page = page(&case_of(BuiltIn::Workload, &[policy], &workload), None);
    assert!(said(&page).contains("Only a rule with delete: Owner deletes it"), "{page}");
}

#[test]
fn a_train_job_that_is_not_released_says_so() {
    let mut policy = ttl(0);
    let target = json!({"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob"});
    merge(&mut policy["spec"], &json!({"target": target}));
    let mut train_job = plain();
    train_job["status"]["conditions"][0] = json!({"type": "Failed", "status": "True",
        "reason": "DeadlineExceeded", "lastTransitionTime": END});
    let page = page(&case_of(BuiltIn::TrainJob, &[policy], &train_job), None);
    assert!(said(&page).starts_with("It waits until its JobSet and its Pods are gone"), "{page}");
}

#[test]
fn of_an_object_that_has_not_finished_the_policies_are_named() {
    let mut running = plain();
    running["status"] = json!({});
    let page = page(&case_of(BuiltIn::Job, &[ttl(0)], &running), None);
    let expected = "\
Policies for Job.batch, in the order in which they are asked:
  RetentionPolicy a/p (Enforce)
";
    assert!(page.ends_with(expected), "{page}");
}

mod stopped;
