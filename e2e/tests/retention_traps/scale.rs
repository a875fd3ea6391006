//! Policies and objects that are many, or large (R60, and the metrics of section 7 of the rules).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::faults::retention::{Place, policy};
use e2e::fixtures::PATIENCE;
use e2e::until::until_ok;
use futures::future::try_join_all;
use invariants::retention::Terms;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{is_enforcing, named, place, scaled, ttl};

/// So many policies have a name of their own in the metrics; the others share one.
const NAMES: usize = 200;
/// Bytes of a large Workflow.
const LARGE: usize = 1_000_000;
/// Objects that are stored at the same time.
const AT_A_TIME: usize = 20;

/// The values of the label `policy` of each metric that has it.
fn policies_of(page: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, labels)) = line.split_once('{') else { continue };
        let value = labels.split_once("policy=\"").and_then(|(_, rest)| rest.split('"').next());
        if let Some(value) = value {
            found.entry(name).or_default().insert(value);
        }
    }
    found
}

/// Stores a Job that has ended, for each of these names with that as its label.
async fn finished(place: &Place, names: &[String]) -> Result<()> {
    for some in names.chunks(AT_A_TIME) {
        let stored = some.iter().map(|name| async move {
            place.create(name, &json!({"labels": {"policy": name}}), &Value::Null).await?;
            place.finish(name).await
        });
        try_join_all(stored).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_hundred_policies_two_hundred_have_a_name_in_the_metrics() -> Result<()> {
    let place = place("many").await?;
    let names: Vec<_> = named("policy", 300).collect();
    let policies = names.iter().map(|name| {
        let mut one = policy(name, "Job", &ttl(0));
        one["spec"]["selector"] = json!({"matchLabels": {"policy": name}});
        one
    });
    apply(&place.client, &place.namespace, policies.collect()).await?;
    place.launch().await?;
    place.status("policy-299", is_enforcing).await?;
    finished(&place, &names).await?;
    place.becomes("jobs", &[]).await?;

    let page = place.engine()?.metrics_page().await?;
    let found = policies_of(&page);
    let deletions = found.get("trainjob_retention_deletions_total").context("no deletions")?;
    ensure!(deletions.contains("other"), "{deletions:?}");
    for (metric, policies) in &found {
        ensure!(policies.len() <= NAMES + 1, "{} policies in {metric}", policies.len());
    }
    // One is counted when its answer has come, which is after the object has gone.
    until_ok("all deletions are counted", PATIENCE, || async {
        let counted = place.metric("trainjob_retention_deletions_total").await?;
        ensure!((counted - 300.0).abs() < 0.5, "{counted} are");
        Ok(())
    })
    .await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_workflows_of_a_megabyte_each_is_never_in_memory_as_a_whole() -> Result<()> {
    let place = place("large").await?;
    let (api, count) = (place.objects("workflows")?, scaled(100, 500));
    let names: Vec<_> = named("workflow", count).collect();
    let script = "x".repeat(LARGE);
    for some in names.chunks(AT_A_TIME) {
        let (api, script) = (&api, &script);
        let created = some.iter().map(|name| async move {
            let object: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
                "metadata": {"name": name, "labels": {"workflows.argoproj.io/completed": "true"}},
                "spec": {"script": script},
                "status": {"phase": "Succeeded", "finishedAt": "2026-01-01T00:00:00Z"},
            }))?;
            anyhow::Ok(api.create(&PostParams::default(), &object).await?)
        });
        try_join_all(created).await?;
    }
    let mut workflows = policy("workflows", "Workflow", &ttl(0));
    workflows["spec"]["finished"] = super::kinds::recipe("argo-workflow")?;
    workflows["spec"]["breaker"] = json!({"maxCount": count});
    place.apply(workflows).await?;
    place.launch().await?;
    // To list what is left takes the API server seconds, too.
    until_ok("all are gone", scaled(1, 10) * PATIENCE, || async {
        let left = place.names("workflows").await?;
        ensure!(left.is_empty(), "{} are there", left.len());
        Ok(())
    })
    .await?;
    let (peak, list) = (place.engine()?.process().peak_memory()?, count * LARGE);
    ensure!(peak < list / 2, "{peak} bytes for a list of {list}");
    place.judge(&Terms::default()).await?;
    Ok(())
}
