//! What the program says of one object: why it is there, and until when.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::time::Timestamp;

use super::place::Place;
use super::{condition, policy, status};

/// An hour, in seconds.
const HOUR: i64 = 3_600;

impl Place {
    async fn edit(&self, name: &str, patch: &Value) -> Result<()> {
        self.jobs().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Sees that the page about a Job contains this.
    async fn explains(&self, name: &str, expected: &str) -> Result<()> {
        let page = self.explain(name).await?;
        ensure!(page.contains(expected), "{expected:?} is not in\n{page}");
        Ok(())
    }
}

/// A policy that keeps what has the label `keep`, and deletes the rest after an hour.
fn keeping(mode: &str) -> Value {
    let mut keeping = policy(mode, HOUR);
    let keep = json!({"name": "keep", "match": {"labels": {"matchLabels": {"keep": "yes"}}}, "action": {"keep": true}});
    if let Some(rules) = keeping.pointer_mut("/spec/rules").and_then(Value::as_array_mut) {
        rules.insert(0, keep);
    }
    keeping
}

async fn all_kinds_of(place: &Place) -> Result<Timestamp> {
    place.create("running", &json!({})).await?;
    let hold = json!({"lifecycle.trainjob.dev/hold-until": "tomorrow"});
    place.create("held", &hold).await?;
    for name in ["done", "kept", "owned"] {
        place.create(name, &json!({})).await?;
    }
    place.edit("kept", &json!({"metadata": {"labels": {"keep": "yes"}}})).await?;
    let owner = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s",
        "uid": "9c2a7f5e-0000-4000-8000-000000000000", "controller": true});
    place.edit("owned", &json!({"metadata": {"ownerReferences": [owner]}})).await?;
    for name in ["held", "kept", "owned"] {
        place.finish(name).await?;
    }
    place.finish("done").await
}

#[tokio::test]
async fn each_object_is_explained_with_the_rights_of_the_engine() -> Result<()> {
    let place = Place::new("explained").await?;
    let start = all_kinds_of(&place).await?;
    let nothing = "There is no policy for Job.batch.";
    place.explains("done", nothing).await?;
    place.apply(keeping("Audit")).await?;
    status(&place, |status| status["counts"]["finished"] == 4).await?;
    let named = format!("RetentionPolicy {}/jobs", place.namespace());
    let deleted = format!("It is deleted at {}.", start.plus(HOUR));
    for expected in [
        "It stays: of the policies for Job.batch none in Enforce decides about it.",
        &format!("If {named} enforced: {deleted}"),
    ] {
        place.explains("done", expected).await?;
    }

    place.apply(keeping("Enforce")).await?;
    status(&place, |status| condition(status, "Enforcing").0 == "True").await?;
    for (name, expected) in [
        ("running", "It has not finished, so no policy deletes it."),
        ("done", &*deleted),
        ("done", &*format!("governed by:    {named}, by rule all")),
        ("kept", "Rule keep keeps it for ever."),
        ("held", "Its hold cannot be read, so it holds as long as a hold may."),
        ("owned", "It is left alone: JobSet s controls it, and owned of the policy is Skip"),
    ] {
        place.explains(name, expected).await?;
    }
    let none = place.explain("nobody").await.unwrap_err().to_string();
    ensure!(none.contains("there is no Job"), "{none}");
    ensure!(place.deletions()?.is_empty(), "it has deleted {:?}", place.deletions()?);
    Ok(())
}
