//! A webhook with another configuration, one that makes its certificate itself, and one that is down.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::answer::{Answer, ask};
use e2e::cluster::{Cluster, Options};
use e2e::ports::Port;
use e2e::until::until_ok;
use e2e::webhook::{Certificates, Webhook, WebhookOptions, register, unregister};
use http::Method;
use serde_json::{Value, json};

use super::parts::plain;
use super::place::{Place, Request, Way, manifest, on};
use super::{Mode, Site};

fn on_r(more: Value) -> Value {
    on("r", &more)
}

#[tokio::test]
async fn ttl_and_deadline_follow_the_configuration() -> Result<()> {
    let place = Mode::Mutable.site().await?.place("configured").await?;
    place.make_runtime("r", &plain()).await?;

    for (name, given, expected) in [
        ("defaulted", json!({}), json!(3600)),
        ("given", json!({"ttlSecondsAfterFinished": 90}), json!(90)),
    ] {
        let job = place.create(Way::Replace, name, &on_r(given)).await?;
        let ttl = &job["spec"]["ttlSecondsAfterFinished"];
        ensure!(*ttl == expected, "{name}: {ttl}");
    }
    for (index, (from, to, left)) in [
        (json!({"ttlSecondsAfterFinished": 90}), json!({"ttlSecondsAfterFinished": 91}), 91),
        (
            json!({"activeDeadlineSeconds": 90}),
            json!({"activeDeadlineSeconds": 90, "ttlSecondsAfterFinished": 5}),
            5,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        for way in Way::ALL {
            let name = format!("{way:?}{index}").to_lowercase();
            let job = place.create(way, &name, &on_r(from.clone())).await?;
            let answer = place.change(way, &job, &on_r(to.clone())).await?;
            ensure!(answer.code == 200 && answer.warnings.is_empty(), "{way:?}, {to}: {answer:?}");
            let ttl = &answer.object["spec"]["ttlSecondsAfterFinished"];
            ensure!(*ttl == left, "{way:?}, {to}: {ttl}");
        }
    }
    // On update no default is filled in: a TTL that its owner gives up is gone.
    let way = Way::ServerSideApply;
    let job = place.create(way, "gone", &on_r(json!({"ttlSecondsAfterFinished": 90}))).await?;
    let answer = place.change(way, &job, &on_r(json!({}))).await?;
    ensure!(answer.code == 200 && answer.warnings.is_empty(), "{answer:?}");
    ensure!(answer.object["spec"].get("ttlSecondsAfterFinished").is_none(), "{answer:?}");
    // By this clock, a deadline does not run while a job waits.
    let spec = on_r(json!({"activeDeadlineSeconds": 9, "suspend": true}));
    let request = Request::create(Way::Replace, manifest("waits", &spec));
    let answer = place.send(&request, false).await?;
    let warning = "spec.ttlSecondsAfterFinished is set to 3600, the default of the cluster (setting \
                   lifecycle.defaultTTLSecondsAfterFinished)";
    ensure!(answer.code == 201 && answer.warnings == [warning], "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn a_webhook_makes_its_own_certificate() -> Result<()> {
    let cluster = Cluster::start(Options { crds: true, ..Options::bare() }).await?;
    let certificates = Certificates::SelfManaged;
    let options = WebhookOptions { certificates, ..WebhookOptions::default() };
    let webhook = Webhook::start(&cluster, options).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&cluster.client().await?).await
}

#[tokio::test]
async fn a_webhook_that_is_down_holds_up_nothing_but_what_could_change_what_runs() -> Result<()> {
    let cluster = Cluster::start(Options { crds: true, ..Options::bare() }).await?;
    let client = cluster.client().await?;
    let place = Place::of(&cluster, "down").await?;
    for name in ["goes", "stays"] {
        place.create(Way::Replace, name, &on_r(json!({}))).await?;
    }
    // Nobody listens there.
    let port = Port::take()?;
    register(&client, &port.address(), None).await?;
    let suspend = json!([{"op": "add", "path": "/spec/suspend", "value": true}]);
    let stays = format!("{}?dryRun=All", place.path("trainjobs", "stays"));
    let refused =
        until_ok("the API server asks for the webhook", Duration::from_secs(30), || async {
            let kind = "application/json-patch+json";
            let answer = ask(&place.client, Method::PATCH, &stays, kind, &suspend).await?;
            ensure!(answer.code != 200, "it goes through");
            Ok(answer)
        })
        .await?;
    ensure!(refused.code == 500, "{refused:?}");
    ensure!(refused.message().contains("failed calling webhook"), "{refused:?}");

    let patch = async |name: &str, what: &str, body: Value| -> Result<Answer> {
        let path = format!("{}{what}", place.path("trainjobs", name));
        let merge = "application/merge-patch+json";
        ask(&place.client, Method::PATCH, &path, merge, &body).await
    };
    let label =
        json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["e2e.trainjob.dev/hold"]}});
    let condition = json!({"status": {"conditions": [{
        "type": "Suspended", "status": "False", "reason": "Resumed", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    for (what, body) in [("", label), ("/status", condition)] {
        let answer = patch("goes", what, body).await?;
        ensure!(answer.code == 200, "{what}: {answer:?}");
    }
    let deleted = delete(&place, "goes").await?;
    ensure!(deleted.code == 200, "{deleted:?}");
    let freed = patch("goes", "", json!({"metadata": {"finalizers": null}})).await?;
    ensure!(freed.code == 200 && place.read("goes").await?.code == 404, "{freed:?}");

    // One that is new is held up.
    let new = Request::create(Way::Replace, manifest("new", &on_r(json!({}))));
    let created = place.send(&new, false).await?;
    ensure!(created.code == 500, "{created:?}");
    unregister(&client).await?;
    until_ok("nobody is asked any more", Duration::from_secs(30), || async {
        let answer = patch("stays", "", json!({"spec": {"suspend": true}})).await?;
        ensure!(answer.code == 200, "{answer:?}");
        Ok(())
    })
    .await
}

async fn delete(place: &Place, name: &str) -> Result<Answer> {
    let path = place.path("trainjobs", name);
    ask(&place.client, Method::DELETE, &path, "application/json", &Value::Null).await
}

#[tokio::test]
async fn a_new_certificate_is_taken_into_use() -> Result<()> {
    let site = Arc::new(Box::pin(Site::start("")).await?);
    let place = Arc::clone(&site).place("certificate").await?;
    let (authority, folder) = site.webhook.authority().context("it makes its own")?;
    let before = site.webhook.log()?.len();
    authority.issue(folder)?;
    let what = "the certificate is another one";
    until_ok(what, Duration::from_secs(30), || async {
        let text = site.webhook.metrics_page().await?;
        let loaded = "trainjob_webhook_certificate_reloads_total{result=\"loaded\"} 2";
        ensure!(text.contains(loaded), "{text}");
        Ok(())
    })
    .await
    .with_context(|| site.webhook.log().unwrap_or_default().split_off(before))?;
    site.webhook.wait_asked(&place.client).await
}
