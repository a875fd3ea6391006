//! Mass deletions that nobody meant (R40 to R43).

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail, ensure};
use e2e::faults::retention::{Place, policy};
use e2e::fixtures::PATIENCE;
use e2e::until::until_ok;
use invariants::retention::Terms;
use invariants::{History, Millis, State};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::{WINDOW, has_tripped, is_enforcing, named, place, scaled, ttl, wide_place};

const WEEK: i64 = 604_800;

#[tokio::test(flavor = "multi_thread")]
async fn policy_that_is_new_or_edited_trips_before_the_first_of_too_many_and_waits() -> Result<()> {
    let place = place("edited").await?;
    place.finished(named("job", 60), &Value::Null).await?;
    let ended = SystemTime::now();
    place.launch().await?;
    // New, with all overdue.
    place.apply(policy("jobs", "Job", &ttl(0))).await?;
    let seen = place.status("jobs", has_tripped).await?;
    ensure!(seen["trip"]["unexpected"] == 60, "{seen}");
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());
    // Edited, so that none is due.
    place.apply(policy("jobs", "Job", &ttl(WEEK))).await?;
    place.status("jobs", |status| !has_tripped(status) && is_enforcing(status)).await?;
    // From a week to a second. Those that ended less than a second ago would become due in their time, which trips nothing.
    until_ok("all ended some seconds ago", PATIENCE, || async {
        ensure!(ended.elapsed()? > Duration::from_secs(3), "they have just ended");
        Ok(())
    })
    .await?;
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
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    for second in 0..scaled(5, 3_600) {
        seconds.tick().await;
        place.finished(named(&format!("job-{second:04}"), 30), &Value::Null).await?;
    }
    place.becomes("jobs", &[]).await?;
    let history = place.judge(&Terms::default()).await?;
    ensure!(!super::restarts::ever_tripped(&history), "it has tripped");
    let late = lateness(&history);
    ensure!(late.len() == scaled(5, 3_600) * 30, "{} deletions", late.len());
    let [p50, p99] = [50, 99].map(|percent| late[late.len() * percent / 100]);
    println!("of {} deletions p50 was accepted {p50} ms after the end, p99 {p99} ms", late.len());
    // On the machine that `cargo test` shares with other tests, a time says nothing.
    ensure!(scaled(0, p99) < 1_000, "p99 {p99} ms");
    Ok(())
}

/// How long after the end of each object its deletion was accepted, in milliseconds, in order. Ends are told by the watch of the
/// record, a moment after they were stored.
fn lateness(history: &History) -> Vec<Millis> {
    let mut ends: HashMap<&str, Millis> = HashMap::new();
    for change in &history.changes {
        let ended = matches!(&change.object.state, State::Target(target) if target.end.is_some());
        if ended {
            ends.entry(&change.object.uid).or_insert(change.at);
        }
    }
    let accepted = history.requests.iter().filter(|it| it.verb == "delete" && it.took_effect());
    let late = accepted.filter_map(|it| Some(it.ended - ends.get(it.uid.as_deref()?)?));
    let mut late: Vec<Millis> = late.collect();
    late.sort_unstable();
    late
}

/// A cluster policy for Jobs of two namespaces that have this label, or for all Jobs in those of them that have it.
fn wide(name: &str, selected: &[&str; 2], label: &str, of_namespaces: bool) -> Value {
    let mut wide = policy(name, "Job", &ttl(0));
    wide["kind"] = json!("ClusterRetentionPolicy");
    let labels = json!({label: "yes"});
    let by_name =
        json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": selected});
    wide["spec"]["namespaceSelector"] = json!({"matchExpressions": [by_name]});
    let selector = if of_namespaces { "namespaceSelector" } else { "selector" };
    wide["spec"][selector]["matchLabels"] = labels;
    wide
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_that_put_many_old_objects_into_scope_trip_for_their_namespace_only() -> Result<()> {
    let edited = wide_place("relabelled").await?;
    let other = edited.another("unchanged").await?;
    let names = [edited.namespace.as_str(), other.namespace.as_str()];
    let name = format!("all-{}", edited.namespace);
    let all = wide(&name, &names, "due", false);
    edited.apply(all.clone()).await?;
    edited.cluster_status(&name, is_enforcing).await?;
    are_known(&edited).await?;
    let label = json!({"metadata": {"labels": {"due": "yes"}}});
    for job in named("job", 60) {
        edited.edit("jobs", &job, &label).await?;
    }
    trips_for_one(&edited, &other, (&name, all)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn label_that_puts_a_namespace_into_scope_trips_for_it_only() -> Result<()> {
    let edited = wide_place("selected").await?;
    let other = edited.another("chosen").await?;
    let names = [edited.namespace.as_str(), other.namespace.as_str()];
    let name = format!("all-{}", edited.namespace);
    let all = wide(&name, &names, "due", true);
    let namespaces: Api<Namespace> = Api::all(edited.client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"due": "yes"}}}));
    namespaces.patch(&other.namespace, &PatchParams::default(), &label).await?;
    edited.apply(all.clone()).await?;
    edited.cluster_status(&name, is_enforcing).await?;
    are_known(&edited).await?;
    namespaces.patch(&edited.namespace, &PatchParams::default(), &label).await?;
    trips_for_one(&edited, &other, (&name, all)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_an_edit_makes_due_are_told_to_wait_and_until_when() -> Result<()> {
    let edited = wide_place("waiting").await?;
    let names = [edited.namespace.as_str(); 2];
    let name = format!("all-{}", edited.namespace);
    edited.apply(wide(&name, &names, "due", false)).await?;
    edited.cluster_status(&name, is_enforcing).await?;
    are_known(&edited).await?;
    let label = json!({"metadata": {"labels": {"due": "yes"}}});
    for job in named("job", 3) {
        edited.edit("jobs", &job, &label).await?;
    }
    let here = json!([{"name": edited.namespace, "unexpected": 3}]);
    let seen = edited.cluster_status(&name, |it| it["waiting"]["namespaces"] == here).await?;
    let until = seen["waiting"]["until"].as_str().unwrap_or_default();
    let enforcing = seen["conditions"].as_array().into_iter().flatten();
    let mut enforcing = enforcing.filter(|condition| condition["type"] == "Enforcing");
    let message = enforcing.next().map(|condition| condition["message"].to_string());
    ensure!(message.is_some_and(|it| it.contains(until)) && !until.is_empty(), "{seen}");
    let said = edited.engine()?.explain(&edited.namespace, "job-000").await?;
    ensure!(said.contains(&format!("due, which wait until {until} (R42)")), "{said}");
    ensure!(edited.deletions() == 0, "{} deletions", edited.deletions());
    edited.judge(&Terms::default()).await?;
    Ok(())
}

/// Stores 60 Jobs that have ended, and waits until the engine knows that they have: what is in scope when its end is shown
/// is expected.
async fn are_known(place: &Place) -> Result<()> {
    let name = format!("audit-{}", place.namespace);
    let mut audit = policy(&name, "Job", &ttl(0));
    audit["spec"]["mode"] = json!("Audit");
    place.apply(audit).await?;
    place.finished(named("job", 60), &Value::Null).await?;
    let label = format!("policy=\"{name}\"");
    until_ok("the ends are known", PATIENCE, || async {
        let engine = place.engine()?;
        let known = engine.labelled_metric("trainjob_retention_would_delete", &label).await?;
        ensure!(known >= 60.0, "{known} are");
        Ok(())
    })
    .await
}

/// Sees that a policy trips for the 60 Jobs of one namespace, deletes them once that is acknowledged, and Jobs of the other
/// namespace all the time.
async fn trips_for_one(edited: &Place, other: &Place, (name, policy): (&str, Value)) -> Result<()> {
    let seen = edited.cluster_status(name, has_tripped).await?;
    let namespaces = seen["trip"]["namespaces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let [waits] = namespaces else { bail!("it has tripped elsewhere: {seen}") };
    ensure!(waits["name"] == json!(edited.namespace), "{seen}");
    other.finished(named("job", 20), &json!({"labels": {"due": "yes"}})).await?;
    other.becomes("jobs", &[]).await?;
    ensure!(edited.deletions() == 0, "{} deletions where it has tripped", edited.deletions());
    until_ok("all are gone", PATIENCE, || async {
        // It may have counted before the last of them was edited, and then counts again, with another id.
        let seen = edited.cluster_status(name, |_| true).await?;
        if let Some(id) = seen["trip"]["id"].as_str() {
            let mut acknowledged = policy.clone();
            acknowledged["metadata"]["annotations"] =
                json!({"lifecycle.trainjob.dev/acknowledge-trip": id});
            edited.apply(acknowledged).await?;
        }
        let left = edited.names("jobs").await?;
        ensure!(left.is_empty(), "{} are there", left.len());
        Ok(())
    })
    .await?;
    for place in [edited, other] {
        place.judge(&Terms::default()).await?;
    }
    Ok(())
}
