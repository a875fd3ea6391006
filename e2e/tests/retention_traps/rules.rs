//! Which policy decides, and what it leaves alone.

use anyhow::{Result, ensure};
use e2e::faults::retention::{Place, policy, run};
use e2e::fixtures::PATIENCE;
use e2e::fixtures::status::now;
use e2e::until::until_ok;
use invariants::retention::Terms;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::time::Timestamp;

use super::{WINDOW, condition, is_enforcing, named, place, ttl};

/// Waits until a second has begun that was not there yet.
async fn next_second() -> Result<()> {
    let begun = now();
    until_ok("a second has begun", PATIENCE, || async {
        ensure!(now() > begun, "not yet");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn older_of_two_equal_policies_decides_after_a_restart_too() -> Result<()> {
    let keep = json!({"keep": true});
    for (first, second, left) in [(keep.clone(), ttl(0), 1), (ttl(0), keep, 0)] {
        let place = place("equal").await?;
        place.apply(policy("z", "Job", &first)).await?;
        next_second().await?;
        place.apply(policy("a", "Job", &second)).await?;
        for round in 0..2 {
            place.launch().await?;
            place.status("a", is_enforcing).await?;
            place.status("z", is_enforcing).await?;
            place.finished([format!("job-{round}")], &Value::Null).await?;
            let there: Vec<String> =
                (0..=round).map(|it| format!("job-{it}")).take(left * (round + 1)).collect();
            place.becomes("jobs", &there.iter().map(String::as_str).collect::<Vec<_>>()).await?;
            place.asks_for_nothing_more(WINDOW).await?;
            place.kill();
        }
        place.judge(&Terms::default()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_in_audit_changes_nothing_and_tells_what_it_then_does() -> Result<()> {
    let place = place("audit").await?;
    let mut audit = policy("audit", "Job", &ttl(0));
    audit["spec"]["mode"] = json!("Audit");
    audit["spec"]["priority"] = json!(10);
    place.apply(audit.clone()).await?;
    place.apply(policy("enforced", "Job", &ttl(4))).await?;
    place.launch().await?;
    place.status("audit", |status| condition(status, "Enforcing").1 == "AuditMode").await?;
    place.finished(named("first", 3), &Value::Null).await?;
    place.becomes("jobs", &[]).await?;

    // With nobody beside it.
    place.delete_policy("enforced").await?;
    audit["spec"]["rules"][0]["action"] = ttl(5);
    place.apply(audit.clone()).await?;
    place.finished(named("second", 3), &Value::Null).await?;
    let told = place
        .status("audit", |status| status["next"].as_array().is_some_and(|next| next.len() == 3))
        .await?;
    audit["spec"]["mode"] = json!("Enforce");
    place.apply(audit).await?;
    place.becomes("jobs", &[]).await?;
    let history = place.judge(&Terms::default()).await?;
    for name in named("second", 3) {
        let next = told["next"].as_array().into_iter().flatten();
        let at = next.filter(|it| it["name"] == name).find_map(|it| time(&it["at"]));
        let sent = history.requests.iter().find(|it| it.verb == "delete" && it.name == name);
        let sent = sent.map(|request| Timestamp(request.sent / 1_000));
        ensure!(at.is_some() && at <= sent, "{name}: told {at:?}, sent {sent:?}");
    }
    Ok(())
}

fn time(value: &Value) -> Option<Timestamp> {
    let time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time =
        serde_json::from_value(value.clone()).ok()?;
    Some(Timestamp::from(&time))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_into_a_namespace_that_is_being_deleted() -> Result<()> {
    // Longer than it takes to store all Jobs and to delete their namespace.
    const TTL: i64 = 15;
    let place = place("ending").await?;
    place.apply(policy("jobs", "Job", &ttl(TTL))).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    place.finished(named("job", 30), &Value::Null).await?;
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    namespaces.delete(&place.namespace, &DeleteParams::default()).await?;
    let due = now().plus(TTL + 1);
    until_ok("all are due", PATIENCE, || async {
        ensure!(now() > due, "not yet");
        Ok(())
    })
    .await?;
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 0, "{} deletions", place.deletions());
    place.judge(&Terms::default()).await?;
    Ok(())
}

/// The metadata of a Job that belongs to another one.
fn owned(by: &str, uid: &str, label: &str) -> Value {
    json!({
        "labels": {"owned": label},
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": by, "uid": uid, "controller": true,
        }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn object_goes_before_its_owner_only_if_its_policy_says_so() -> Result<()> {
    let place = place("owned").await?;
    for owned in ["Skip", "AfterOwner", "Any"] {
        let label = owned.to_lowercase();
        let mut scoped = policy(&label, "Job", &ttl(1));
        scoped["spec"]["owned"] = json!(owned);
        scoped["spec"]["selector"] = json!({"matchLabels": {"owned": label}});
        place.apply(scoped).await?;
    }
    let uid_of = async |place: &Place, name: &str| -> Result<String> {
        place.create(name, &Value::Null, &Value::Null).await?;
        Ok(place.jobs.get(name).await?.uid().unwrap_or_default())
    };
    let (running, ended) = (uid_of(&place, "running").await?, uid_of(&place, "ended").await?);
    place.finish("ended").await?;
    for (name, metadata) in [
        ("a-skip-running", owned("running", &running, "skip")),
        ("b-after-running", owned("running", &running, "afterowner")),
        ("c-any-running", owned("running", &running, "any")),
        ("d-skip-ended", owned("ended", &ended, "skip")),
        ("e-after-ended", owned("ended", &ended, "afterowner")),
        ("f-after-gone", owned("gone", "11111111-1111-1111-1111-111111111111", "afterowner")),
        ("g-after-another", owned("ended", "11111111-1111-1111-1111-111111111111", "afterowner")),
    ] {
        place.finished([name.to_owned()], &metadata).await?;
    }
    place.launch().await?;
    let left = ["a-skip-running", "b-after-running", "d-skip-ended", "ended", "running"];
    place.becomes("jobs", &left).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn end_without_a_usable_time_is_never_early() -> Result<()> {
    let place = place("times").await?;
    place.apply(policy("runs", "Run", &ttl(3))).await?;
    place.apply(policy("pods", "Pod", &ttl(3))).await?;
    place.launch().await?;
    place.status("runs", is_enforcing).await?;
    place.status("pods", is_enforcing).await?;
    let runs = place.objects("runs")?;
    for (name, at) in [
        ("absent", Value::Null),
        ("future", json!("2100-01-01T00:00:00Z")),
        ("restored", json!("2020-01-01T00:00:00Z")),
        ("unreadable", json!("yesterday")),
        ("zero", json!("1970-01-01T00:00:00Z")),
    ] {
        let object = run(name, &json!({"phase": "Succeeded", "finishedAt": at}));
        let object: DynamicObject = serde_json::from_value(object)?;
        runs.create(&PostParams::default(), &object).await?;
    }
    evicted_pod(&place).await?;
    place.becomes("runs", &["future"]).await?;
    place.becomes("pods", &[]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

/// A Pod as the kubelet refuses it for which its node has no room: without a word of its containers.
async fn evicted_pod(place: &Place) -> Result<()> {
    place
        .apply(
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        )
        .await?;
    let container = json!({"name": "a", "image": "none"});
    place
        .apply(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "evicted"},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }))
        .await?;
    let status = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
    let pods = place.objects("pods")?;
    pods.patch_status("evicted", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wish_that_cannot_be_read_keeps_an_object_within_bounds() -> Result<()> {
    let place = place("wishes").await?;
    let mut bounded = policy("jobs", "Job", &ttl(1));
    bounded["spec"]["overrides"] = json!({"annotation": true});
    bounded["spec"]["holds"] = json!({"maximumSeconds": 4});
    place.apply(bounded).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    let (ttl, hold) = ("ttl-seconds-after-finished", "hold-until");
    for (number, (annotation, value)) in [
        (ttl, "7d"),
        (ttl, "-5"),
        (ttl, "99999999999999999999"),
        (ttl, ""),
        (ttl, "3"),
        (ttl, "0"),
        (hold, "tomorrow"),
        (hold, "2100-01-01T00:00:00Z"),
        (hold, "1999-01-01T00:00:00Z"),
    ]
    .into_iter()
    .enumerate()
    {
        let annotations = json!({format!("lifecycle.trainjob.dev/{annotation}"): value});
        place.finished([format!("job-{number}")], &json!({"annotations": annotations})).await?;
    }
    // The number is one, of more seconds than there can be.
    place.becomes("jobs", &["job-2"]).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}
