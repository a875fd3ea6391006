//! Policies with one mistake each, and what is said to them.

use serde_json::{Value, json};

use super::place::{Kind, least};

/// A policy with one mistake.
pub(crate) struct Row {
    /// What is changed in a policy that is admitted: where, and to what.
    pub(crate) changes: Vec<(&'static str, Value)>,
    /// The field that the refusal names.
    pub(crate) field: &'static str,
    /// How the refusal ends.
    pub(crate) text: &'static str,
}

fn row<const N: usize>(
    changes: [(&'static str, Value); N],
    field: &'static str,
    text: &'static str,
) -> Row {
    Row { changes: changes.into(), field, text }
}

/// What is changed: one field where one is enough.
fn one(at: &'static str, to: Value, field: &'static str, text: &'static str) -> Row {
    row([(at, to)], field, text)
}

/// A policy with something of everything, which is admitted.
pub(crate) fn good(kind: Kind) -> Value {
    let mut spec = least();
    spec["selector"] = json!({"matchLabels": {"a": "b"}});
    spec["rules"] = json!([
        {
            "name": "some",
            "match": {"outcomes": ["Failed"], "reasons": ["Evicted*"], "labels": {"matchLabels": {"a": ""}}},
            "action": {"ttlSecondsAfterFinished": 60},
            "pods": {"ttlSecondsAfterFinished": 60},
        },
        {
            "name": "others", "match": {"outcomes": ["Other"]},
            "action": {"keepLast": {"count": 10_000, "groupBy": ["a.io/b"], "minimumAgeSeconds": 7, "maximumAgeSeconds": 7}},
        },
        {"name": "rest", "action": {"defer": true}},
    ]);
    spec["finished"] = json!({
        "requires": [{"path": "status.a", "operator": "In", "values": ["1"]}],
        "conditions": [{"type": "Done", "status": "False", "reasons": ["*"], "outcome": "Failed"}],
        "phase": {"path": "status.phase", "outcomes": {"Succeeded": ["a"], "Failed": ["b"], "Other": ["c"]}},
        "ownTTL": [{"path": "spec.ttl"}],
        "guards": [
            {"name": "one", "while": [{"label": "a", "operator": "Exists"}]},
            {"name": "two", "while": [{"annotation": "a.io/*", "operator": "DoesNotExist"}]},
        ],
    });
    if kind == Kind::Cluster {
        spec["namespaceSelector"] =
            json!({"matchExpressions": [{"key": "a.io/b", "operator": "In", "values": ["c", ""]}]});
        spec["limits"] = json!({"minimumSeconds": 60, "maximumSeconds": 60});
    }
    spec
}

/// One row at least for each CEL rule.
pub(crate) fn rules() -> Vec<Row> {
    [about_kinds(), about_rules(), about_actions(), about_finished(), about_selectors()]
        .into_iter()
        .flatten()
        .collect()
}

fn about_kinds() -> Vec<Row> {
    const UNKNOWN: &str = "only Job of batch, Pod of the core group, JobSet of jobset.x-k8s.io, TrainJob of trainer.kubeflow.org, Workload of kueue.x-k8s.io and TrainJobRecord of lifecycle.trainjob.dev can do without, spelled like this, and the group without a version; for another kind say what finished means";
    let target = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind});
    let unknown = |group, kind| {
        let rules = least()["rules"].clone();
        let changes =
            [("/target", target(group, kind)), ("/finished", Value::Null), ("/rules", rules)];
        row(changes, "spec.finished", UNKNOWN)
    };
    vec![
        row(
            [("/target", target("", "Secret")), ("/rules/0/pods", Value::Null)],
            "spec.target.kind",
            "of the core group only Pod can be a target",
        ),
        unknown("ray.io", "RayJob"),
        // Not that of batch.
        unknown("batch.volcano.sh", "Job"),
        one(
            "/target",
            target("kueue.x-k8s.io", "Workload"),
            "spec.rules",
            "pods is only for kinds whose Pods carry a label: Job, JobSet, TrainJob, the kinds of kubeflow.org, Argo Workflow, Tekton TaskRun and PipelineRun, Volcano Job",
        ),
    ]
}

fn about_rules() -> Vec<Row> {
    vec![
        one("/rules/1/name", json!("some"), "spec.rules", "each rule has a name of its own"),
        one(
            "/rules/2/match",
            json!({"outcomes": ["Failed"]}),
            "spec.rules",
            "the last rule has no match, so that every object has a rule; its action may be keep or defer",
        ),
        one(
            "/rules/0/match",
            Value::Null,
            "spec.rules",
            "only the last rule has no match: those after it would never be reached",
        ),
        one(
            "/rules/0/match",
            json!({}),
            "spec.rules[0].match",
            "a match has outcomes, reasons or labels; a rule for everything has no match",
        ),
        one(
            "/rules/2/pods",
            json!({"ttlSecondsAfterFinished": 0}),
            "spec.rules[2].pods",
            "a rule that defers decides nothing, about Pods neither",
        ),
        one(
            "/rules/2/delete",
            json!("Owner"),
            "spec.rules[2].delete",
            "a rule that defers decides nothing, about owners neither",
        ),
    ]
}

fn about_actions() -> Vec<Row> {
    const ONE: &str =
        "an action is exactly one of ttlSecondsAfterFinished, keep, defer and keepLast";
    const POD_TTL: &str = "spec.rules[0].pods.ttlSecondsAfterFinished";
    vec![
        one("/rules/0/action", json!({}), "spec.rules[0].action", ONE),
        one("/rules/0/action/keep", json!(true), "spec.rules[0].action", ONE),
        one("/rules/1/action/defer", json!(true), "spec.rules[1].action", ONE),
        one(
            "/rules/0/action",
            json!({"keep": false}),
            "spec.rules[0].action.keep",
            "keep is true, or is left out",
        ),
        one(
            "/rules/2/action",
            json!({"defer": false}),
            "spec.rules[2].action.defer",
            "defer is true, or is left out",
        ),
        one(
            "/rules/1/action/keepLast/minimumAgeSeconds",
            json!(8),
            "spec.rules[1].action.keepLast.minimumAgeSeconds",
            "minimumAgeSeconds is at most maximumAgeSeconds",
        ),
        one(
            "/rules/0/pods/ttlSecondsAfterFinished",
            json!(61),
            POD_TTL,
            "the Pods go at the same time as their object at the latest: the TTL of pods is at most that of action",
        ),
        one(
            "/rules/0/action",
            json!({"keepLast": {"count": 1, "maximumAgeSeconds": 59}}),
            POD_TTL,
            "the Pods go at the same time as their object at the latest: the TTL of pods is at most maximumAgeSeconds",
        ),
    ]
}

fn about_finished() -> Vec<Row> {
    const TESTED: &str = "exactly one of path, label and annotation is tested";
    vec![
        one(
            "/finished",
            json!({"timePath": "status.endTime"}),
            "spec.finished",
            "finished has conditions, a phase, or both",
        ),
        row(
            [("/finished/phase/otherwise", json!("Other")), ("/finished/requires", Value::Null)],
            "spec.finished.requires",
            "phase.otherwise needs requires: without it every object would be finished",
        ),
        one(
            "/finished/phase",
            json!({"path": "status.phase"}),
            "spec.finished.phase",
            "a phase has outcomes, otherwise, or both",
        ),
        one(
            "/finished/phase/outcomes/Other/0",
            json!("a"),
            "spec.finished.phase.outcomes",
            "each value has one outcome",
        ),
        one("/finished/requires/0/label", json!("a"), "spec.finished.requires[0]", TESTED),
        one(
            "/finished/requires/0",
            json!({"operator": "Exists"}),
            "spec.finished.requires[0]",
            TESTED,
        ),
        one(
            "/finished/guards/1/name",
            json!("one"),
            "spec.finished.guards",
            "each guard has a name of its own",
        ),
    ]
}

fn about_selectors() -> Vec<Row> {
    const VALUES: &str = "In and NotIn have values, Exists and DoesNotExist have none";
    const KEYS: &str = "the keys of matchLabels are keys of labels";
    let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
    let mut rows = vec![
        one("/finished/requires/0/operator", json!("Exists"), "spec.finished.requires[0]", VALUES),
        one(
            "/limits",
            json!({"minimumSeconds": 61, "maximumSeconds": 60}),
            "spec.limits.minimumSeconds",
            "minimumSeconds is at most maximumSeconds",
        ),
    ];
    for (at, field, key_field) in [
        ("/selector", "spec.selector.matchExpressions[0]", "spec.selector.matchLabels"),
        (
            "/namespaceSelector",
            "spec.namespaceSelector.matchExpressions[0]",
            "spec.namespaceSelector.matchLabels",
        ),
        (
            "/rules/0/match/labels",
            "spec.rules[0].match.labels.matchExpressions[0]",
            "spec.rules[0].match.labels.matchLabels",
        ),
    ] {
        rows.push(one(at, expression("In", json!([])), field, VALUES));
        rows.push(one(at, expression("DoesNotExist", json!(["b"])), field, VALUES));
        for key in ["", "a b", "a/", "/a", "A.io/b", "a/b/c", &"a".repeat(64)] {
            let labels = json!({"matchLabels": {key: "b"}});
            rows.push(one(at, labels, key_field, KEYS));
        }
    }
    rows
}

/// What types, lengths and ranges refuse, and forms of strings.
pub(crate) fn limits() -> Vec<Row> {
    let (name, count) = ("spec.rules[0].name", "spec.rules[1].action.keepLast.count");
    let (key, path) = ("spec.selector.matchExpressions[0].key", "spec.finished.timePath");
    vec![
        one("/rules/0/name", json!("Some"), name, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"),
        one(
            "/holds",
            json!({"maximumSeconds": -1}),
            "spec.holds.maximumSeconds",
            "should be greater than or equal to 0",
        ),
        one(
            "/rules/0/action/ttlSecondsAfterFinished",
            json!(2_147_483_648_u32),
            "spec.rules[0].action.ttlSecondsAfterFinished",
            "should be less than or equal to 2147483647",
        ),
        one(
            "/rules/1/action/keepLast/count",
            json!(0),
            count,
            "should be greater than or equal to 1",
        ),
        one(
            "/rules/1/action/keepLast/count",
            json!(10_001),
            count,
            "should be less than or equal to 10000",
        ),
        one(
            "/breaker",
            json!({"maxCount": 0}),
            "spec.breaker.maxCount",
            "should be greater than or equal to 1",
        ),
        one(
            "/deletesPerSecond",
            json!(1_001),
            "spec.deletesPerSecond",
            "should be less than or equal to 1000",
        ),
        one(
            "/rules/0/match/labels",
            json!({}),
            "spec.rules[0].match.labels",
            "should have at least 1 properties",
        ),
        one(
            "/selector",
            json!({"matchExpressions": [{"key": "a b", "operator": "Exists"}]}),
            key,
            "?$'",
        ),
        one(
            "/selector",
            json!({"matchLabels": {"a": "b c"}}),
            "spec.selector.matchLabels.a",
            "?$'",
        ),
        one("/finished/timePath", json!("status.conditions[0].time"), path, "*$'"),
        one("/finished/phase/path", json!(".status"), "spec.finished.phase.path", "*$'"),
        one("/mode", json!("Pretend"), "spec.mode", "supported values: \"Audit\", \"Enforce\""),
        one(
            "/finished/conditions/0/outcome",
            json!("Deactivated"),
            "spec.finished.conditions[0].outcome",
            "supported values: \"Succeeded\", \"Failed\", \"Other\"",
        ),
        one("/limits", json!({}), "spec.limits", "should have at least 1 properties"),
    ]
}
