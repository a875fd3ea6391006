//! Metrics: that they are those of `docs/metrics.md`, and that they are true (traps 15 and 16 of
//! `docs/semantics.md`, §7).

#![allow(clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod exposition;
mod namespaces;
mod readers;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, FAILS, PATIENCE, POOL, RUNS, SYSTEM};
use e2e::metrics_page::{self, Documented};
use e2e::operator::{Operator, SERVICE_ACCOUNT, install_operator_rbac};
use e2e::until::until_ok;
use e2e::webhook::{Webhook, WebhookOptions, unregister};
use futures::future::try_join_all;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use exposition::Exposition;

/// What only one of the programs shows begins so; everything else both do.
const WEBHOOK: &str = "trainjob_webhook_";
const PROCESS: &str = "process_";
/// What is there once it has happened.
const REQUESTS: &str = "trainjob_operator_api_request";
/// What is about the present has one of these in its name.
const ABOUT_NOW: [&str; 5] =
    ["_overdue", "_unreleased", "_blocked", "_queue_depth", "_terminating"];

/// Runs a test in a box to itself, with an operator.
async fn test(
    prefix: &str,
    body: impl AsyncFnOnce(&Tenant<'_>, &Operator) -> Result<()>,
) -> Result<()> {
    POOL.test(prefix, async |tenant| {
        let operator = tenant.world.start_operator().await?;
        body(tenant, &operator).await
    })
    .await
}

/// Everything that is not as the page says it.
fn differences(shown: &Exposition, documented: &BTreeMap<String, Documented>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, (kind, help)) in &shown.families {
        let Some(said) = documented.get(name) else {
            found.push(format!("{name} is not on the page"));
            continue;
        };
        if (kind, help) != (&said.kind, &said.help) {
            found.push(format!("{name} is a {kind}: {help}"));
        }
        let labels = shown.labels(name);
        if !labels.keys().eq(said.labels.keys()) {
            found.push(format!("{name} has labels {labels:?}"));
        }
        for (label, values) in labels {
            let listed = said.labels.get(&label).filter(|listed| !listed.is_empty());
            let Some(listed) = listed else { continue };
            // What one request has may be all there is, of several hundred.
            let complete = !name.contains("_api_request");
            if !values.is_subset(listed) || (complete && values != *listed) {
                found.push(format!("{label} of {name} is one of {values:?}"));
            }
        }
    }
    let missing = documented.keys().filter(|name| !shown.families.contains_key(*name));
    found.extend(missing.map(|name| format!("{name} is not shown")));
    found
}

#[tokio::test]
async fn the_page_says_what_both_programs_show_and_they_show_what_it_says() -> Result<()> {
    POOL.test("page", async |tenant| {
        // With every label that there can be.
        let operator = tenant.world.start_operator_with("metrics: {jobNamespaces: 9}").await?;
        let webhook = Webhook::start(&tenant.world.cluster, WebhookOptions::default()).await?;
        webhook.wait_ready().await?;
        webhook.wait_asked(&tenant.client).await?;
        // One of the nearest deadlines.
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 3_000})).await?;
        tenant.runs("job").await?;
        // One that is not released.
        tenant.create("held", RUNS, json!({"activeDeadlineSeconds": 8})).await?;
        tenant.has_job_set("held").await?;
        hold(&tenant.job_sets, "held").await?;
        tenant.fails_by_deadline("held").await?;

        let documented = metrics_page::read()?;
        let of_webhook = |name: &str| name.starts_with(WEBHOOK);
        let of_both = |name: &str| name.starts_with(PROCESS);
        until_ok("both show what the page says", PATIENCE, || async {
            for (program, wanted) in
                [(Exposition::of(&operator).await?, false), (Exposition::of(&webhook).await?, true)]
            {
                let mut documented = documented.clone();
                documented.retain(|name, _| of_both(name) || of_webhook(name) == wanted);
                let differences = differences(&program, &documented);
                ensure!(differences.is_empty(), "{differences:#?}");
            }
            Ok(())
        })
        .await?;
        let_go(&tenant.job_sets, "held").await?;
        unregister(&tenant.client).await?;
        Ok(())
    })
    .await
}

// Trap 15: counters, and the number of series.

/// How many of each kind of life there are.
const LIVES: usize = 20;

/// So many jobs of each kind of life; returns when all but those without a TTL are gone, and these released.
async fn live(tenant: &Tenant<'_>, prefix: &str, jobs: usize) -> Result<()> {
    let before = tenant.jobs.list(&ListParams::default()).await?.items.len();
    for (kind, runtime, spec) in [
        ("completes", COMPLETES, json!({"ttlSecondsAfterFinished": 1})),
        ("fails", FAILS, json!({"ttlSecondsAfterFinished": 0})),
        ("stopped", RUNS, json!({"activeDeadlineSeconds": 4, "ttlSecondsAfterFinished": 1})),
        ("stays", RUNS, json!({"activeDeadlineSeconds": 5})),
    ] {
        let create = |number| {
            let (name, spec) = (format!("{prefix}-{kind}-{number}"), spec.clone());
            async move { tenant.create(&name, runtime, spec).await }
        };
        try_join_all((0..jobs).map(create)).await?;
    }
    until_ok("all but those without a TTL are gone", PATIENCE * 2, || async {
        let left = tenant.jobs.list(&ListParams::default()).await?.items.len();
        ensure!(left == before + jobs, "{left} are left");
        Ok(())
    })
    .await?;
    for number in 0..jobs {
        tenant.released(&format!("{prefix}-stays-{number}")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn counters_are_the_sums_of_outcomes_and_jobs_leave_no_series_behind() -> Result<()> {
    test("counted", async |tenant, operator| {
        live(tenant, "first", 1).await?;
        let released = "trainjob_release_latency_seconds_count";
        let before = all_released(operator, 2).await?;
        live(tenant, "then", LIVES).await?;
        let after = all_released(operator, 2 + 2 * LIVES).await?;
        let risen =
            |series: &str| Ok::<_, anyhow::Error>(after.count(series)? - before.count(series)?);
        for (series, expected) in [
            (r#"trainjob_ttl_deletions_total{outcome="complete"}"#, LIVES),
            (r#"trainjob_ttl_deletions_total{outcome="failed"}"#, LIVES),
            (r#"trainjob_ttl_deletions_total{outcome="deadline_exceeded"}"#, LIVES),
            ("trainjob_ttl_deletion_latency_seconds_count", 3 * LIVES),
            (r#"trainjob_finished_total{outcome="complete",reason="AllJobsCompleted"}"#, LIVES),
            (r#"trainjob_finished_total{outcome="failed",reason="FailedJobs"}"#, LIVES),
            (
                r#"trainjob_finished_total{outcome="deadline_exceeded",reason="DeadlineExceeded"}"#,
                2 * LIVES,
            ),
            ("trainjob_deadline_exceeded_total", 2 * LIVES),
            ("trainjob_deadline_enforcement_latency_seconds_count", 2 * LIVES),
            (released, 2 * LIVES),
            (r#"trainjob_jobs{state="deadline_exceeded"}"#, LIVES),
        ] {
            let risen = risen(series)?;
            ensure!(risen == expected, "{series}: {risen}");
        }
        // How the API server may answer is on the page; this many requests may meet with more of it.
        let series = |shown: &Exposition| -> Vec<String> {
            let all = shown.samples.keys().cloned();
            all.filter(|series| !series.starts_with(REQUESTS)).collect()
        };
        ensure!(series(&before) == series(&after), "other series than before");
        let differences = differences(&after, &documented_of_requests()?);
        let about_requests = differences.iter().filter(|it| it.contains(REQUESTS));
        ensure!(about_requests.count() == 0, "{differences:#?}");
        Ok(())
    })
    .await
}

/// What is shown once so many releases are confirmed and nothing is left to do.
async fn all_released(operator: &Operator, jobs: usize) -> Result<Exposition> {
    until_ok("all releases are confirmed", PATIENCE, || async {
        let shown = Exposition::of(operator).await?;
        let released = shown.count("trainjob_release_latency_seconds_count")?;
        ensure!(released == jobs, "{released} are released");
        ensure!(shown.count("trainjob_operator_reconciles_in_progress")? == 0, "still at work");
        for (series, value) in &shown.samples {
            if ABOUT_NOW.iter().any(|part| series.contains(part)) {
                ensure!(value == "0", "{series}: {value}");
            }
        }
        Ok(shown)
    })
    .await
}

fn documented_of_requests() -> Result<BTreeMap<String, Documented>> {
    let mut documented = metrics_page::read()?;
    documented.retain(|name, _| name.starts_with(REQUESTS));
    Ok(documented)
}

// Trap 16: the permission to delete TrainJobs is missing.

#[tokio::test]
async fn missing_permission_to_delete_trainjobs_gives_an_event_and_a_metric() -> Result<()> {
    test("rbac", async |tenant, operator| {
        without_delete(tenant).await?;
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 1})).await?;
        let note = tenant.tells("job", "TTLDeletionFailed").await?;
        ensure!(note.contains("cannot delete resource \"trainjobs\""), "which permission: {note}");
        let shown = until_ok("it is overdue", PATIENCE, || async {
            let shown = Exposition::of(operator).await?;
            ensure!(shown.count("trainjob_ttl_overdue_longest_seconds")? >= 1, "it is not");
            Ok(shown)
        })
        .await?;
        ensure!(shown.count(r#"trainjob_ttl_deletion_failures_total{reason="forbidden"}"#)? >= 2);
        ensure!(shown.count("trainjob_ttl_overdue_deletions")? == 1);
        let requests =
            r#"trainjob_operator_api_requests_total{code="403",kind="TrainJob",verb="delete"}"#;
        ensure!(shown.count(requests)? >= 2);

        install_operator_rbac(&tenant.world.cluster, SYSTEM).await?;
        tenant.gone("job").await?;
        until_ok("it is shown as deleted", PATIENCE, || async {
            let shown = Exposition::of(operator).await?;
            ensure!(shown.count(r#"trainjob_ttl_deletions_total{outcome="complete"}"#)? == 1);
            ensure!(shown.count("trainjob_ttl_overdue_deletions")? == 0);
            Ok(())
        })
        .await?;
        let told = tenant.told("job", "TTLDeletionFailed").await?.len();
        ensure!(told == 1, "TTLDeletionFailed was told {told} times");
        Ok(())
    })
    .await
}

async fn without_delete(tenant: &Tenant<'_>) -> Result<()> {
    let api: Api<ClusterRole> = Api::all(tenant.client.clone());
    let name = format!("{SERVICE_ACCOUNT}-{SYSTEM}");
    let mut role = api.get(&name).await?;
    let allowed = role.rules.as_mut().context("a role without rules")?;
    for rule in allowed {
        if rule.resources.iter().flatten().any(|resource| resource == "trainjobs") {
            rule.verbs.retain(|verb| verb != "delete");
        }
    }
    let without = Patch::Merge(json!({"rules": role.rules}));
    api.patch(&name, &PatchParams::default(), &without).await?;
    Ok(())
}
