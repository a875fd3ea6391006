//! Mass deletions that nobody meant (R40 to R43).

use anyhow::{Result, ensure};
use e2e::faults::retention::policy;
use invariants::retention::Terms;
use serde_json::{Value, json};

use super::{WINDOW, has_tripped, is_enforcing, named, place, ttl};

const WEEK: i64 = 604_800;

#[tokio::test(flavor = "multi_thread")]
async fn policy_that_is_new_or_edited_trips_before_the_first_of_too_many_and_waits() -> Result<()> {
    let place = place("edited").await?;
    place.finished(named("job", 60), &Value::Null).await?;
    place.launch().await?;
    // New, with all overdue.
    place.apply(policy("jobs", "Job", &ttl(0))).await?;
    let seen = place.status("jobs", has_tripped).await?;
    ensure!(seen["trip"]["unexpected"] == 60, "{seen}");
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());
    // Edited, so that none is due.
    place.apply(policy("jobs", "Job", &ttl(WEEK))).await?;
    place.status("jobs", |status| !has_tripped(status) && is_enforcing(status)).await?;
    // From a week to a second.
    let mut edited = policy("jobs", "Job", &ttl(1));
    place.apply(edited.clone()).await?;
    let seen = place.status("jobs", has_tripped).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 0, "{} deletions before the acknowledgement", place.deletions());
    let id = seen["trip"]["id"].clone();
    edited["metadata"]["annotations"] = json!({"lifecycle.trainjob.dev/acknowledge-trip": id});
    place.apply(edited).await?;
    place.becomes("jobs", &[]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_that_makes_fewer_due_than_the_breaker_allows_deletes_them() -> Result<()> {
    let place = place("fewer").await?;
    place.finished(named("due", 40), &json!({"labels": {"due": "yes"}})).await?;
    place.finished(named("kept", 60), &Value::Null).await?;
    place.apply(policy("jobs", "Job", &ttl(WEEK))).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    let mut edited = policy("jobs", "Job", &ttl(WEEK));
    let due = json!({"name": "due", "match": {"labels": {"matchLabels": {"due": "yes"}}}, "action": ttl(0)});
    edited["spec"]["rules"] = json!([due, {"name": "rest", "action": ttl(WEEK)}]);
    place.apply(edited).await?;
    let kept: Vec<String> = named("kept", 60).collect();
    place.becomes("jobs", &kept.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let history = place.judge(&Terms::default()).await?;
    ensure!(!super::restarts::ever_tripped(&history), "it has tripped");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_end_one_after_the_other_never_trip() -> Result<()> {
    let place = place("stream").await?;
    let mut few = policy("jobs", "Job", &ttl(0));
    few["spec"]["breaker"] = json!({"maxCount": 5});
    place.apply(few).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    place.finished(named("job", 150), &Value::Null).await?;
    place.becomes("jobs", &[]).await?;
    let history = place.judge(&Terms::default()).await?;
    ensure!(!super::restarts::ever_tripped(&history), "it has tripped");
    Ok(())
}
