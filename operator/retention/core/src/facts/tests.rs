use serde_json::{Value, json};

use super::*;
use crate::{
    finished::configured::{
        Configured, DescribedOutcome, Description, EndCondition, FieldPath, OwnTtlField,
    },
    outcome::{Bond, Outcome},
    seconds::Seconds,
    wish::{HOLD_ANNOTATION, HoldWish, TTL_ANNOTATION, TtlWish},
};

const AT: &str = "2026-11-22T06:30:00Z";

fn at(second: i64) -> Timestamp {
    Timestamp(1_795_329_000 + second)
}

fn job(metadata: &Value, conditions: &Value) -> String {
    let mut object = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "a", "uid": "u", "resourceVersion": "8",
            "creationTimestamp": "2026-11-22T06:00:00Z"},
        "spec": {"ttlSecondsAfterFinished": 60}, "status": {"conditions": conditions}});
    let fields = metadata.as_object().unwrap().clone();
    object["metadata"].as_object_mut().unwrap().extend(fields);
    object.to_string()
}

fn failed() -> Value {
    json!([{"type": "Failed", "status": "True", "reason": "R", "lastTransitionTime": AT}])
}

fn built_in(kind: BuiltIn) -> Arc<Definition> {
    Arc::new(Definition::BuiltIn(kind))
}

fn describing(description: Description) -> Arc<Definition> {
    Arc::new(Definition::Configured(Box::new(Configured::new(description).unwrap())))
}

/// A condition of this type is an end of outcome Other.
fn ends_with(type_: &str) -> Description {
    let outcome = DescribedOutcome::Other;
    let (type_, reasons) = (type_.to_owned(), Vec::new());
    let conditions = vec![EndCondition { type_, status: true, reasons, outcome }];
    Description { conditions, ..Description::default() }
}

fn described(type_: &str) -> Arc<Definition> {
    describing(ends_with(type_))
}

fn read_finished(object: &str) -> Option<Finished> {
    let keys = ["team", "queue"].map(Arc::from).into_iter().collect();
    let reader = Reader::new(Some(BuiltIn::Job), vec![built_in(BuiltIn::Job)], keys);
    reader.read(object, &mut Interner::default()).unwrap()
}

fn read_job(object: &str) -> Option<Facts> {
    read_finished(object).map(|finished| finished.facts)
}

#[test]
fn all_that_decides_about_a_finished_object_is_remembered() {
    let metadata = json!({
        "labels": {"team": "a", "other": "b"}, "annotations": {HOLD_ANNOTATION: AT, TTL_ANNOTATION: "5"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"},
            {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "o",
                "controller": true, "blockOwnerDeletion": true},
        ],
    });
    let Finished { namespace, name, facts } = read_finished(&job(&metadata, &failed())).unwrap();
    assert_eq!((&*namespace, &*name, &*facts.resource_version.to_string()), ("a", "j", "8"));
    assert_eq!((&facts.uid, facts.created), (&Uid::from("u"), at(-1800)));
    let owner = facts.controller().unwrap();
    let owner = (&*owner.api_version, &*owner.kind, &*owner.name, owner.uid.clone());
    assert_eq!(owner, ("jobset.x-k8s.io/v1alpha2", "JobSet", "s", Uid::from("o")));
    let ttl = Seconds::new(5).map(TtlWish::Seconds);
    assert_eq!(facts.wishes, Wishes { ttl, hold: Some(HoldWish::Until(at(0))) });
    let labels = ["team", "queue", "other"].map(|key| facts.labels.get(key).map(|value| &**value));
    assert_eq!(labels, [Some("a"), None, None]);
    assert_eq!((facts.terminating.get(), facts.remote_copy), (None, false));
    let finish = facts.finish(&built_in(BuiltIn::Job)).unwrap();
    assert_eq!(
        (finish.time.get(), finish.outcome, &*finish.reason),
        (Some(at(0)), Outcome::Failed, "R")
    );
    assert_eq!((finish.own_ttl, finish.bond), (Seconds::new(60), Bond::None));
}

#[test]
fn what_exempts_an_object_is_remembered() {
    for (metadata, terminating, remote_copy) in [
        (json!({"deletionTimestamp": AT}), Timestamp::parse(AT), false),
        (json!({"deletionTimestamp": "soon"}), Some(Timestamp(i64::MAX)), false),
        (json!({"labels": {"kueue.x-k8s.io/multikueue-origin": "m"}}), None, true),
        (json!({"labels": {"kueue.x-k8s.io/queue-name": "m"}}), None, false),
    ] {
        let facts = read_job(&job(&metadata, &failed())).unwrap();
        assert_eq!(
            (facts.terminating.get(), facts.remote_copy),
            (terminating, remote_copy),
            "{metadata}"
        );
    }
}

/// The API server only sees that they are not empty.
#[test]
fn of_the_texts_of_an_owner_only_the_beginning_is_kept() {
    let long = "\u{e9}".repeat(500_000);
    let owner = json!({
        "apiVersion": long, "kind": long, "name": long, "uid": long, "controller": true,
    });
    let facts = read_job(&job(&json!({"ownerReferences": [owner]}), &failed())).unwrap();
    let owner = facts.controller().unwrap();
    let kept = [&*owner.api_version, &*owner.kind, &*owner.name, &*owner.uid.to_string()];
    assert_eq!(kept, [&*"\u{e9}".repeat(160); 4]);
}

#[test]
fn owners_who_do_not_manage_an_object_are_told_from_none() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p"});
    for (owners, expected) in [(json!([]), Owner::None), (json!([pod]), Owner::Others)] {
        let facts = read_job(&job(&json!({"ownerReferences": owners}), &failed())).unwrap();
        assert_eq!(facts.owner, expected, "{owners}");
    }
}

#[test]
fn an_object_that_has_not_finished_is_not_remembered() {
    assert_eq!(read_job(&job(&json!({}), &json!([]))), None);
}

#[test]
fn a_finish_without_a_time_is_not_before_the_last_write() {
    let conditions = json!([{"type": "Failed", "status": "True", "lastTransitionTime": null}]);
    let written = json!([{"subresource": "status", "time": "2026-11-22T06:30:05Z"}]);
    for (managed_fields, expected) in [(written, Some(at(5))), (json!([{}]), None)] {
        let facts = read_job(&job(&json!({"managedFields": managed_fields}), &conditions)).unwrap();
        let finish = facts.finish(&built_in(BuiltIn::Job)).unwrap();
        assert_eq!(finish.time.get(), expected, "{managed_fields}");
    }
}

#[test]
fn each_definition_has_its_own_end() {
    let (known, suspended) = (built_in(BuiltIn::Job), described("Suspended"));
    let definitions = vec![Arc::clone(&known), Arc::clone(&suspended)];
    let reader = Reader::new(Some(BuiltIn::Job), definitions, LabelKeys::default());
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": type_});
    for (conditions, by_known, by_description) in [
        (json!([condition("Complete")]), Some(Outcome::Succeeded), None),
        (json!([condition("Suspended")]), None, Some(Outcome::Other)),
    ] {
        let object = job(&json!({}), &conditions);
        let Finished { facts, .. } =
            reader.read(&object, &mut Interner::default()).unwrap().unwrap();
        let outcome =
            |definition: &Arc<Definition>| facts.finish(definition).map(|finish| finish.outcome);
        assert_eq!(outcome(&known), by_known, "{conditions}");
        // An equal definition of another policy is the same.
        assert_eq!(outcome(&described("Suspended")), by_description, "{conditions}");
        assert_eq!(outcome(&described("Failed")), None);
    }
    assert_eq!(reader.read(&job(&json!({}), &json!([])), &mut Interner::default()).unwrap(), None);
}

#[test]
fn a_description_changes_neither_own_ttl_nor_guard_nor_bond_of_a_known_kind() {
    let end = json!({"type": "Failed", "status": "True", "reason": "DeadlineExceeded"});
    let object = json!({"metadata": {}, "spec": {"ttlSecondsAfterFinished": 60},
        "status": {"conditions": [end]}});
    for (kind, own_ttl, release, bond) in [
        (Some(BuiltIn::TrainJob), Seconds::new(60), true, Bond::None),
        (Some(BuiltIn::Workload), None, false, Bond::UntilOwnerFinished),
        (None, None, false, Bond::None),
    ] {
        let definition = described("Failed");
        let reader = Reader::new(kind, vec![Arc::clone(&definition)], LabelKeys::default());
        let Finished { facts, .. } =
            reader.read(&object.to_string(), &mut Interner::default()).unwrap().unwrap();
        let finish = facts.finish(&definition).unwrap();
        let found = (finish.own_ttl, finish.guards.release, finish.bond);
        assert_eq!(found, (own_ttl, release, bond), "{kind:?}");
    }
}

#[test]
fn a_description_may_name_another_field_for_the_own_ttl() {
    let path = FieldPath::parse("spec.activeDeadlineSeconds").unwrap();
    let own_ttl = vec![OwnTtlField { path, outcomes: Vec::new() }];
    let definition = describing(Description { own_ttl, ..ends_with("Failed") });
    let end = json!({"type": "Failed", "status": "True"});
    for (spec, expected) in [
        (json!({"ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 7}), Seconds::new(7)),
        (json!({"ttlSecondsAfterFinished": 60}), None),
    ] {
        let object = json!({"metadata": {}, "spec": spec, "status": {"conditions": [end]}});
        let definitions = vec![Arc::clone(&definition)];
        let reader = Reader::new(Some(BuiltIn::Job), definitions, LabelKeys::default());
        let Finished { facts, .. } =
            reader.read(&object.to_string(), &mut Interner::default()).unwrap().unwrap();
        assert_eq!(facts.finish(&definition).unwrap().own_ttl, expected, "{spec}");
    }
}

#[test]
fn a_record_stays_small() {
    // With the texts and the boxes of a usual object, less than 400 bytes (R60).
    assert!(size_of::<Facts>() <= 144, "{}", size_of::<Facts>());
    assert!(size_of::<Finish>() <= 24, "{}", size_of::<Finish>());
    assert!(size_of::<Controller>() <= 72, "{}", size_of::<Controller>());
}
