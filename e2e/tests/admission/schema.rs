//! What the schema refuses before the webhook is asked, even where that would refuse it, too.

use anyhow::Result;
use serde_json::{Value, json};

use super::check;
use super::parts::{patch, plain};
use super::row::Row;

#[tokio::test]
async fn schema_violations_are_rejected_by_the_schema() -> Result<()> {
    check("schema", rows()).await
}

fn rows() -> Vec<Row> {
    const FIXED: &str = "field is immutable";
    let row = |what, spec: Value| Row::new(what, plain(), spec);
    let changed = |what, from: Value, to: Value| row(what, from).then(to);
    let at_least = |path: &str, least: i32| {
        format!("{path} in body should be greater than or equal to {least}")
    };
    let (deadline, ttl) = ("spec.activeDeadlineSeconds", "spec.ttlSecondsAfterFinished");
    vec![
        row("a deadline of nothing", json!({"activeDeadlineSeconds": 0}))
            .invalid(deadline, &at_least(deadline, 1)),
        row("a TTL below nothing", json!({"ttlSecondsAfterFinished": -1}))
            .invalid(ttl, &at_least(ttl, 0)),
        row("no processes", json!({"trainer": {"numProcPerNode": 0}}))
            .invalid("spec.trainer.numProcPerNode", "numProcPerNode must be greater than or equal to 1"),
        row("nobody's", json!({"managedBy": "me"})).invalid(
            "spec.managedBy",
            "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set",
        ),
        row("no URI", json!({"initializer": {"dataset": {"storageUri": "s3://"}}})).invalid(
            "spec.initializer.dataset.storageUri",
            "storageUri may be empty, or it must be a valid URI (scheme://...)",
        ),
        changed("another runtime", json!({}), json!({"runtimeRef": {"name": "other"}}))
            .invalid("spec.runtimeRef", FIXED),
        changed("another trainer", json!({"trainer": {"numNodes": 1}}), json!({"trainer": {"numNodes": 2}}))
            .invalid("spec.trainer", FIXED),
        changed(
            "the containers of a patch, while suspended",
            with_mount("1"),
            with_mount("2"),
        )
        .invalid(
            "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.containers",
            FIXED,
        ),
    ]
}

fn with_mount(volume: &str) -> Value {
    let containers =
        json!([{"name": "node", "volumeMounts": [{"name": volume, "mountPath": "/v"}]}]);
    json!({"suspend": true, "runtimePatches": [patch("a.io/b", "node", &json!({"containers": containers}))]})
}
