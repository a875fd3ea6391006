//! Objects that somebody makes again as often as a policy deletes them (R47).

use anyhow::{Result, ensure};
use e2e::faults::retention::{Place, policy};
use e2e::fixtures::PATIENCE;
use e2e::until::until_ok;
use invariants::retention::Terms;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::{WINDOW, is_enforcing, named, place, ttl};

/// What is said of an object under this reason.
async fn told(place: &Place, reason: &str, name: &str) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(place.client.clone(), &place.namespace);
    let events = events.list(&ListParams::default()).await?.items;
    let is_it = |event: &Event| {
        let regarding = event.regarding.as_ref().and_then(|it| it.name.as_deref());
        event.reason.as_deref() == Some(reason) && regarding == Some(name)
    };
    Ok(events.into_iter().filter(is_it).filter_map(|event| event.note).collect())
}

/// Makes a Job that has ended, and waits until it is deleted and only these are left.
async fn once(place: &Place, name: &str, metadata: &Value, left: &[&str]) -> Result<()> {
    place.finished([name.to_owned()], metadata).await?;
    place.becomes("jobs", left).await
}

/// Waits until a loop is told of, once, and counted.
async fn warns(place: &Place, name: &str, words: &str) -> Result<()> {
    let notes = until_ok("the loop is told of", PATIENCE, || async {
        let notes = told(place, "RecreateLoop", name).await?;
        ensure!(!notes.is_empty(), "it is not");
        Ok(notes)
    })
    .await?;
    ensure!(matches!(&notes[..], [note] if note.contains(words)), "{notes:?}");
    until_ok("the loop is counted", PATIENCE, || async {
        let loops = place.metric("trainjob_retention_loops").await?;
        ensure!(loops >= 1.0, "{loops} are");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn job_that_gitops_makes_again_is_told_of_with_its_origin_and_not_held_back() -> Result<()> {
    let place = place("gitops").await?;
    place.apply(policy("jobs", "Job", &ttl(0))).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    let flux = json!({"labels": {
        "kustomize.toolkit.fluxcd.io/name": "apps",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
    }});
    for _ in 0..3 {
        once(&place, "job", &flux, &[]).await?;
    }
    ensure!(told(&place, "RecreateLoop", "job").await?.is_empty(), "told too early");
    once(&place, "job", &flux, &[]).await?;
    warns(&place, "job", "by Flux (Kustomization flux-system/apps)").await?;
    // A user who uses a name twice, and one who counts.
    for name in ["other".to_owned(), "other".to_owned()].into_iter().chain(named("number", 4)) {
        once(&place, &name, &Value::Null, &[]).await?;
        ensure!(told(&place, "RecreateLoop", &name).await?.is_empty(), "{name} is no loop");
    }
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_that_its_unfinished_owner_makes_again_goes_and_is_told_of_only_under_any() -> Result<()>
{
    let place = place("owner-loop").await?;
    for (owned, label) in [("Any", "any"), ("AfterOwner", "after")] {
        let mut scoped = policy(label, "Job", &ttl(0));
        scoped["spec"]["owned"] = json!(owned);
        scoped["spec"]["selector"] = json!({"matchLabels": {"owned": label}});
        place.apply(scoped).await?;
    }
    let owner = place.create("owner", &Value::Null, &Value::Null).await?.metadata.uid;
    place.launch().await?;
    place.status("any", is_enforcing).await?;
    place.status("after", is_enforcing).await?;
    let child = |label: &str| {
        json!({"labels": {"owned": label}, "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": owner, "controller": true,
        }]})
    };
    for _ in 0..4 {
        once(&place, "child", &child("any"), &["owner"]).await?;
    }
    warns(&place, "child", "owner").await?;
    place.finished(["kept".to_owned()], &child("after")).await?;
    place.status("after", |status| status["counts"]["owned"] == 1).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    place.becomes("jobs", &["kept", "owner"]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}
