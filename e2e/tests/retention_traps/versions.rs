//! Policies that another version of the program defined or wrote (R5).

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::faults::retention::{Ground, Place, policy};
use e2e::fixtures::PATIENCE;
use e2e::until::until_ok;
use invariants::retention::Terms;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{WINDOW, condition, is_enforcing, named, ttl};

/// A field that no version has.
const SPARE: &str = "spare";

#[tokio::test(flavor = "multi_thread")]
async fn definition_of_an_older_or_a_newer_version_deletes_nothing_that_either_version_keeps()
-> Result<()> {
    let ground = Arc::new(Ground::start().await?);
    older(&ground).await?;
    newer(&ground).await
}

/// A version that has no `holds`, and neither defaults nor rules: what is not said has the default of this version.
async fn older(ground: &Arc<Ground>) -> Result<()> {
    let place = Place::prepare(Arc::clone(ground), "older").await?;
    define(&place, |spec| {
        simplify(spec);
        spec["properties"].as_object_mut().context("a map")?.remove("holds");
        Ok(())
    })
    .await?;
    let mut unsaid = policy("unsaid", "Job", &ttl(0));
    let fields = unsaid["spec"].as_object_mut().context("a map")?;
    for field in ["mode", "deletesPerSecond"] {
        fields.remove(field);
    }
    // It is asked before the other one.
    fields.insert("priority".to_owned(), json!(1));
    until_ok("the older definition is in force", PATIENCE, || async {
        let stored = stored(&place, &unsaid).await?;
        ensure!(stored["spec"]["mode"].is_null(), "{stored}");
        Ok(())
    })
    .await?;
    let hold =
        json!({"annotations": {"lifecycle.trainjob.dev/hold-until": "2100-01-01T00:00:00Z"}});
    place.finished(["held".to_owned()], &hold).await?;
    let owner = place.create("owner", &Value::Null, &Value::Null).await?.metadata.uid;
    let child = json!({"ownerReferences": [{
        "apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": owner, "controller": true,
    }]});
    place.finished(["owned".to_owned()], &child).await?;
    place.finished(named("job", 3), &Value::Null).await?;

    place.apply(unsaid).await?;
    place.launch().await?;
    place.status("unsaid", |it| condition(it, "Enforcing").1 == "AuditMode").await?;
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());
    place.apply(policy("enforced", "Job", &ttl(0))).await?;
    place.becomes("jobs", &["held", "owned", "owner"]).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

/// A version that has one field more, which may say that objects are kept.
async fn newer(ground: &Arc<Ground>) -> Result<()> {
    let place = Place::prepare(Arc::clone(ground), "newer").await?;
    define(&place, |spec| {
        spec["properties"][SPARE] = json!({"type": "boolean"});
        Ok(())
    })
    .await?;
    let mut spares = policy("jobs", "Job", &ttl(0));
    spares["spec"][SPARE] = json!(true);
    until_ok("the newer definition is in force", PATIENCE, || async {
        let stored = stored(&place, &spares).await?;
        ensure!(stored["spec"][SPARE] == true, "{stored}");
        Ok(())
    })
    .await?;
    place.apply(spares).await?;
    place.finished(named("job", 3), &Value::Null).await?;
    place.launch().await?;
    let is_unknown = |status: &Value| condition(status, "Ready").1 == "NotUnderstood";
    let seen = place.status("jobs", is_unknown).await?;
    ensure!(seen.to_string().contains(SPARE), "it does not say which field: {seen}");
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());

    place.apply(policy("jobs", "Job", &ttl(0))).await?;
    place.status("jobs", is_enforcing).await?;
    place.becomes("jobs", &[]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn definition_that_leaves_a_field_out_deletes_nothing_until_the_policy_is_applied_again()
-> Result<()> {
    let place = Place::prepare(Arc::new(Ground::start().await?), "left-out").await?;
    let label = json!({"labels": {"due": "yes"}});
    let mut selective = policy("jobs", "Job", &ttl(0));
    selective["spec"]["selector"] = json!({"matchLabels": label["labels"]});
    place.apply(selective.clone()).await?;
    place.finished(named("kept", 3), &Value::Null).await?;
    place.launch().await?;
    let is_observed = |it: &Value| is_enforcing(it) && it["observedDigest"].is_string();
    let observed = place.status("jobs", is_observed).await?;

    let whole = define(&place, |spec| {
        simplify(spec);
        spec["properties"].as_object_mut().context("a map")?.remove("selector");
        Ok(())
    })
    .await?;
    until_ok("the older definition is in force", PATIENCE, || async {
        let stored = stored(&place, &selective).await?;
        ensure!(stored["spec"]["selector"].is_null(), "{stored}");
        Ok(())
    })
    .await?;
    // Any write shows the policy to a watch as it is now, and stores it so.
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"note": "of a test"}}}));
    place.policies().patch("jobs", &PatchParams::default(), &patch).await?;
    let is_held = |it: &Value| condition(it, "Ready") == ("False", "NotUnderstood");
    let seen = place.status("jobs", is_held).await?;
    ensure!(seen.to_string().contains("nobody has edited it"), "{seen}");
    place.finished(named("due", 3), &label).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    place.kill();
    place.launch().await?;
    place.asks_for_nothing_more(WINDOW).await?;
    let seen = place.status("jobs", is_held).await?;
    for field in ["observedGeneration", "observedDigest"] {
        ensure!(seen[field] == observed[field], "{field} of {seen}");
    }
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());

    define(&place, |spec| {
        *spec = whole;
        Ok(())
    })
    .await?;
    until_ok("the definition of this version is in force", PATIENCE, || async {
        let stored = stored(&place, &selective).await?;
        ensure!(stored["spec"]["selector"].is_object(), "{stored}");
        Ok(())
    })
    .await?;
    place.asks_for_nothing_more(WINDOW).await?;
    place.apply(selective).await?;
    // The record does not go on to the end: a definition that changes may end the watches of its objects for good.
    place.becomes("jobs", &["kept-000", "kept-001", "kept-002"]).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 3, "{} deletions", place.deletions());
    Ok(())
}

/// Changes the definition of policies by what is done to the schema of their spec. Returns what that was before.
async fn define(place: &Place, change: impl FnOnce(&mut Value) -> Result<()>) -> Result<Value> {
    let definitions: Api<CustomResourceDefinition> = Api::all(place.client.clone());
    let name = "retentionpolicies.lifecycle.trainjob.dev";
    let mut definition = serde_json::to_value(definitions.get(name).await?)?;
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let schema = definition.pointer_mut(path).context("a definition without a spec")?;
    let before = schema.clone();
    change(schema)?;
    definitions.replace(name, &PostParams::default(), &serde_json::from_value(definition)?).await?;
    Ok(before)
}

/// Removes defaults and rules from a schema and all within it.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "default" && name != "x-kubernetes-validations");
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A policy as the API server would store it.
async fn stored(place: &Place, policy: &Value) -> Result<Value> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let mut probe: DynamicObject = serde_json::from_value(policy.clone())?;
    probe.metadata.name = Some("probe".to_owned());
    let stored = place.policies().create(&dry_run, &probe).await?;
    Ok(serde_json::to_value(stored)?)
}
