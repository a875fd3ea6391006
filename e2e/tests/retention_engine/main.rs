//! The retention engine on a real API server: a policy in Audit shows what it would delete, and in Enforce it deletes that,
//! in time, and nothing else (`docs/retention.md`).
//!
//! Nothing but the API server acts on the Jobs, so tests say themselves how they end.

mod explained;
mod flows;
mod place;
mod pods;
mod release;
mod told;

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::fixtures::status::now;
use e2e::fixtures::{LATE, PATIENCE, consistently};
use e2e::until::until_ok;
use serde_json::{Value, json};

use self::place::Place;

/// The TTL of the policies here, in seconds.
const TTL: i64 = 3;
/// Longer than an engine that is about to do something wrong hesitates.
const WINDOW: Duration = Duration::from_secs(4);

/// A policy for the Jobs of a namespace.
fn policy(mode: &str, ttl: i64) -> Value {
    json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1",
        "kind": "RetentionPolicy",
        "metadata": {"name": "jobs"},
        "spec": {
            "target": {"apiGroup": "batch", "kind": "Job"},
            "mode": mode,
            // Nobody here collects garbage, so nobody ends a deletion in the foreground.
            "propagation": "Background",
            "rules": [{"name": "all", "action": {"ttlSecondsAfterFinished": ttl}}],
        },
    })
}

/// Sees that the status of the policy fits, as soon as it does.
async fn status(place: &Place, fits: impl Fn(&Value) -> bool) -> Result<Value> {
    until_ok("the status is right", PATIENCE, || async {
        let status = place.status("jobs").await?;
        ensure!(fits(&status), "{status}");
        Ok(status)
    })
    .await
}

fn condition<'a>(status: &'a Value, kind: &str) -> (&'a Value, &'a Value) {
    let none = &Value::Null;
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map_or((none, none), |found| (&found["status"], &found["reason"]))
}

#[tokio::test]
async fn audit_shows_what_enforce_then_deletes_in_time_with_uid_and_version() -> Result<()> {
    let place = Place::new("enforces").await?;
    let mut due = Vec::new();
    for name in ["done-a", "done-b", "done-c"] {
        place.create(name, &json!({})).await?;
        due.push((name, place.finish(name).await?.plus(TTL)));
    }
    place
        .create("held", &json!({"lifecycle.trainjob.dev/hold-until": "2100-01-01T00:00:00Z"}))
        .await?;
    place.finish("held").await?;
    place.create("running", &json!({})).await?;

    place.apply(policy("Audit", TTL)).await?;
    status(&place, |status| {
        let counts = &status["counts"];
        status["wouldDelete"]["now"] == 3
            && counts["finished"] == 4
            && counts["held"] == 1
            && status["rules"] == json!([{"name": "all", "matched": 4, "due": 3}])
            && status["next"][0]["source"] == "Policy"
            && status["servedVersion"] == "v1"
            && condition(status, "Ready").0 == "True"
            && condition(status, "Enforcing") == (&json!("False"), &json!("AuditMode"))
    })
    .await?;
    let everything = ["done-a", "done-b", "done-c", "held", "running"];
    consistently("nothing is deleted in Audit", WINDOW, async || place.has(&everything).await)
        .await?;
    ensure!(place.deletions()?.is_empty(), "{:?}", place.deletions()?);

    place.apply(policy("Enforce", TTL)).await?;
    place.becomes(&["held", "running"]).await?;
    status(&place, |status| condition(status, "Enforcing").0 == "True").await?;

    // What ends while it enforces goes in time, and not before.
    place.create("later", &json!({})).await?;
    due.push(("later", place.finish("later").await?.plus(TTL)));
    place.becomes(&["held", "running"]).await?;
    consistently("the rest stays", WINDOW, async || place.has(&["held", "running"]).await).await?;

    let deletions = place.deletions()?;
    ensure!(deletions.len() == due.len(), "{deletions:?}");
    for (name, due) in due {
        let found = deletions.iter().filter(|deletion| deletion.name == name);
        let [deletion] = found.collect::<Vec<_>>()[..] else {
            anyhow::bail!("{name}: {deletions:?}")
        };
        ensure!(deletion.code == 200, "{deletion:?}");
        ensure!(Some(&deletion.uid) == place.uids().get(name), "{deletion:?}");
        ensure!(!deletion.resource_version.is_empty(), "{deletion:?}");
        ensure!(deletion.at >= due, "{name} before {due}: {deletion:?}");
        ensure!(name != "later" || deletion.at.since(due) <= LATE, "{name} late: {deletion:?}");
        place.told("RetentionDeleted", name).await?;
    }
    place.told("HoldCapped", "held").await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_with_more_due_than_its_breaker_allows_waits_for_an_acknowledgement() -> Result<()>
{
    let place = Place::new("trips").await?;
    for name in ["a", "b", "c"] {
        place.create(name, &json!({})).await?;
        place.finish(name).await?;
    }
    let mut enforced = policy("Audit", 0);
    enforced["spec"]["breaker"] = json!({"maxCount": 2});
    place.apply(enforced.clone()).await?;
    // What ends under a policy that enforces trips nothing, so the engine has to know all before.
    status(&place, |status| status["wouldDelete"]["now"] == 3).await?;
    enforced["spec"]["mode"] = json!("Enforce");
    place.apply(enforced.clone()).await?;
    let seen = status(&place, |status| {
        condition(status, "Tripped").0 == "True"
            && condition(status, "Enforcing") == (&json!("False"), &json!("Tripped"))
    })
    .await?;
    let said = place.explain("a").await?;
    ensure!(
        said.contains("But its policy deletes nothing now: it has tripped, and 3 of 3"),
        "{said}"
    );
    consistently("nothing is deleted", WINDOW, async || place.has(&["a", "b", "c"]).await).await?;

    ensure!(seen["trip"]["unexpected"] == 3 && seen["trip"]["stock"] == 3, "{seen}");
    let id = seen["trip"]["id"].as_str().unwrap_or_default();
    let annotations = json!({"lifecycle.trainjob.dev/acknowledge-trip": id});
    enforced["metadata"]["annotations"] = annotations;
    place.apply(enforced).await?;
    place.becomes(&[]).await?;
    status(&place, |status| {
        condition(status, "Tripped").0 == "False" && condition(status, "Enforcing").0 == "True"
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_without_a_right_names_it_and_goes_on_when_it_is_given() -> Result<()> {
    let place = Place::alone("rights").await?;
    place.apply(policy("Enforce", TTL)).await?;
    status(&place, |status| condition(status, "Enforcing").0 == "True").await?;
    place.allow(&["list", "watch"]).await?;
    for name in ["a", "b"] {
        place.create(name, &json!({})).await?;
        place.finish(name).await?;
    }
    let missing = json!([{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["delete"]}]);
    status(&place, |status| {
        condition(status, "Forbidden").0 == "True"
            && condition(status, "Ready") == (&json!("False"), &json!("Forbidden"))
            && condition(status, "Enforcing") == (&json!("False"), &json!("NotReady"))
            && status["missingRules"] == missing
    })
    .await?;
    place.told("Forbidden", "jobs").await?;

    // A request that was received before may be noted only after this.
    let since = now();
    consistently("nothing more is asked for", WINDOW, async || {
        place.has(&["a", "b"]).await?;
        let mut asked = place.deletions()?;
        asked.retain(|deletion| deletion.at > since);
        ensure!(asked.is_empty(), "{asked:?}");
        Ok(())
    })
    .await?;

    place.allow(&["list", "watch", "delete"]).await?;
    place.becomes(&[]).await?;
    status(&place, |status| {
        condition(status, "Forbidden").0 == "False"
            && condition(status, "Enforcing").0 == "True"
            && condition(status, "Tripped").0 == "False"
            && status["missingRules"].is_null()
    })
    .await?;
    Ok(())
}
