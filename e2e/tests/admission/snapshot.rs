//! An update is judged by the runtime that the job runs on, and only for what it brings in.

use anyhow::{Result, ensure};
use e2e::apply::apply;
use serde_json::{Value, json};

use super::parts::{node, plain, runtime, torch};
use super::place;
use super::place::{Place, Way};

/// Makes the ConfigMap in which the operator keeps the runtime of a job.
async fn plant_snapshot(place: &Place, job: &Value, runtime: &str, spec: &Value) -> Result<()> {
    let (name, uid) =
        (job["metadata"]["name"].as_str().unwrap_or_default(), &job["metadata"]["uid"]);
    let owner = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": name, "uid": uid,
        "controller": true,
    });
    let kept = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": runtime, "namespace": place.namespace},
        "spec": spec,
    });
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("{name}-runtime-snapshot"), "ownerReferences": [owner]},
        "immutable": true,
        "data": {"runtime": kept.to_string()},
    });
    apply(&place.client, &place.namespace, vec![config_map]).await?;
    Ok(())
}

#[tokio::test]
async fn an_update_is_judged_by_the_snapshot() -> Result<()> {
    let place = place("snapshot").await?;
    place.make_runtime("torch", &torch()).await?;
    place.make_runtime("jax", &runtime(&json!({"jax": {}}), &json!([node()]))).await?;
    for (name, live, kept, code) in [
        ("kept-torch", "jax", Some(torch()), 403),
        ("kept-jax", "torch", Some(runtime(&json!({"jax": {}}), &json!([node()]))), 200),
        ("kept-none", "torch", None, 403),
    ] {
        let reference = json!({"name": live, "kind": "TrainingRuntime"});
        let spec = json!({"runtimeRef": reference});
        let job = place.create(Way::Replace, name, &spec).await?;
        if let Some(kept) = kept {
            plant_snapshot(&place, &job, live, &kept).await?;
        }
        // The schema lets it be added.
        let trainer = json!({"env": [{"name": "PET_NNODES", "value": "1"}]});
        let changed = json!({"runtimeRef": reference, "trainer": trainer});
        let answer = place.change(Way::Replace, &job, &changed).await?;
        ensure!(answer.code == code, "{name}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_job_that_has_become_wrong_can_still_be_stopped() -> Result<()> {
    let place = place("stored").await?;
    place.make_runtime("r", &plain()).await?;
    let reference = json!({"name": "r", "kind": "TrainingRuntime"});
    let job = |suspend: bool, more: Option<Value>| {
        let trainer = json!({"env": [{"name": "PET_NNODES", "value": "1"}]});
        let patches = more.unwrap_or_else(|| json!([]));
        json!({
            "runtimeRef": reference, "suspend": suspend, "trainer": trainer, "runtimePatches": patches,
        })
    };
    for way in Way::ALL {
        let name = format!("{way:?}").to_lowercase();
        let stored = place.create(way, &name, &job(false, None)).await?;
        // With this one it would not have been admitted.
        plant_snapshot(&place, &stored, "r", &torch()).await?;
        let answer = place.change(way, &stored, &job(true, None)).await?;
        ensure!(answer.code == 200, "{way:?}: {answer:?}");
        let more = json!([{"manager": "me"}]);
        let answer = place.change(way, &answer.object, &job(true, Some(more))).await?;
        let expected = "admission webhook \"validator.trainjob.trainer.kubeflow.org\" denied the request: spec.runtimePatches[0].manager: Invalid value: \"me\": must be a domain-prefixed path (such as \"acme.io/foo\")";
        ensure!(answer.message() == expected, "{way:?}: {answer:?}");
    }
    Ok(())
}
