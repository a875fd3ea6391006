//! Webhooks that hang, and webhooks that deny (R35).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::faults::retention::{Place, policy};
use e2e::fixtures::{PATIENCE, Reviews};
use e2e::retention::{NAMESPACE, SERVICE_ACCOUNT, USER};
use e2e::until::until_ok;
use invariants::retention::Terms;
use invariants::{Millis, Request};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{is_enforcing, named, ttl, wide_place};

/// A Job that exists only to be asked about.
const PROBE: &str = "probe";

/// What a webhook says of each deletion.
#[derive(Clone, Copy)]
enum Answer {
    /// No.
    Deny,
    /// Nothing.
    Hang,
}

/// A webhook that is asked when the engine deletes a Job of a namespace. Dropped, it breaks off.
struct Webhook {
    asked: Arc<AtomicUsize>,
    configurations: Api<ValidatingWebhookConfiguration>,
    name: String,
    _reviews: Reviews,
}

impl Webhook {
    /// Registers one, and waits until it is asked.
    async fn register(place: &Place, answer: Answer) -> Result<Self> {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let refusal =
            json!({"allowed": false, "status": {"code": 403, "message": "denied by a test"}});
        let review = move |request: &Value| {
            let is_probe = request["name"] == PROBE;
            counted.fetch_add(usize::from(!is_probe), Ordering::Relaxed);
            match answer {
                Answer::Hang if !is_probe => None,
                Answer::Deny | Answer::Hang => Some(refusal.clone()),
            }
        };
        let cluster = place.ground.cluster();
        let reviews = Reviews::serve(cluster, review).await?;
        let configuration = configuration(place, &reviews.address());
        apply(&place.client, &place.namespace, vec![configuration]).await?;
        place.create(PROBE, &Value::Null, &Value::Null).await?;
        let engine = cluster.service_account_client(NAMESPACE, SERVICE_ACCOUNT).await?;
        let jobs: Api<Job> = Api::namespaced(engine, &place.namespace);
        until_ok("the webhook is asked", PATIENCE, || async {
            let tried = jobs.delete(PROBE, &DeleteParams::default().dry_run()).await;
            ensure!(tried.is_err(), "it would be deleted");
            Ok(())
        })
        .await?;
        place.delete("jobs", PROBE).await?;
        let configurations = Api::all(place.client.clone());
        Ok(Self { asked, configurations, name: place.namespace.clone(), _reviews: reviews })
    }

    /// How many deletions it was asked about.
    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Nobody is asked any more, a moment later, and what hangs is refused.
    async fn remove(self) -> Result<()> {
        self.configurations.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn configuration(place: &Place, address: &str) -> Value {
    let authority = ByteString(place.ground.cluster().authority().into());
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": place.namespace},
        "webhooks": [{
            "name": "deletions.e2e.trainjob.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            // As long as may be: longer than the engine waits.
            "timeoutSeconds": 30,
            "clientConfig": {"url": format!("https://{address}/"), "caBundle": authority},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            "rules": [{
                "apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"],
                "operations": ["DELETE"],
            }],
            "matchConditions": [{
                "name": "by-the-engine",
                "expression": format!("request.userInfo.username == '{USER}'"),
            }],
        }],
    })
}

/// Waits until a namespace has a policy for Jobs in force.
async fn enforces(place: &Place) -> Result<()> {
    place.apply(policy("jobs", "Job", &ttl(0))).await?;
    place.status("jobs", is_enforcing).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_whose_deletions_hang_delays_no_other() -> Result<()> {
    let hangs = wide_place("hangs").await?;
    let webhook = Webhook::register(&hangs, Answer::Hang).await?;
    let begun = Instant::now();
    enforces(&hangs).await?;
    // More than there are places for requests.
    hangs.finished(named("job", 40), &Value::Null).await?;
    until_ok("deletions hang", PATIENCE, || async {
        ensure!(webhook.asked() > 1, "{} do", webhook.asked());
        Ok(())
    })
    .await?;
    for number in 0..3 {
        let other = hangs.another(&format!("other-{number}")).await?;
        enforces(&other).await?;
        other.finished(named("job", 25), &Value::Null).await?;
        other.becomes("jobs", &[]).await?;
        other.judge(&Terms::default()).await?;
    }
    let there = hangs.names("jobs").await?;
    ensure!(there.len() == 40, "of those that hang, {} are there", there.len());

    // The flow backs off twice as long after each probe, so by now for as long as the deletions have hung.
    let backs_off = begun.elapsed();
    webhook.remove().await?;
    hangs.becomes_within("jobs", &[], PATIENCE + backs_off).await?;
    hangs.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_whose_deletions_are_denied_is_probed_in_its_time_and_delays_no_other()
-> Result<()> {
    let denied = wide_place("denied").await?;
    let webhook = Webhook::register(&denied, Answer::Deny).await?;
    let other = denied.another("allowed").await?;
    for place in [&denied, &other] {
        enforces(place).await?;
        place.finished(named("job", 12), &Value::Null).await?;
    }
    other.becomes("jobs", &[]).await?;
    // After 1, 2, 4 and 8 s.
    until_ok("the flow is probed", PATIENCE, || async {
        let waits = waits_for_probes(&denied.requests());
        ensure!(waits.len() >= 4, "probes after {waits:?} ms, of {} deletions", webhook.asked());
        Ok(())
    })
    .await?;
    let waits = waits_for_probes(&denied.requests());
    let are_long = waits.iter().zip([1_000, 2_000, 4_000, 8_000]).all(|(wait, due)| *wait >= due);
    ensure!(are_long, "probes after {waits:?} ms");
    webhook.remove().await?;
    denied.becomes("jobs", &[]).await?;
    for place in [&denied, &other] {
        place.judge(&Terms::default()).await?;
    }
    Ok(())
}

/// How long after the answer before it each deletion was sent, in milliseconds, once the first ones have been denied, which are
/// sent at once.
fn waits_for_probes(requests: &[Request]) -> Vec<Millis> {
    let mut deletions: Vec<_> = requests.iter().filter(|it| it.verb == "delete").collect();
    deletions.sort_by_key(|it| it.sent);
    let waits = deletions.windows(2).filter_map(|pair| match pair {
        [before, after] => Some(after.sent - before.ended),
        _ => None,
    });
    // A clock of whole milliseconds.
    waits.skip_while(|wait| *wait < 999).map(|wait| wait + 1).collect()
}
