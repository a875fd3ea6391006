//! Retention policies as people write them and as the API server stores them (`docs/retention.md`, 2 and 7).

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::{fs, path::Path};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use trainjob_api::{
    crd,
    lifecycle::v1alpha1::{
        API_VERSION,
        policy::{ClusterRetentionPolicy, RetentionPolicy},
        status::RetentionPolicyStatus,
    },
};

/// All that a policy can say, with nothing left to a default.
const EVERYTHING: &str = "
apiVersion: lifecycle.trainjob.dev/v1alpha1
kind: ClusterRetentionPolicy
metadata: {name: everything}
spec:
  target: {apiGroup: example.com, kind: Build}
  selector:
    matchLabels: {team: a}
    matchExpressions:
    - {key: example.com/tier, operator: NotIn, values: [gold, '']}
    - {key: experiment, operator: Exists}
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [kube-system]}]}
  mode: Enforce
  priority: -3
  finished:
    requires: [{path: status.completionTime, operator: Exists}]
    conditions:
    - {type: Succeeded, status: 'False', reasons: [Broken, 'Timeout*'], outcome: Failed}
    phase:
      path: status.phase
      outcomes: {Succeeded: [Done], Failed: [Error], Other: [Stopped]}
      otherwise: Other
    reasonPath: status.reason
    timePath: status.endTime
    ownTTL: [{path: spec.ttl, outcomes: [Succeeded]}, {path: spec.otherTtl}]
    guards:
    - name: archive
      while:
      - {annotation: example.com/*, operator: Exists}
      - {label: example.com/archived, operator: NotIn, values: ['true']}
  rules:
  - name: failed
    match:
      outcomes: [Failed, Other]
      reasons: ['Evicted*']
      labels: {matchLabels: {keep: 'yes'}}
    action: {keep: true}
    pods: {ttlSecondsAfterFinished: 600, phases: All}
    delete: Owner
  - name: grouped
    match: {outcomes: [Deactivated]}
    action: {keepLast: {count: 3, groupBy: [experiment], minimumAgeSeconds: 60, maximumAgeSeconds: 3600}}
    delete: Object
  - {name: short, match: {outcomes: [Succeeded]}, action: {ttlSecondsAfterFinished: 0}, delete: Object}
  - {name: rest, action: {defer: true}, delete: Object}
  owned: AfterOwner
  overrides: {annotation: true, ownTTL: Ignore}
  holds: {maximumSeconds: 0}
  limits: {minimumSeconds: 60, maximumSeconds: 3600, maximumHoldSeconds: 0}
  propagation: Background
  deletesPerSecond: 0
  breaker: {maxCount: 1}
";

/// The least that a policy can say.
const LEAST: &str = "
apiVersion: lifecycle.trainjob.dev/v1alpha1
kind: RetentionPolicy
metadata: {name: least}
spec:
  target: {apiGroup: batch, kind: Job}
  rules: [{name: all, action: {ttlSecondsAfterFinished: 60}}]
";

/// The status of `docs/retention.md`, 7.
const STATUS: &str = "
observedGeneration: 7
digest: 3f9c0a12b7d4e581
servedVersion: v1beta2
enforcedThrough: '2026-11-22T06:30:00Z'
counts: {finished: 4120, due: 12, kept: 300, held: 2, owned: 41, guarded: 0, needsOwner: 0,
  ungrouped: 3, noFinishTime: 1, terminating: 4, nativeTTL: 17, recreated: 0}
rules: [{name: failed, matched: 120, due: 3}]
wouldDelete: {now: 12, hour: 30, day: 340, week: 1200}
next:
- {namespace: a, name: j1, uid: u1, rule: failed, source: Policy, action: Object, at: '2026-11-22T06:31:07Z'}
trip:
  id: 7-3f9c0a12b7d4e581-1
  reason: MassDelete
  unexpected: 8213
  stock: 9000
  namespaces: [{name: a, unexpected: 8213}]
  at: '2026-11-22T06:30:02Z'
missingRules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [watch, delete]}]
conditions:
- {type: Ready, status: 'True', reason: Watching, message: '', lastTransitionTime: '2026-11-22T06:30:02Z'}
";

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn round_trip<K: Serialize + DeserializeOwned>(object: &Value) -> Result<Value, String> {
    let read: K = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(read).unwrap())
}

/// What a policy of either kind is after it was read and written.
fn policy(object: &Value) -> Result<Value, String> {
    assert_eq!(object["apiVersion"], API_VERSION);
    match object["kind"].as_str().unwrap() {
        "RetentionPolicy" => round_trip::<RetentionPolicy>(object),
        "ClusterRetentionPolicy" => round_trip::<ClusterRetentionPolicy>(object),
        other => panic!("{other}"),
    }
}

/// The schema of a kind's spec.
fn schema_of_spec(kind: &str) -> Value {
    let crds = crd::retention().map(|crd| serde_json::to_value(crd).unwrap());
    let crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == kind).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// What the API server makes of `value`: every field that is absent and has a default is filled in.
fn with_defaults(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut filled: Map<_, _> = fields.clone();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                let present = fields.get(name).or_else(|| schema.get("default"));
                if let Some(present) = present {
                    filled.insert(name.clone(), with_defaults(schema, present));
                }
            }
            Value::Object(filled)
        }
        Value::Array(items) => {
            items.iter().map(|item| with_defaults(&schema["items"], item)).collect()
        }
        plain => plain.clone(),
    }
}

fn examples() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/retention");
    let files = ["", "kinds"].iter().flat_map(|part| fs::read_dir(folder.join(part)).unwrap());
    let files = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files
        .map(|path| (path.display().to_string(), yaml(&fs::read_to_string(&path).unwrap())))
        .collect()
}

#[test]
fn a_policy_comes_back_as_it_was() {
    let everything = yaml(EVERYTHING);
    assert_eq!(policy(&everything).unwrap(), everything);
}

#[test]
fn an_absent_field_is_read_as_what_the_api_server_fills_in() {
    let mut all = examples();
    assert!(all.len() >= 16, "only {} examples", all.len());
    all.push(("the least".into(), yaml(LEAST)));
    for (name, manifest) in all {
        let mut stored = manifest.clone();
        let schema = schema_of_spec(manifest["kind"].as_str().unwrap());
        stored["spec"] = with_defaults(&schema, &manifest["spec"]);
        assert_eq!(policy(&manifest).unwrap(), stored, "{name}");
        assert_eq!(policy(&stored).unwrap(), stored, "{name}");
    }
}

/// It may be the field that keeps objects.
#[test]
fn a_field_that_this_version_does_not_know_makes_a_policy_unreadable_wherever_it_is() {
    for place in [
        "",
        "/target",
        "/selector",
        "/selector/matchExpressions/0",
        "/namespaceSelector",
        "/finished",
        "/finished/requires/0",
        "/finished/conditions/0",
        "/finished/phase",
        "/finished/phase/outcomes",
        "/finished/ownTTL/0",
        "/finished/guards/0",
        "/finished/guards/0/while/0",
        "/rules/0",
        "/rules/0/match",
        "/rules/0/action",
        "/rules/0/pods",
        "/rules/1/action/keepLast",
        "/overrides",
        "/holds",
        "/limits",
        "/breaker",
    ] {
        let mut manifest = yaml(EVERYTHING);
        manifest["spec"].pointer_mut(place).unwrap()["fromTheFuture"] = json!(true);
        assert!(policy(&manifest).is_err(), "spec{place}");
    }
}

#[test]
fn a_value_that_this_version_does_not_know_makes_a_policy_unreadable() {
    for (place, value) in [
        ("/mode", json!("Pretend")),
        ("/owned", json!("Sometimes")),
        ("/propagation", json!("Orphan")),
        ("/overrides/ownTTL", json!("Maybe")),
        ("/selector/matchExpressions/0/operator", json!("Gt")),
        ("/finished/conditions/0/status", json!("Unknown")),
        ("/finished/conditions/0/outcome", json!("Cancelled")),
        ("/finished/requires/0", json!({"path": "a", "label": "b", "operator": "Exists"})),
        ("/finished/requires/0", json!({"operator": "Exists"})),
        ("/rules/0/match/outcomes/0", json!("Cancelled")),
        ("/rules/0/action", json!({})),
        ("/rules/0/action", json!({"keep": true, "ttlSecondsAfterFinished": 60})),
        ("/rules/0/action", json!({"keep": false})),
        ("/rules/0/action", json!({"ttlSecondsAfterFinished": -1})),
        ("/rules/0/pods/phases", json!("Running")),
        ("/rules/0/delete", json!("Everything")),
    ] {
        let mut manifest = yaml(EVERYTHING);
        *manifest["spec"].pointer_mut(place).unwrap() = value.clone();
        assert!(policy(&manifest).is_err(), "spec{place}: {value}");
    }
}

#[test]
fn only_a_cluster_policy_has_limits_and_a_selector_of_namespaces() {
    for field in ["limits", "namespaceSelector"] {
        let mut manifest = yaml(LEAST);
        manifest["spec"][field] = yaml(EVERYTHING)["spec"][field].clone();
        assert!(policy(&manifest).is_err(), "{field}");
        assert!(schema_of_spec("RetentionPolicy")["properties"].get(field).is_none(), "{field}");
        manifest["kind"] = json!("ClusterRetentionPolicy");
        assert!(policy(&manifest).is_ok(), "{field}");
    }
    let mut cluster = schema_of_spec("ClusterRetentionPolicy");
    for field in ["limits", "namespaceSelector"] {
        cluster["properties"].as_object_mut().unwrap().remove(field);
    }
    cluster["description"] = schema_of_spec("RetentionPolicy")["description"].clone();
    assert_eq!(cluster, schema_of_spec("RetentionPolicy"));
}

#[test]
fn a_status_comes_back_as_it_was_and_may_have_more_fields_one_day() {
    let status = yaml(STATUS);
    assert_eq!(round_trip::<RetentionPolicyStatus>(&status).unwrap(), status);
    let mut later = status.clone();
    for place in ["", "/counts", "/rules/0", "/next/0", "/trip", "/trip/namespaces/0"] {
        later.pointer_mut(place).unwrap()["fromTheFuture"] = json!(1);
    }
    assert_eq!(round_trip::<RetentionPolicyStatus>(&later).unwrap(), status);
}

/// The API server refuses a definition whose rules could cost too much, by these bounds.
#[test]
fn every_string_list_map_and_number_of_a_spec_has_a_limit() {
    fn check(path: &str, schema: &Value, seen: &mut usize) {
        *seen += 1;
        let has = |words: &[&str]| words.iter().any(|word| schema.get(word).is_some());
        match schema["type"].as_str().unwrap() {
            "string" => assert!(has(&["maxLength", "enum"]), "{path}"),
            // The one that is any number of its type.
            "integer" if path == ".priority" => assert_eq!(schema["format"], "int32"),
            "integer" => assert!(has(&["maximum"]) && has(&["minimum"]), "{path}"),
            "array" => {
                assert!(has(&["maxItems"]), "{path}");
                check(&format!("{path}[]"), &schema["items"], seen);
            }
            "object" => {
                for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
                    check(&format!("{path}.{field}"), schema, seen);
                }
                if let Some(values) = schema.get("additionalProperties") {
                    assert!(has(&["maxProperties"]), "{path}");
                    check(&format!("{path}{{}}"), values, seen);
                }
            }
            other => assert_eq!(other, "boolean", "{path}"),
        }
    }
    let mut seen = 0;
    check("", &schema_of_spec("ClusterRetentionPolicy"), &mut seen);
    assert!(seen > 80, "only {seen} fields");
}
