//! What users are told of their objects (R47 and R52).

use anyhow::{Result, ensure};
use e2e::fixtures::PATIENCE;
use e2e::until::until_ok;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::place::Place;
use super::{TTL, condition, policy, status};

#[tokio::test]
async fn users_are_told_of_holds_and_of_annotations_that_cannot_be_read() -> Result<()> {
    let place = Place::new("told").await?;
    let mut enforced = policy("Enforce", TTL);
    enforced["spec"]["overrides"] = json!({"annotation": true});
    place.apply(enforced).await?;
    status(&place, |status| condition(status, "Enforcing").0 == "True").await?;
    let (hold, ttl) =
        ("lifecycle.trainjob.dev/hold-until", "lifecycle.trainjob.dev/ttl-seconds-after-finished");
    let later = Timestamp::now().checked_add(SignedDuration::from_mins(30))?;
    for (name, annotations, reason) in [
        ("held", json!({hold: later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}), "Held"),
        ("hold-invalid", json!({hold: "tomorrow"}), "HoldInvalid"),
        ("ttl-invalid", json!({ttl: "7d"}), "OverrideInvalid"),
    ] {
        place.create(name, &annotations).await?;
        place.finish(name).await?;
        place.told(reason, name).await?;
    }
    place.has(&["held", "hold-invalid", "ttl-invalid"]).await?;
    ensure!(place.deletions()?.is_empty(), "{:?}", place.deletions()?);
    Ok(())
}

#[tokio::test]
async fn a_job_that_somebody_makes_again_and_again_is_told_of() -> Result<()> {
    let place = Place::new("loops").await?;
    place.apply(policy("Enforce", 0)).await?;
    status(&place, |status| condition(status, "Enforcing").0 == "True").await?;
    for round in 0..4 {
        place.create("again", &json!({})).await?;
        place.finish("again").await?;
        let gone = format!("the Job of round {round} is gone");
        until_ok(gone, PATIENCE, || async { place.has(&[]).await }).await?;
    }
    place.told("RecreateLoop", "again").await
}
