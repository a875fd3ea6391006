//! What of a stored TrainJob may change, and when.

use anyhow::{Result, ensure};
use e2e::answer::ask;
use e2e::apply::apply;
use http::Method;
use serde_json::{Value, json};

use super::parts::{patch, plain};
use super::place::{Place, Way};
use super::row::Row;
use super::{check, place};

const RUNNING: &str = "spec.runtimePatches: Forbidden: RuntimePatches can only be modified when the TrainJob is suspended before or after the update";

fn selects(zone: &str) -> Value {
    patch("a.io/b", "node", &json!({"nodeSelector": {"zone": zone}}))
}

#[tokio::test]
async fn patches_change_only_while_a_job_is_suspended() -> Result<()> {
    check("patches", patches()).await
}

fn patches() -> Vec<Row> {
    let job =
        |suspend: bool, entries: Value| json!({"suspend": suspend, "runtimePatches": entries});
    let row = |what, from: Value, to: Value| Row::new(what, plain(), from).then(to);
    let (a, b) = (json!([selects("a")]), json!([selects("b")]));
    let other = patch("a.io/c", "node", &json!({"nodeSelector": {"disk": "ssd"}}));
    let size = |limit: &str| {
        let volume = json!({"name": "scratch", "emptyDir": {"sizeLimit": limit}});
        job(false, json!([patch("a.io/b", "node", &json!({"volumes": [volume]}))]))
    };
    vec![
        row("changed", job(false, a.clone()), job(false, b.clone())).denied(RUNNING),
        row("added", job(false, json!([])), job(false, a.clone())).denied(RUNNING),
        row("removed", job(false, a.clone()), json!({"suspend": false})).denied(RUNNING),
        row("suspended before", job(true, a.clone()), job(false, b.clone())),
        row("suspended after", job(false, a.clone()), job(true, b.clone())),
        row("suspended", job(true, a.clone()), job(true, b)),
        row("the same", job(false, a.clone()), job(true, a)),
        row(
            "in another order",
            job(false, json!([selects("a"), other])),
            job(false, json!([other, selects("a")])),
        ),
        row("an empty list", json!({"suspend": false}), job(false, json!([]))),
    ]
    .into_iter()
    .chain([
        // The schema compares texts, and volumes only with themselves.
        row("an amount in another way", size("1Gi"), size("1024Mi"))
            .invalid("spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.volumes", "field is immutable"),
    ])
    .collect()
}

#[tokio::test]
async fn patches_change_only_while_no_job_of_the_job_set_is_active() -> Result<()> {
    let place = place("active").await?;
    place.make_runtime("r", &plain()).await?;
    let spec = |zone: &str| {
        json!({
            "runtimeRef": {"name": "r", "kind": "TrainingRuntime"},
            "suspend": true,
            "runtimePatches": [selects(zone)],
        })
    };
    let text = "admission webhook \"validator.trainjob.trainer.kubeflow.org\" denied the request: spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's ReplicatedJob node is still active";
    for (name, active, is_own, expected) in [
        ("runs", 1, true, Some(text)),
        ("stopped", 0, true, None),
        ("of-somebody-else", 1, false, None),
    ] {
        let job = place.create(Way::Replace, name, &spec("a")).await?;
        let uid = if is_own { job["metadata"]["uid"].clone() } else { json!("somebody-else") };
        plant_job_set(&place, name, &uid, active).await?;
        let answer = place.change(Way::Replace, &job, &spec("b")).await?;
        ensure!(answer.code == expected.map_or(200, |_| 403), "{name}: {answer:?}");
        ensure!(answer.message() == expected.unwrap_or_default(), "{name}: {}", answer.message());
    }
    Ok(())
}

/// Makes a JobSet that nobody acts on, of which so many Pods of `node` are active.
async fn plant_job_set(place: &Place, name: &str, uid: &Value, active: i32) -> Result<()> {
    let owner = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": name, "uid": uid,
        "controller": true,
    });
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "node", "image": "example.com/train:1"}]});
    let version = "jobset.x-k8s.io/v1alpha2";
    let job_set = json!({
        "apiVersion": version,
        "kind": "JobSet",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "suspend": true,
            "managedBy": "e2e.trainjob.dev/nobody",
            "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}],
        },
    });
    apply(&place.client, &place.namespace, vec![job_set]).await?;
    let counts = json!({"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": active, "suspended": 0});
    let status = json!({"status": {"replicatedJobsStatus": [counts]}});
    let path = format!("/apis/{version}/namespaces/{}/jobsets/{name}/status", place.namespace);
    let merge = "application/merge-patch+json";
    let answer = ask(&place.client, Method::PATCH, &path, merge, &status).await?;
    ensure!(answer.code == 200, "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn ttl_and_deadline_are_fixed_at_creation() -> Result<()> {
    check("fixed", lifecycle()).await
}

fn lifecycle() -> Vec<Row> {
    const OUT: &str = "or create another TrainJob";
    let mut rows = Vec::new();
    // That one is removed, or merely left out, is in `writers.rs` and `removal.rs`.
    for field in ["activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
        let with = |value: i64| json!({field: value});
        let row = |what, from: Value, to: Value| Row::new(what, plain(), from).then(to);
        let text = |why: String| format!("spec.{field}: Forbidden: field is immutable{why}, {OUT}");
        let changed = row("changed", with(90), with(91));
        rows.extend([
            row("added", json!({}), with(90))
                .denied(&text(" and was not set on creation: leave it out".into())),
            row("kept", with(90), json!({field: 90, "suspend": true})),
            if field == "activeDeadlineSeconds" {
                changed.invalid("spec.activeDeadlineSeconds", "field is immutable")
            } else {
                changed.denied(&text(": keep 90 instead of 91".into()))
            },
        ]);
    }
    rows
}

#[tokio::test]
async fn update_without_spec_change_is_admitted() -> Result<()> {
    let place = place("through").await?;
    place.make_runtime("r", &plain()).await?;
    let spec = json!({"runtimeRef": {"name": "r", "kind": "TrainingRuntime"}});
    place.create(Way::Replace, "job", &spec).await?;
    let path = place.path("trainjobs", "job");
    let runtime = place.path("trainingruntimes", "r");
    let merge = "application/merge-patch+json";
    let none = Value::Null;

    // Its runtime is gone, and there is no snapshot.
    let deleted = ask(&place.client, Method::DELETE, &runtime, "application/json", &none).await?;
    ensure!(deleted.code == 200, "{deleted:?}");
    let labels =
        json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["e2e.trainjob.dev/hold"]}});
    for change in [labels, json!({"spec": {"suspend": true}}), json!({"spec": {"suspend": false}})]
    {
        let answer = ask(&place.client, Method::PATCH, &path, merge, &change).await?;
        ensure!(answer.code == 200 && answer.warnings.is_empty(), "{change}: {answer:?}");
    }

    // It is being deleted: not even what is wrong stands in the way.
    let deleted = ask(&place.client, Method::DELETE, &path, "application/json", &none).await?;
    ensure!(deleted.code == 200, "{deleted:?}");
    let wrong =
        json!({"spec": {"ttlSecondsAfterFinished": 5, "runtimePatches": [{"manager": "me"}]}});
    let answer = ask(&place.client, Method::PATCH, &path, merge, &wrong).await?;
    ensure!(answer.code == 200, "{answer:?}");
    let entry = &answer.object["spec"]["runtimePatches"][0];
    ensure!(entry.get("time").is_none(), "it is changed while it is deleted: {entry}");
    let free = json!({"metadata": {"finalizers": null}});
    let answer = ask(&place.client, Method::PATCH, &path, merge, &free).await?;
    ensure!(answer.code == 200, "{answer:?}");
    let gone = place.read("job").await?;
    ensure!(gone.code == 404, "{gone:?}");
    Ok(())
}
