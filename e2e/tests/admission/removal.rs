//! When a TTL or deadline that a request leaves out is removed, and when it is not: the annotation, owners, other
//! webhooks, the end of a job (`docs/semantics.md`, A11).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::answer::{Answer, ask};
use e2e::fixtures::Reviews;
use e2e::until::until_ok;
use http::Method;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::Mode;
use super::later_webhook;
use super::parts::plain;
use super::place::{Place, Way, manifest};
use super::writers::{DEADLINE, FIELDS, TTL, full, kept_warning, resumed_without, value};

const WISH: &str = "lifecycle.trainjob.dev/remove-fields";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

async fn prepared(mode: Mode, prefix: &str) -> Result<Place> {
    let place = mode.site().await?.place(prefix).await?;
    place.make_runtime("r", &plain()).await?;
    Ok(place)
}

async fn merge(place: &Place, name: &str, patch: Value) -> Result<Answer> {
    ask(&place.client, Method::PATCH, &place.path("trainjobs", name), MERGE, &patch).await
}

/// Applies a job under a name.
async fn applies(place: &Place, manager: &str, job: Value) -> Result<Answer> {
    let name = job["metadata"]["name"].as_str().context("a job without a name")?;
    let path = place.path("trainjobs", name);
    let path = format!("{path}?fieldManager={manager}&force=true");
    ask(&place.client, Method::PATCH, &path, APPLY, &job).await
}

/// A manifest that asks for a removal.
fn wishing(mut job: Value, names: &str) -> Value {
    job["metadata"]["annotations"] = json!({WISH: names});
    job
}

fn has_wish(job: &Value) -> bool {
    job["metadata"]["annotations"].get(WISH).is_some()
}

#[tokio::test]
async fn a_removal_is_asked_for_with_an_annotation_that_is_not_stored() -> Result<()> {
    let place = prepared(Mode::Mutable, "wish").await?;
    let mut number = 0;
    for removed in [&[TTL][..], &[DEADLINE], &FIELDS] {
        let names = removed.join(",");
        let without = resumed_without(removed);
        for way in ["merge", "json", "put", "apply"] {
            number += 1;
            let name = format!("job{number}");
            let made = applies(&place, "owner", manifest(&name, &full())).await?;
            ensure!(made.code == 201, "{made:?}");
            let url = place.path("trainjobs", &name);
            let send = async |method, kind, body: Value| {
                ask(&place.client, method, &url, kind, &body).await
            };
            let answer = match way {
                "merge" => {
                    let spec: Value =
                        removed.iter().map(|it| ((*it).to_owned(), json!(null))).collect();
                    let patch = json!({"metadata": {"annotations": {WISH: names}}, "spec": spec});
                    send(Method::PATCH, MERGE, patch).await?
                }
                "json" => {
                    let annotations = json!({"op": "add", "path": "/metadata/annotations", "value": {WISH: names}});
                    let gone = |it: &&str| json!({"op": "remove", "path": format!("/spec/{it}")});
                    let patch: Vec<_> = removed.iter().map(gone).chain([annotations]).collect();
                    send(Method::PATCH, "application/json-patch+json", patch.into()).await?
                }
                "put" => {
                    let mut job = wishing(made.object, &names);
                    job["spec"] = without.clone();
                    send(Method::PUT, "application/json", job).await?
                }
                _ => applies(&place, "owner", wishing(manifest(&name, &without), &names)).await?,
            };
            ensure!(answer.code == 200 && answer.warnings.is_empty(), "{way} {names}: {answer:?}");
            let job = place.read(&name).await?.object;
            ensure!(!has_wish(&job), "{way} {names}: {job}");
            for field in FIELDS {
                ensure!(job["spec"][field] == without[field], "{way} {names}: {job}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn invalid_remove_fields_annotation_is_denied_with_the_expected_value() -> Result<()> {
    const DENIED: &str = "admission webhook \"defaulter.trainjob.trainer.kubeflow.org\" denied the request: metadata.annotations[lifecycle.trainjob.dev/remove-fields]: ";
    for (mode, names, spec, expected) in [
        (
            Mode::Mutable,
            "ttl",
            json!({TTL: null}),
            "Invalid value: \"ttl\": expected activeDeadlineSeconds, ttlSecondsAfterFinished, or both with a comma between them",
        ),
        (
            Mode::Mutable,
            TTL,
            json!({DEADLINE: null}),
            "Invalid value: \"ttlSecondsAfterFinished\": spec.ttlSecondsAfterFinished would still be there: leave it out of the same request; a server-side apply leaves out only what no other manager owns",
        ),
        (
            Mode::Immutable,
            TTL,
            json!({TTL: null}),
            "Forbidden: the fields cannot be removed after creation (lifecycle.fieldUpdates is Immutable): leave the annotation out, or create another TrainJob",
        ),
    ] {
        let place = prepared(mode, "refused").await?;
        place.create(Way::Replace, "job", &full()).await?;
        let patch = json!({"metadata": {"annotations": {WISH: names}}, "spec": spec});
        let answer = merge(&place, "job", patch).await?;
        ensure!(answer.code == 403, "{answer:?}");
        ensure!(answer.message() == format!("{DENIED}{expected}"), "{}", answer.message());
    }
    Ok(())
}

#[tokio::test]
async fn an_annotation_that_is_left_behind_does_nothing_until_it_is_taken_off() -> Result<()> {
    const STALE: &str = "metadata.annotations[lifecycle.trainjob.dev/remove-fields] was stored by an earlier request and is removed: it counts only in the request that leaves the field out";
    for mode in Mode::ALL {
        let place = prepared(mode, "stale").await?;
        for (name, dropped) in [("complete", &[][..]), ("dropped", &FIELDS)] {
            place.create(Way::Replace, name, &full()).await?;
            let wish = json!({"metadata": {"annotations": {WISH: FIELDS.join(",")}}});
            // The webhook is not asked.
            let answer = merge(&place, name, wish).await?;
            ensure!(answer.code == 200 && answer.warnings.is_empty(), "{answer:?}");
            ensure!(has_wish(&answer.object), "{answer:?}");
            let resumed = resumed_without(dropped);
            let answer = place.change(Way::Replace, &answer.object, &resumed).await?;
            ensure!(answer.code == 200, "{mode:?}, {name}: {answer:?}");
            let kept = dropped.iter().map(|field| kept_warning(field, mode));
            let warnings: Vec<_> = kept.chain([STALE.to_owned()]).collect();
            ensure!(answer.warnings == warnings, "{mode:?}, {name}: {answer:?}");
            let job = place.read(name).await?.object;
            ensure!(!has_wish(&job) && job["spec"]["suspend"] == false, "{job}");
            ensure!(FIELDS.iter().all(|it| job["spec"][*it] == value(it)), "{job}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_server_side_apply_removes_only_what_nobody_else_owns() -> Result<()> {
    let place = prepared(Mode::Mutable, "owners").await?;
    let without = |name: &str| manifest(name, &resumed_without(&[TTL]));
    let is_kept = |answer: &Answer| {
        let ttl = &answer.object["spec"][TTL];
        answer.code == 200 && answer.warnings.is_empty() && *ttl == value(TTL)
    };

    // One after the other, within a second or not.
    for number in 0..5 {
        let name = format!("quick{number}");
        applies(&place, "owner", manifest(&name, &full())).await?;
        let answer = applies(&place, "owner", without(&name)).await?;
        ensure!(answer.code == 200 && answer.object["spec"].get(TTL).is_none(), "{answer:?}");
    }

    applies(&place, "owner", manifest("shared", &full())).await?;
    applies(&place, "other", manifest("shared", &full())).await?;
    let answer = applies(&place, "owner", without("shared")).await?;
    ensure!(is_kept(&answer), "{answer:?}");
    let answer = applies(&place, "other", without("shared")).await?;
    ensure!(answer.object["spec"].get(TTL).is_none(), "the last owner: {answer:?}");

    // An update takes it from its owner, who has it again when it applies it again.
    let stored = applies(&place, "owner", manifest("taken", &full())).await?.object;
    let answer = place.change(Way::Replace, &stored, &resumed_without(&[TTL])).await?;
    ensure!(answer.warnings == [kept_warning(TTL, Mode::Mutable)], "{answer:?}");
    let answer = applies(&place, "owner", without("taken")).await?;
    ensure!(is_kept(&answer), "{answer:?}");
    applies(&place, "owner", manifest("taken", &full())).await?;
    let answer = applies(&place, "owner", without("taken")).await?;
    ensure!(answer.object["spec"].get(TTL).is_none(), "its owner: {answer:?}");
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_being_deleted_may_lose_its_fields() -> Result<()> {
    for mode in Mode::ALL {
        let place = prepared(mode, "going").await?;
        let mut job = manifest("job", &full());
        job["metadata"]["finalizers"] = json!(["e2e.trainjob.dev/hold"]);
        applies(&place, "owner", job).await?;
        let path = place.path("trainjobs", "job");
        let none = Value::Null;
        let deleted = ask(&place.client, Method::DELETE, &path, "application/json", &none).await?;
        ensure!(deleted.code == 200, "{deleted:?}");
        let stored = place.read("job").await?.object;
        let answer = place.change(Way::Replace, &stored, &resumed_without(&FIELDS)).await?;
        ensure!(answer.code == 200 && answer.warnings.is_empty(), "{mode:?}: {answer:?}");
        ensure!(FIELDS.iter().all(|it| answer.object["spec"].get(it).is_none()), "{answer:?}");
        let freed = merge(&place, "job", json!({"metadata": {"finalizers": null}})).await?;
        ensure!(freed.code == 200, "{freed:?}");
    }
    Ok(())
}

/// What a webhook with older types answers: it notes that it was asked, and its object has no TTL.
fn older_types(request: &Value) -> Value {
    let object = &request["object"];
    let mut annotations = object["metadata"]["annotations"].clone();
    if !annotations.is_object() {
        annotations = json!({});
    }
    annotations["e2e.trainjob.dev/asked"] = request["uid"].clone();
    let mut patch =
        vec![json!({"op": "add", "path": "/metadata/annotations", "value": annotations})];
    if object["spec"].get(TTL).is_some() {
        patch.push(json!({"op": "remove", "path": format!("/spec/{TTL}")}));
    }
    let patch = ByteString(Value::from(patch).to_string().into_bytes());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// Has a webhook with older types asked after ours about the jobs of a namespace; `policy` is whether it is asked again.
async fn register_older(mode: Mode, place: &Place, policy: &str) -> Result<Reviews> {
    let site = mode.site().await?;
    let asked = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&asked);
    let reviews = Reviews::serve(&site.cluster, move |request| {
        note.store(true, Ordering::Relaxed);
        Some(older_types(request))
    })
    .await?;
    later_webhook::register(&site, place, &reviews, ("older", "UPDATE", policy)).await?;
    place.create(Way::Replace, "probe", &full()).await?;
    until_ok("the other webhook is asked", Duration::from_mins(1), || async {
        let answer = merge(place, "probe", json!({"metadata": {"labels": {"a": "b"}}})).await?;
        ensure!(asked.load(Ordering::Relaxed), "{answer:?}");
        Ok(())
    })
    .await?;
    Ok(reviews)
}

#[tokio::test]
async fn fields_dropped_by_a_later_webhook_are_restored() -> Result<()> {
    for mode in Mode::ALL {
        let place = prepared(mode, "later").await?;
        let _reviews = register_older(mode, &place, "Never").await?;
        place.create(Way::Replace, "job", &full()).await?;
        let answer = merge(&place, "job", json!({"spec": {"suspend": false}})).await?;
        ensure!(answer.code == 200, "{mode:?}: {answer:?}");
        ensure!(answer.warnings == [kept_warning(TTL, mode)], "{mode:?}: {answer:?}");
        let spec = place.read("job").await?.object["spec"].clone();
        ensure!(FIELDS.iter().all(|it| spec[*it] == value(it)), "{spec}");
        ensure!(spec["suspend"] == false, "{spec}");
    }
    Ok(())
}

#[tokio::test]
async fn a_removal_that_was_asked_for_stays_one_when_a_later_webhook_has_changed_something()
-> Result<()> {
    let place = prepared(Mode::Mutable, "again").await?;
    let _reviews = register_older(Mode::Mutable, &place, "Never").await?;
    place.create(Way::Replace, "wish", &full()).await?;
    let wish = json!({"metadata": {"annotations": {WISH: TTL}}, "spec": {TTL: null}});
    let wish = merge(&place, "wish", wish).await?;
    applies(&place, "owner", manifest("owned", &full())).await?;
    let owned = applies(&place, "owner", manifest("owned", &resumed_without(&[TTL]))).await?;
    for answer in [wish, owned] {
        ensure!(answer.code == 200 && answer.warnings.is_empty(), "{answer:?}");
        let annotations = &answer.object["metadata"]["annotations"];
        ensure!(annotations.get("e2e.trainjob.dev/asked").is_some(), "{answer:?}");
        ensure!(
            !has_wish(&answer.object) && answer.object["spec"].get(TTL).is_none(),
            "{answer:?}"
        );
        ensure!(answer.object["spec"][DEADLINE] == value(DEADLINE), "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn fields_dropped_by_the_last_webhook_are_denied_when_immutable() -> Result<()> {
    let place = prepared(Mode::Immutable, "last").await?;
    let _reviews = register_older(Mode::Immutable, &place, "IfNeeded").await?;
    place.create(Way::Replace, "job", &full()).await?;
    let text = "admission webhook \"validator.trainjob.trainer.kubeflow.org\" denied the request: spec.ttlSecondsAfterFinished: Forbidden: field is immutable: keep 3600, or create another TrainJob";
    for change in [json!({"spec": {"suspend": false}}), json!({"metadata": {"labels": {"a": "b"}}})]
    {
        // Of a request that leaves the spec alone, ours is not asked at all.
        let answer = merge(&place, "job", change).await?;
        ensure!(answer.code == 403, "{answer:?}");
        ensure!(answer.message() == text, "{}", answer.message());
    }
    Ok(())
}
