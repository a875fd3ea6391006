//! Objects and policies that change while they are about to be deleted.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use e2e::faults::retention::{Place, policy};
use e2e::fixtures::PATIENCE;
use e2e::proxy::{Call, Fault};
use e2e::until::until_ok;
use invariants::retention::Terms;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{WINDOW, is_enforcing, named, place, scaled, ttl};

pub(super) fn is_deletion(call: &Call) -> bool {
    call.verb == "delete"
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_wins_over_a_deletion_that_is_on_its_way() -> Result<()> {
    let place = place("edits").await?;
    let mut due = policy("jobs", "Job", &ttl(0));
    due["spec"]["selector"] = json!({"matchLabels": {"due": "yes"}});
    due["spec"]["overrides"] = json!({"annotation": true});
    place.apply(due).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;

    let due = json!({"labels": {"due": "yes"}});
    let mut left = Vec::new();
    for round in 0..scaled(3, 1_000) {
        // One at a time: of a flow that is found slow, no more are sent.
        for edit in ["anew", "hold", "label", "ttl"] {
            let name = format!("{edit}-{round}");
            // One that is sent anew because no answer comes must not overtake the edit.
            let deletion = place.proxy.inject(is_deletion, 1..=usize::MAX, Fault::HoldRequest);
            place.finished([name.clone()], &due).await?;
            deletion.reached().await?;
            make_undue(&place, edit, &name, &due).await?;
            deletion.remove();
            left.push(name);
            let refused = left.len();
            until_ok("the deletion is refused", PATIENCE, || async {
                let answers = place.proxy.requests();
                let deletions = answers.iter().filter(|it| it.verb == "delete");
                let conflicts = deletions.filter(|it| it.answer.served == Some(409)).count();
                ensure!(conflicts == refused, "{conflicts} of {refused} are");
                Ok(())
            })
            .await?;
        }
    }
    left.sort();
    let left: Vec<&str> = left.iter().map(String::as_str).collect();
    place.asks_for_nothing_more(WINDOW).await?;
    place.becomes("jobs", &left).await?;
    place.judge(&Terms::default()).await?;
    Ok(())
}

/// Makes a Job anew with this metadata, or edits it so that it is not due any more.
async fn make_undue(place: &Place, edit: &str, name: &str, metadata: &Value) -> Result<()> {
    let annotate = |name: &str, value: &str| json!({"metadata": {"annotations": {format!("lifecycle.trainjob.dev/{name}"): value}}});
    let patch = match edit {
        "hold" => annotate("hold-until", "2100-01-01T00:00:00Z"),
        "label" => json!({"metadata": {"labels": {"due": null}}}),
        "ttl" => annotate("ttl-seconds-after-finished", "3600"),
        "anew" => {
            place.delete("jobs", name).await?;
            place.create(name, metadata, &Value::Null).await?;
            return Ok(());
        }
        other => bail!("there is no edit {other}"),
    };
    place.edit("jobs", name, &patch).await
}

#[tokio::test(flavor = "multi_thread")]
async fn workflow_that_is_retried_while_its_deletion_is_on_its_way_is_kept() -> Result<()> {
    let place = place("retried").await?;
    let mut workflows = policy("workflows", "Workflow", &ttl(1));
    workflows["spec"]["finished"] = super::kinds::recipe("argo-workflow")?;
    place.apply(workflows).await?;
    place.launch().await?;
    place.status("workflows", is_enforcing).await?;

    let deletions = place.proxy.inject(is_deletion, 1..=1, Fault::HoldRequest);
    let api = place.objects("workflows")?;
    let ended = |name: &str, archiving: &str| {
        let mut labels = json!({"workflows.argoproj.io/completed": "true"});
        if !archiving.is_empty() {
            labels["workflows.argoproj.io/workflow-archiving-status"] = json!(archiving);
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": name, "labels": labels},
            "status": {"phase": "Failed", "finishedAt": "2026-01-01T00:00:00Z"},
        })
    };
    for (name, archiving) in [("retried", ""), ("unarchived", "Pending")] {
        let object: DynamicObject = serde_json::from_value(ended(name, archiving))?;
        api.create(&PostParams::default(), &object).await?;
    }
    deletions.reached().await?;
    // As a retry writes it.
    let retried = json!({
        "metadata": {"labels": {"workflows.argoproj.io/completed": null}},
        "status": {"phase": "Running", "finishedAt": null},
    });
    place.edit("workflows", "retried", &retried).await?;
    deletions.remove();
    place.asks_for_nothing_more(WINDOW).await?;
    place.becomes("workflows", &["retried", "unarchived"]).await?;
    let archived = json!({"metadata": {"labels": {
        "workflows.argoproj.io/workflow-archiving-status": "Archived",
    }}});
    place.edit("workflows", "unarchived", &archived).await?;
    place.becomes("workflows", &["retried"]).await?;
    ensure!(place.deletions() == 2, "{} deletions", place.deletions());
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_that_is_deleted_or_set_to_audit_stops_all_but_what_is_under_way() -> Result<()> {
    let place = place("stops").await?;
    let mut enforced = policy("jobs", "Job", &ttl(0));
    let count = scaled(80, 10_000);
    enforced["spec"]["breaker"] = json!({"maxCount": 2 * count});
    for (round, stop) in ["Audit", "deleted"].into_iter().enumerate() {
        let prefix = format!("job-{round}");
        place.finished(named(&prefix, count), &Value::Null).await?;
        let before = place.deletions();
        let deletions = place.proxy.inject(is_deletion, 1..=usize::MAX, Fault::HoldRequest);
        place.apply(enforced.clone()).await?;
        if round == 0 {
            place.launch().await?;
        }
        until_ok("as many are under way as may be", PATIENCE, || async {
            ensure!(place.deletions() > before, "none is");
            place.asks_for_nothing_more(Duration::from_secs(1)).await
        })
        .await?;
        if stop == "Audit" {
            let mut audit = enforced.clone();
            audit["spec"]["mode"] = json!("Audit");
            place.apply(audit).await?;
            place.status("jobs", |it| super::condition(it, "Enforcing").1 == "AuditMode").await?;
        } else {
            place.delete_policy("jobs").await?;
            until_ok("the engine knows of no policy", PATIENCE, || async {
                let policies = place.metric("trainjob_retention_policies").await?;
                ensure!(policies == 0.0, "{policies} are known");
                Ok(())
            })
            .await?;
        }
        // A busy engine may have sent the last of them only by now.
        let under_way = deletions.befallen();
        ensure!(under_way <= 32, "{under_way} are under way");
        deletions.remove();
        place.asks_for_nothing_more(WINDOW).await?;
        let asked = place.deletions() - before;
        ensure!(asked == under_way, "{asked} instead of {under_way}, {stop}");
    }
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_edits_in_a_short_time_the_last_one_wins() -> Result<()> {
    let place = place("last-edit").await?;
    place.finished(named("job", 60), &Value::Null).await?;
    place.apply(policy("jobs", "Job", &ttl(604_800))).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    for edit in 0..40 {
        // Each but the last makes all due, which trips, or none.
        place.apply(policy("jobs", "Job", &ttl(if edit % 2 == 0 { 0 } else { 604_800 }))).await?;
    }
    place
        .status("jobs", |status| is_enforcing(status) && status["wouldDelete"]["now"] == 0)
        .await?;
    let seen = place.status("jobs", |status| status["counts"]["finished"] == 60).await?;
    ensure!(place.deletions() == 0, "{} deletions: {seen}", place.deletions());
    place.judge(&Terms::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_three_of_a_group_stay_while_all_of_them_change() -> Result<()> {
    let place = place("keeps").await?;
    place
        .apply(policy("jobs", "Job", &json!({"keepLast": {"count": 3, "groupBy": ["group"]}})))
        .await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    let deletions = place.proxy.inject(is_deletion, 1..=1, Fault::HoldRequest);
    place.finished(named("lone", 2), &Value::Null).await?;
    // All of a second: so the order of equal times is tried, too.
    place.finished(named("job", 8), &json!({"labels": {"group": "a"}})).await?;
    deletions.reached().await?;
    // Once each: a request that has no answer is sent anew after 15 s, and would be about what was edited.
    for name in named("job", 8) {
        place.edit("jobs", &name, &json!({"metadata": {"annotations": {"edited": "yes"}}})).await?;
    }
    // By hand, while one of the oldest is about to go.
    let newest = newest(&place.jobs).await?;
    place.delete("jobs", &newest).await?;
    deletions.remove();
    until_ok("three are left, and those without the label", PATIENCE, || async {
        let names = place.names("jobs").await?;
        ensure!(names.len() == 5, "{names:?}");
        Ok(())
    })
    .await?;
    place.asks_for_nothing_more(WINDOW).await?;
    let names = place.names("jobs").await?;
    ensure!(
        names.len() == 5 && names.iter().filter(|it| it.starts_with("lone")).count() == 2,
        "{names:?}"
    );
    place.judge(&Terms::default()).await?;
    Ok(())
}

/// The newest Job of the group, by the order of the rule: its end, its creation, its UID.
async fn newest(jobs: &kube::Api<k8s_openapi::api::batch::v1::Job>) -> Result<String> {
    use kube::ResourceExt;
    let labelled = kube::api::ListParams::default().labels("group=a");
    let mut all = jobs.list(&labelled).await?.items;
    all.sort_by_key(|job| (job.creation_timestamp().map(|at| at.0), job.uid()));
    Ok(all.last().map(ResourceExt::name_any).unwrap_or_default())
}
