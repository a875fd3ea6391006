//! Kinds that are not built in, and kinds that come and go.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::established;
use e2e::faults::retention::{definition, policy};
use e2e::fixtures::{PATIENCE, consistently};
use e2e::until::until_ok;
use e2e::{workspace, yaml};
use invariants::retention::Terms;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{WINDOW, condition, is_enforcing, place, ttl};

/// The `finished` of a recipe of `examples/retention/kinds`.
pub(crate) fn recipe(name: &str) -> Result<Value> {
    let text = workspace::read(&format!("examples/retention/kinds/{name}.yaml"))?;
    let policy = yaml::documents(&text)?.pop().context("an empty recipe")?;
    Ok(policy["spec"]["finished"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_only_look_like_an_end_or_a_ttl_delete_nothing() -> Result<()> {
    let place = place("lookalikes").await?;
    for (recipe_of, kind, name, seconds) in
        [("mpijob", "MPIJob", "mpijobs", 0), ("rayjob", "RayJob", "rayjobs", 3_600)]
    {
        let mut policy = policy(name, kind, &ttl(seconds));
        policy["spec"]["finished"] = recipe(recipe_of)?;
        place.apply(policy).await?;
    }
    place.launch().await?;
    place.status("mpijobs", is_enforcing).await?;
    place.status("rayjobs", is_enforcing).await?;
    let failed = json!([{"type": "Failed", "status": "True", "reason": "MPIJobEvicted",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let ended = "2026-01-01T00:00:00Z";
    for (plural, object) in [
        // An eviction, after which it goes on: it has no time of completion.
        ("mpijobs", json!({"metadata": {"name": "evicted"}, "status": {"conditions": failed}})),
        (
            "mpijobs",
            json!({"metadata": {"name": "failed"}, "status": {"conditions": failed, "completionTime": ended}}),
        ),
        // A TTL that is about its RayCluster.
        (
            "rayjobs",
            json!({"metadata": {"name": "done"}, "spec": {"ttlSecondsAfterFinished": 0},
                "status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "endTime": ended}}),
        ),
    ] {
        let (version, kind) = match plural {
            "mpijobs" => ("kubeflow.org/v1", "MPIJob"),
            _ => ("ray.io/v1", "RayJob"),
        };
        let mut object = object;
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        let object: DynamicObject = serde_json::from_value(object)?;
        place.objects(plural)?.create(&PostParams::default(), &object).await?;
    }
    place.becomes("mpijobs", &["evicted"]).await?;
    place.status("rayjobs", |status| status["counts"]["finished"] == 1).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    place.becomes("rayjobs", &["done"]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

/// A kind that is defined while an engine runs: group, kind and plural.
const VISITS: (&str, &str, &str) = ("visits.e2e.trainjob.dev", "Visit", "visits");

#[tokio::test(flavor = "multi_thread")]
async fn kind_that_comes_and_goes_is_told_and_never_acted_on_by_old_facts() -> Result<()> {
    let place = place("visits").await?;
    let (group, kind, plural) = VISITS;
    let mut visits = policy("visits", "Run", &ttl(2));
    visits["spec"]["target"] = json!({"apiGroup": group, "kind": kind});
    place.apply(visits).await?;
    let target = json!([{"apiGroup": group, "kind": kind, "resource": plural}]);
    place.launch_with(&json!({"targets": target}), Vec::new()).await?;
    let is_gone = |status: &Value| condition(status, "Ready").1 == "KindNotServed";
    place.status("visits", is_gone).await?;
    let patches = || place.requests().iter().filter(|request| request.verb == "patch").count();
    let before = patches();
    consistently("a status that says so is not written again", WINDOW, async || {
        let now = patches();
        ensure!(now == before, "{} times", now - before);
        Ok(())
    })
    .await?;

    for version in ["v1", "v2"] {
        let defined = definition(group, version, kind, plural);
        let defined = e2e::apply::apply(&place.client, "default", vec![defined]).await?;
        established(&place.client, &defined).await?;
        place.status("visits", |it| it["servedVersion"] == version && is_enforcing(it)).await?;
        let visits = e2e::recorder::kind(group, version, kind);
        let api: Api<DynamicObject> =
            Api::namespaced_with(place.client.clone(), &place.namespace, &visits);
        for (name, finished) in
            [("ended", json!("2026-01-01T00:00:00Z")), ("kept", json!("2100-01-01T00:00:00Z"))]
        {
            let object = json!({
                "apiVersion": format!("{group}/{version}"), "kind": kind,
                "metadata": {"name": name},
                "status": {"phase": "Succeeded", "finishedAt": finished},
            });
            api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        }
        until_ok("the one that is due is gone", PATIENCE, || async {
            ensure!(api.get_opt("ended").await?.is_none(), "it is there");
            ensure!(api.get_opt("kept").await?.is_some(), "the other one is gone, too");
            Ok(())
        })
        .await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(place.client.clone());
        definitions.delete(&format!("{plural}.{group}"), &DeleteParams::default()).await?;
        place.status("visits", is_gone).await?;
        place.asks_for_nothing_more(Duration::from_secs(1)).await?;
    }
    ensure!(place.deletions() == 2, "{} deletions", place.deletions());
    place.judge(&Terms::default()).await?;
    Ok(())
}
