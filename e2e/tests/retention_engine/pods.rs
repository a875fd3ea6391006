//! Pods that go before their Jobs (R22).

use anyhow::{Result, ensure};
use e2e::fixtures::status::now;
use e2e::fixtures::{LATE, PATIENCE, consistently};
use e2e::until::until_ok;
use serde_json::json;

use super::place::Place;
use super::{TTL, WINDOW, condition, policy, status};

#[tokio::test]
async fn ended_pods_go_before_their_job_and_others_stay() -> Result<()> {
    let place = Place::new("pods").await?;
    let mut enforced = policy("Enforce", 3_600);
    enforced["spec"]["rules"][0]["pods"] = json!({"ttlSecondsAfterFinished": TTL});
    place.apply(enforced).await?;
    status(&place, |status| condition(status, "Enforcing").0 == "True").await?;

    place.create("done", &json!({})).await?;
    let none = json!({});
    let held = json!({"lifecycle.trainjob.dev/hold-until": "2100-01-01T00:00:00Z"});
    for (name, job, phase, annotations) in [
        ("ended-a", "done", "Succeeded", &none),
        ("ended-b", "done", "Failed", &none),
        ("foreign", "another", "Succeeded", &none),
        ("held", "done", "Succeeded", &held),
        ("runs", "done", "Running", &none),
    ] {
        place.create_pod(name, job, phase, annotations).await?;
    }
    let due = place.finish("done").await?.plus(TTL);
    // It ends at its creation, which may have been long ago by now.
    let known = now();
    let left = ["foreign", "held", "runs"];
    until_ok("ended Pods are gone", PATIENCE, || async { place.has_pods(&left).await }).await?;
    consistently("all else stays", WINDOW, async || {
        place.has_pods(&left).await?;
        place.has(&["done"]).await
    })
    .await?;

    let deletions = place.deletions()?;
    ensure!(deletions.len() == 2, "{deletions:?}");
    for deletion in &deletions {
        ensure!(deletion.name.starts_with("ended") && deletion.code == 200, "{deletion:?}");
        ensure!(!deletion.uid.is_empty() && !deletion.resource_version.is_empty(), "{deletion:?}");
        let late = deletion.at.since(due.max(known));
        ensure!(deletion.at >= due && late <= LATE, "due {due}, known {known}: {deletion:?}");
    }
    place.told("RetentionPodsDeleted", "done").await
}
