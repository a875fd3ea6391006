//! Our CRDs admit exactly what Kubeflow Trainer's admit, and what we add to it.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use common::{Facts, flattened, shipped};

/// Upstream's schemas; `upstream-schema/README.md` says what a line means.
const TRAIN_JOBS: &str = include_str!("upstream-schema/trainjobs.jsonl");
const TRAINING_RUNTIMES: &str = include_str!("upstream-schema/trainingruntimes.jsonl");

/// What we add to upstream's TrainJob.
fn additions() -> BTreeMap<String, Facts> {
    let lines = json!({
        ".spec.ttlSecondsAfterFinished": {"type": "integer", "format": "int32", "minimum": 0},
    });
    serde_json::from_value(lines).unwrap()
}

/// What our runtimes say in other words than upstream's, so that API servers of 1.31 take the definition.
fn rewordings() -> BTreeMap<String, Facts> {
    let lines = json!({
        ".spec.template.spec.volumeClaimPolicies[]": {"type": "object", "cel": [[
            "self.templates.all(t, !has(dyn(t.metadata).namespace) || dyn(t.metadata).namespace == '')",
            "namespace cannot be set for VolumeClaimPolicies templates",
        ]]},
    });
    serde_json::from_value(lines).unwrap()
}

fn upstream(lines: &str) -> BTreeMap<String, Facts> {
    lines.lines().map(|line| serde_json::from_str::<(String, Facts)>(line).unwrap()).collect()
}

#[track_caller]
fn assert_same(ours: &BTreeMap<String, Facts>, expected: &BTreeMap<String, Facts>) {
    let paths: BTreeSet<_> = ours.keys().chain(expected.keys()).collect();
    let different: Vec<_> = paths
        .into_iter()
        .filter(|path| ours.get(*path) != expected.get(*path))
        .map(|path| {
            format!("{path}\n  is     {:?}\n  should {:?}", ours.get(path), expected.get(path))
        })
        .collect();
    assert!(different.is_empty(), "{} lines differ:\n{}", different.len(), different.join("\n"));
}

#[test]
fn train_jobs_are_upstream_s_and_our_additions() {
    let mut expected = upstream(TRAIN_JOBS);
    for (path, facts) in additions() {
        assert_eq!(expected.insert(path.clone(), facts), None, "upstream has {path} too by now");
    }
    assert_same(&flattened("trainjobs"), &expected);
}

#[test]
fn both_kinds_of_runtime_are_upstream_s() {
    let mut expected = upstream(TRAINING_RUNTIMES);
    for (path, facts) in rewordings() {
        let before = expected.insert(path.clone(), facts.clone());
        let before = before.unwrap_or_else(|| panic!("upstream has no {path} any more"));
        assert_ne!(before, facts, "upstream says {path} like that by now");
    }
    assert_same(&flattened("trainingruntimes"), &expected);
    assert_same(&flattened("clustertrainingruntimes"), &expected);
}

#[test]
fn wide_columns_show_what_decides_about_a_job() {
    let crd = shipped("trainjobs");
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    let wide = columns.iter().filter(|column| column["priority"] == 1);
    let wide: Vec<_> = wide.map(|it| ["name", "type", "jsonPath"].map(|key| &it[key])).collect();
    let expected = [
        ["Runtime", "string", ".spec.runtimeRef.name"],
        ["Suspend", "boolean", ".spec.suspend"],
        ["Deadline", "integer", ".spec.activeDeadlineSeconds"],
        ["TTL", "integer", ".spec.ttlSecondsAfterFinished"],
    ];
    assert_eq!(json!(wide), json!(expected));
}

#[test]
fn names_scopes_default_columns_and_subresources_are_upstream_s() {
    let state =
        json!({"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"});
    let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    for (kind, singular, scope, columns, subresources) in [
        ("TrainJob", "trainjob", "Namespaced", json!([state, age]), json!({"status": {}})),
        ("TrainingRuntime", "trainingruntime", "Namespaced", Value::Null, Value::Null),
        ("ClusterTrainingRuntime", "clustertrainingruntime", "Cluster", Value::Null, Value::Null),
    ] {
        let plural = format!("{singular}s");
        let mut crd = shipped(&plural);
        assert_eq!(crd["metadata"], json!({"name": format!("{plural}.trainer.kubeflow.org")}));
        crd["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
        // What upstream does not have shows with `--output wide` only.
        let shown = crd.pointer_mut("/spec/versions/0/additionalPrinterColumns");
        if let Some(shown) = shown.and_then(Value::as_array_mut) {
            shown.retain(|column| column.get("priority").is_none());
        }
        let mut version = json!({"name": "v1alpha1", "served": true, "storage": true});
        for (key, value) in [("additionalPrinterColumns", columns), ("subresources", subresources)]
        {
            if !value.is_null() {
                version[key] = value;
            }
        }
        let expected = json!({
            "group": "trainer.kubeflow.org",
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "scope": scope,
            "versions": [version],
        });
        assert_eq!(crd["spec"], expected);
    }
}
