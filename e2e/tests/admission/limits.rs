//! Defaults and maxima of TTL and deadline that a namespace sets (`docs/semantics.md`, A15), by all clients.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::Reviews;
use e2e::until::until_ok;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::Mode;
use super::later_webhook;
use super::parts::plain;
use super::place::{Place, Request, Way, manifest, on};
use super::writers::{DEADLINE, TTL, Terminal, words};

const DEFAULT_TTL: &str = "lifecycle.trainjob.dev/default-ttl-seconds-after-finished";
const MAXIMUM_TTL: &str = "lifecycle.trainjob.dev/maximum-ttl-seconds-after-finished";
const DEFAULT_DEADLINE: &str = "lifecycle.trainjob.dev/default-active-deadline-seconds";
const MAXIMUM_DEADLINE: &str = "lifecycle.trainjob.dev/maximum-active-deadline-seconds";
const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const DENIED: &str =
    "admission webhook \"validator.trainjob.trainer.kubeflow.org\" denied the request: ";

/// How long the webhook may take to hear of an annotation on a busy machine.
const HEARS: Duration = Duration::from_secs(30);

/// A new namespace with these annotations and the runtime `r`. What it limits is limited at once: the webhook asks for
/// a namespace that it has not heard of.
async fn place(mode: Mode, annotations: Value) -> Result<Place> {
    let place = mode.site().await?.annotated_place("limits", &annotations).await?;
    place.make_runtime("r", &plain()).await?;
    Ok(place)
}

fn default_and_maximum() -> Value {
    json!({DEFAULT_TTL: "600", MAXIMUM_TTL: "3600", DEFAULT_DEADLINE: "1200", MAXIMUM_DEADLINE: "7200"})
}

/// What is said of a value that a job gets from an annotation.
fn given(field: &str, seconds: i64, place: &Place, annotation: &str) -> String {
    let source = format!("the namespace \"{}\" (annotation {annotation})", place.namespace);
    format!("spec.{field} is set to {seconds}, the default of {source}")
}

/// What is expected where an annotation sets a maximum.
fn at_most(seconds: i64, place: &Place, annotation: &str) -> String {
    let source = format!("the namespace \"{}\" (annotation {annotation})", place.namespace);
    format!("expected at most {seconds}, the maximum of {source}")
}

#[tokio::test]
async fn a_namespace_sets_default_and_maximum_for_every_way_of_creation() -> Result<()> {
    let place = place(Mode::Immutable, default_and_maximum()).await?;
    for way in Way::ALL {
        let context = format!("{way:?}");
        let name = context.to_lowercase();
        let create = |spec: &Value| Request::create(way, manifest(&name, &on("r", spec)));
        let above = place.send(&create(&json!({TTL: 3601, DEADLINE: 7201})), false).await?;
        let refusal = format!(
            "{DENIED}[spec.{DEADLINE}: Invalid value: 7201: {}, spec.{TTL}: Invalid value: 3601: {}]",
            at_most(7200, &place, MAXIMUM_DEADLINE),
            at_most(3600, &place, MAXIMUM_TTL),
        );
        ensure!(above.code == 403, "{context}: {above:?}");
        ensure!(above.message() == refusal, "{context}: {}", above.message());

        let own = place.send(&create(&json!({TTL: 3600, DEADLINE: 7200})), true).await?;
        ensure!(own.code == 201 && own.warnings.is_empty(), "{context}: {own:?}");

        let answer = place.send(&create(&json!({})), false).await?;
        ensure!(answer.code == 201, "{context}: {answer:?}");
        let spec = &answer.object["spec"];
        ensure!(spec[TTL] == 600 && spec[DEADLINE] == 1200, "{context}: {spec}");
        let warnings =
            [given(TTL, 600, &place, DEFAULT_TTL), given(DEADLINE, 1200, &place, DEFAULT_DEADLINE)];
        ensure!(answer.warnings == warnings, "{context}: {:?}", answer.warnings);
    }
    Ok(())
}

#[tokio::test]
async fn kubectl_shows_what_a_job_gets_and_why_it_is_refused() -> Result<()> {
    let place = place(Mode::Immutable, default_and_maximum()).await?;
    let warnings =
        [given(TTL, 600, &place, DEFAULT_TTL), given(DEADLINE, 1200, &place, DEFAULT_DEADLINE)];
    let refusal = at_most(3600, &place, MAXIMUM_TTL);
    let site = Mode::Immutable.site().await?;
    let terminal = Terminal::at(&site, place);
    for (name, command) in
        [("client-side", "apply -f -"), ("server-side", "apply --server-side -f -")]
    {
        let job = |spec: &Value| manifest(name, &on("r", spec));
        let refused = terminal.kubectl(&words(command), &job(&json!({TTL: 9000}))).await?;
        ensure!(!refused.is_content && refused.text.contains(&refusal), "{name}: {refused:?}");
        let said = terminal.kubectl(&words(command), &job(&json!({}))).await?;
        ensure!(said.is_content, "{name}: {said:?}");
        for warning in &warnings {
            ensure!(said.text.contains(&format!("Warning: {warning}\n")), "{name}: {said:?}");
        }
        let spec = terminal.spec(name).await?;
        ensure!(spec[TTL] == 600 && spec[DEADLINE] == 1200, "{name}: {spec}");
        // Applied again, as from Git, the job keeps what it got.
        let again = terminal.kubectl(&words(command), &job(&json!({"suspend": true}))).await?;
        ensure!(again.is_content, "{name}: {again:?}");
        let spec = terminal.spec(name).await?;
        ensure!(spec[TTL] == 600 && spec[DEADLINE] == 1200, "{name}: {spec}");
    }
    Ok(())
}

#[tokio::test]
async fn a_job_that_waits_gets_no_deadline_that_would_count_meanwhile() -> Result<()> {
    let defaults = json!({DEFAULT_TTL: "600", DEFAULT_DEADLINE: "1200"});
    let place = place(Mode::Immutable, defaults).await?;
    let mut queued = manifest("queued", &on("r", &json!({})));
    queued["metadata"]["labels"] = json!({QUEUE: "team"});
    for job in [queued.clone(), manifest("suspended", &on("r", &json!({"suspend": true})))] {
        let answer = place.send(&Request::create(Way::Replace, job), false).await?;
        ensure!(answer.code == 201, "{answer:?}");
        let spec = &answer.object["spec"];
        ensure!(spec[TTL] == 600 && spec.get(DEADLINE).is_none(), "{spec}");
        let warnings = [given(TTL, 600, &place, DEFAULT_TTL)];
        ensure!(answer.warnings == warnings, "{:?}", answer.warnings);
    }
    // With a maximum it has to say its deadline itself.
    let limited = self::place(Mode::Immutable, default_and_maximum()).await?;
    let refused = limited.send(&Request::create(Way::Replace, queued.clone()), false).await?;
    let expected = format!(
        "{DENIED}spec.{DEADLINE}: Required value: {}; there is no default, because the TrainJob waits in a \
         queue and the time until it starts counts",
        at_most(7200, &limited, MAXIMUM_DEADLINE)
    );
    ensure!(refused.code == 403 && refused.message() == expected, "{}", refused.message());
    // By the other clock, the time in the queue does not count.
    let resumes = self::place(Mode::Mutable, default_and_maximum()).await?;
    let answer = resumes.send(&Request::create(Way::Replace, queued), false).await?;
    ensure!(answer.object["spec"][DEADLINE] == 1200, "{answer:?}");
    Ok(())
}

/// What Kueue's webhook does with a job in a namespace that has a queue for all.
fn queued(request: &Value) -> Value {
    let mut labels = request["object"]["metadata"]["labels"].clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[QUEUE] = json!("default");
    let patch = json!([
        {"op": "add", "path": "/metadata/labels", "value": labels},
        {"op": "add", "path": "/spec/suspend", "value": true},
    ]);
    let patch = ByteString(patch.to_string().into_bytes());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

#[tokio::test]
async fn a_deadline_is_taken_back_when_a_later_webhook_queues_the_job() -> Result<()> {
    let site = Mode::Immutable.site().await?;
    let defaults = json!({DEFAULT_DEADLINE: "1200"});
    let place = place(Mode::Immutable, defaults).await?;
    let reviews = Reviews::serve(&site.cluster, |request| Some(queued(request))).await?;
    later_webhook::register(&site, &place, &reviews, ("queues", "CREATE", "Never")).await?;
    let create =
        |way, name: &str, spec: &Value| Request::create(way, manifest(name, &on("r", spec)));
    until_ok("the other webhook is asked", Duration::from_mins(1), || async {
        let answer = place.send(&create(Way::Replace, "probe", &json!({})), true).await?;
        let labels = &answer.object["metadata"]["labels"];
        ensure!(labels.get(QUEUE).is_some(), "{answer:?}");
        Ok(())
    })
    .await?;
    for way in [Way::Replace, Way::KubectlApply, Way::ServerSideApply] {
        let name = format!("{way:?}").to_lowercase();
        let answer = place.send(&create(way, &name, &json!({})), false).await?;
        ensure!(answer.code == 201 && answer.object["spec"]["suspend"] == true, "{answer:?}");
        ensure!(answer.object["spec"].get(DEADLINE).is_none(), "{way:?}: {answer:?}");
        let last = answer.warnings.last().context("no warning")?;
        let expected = format!(
            "spec.{DEADLINE} is not set, because the TrainJob waits in a queue and the time until it \
             starts counts"
        );
        ensure!(*last == expected, "{way:?}: {:?}", answer.warnings);
        // What its author gives stays.
        let own = create(way, &format!("{name}-own"), &json!({DEADLINE: 1200}));
        let answer = place.send(&own, false).await?;
        ensure!(answer.object["spec"][DEADLINE] == 1200, "{way:?}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_update_is_refused_only_if_it_raises_a_field_beyond_the_maximum() -> Result<()> {
    let place = place(Mode::Mutable, json!({})).await?;
    let spec = |ttl: i64| on("r", &json!({TTL: ttl, "suspend": true}));
    for way in Way::ALL {
        let name = format!("{way:?}").to_lowercase();
        for (ending, ttl) in [("below", 50), ("above", 5000)] {
            place.create(way, &format!("{name}-{ending}"), &spec(ttl)).await?;
        }
    }
    place.annotate(&json!({MAXIMUM_TTL: "100"})).await?;
    until_ok("the webhook knows the maximum", HEARS, || async {
        let probe = Request::create(Way::Replace, manifest("probe", &spec(101)));
        ensure!(place.send(&probe, true).await?.code == 403, "it does not");
        Ok(())
    })
    .await?;
    let expected = at_most(100, &place, MAXIMUM_TTL);
    for way in Way::ALL {
        let name = format!("{way:?}").to_lowercase();
        for (ending, ttl, is_admitted) in [
            ("below", 101, false),
            ("below", 100, true),
            ("above", 5001, false),
            ("above", 4999, true),
        ] {
            let context = format!("{way:?}: {ending} to {ttl}");
            let stored = place.read(&format!("{name}-{ending}")).await?.object;
            let answer = place.change(way, &stored, &spec(ttl)).await?;
            if is_admitted {
                ensure!(answer.code == 200, "{context}: {answer:?}");
            } else {
                let refusal = format!("{DENIED}spec.{TTL}: Invalid value: {ttl}: {expected}");
                ensure!(answer.message() == refusal, "{context}: {answer:?}");
            }
        }
        // What does not raise it is not judged by it: the job is resumed.
        let stored = place.read(&format!("{name}-above")).await?.object;
        let resumed = on("r", &json!({TTL: 4999, "suspend": false}));
        let answer = place.change(way, &stored, &resumed).await?;
        ensure!(answer.code == 200, "{way:?}: {answer:?}");
    }
    // To remove it is to raise it.
    let stored = place.read("serversideapply-below").await?.object;
    let removed = on("r", &json!({"suspend": true}));
    let answer = place.change(Way::ServerSideApply, &stored, &removed).await?;
    let refusal = format!("{DENIED}spec.{TTL}: Required value: {expected}");
    ensure!(answer.message() == refusal, "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn an_annotation_that_is_no_number_is_named() -> Result<()> {
    let place = place(Mode::Immutable, json!({DEFAULT_TTL: "1h"})).await?;
    let create = || Request::create(Way::Replace, manifest("job", &on("r", &json!({}))));
    let answer = place.send(&create(), true).await?;
    let is_not = |annotation: &str, value: &str, least: i64| {
        format!(
            "the annotation {annotation} of the namespace \"{}\" is \"{value}\", expected a whole number of \
             seconds between {least} and 2147483647: ",
            place.namespace
        )
    };
    let warning = format!("{}it has no effect", is_not(DEFAULT_TTL, "1h", 0));
    ensure!(answer.code == 201 && answer.warnings == [warning], "{answer:?}");

    place.annotate(&json!({DEFAULT_TTL: null, MAXIMUM_DEADLINE: "2d"})).await?;
    let refusal = format!(
        "{DENIED}spec.{DEADLINE}: Forbidden: {}nothing is admitted before whoever administers the \
         namespace has corrected it",
        is_not(MAXIMUM_DEADLINE, "2d", 1)
    );
    until_ok("no job is admitted", HEARS, || async {
        let answer = place.send(&create(), true).await?;
        ensure!(answer.code == 403 && answer.message() == refusal, "{answer:?}");
        Ok(())
    })
    .await?;
    place.annotate(&json!({MAXIMUM_DEADLINE: "172800"})).await?;
    until_ok("jobs are admitted again", HEARS, || async {
        let answer = place.send(&create(), true).await?;
        ensure!(answer.object["spec"][DEADLINE] == 172_800, "{answer:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_copy_of_multikueue_gets_nothing_and_is_not_judged() -> Result<()> {
    let place = place(Mode::Immutable, default_and_maximum()).await?;
    let mut copy = manifest("copy", &on("r", &json!({DEADLINE: 9000})));
    copy["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "manager"});
    let answer = place.send(&Request::create(Way::Replace, copy), false).await?;
    ensure!(answer.code == 201 && answer.warnings.is_empty(), "{answer:?}");
    let spec = &answer.object["spec"];
    ensure!(spec[DEADLINE] == 9000 && spec.get(TTL).is_none(), "{spec}");
    Ok(())
}
