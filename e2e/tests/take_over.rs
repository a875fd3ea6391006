//! What an operator does that begins to work where another has ended: as little as it can (`docs/semantics.md`, 6).
//!
//! Each test has a box to itself.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{PATIENCE, POOL, RUNS, Request, consistently};
use e2e::proxy::{Call, Fault, Proxy, Scope};
use e2e::until::until_ok;
use futures::future::try_join_all;
use k8s_openapi::jiff;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::conditions::{self, SUSPENDED};

/// Jobs that are suspended when the operator is killed.
const JOBS: usize = 12;
/// What the log says when an operator works on all TrainJobs.
const WORKS: &str = "working on TrainJobs";
/// Longer than an operator takes to look at all of them.
const WINDOW: Duration = Duration::from_secs(3);

fn name(number: usize) -> String {
    format!("job-{number}")
}

/// Patches of a TrainJob that label its Pods.
fn labelled(value: &str) -> Value {
    let pod = json!({"metadata": {"labels": {"edition": value}}});
    let job = json!({"name": "node", "template": {"spec": {"template": pod}}});
    let patch = json!({"template": {"spec": {"replicatedJobs": [job]}}});
    let patch = json!({"manager": "e2e.trainjob.dev/test", "trainingRuntimeSpec": patch});
    json!({"spec": {"runtimePatches": [patch]}})
}

/// Waits until the JobSet of a job labels its Pods so.
async fn follows(tenant: &Tenant<'_>, job: &str, value: &str) -> Result<()> {
    const LABEL: &str = "/spec/replicatedJobs/0/template/spec/template/metadata/labels/edition";
    until_ok(format!("the JobSet of {job} follows"), PATIENCE, || async {
        let job_set = tenant.has_job_set(job).await?;
        let label = job_set.data.pointer(LABEL);
        ensure!(label == Some(&json!(value)), "its Pods are labelled {label:?}");
        Ok(())
    })
    .await
}

/// What the operator has asked for about suspended jobs and what belongs to them, since this instant.
fn about_jobs(tenant: &Tenant<'_>, since: jiff::Timestamp) -> Result<Vec<Request>> {
    let requests = tenant.requests_since(since)?;
    Ok(requests.into_iter().filter(|it| it.object.name.starts_with("job-")).collect())
}

/// Waits until a suspended job counts its Job as suspended: then JobSet has said of it what there is to say.
async fn is_counted(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok(format!("{job} counts its Job"), PATIENCE, || async {
        let status = tenant.jobs.get(job).await?.status;
        let counts = status.and_then(|status| status.jobs_status).unwrap_or_default();
        ensure!(matches!(counts.as_slice(), [it] if it.suspended == 1), "{counts:?}");
        Ok(())
    })
    .await
}

/// Waits until the operator has asked for nothing for a while: what JobSet says of its own has been passed on.
async fn at_rest(tenant: &Tenant<'_>) -> Result<()> {
    let asked = || anyhow::Ok(tenant.world.requests(&tenant.namespace)?.len());
    until_ok("the operator is at rest", PATIENCE, || async {
        let known = asked()?;
        consistently("it asks for nothing", WINDOW, async || {
            ensure!(asked()? == known, "it asks");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn suspended_jobs_cost_no_request_at_a_restart_and_are_compared_before_they_are_resumed()
-> Result<()> {
    POOL.test("take-over", async |tenant| {
        tenant.world.start_operator().await?;
        try_join_all((0..JOBS).map(|number| async move {
            tenant.create(&name(number), RUNS, json!({"suspend": true})).await?;
            tenant.has_job_set(&name(number)).await?;
            tenant.becomes(&name(number), SUSPENDED).await?;
            is_counted(tenant, &name(number)).await
        }))
        .await?;
        at_rest(tenant).await?;
        tenant.world.kill_operator();
        // Nobody sees these edits.
        tenant.patch("job-0", &labelled("unseen")).await?;
        tenant.patch("job-1", &labelled("unseen")).await?;
        let since = jiff::Timestamp::now();

        tenant.world.start_operator().await?;
        tenant.create("new", RUNS, json!({})).await?;
        tenant.has_job_set("new").await?;
        consistently("nothing is asked about them", WINDOW, async || {
            let asked = about_jobs(tenant, since)?;
            ensure!(asked.is_empty(), "{asked:?}");
            Ok(())
        })
        .await?;

        // One that changes is compared, and what it missed is made up for.
        tenant.patch("job-0", &json!({"metadata": {"labels": {"touched": "yes"}}})).await?;
        follows(tenant, "job-0", "unseen").await?;
        tenant.patch("job-2", &labelled("seen")).await?;
        follows(tenant, "job-2", "seen").await?;
        // The others are compared when they are resumed.
        tenant.patch("job-1", &json!({"spec": {"suspend": false}})).await?;
        let pod = tenant.runs("job-1").await?;
        let edition = pod.labels().get("edition").map(String::as_str);
        ensure!(edition == Some("unseen"), "it runs as {edition:?}");
        let job = tenant.jobs.get("job-1").await?;
        let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
        let suspended = conditions::find_true(&conditions, SUSPENDED);
        ensure!(suspended.is_none(), "it says that it is suspended");

        let changed = ["job-0", "job-1", "job-2"];
        let asked = about_jobs(tenant, since)?;
        let mut untouched = asked.iter().filter(|it| {
            !changed
                .iter()
                .any(|job| it.object.name == *job || it.object.name.starts_with(&format!("{job}-")))
        });
        ensure!(untouched.next().is_none(), "{asked:?}");
        Ok(())
    })
    .await
}

/// A TrainJob of which this much is stored, as if an operator had been here before: its spec, and how it ended.
async fn stored(
    tenant: &Tenant<'_>,
    name: &str,
    spec: Value,
    end: Option<(&str, &str)>,
) -> Result<()> {
    tenant.create(name, RUNS, spec).await?;
    if let Some((kind, reason)) = end {
        let at = "2026-01-01T00:00:00Z";
        let end = json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": at});
        let status = Patch::Merge(json!({"status": {"conditions": [end]}}));
        tenant.jobs.patch_status(name, &PatchParams::default(), &status).await?;
    }
    Ok(())
}

#[tokio::test]
async fn ttl_deletes_its_job_while_other_kinds_are_still_listed_and_nothing_else_is_done()
-> Result<()> {
    // Its own: every JobSet is hidden.
    let world = POOL.take().await?;
    let run = async |tenant: &Tenant<'_>| {
        let ttl = json!({"ttlSecondsAfterFinished": 60});
        stored(tenant, "expired", ttl.clone(), Some(("Complete", "AllJobsCompleted"))).await?;
        stored(tenant, "stopped", ttl, Some(("Failed", "DeadlineExceeded"))).await?;
        stored(tenant, "overdue", json!({"activeDeadlineSeconds": 1}), None).await?;
        stored(tenant, "new", json!({}), None).await?;
        let proxy = Proxy::start(&world.cluster, Scope::Cluster).await?;
        let lists = |call: &Call| call.verb == "list" && call.resource == "jobsets";
        let broken = Fault::Answer { status: 500, retry_after: None };
        let broken = proxy.inject(lists, 1..=usize::MAX, broken);
        let election = "leaderElection: {leaderElect: true, resourceNamespace: kubeflow-system}";
        let operator = world.launch_operator_through(&proxy, election).await?;
        tenant.gone("expired").await?;
        consistently("nothing else is done", WINDOW, async || {
            let others = |call: &Call| ["stopped", "overdue", "new"].contains(&&*call.name);
            ensure!(proxy.count(others) == 0, "{:#?}", proxy.requests());
            Ok(())
        })
        .await?;
        ensure!(!operator.log()?.contains(WORKS), "it works on all without having listed JobSets");

        broken.remove();
        operator.wait_ready().await?;
        // Late, because JobSets were hidden for so long.
        tenant.becomes("overdue", conditions::FAILED).await?;
        tenant.tells("overdue", "DeadlineExceeded").await?;
        tenant.runs("new").await?;
        ensure!(operator.log()?.contains(WORKS), "it does not say so");
        tenant.gone("stopped").await?;
        world.stop_operator().await
    };
    world.test("unlisted", run).await
}
