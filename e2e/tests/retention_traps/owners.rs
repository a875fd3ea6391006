//! What is deleted by way of its owner (R25), and may not be any more by the time at which that is read.

use anyhow::{Result, ensure};
use e2e::faults::proxy::{Call, Fault};
use e2e::faults::retention::{Place, policy};
use invariants::retention::Terms;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::edits::is_deletion;
use super::{WINDOW, condition, is_enforcing, place, ttl};

/// A Job that has finished, and the Job that controls it, which is to be deleted in its place as soon as an engine runs.
async fn owned(prefix: &str) -> Result<Place> {
    let place = place(prefix).await?;
    place.apply(by_way_of_the_owner("Enforce")).await?;
    let suspended = json!({"suspend": true});
    let owner = place.create("owner", &Value::Null, &suspended).await?;
    let references = json!({
        "labels": {"goes": "true"},
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "owner", "controller": true,
            "uid": owner.uid().unwrap_or_default(),
        }],
    });
    place.finished(["owned".to_owned()], &references).await?;
    Ok(place)
}

fn by_way_of_the_owner(mode: &str) -> Value {
    let mut policy = policy("owners", "Job", &ttl(0));
    policy["spec"]["mode"] = json!(mode);
    policy["spec"]["selector"] = json!({"matchLabels": {"goes": "true"}});
    policy["spec"]["rules"][0]["delete"] = json!("Owner");
    policy
}

/// Starts an engine that may delete owners.
async fn launch(place: &Place) -> Result<()> {
    let target = json!({
        "apiGroup": "batch", "kind": "Job", "resource": "jobs", "ownerDelete": true,
    });
    place.launch_with(&json!({"targets": [target]}), Vec::new()).await
}

fn reads_owner(call: &Call) -> bool {
    call.verb == "get" && call.resource == "jobs" && call.name == "owner"
}

/// The look at the Job itself right before the DELETE. Other lists are of all namespaces.
fn reads_object(call: &Call) -> bool {
    call.verb == "list" && call.resource == "jobs" && !call.namespace.is_empty()
}

/// An edit of an object that is to be held until then, or not any more.
fn hold(until: Option<&str>) -> Value {
    json!({"metadata": {"annotations": {"lifecycle.trainjob.dev/hold-until": until}}})
}

/// Nothing is deleted if one of the two is held while the owner is read for its deletion.
async fn held_while_the_owner_is_read(prefix: &str, held: &str) -> Result<Place> {
    let place = owned(prefix).await?;
    // The first read is for the plan.
    let reads = place.proxy.inject(reads_owner, 2..=2, Fault::HoldRequest);
    launch(&place).await?;
    reads.reached().await?;
    place.edit("jobs", held, &hold(Some("2100-01-01T00:00:00Z"))).await?;
    reads.remove();
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());
    Ok(place)
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_is_kept_if_it_is_held_by_the_time_at_which_it_is_read() -> Result<()> {
    let place = held_while_the_owner_is_read("owner-held-late", "owner").await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_is_kept_if_its_object_is_held_while_the_owner_is_read() -> Result<()> {
    let place = held_while_the_owner_is_read("held-late", "owned").await?;
    place.edit("jobs", "owned", &hold(None)).await?;
    place.becomes("jobs", &["owned"]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_is_kept_if_its_policy_audits_by_the_time_it_is_read() -> Result<()> {
    let place = owned("audits-late").await?;
    let reads = place.proxy.inject(reads_owner, 2..=2, Fault::HoldRequest);
    launch(&place).await?;
    reads.reached().await?;
    place.apply(by_way_of_the_owner("Audit")).await?;
    place.status("owners", |status| condition(status, "Enforcing").1 == "AuditMode").await?;
    reads.remove();
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());

    place.apply(by_way_of_the_owner("Enforce")).await?;
    place.status("owners", is_enforcing).await?;
    place.becomes("jobs", &["owned"]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_that_is_resumed_after_it_was_read_is_kept() -> Result<()> {
    let place = owned("resumed").await?;
    let reads = place.proxy.inject(reads_object, 1..=1, Fault::HoldReply);
    let deletions = place.proxy.inject(is_deletion, 2..=usize::MAX, Fault::HoldRequest);
    launch(&place).await?;
    reads.reached().await?;
    // As Kueue does when it admits a job again, which its Workload says before.
    place.edit("jobs", "owner", &json!({"spec": {"suspend": false}})).await?;
    reads.remove();
    deletions.reached().await?;
    let answers: Vec<u16> = place
        .requests()
        .into_iter()
        .filter(|request| request.verb == "delete" && request.name == "owner")
        .filter_map(|request| request.answer.code)
        .collect();
    ensure!(answers.first() == Some(&409), "{answers:?}");
    place.becomes("jobs", &["owned", "owner"]).await?;
    // What is true of the object now is what is deleted: nobody told it that its job runs.
    deletions.remove();
    place.becomes("jobs", &["owned"]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}
