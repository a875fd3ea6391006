//! Runtimes that appear later, and what the configuration changes.
//!
//! All tests share one box and one operator, in which every setting of `lifecycle` that the operator
//! heeds is other than its default; what the defaults do is in `lifecycle`.

use anyhow::{Context, Result, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::shared::Shared;
use e2e::fixtures::status::{conditions_of, created_at, finished_at, now, on_time, time_until};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, LATE, POOL, PooledBox, RUNS, consistently, runtime};
use k8s_openapi::jiff;
use kube::ResourceExt as _;
use serde_json::json;
use trainjob_api::conditions::{self, COMPLETE, FAILED, SUSPENDED};
use trainjob_api::time::Timestamp;

const CONFIGURATION: &str = "
lifecycle:
  deadlineClock: LastResume
  deletionPropagation: Background
  ttlForManagedElsewhere: true
";

async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    static SHARED: Shared<PooledBox> = Shared::new();
    let world = SHARED
        .get(async || {
            let world = POOL.take().await?;
            world.start_operator_with(CONFIGURATION).await?;
            Ok(world)
        })
        .await?;
    world.test(prefix, body).await
}

/// Waits until a job is gone, and sees that this was asked for when it was `due`.
async fn goes(tenant: &Tenant<'_>, name: &str, due: Timestamp) -> Result<()> {
    tenant.gone(name).await?;
    on_time(due, Timestamp(tenant.deletion(name).await?.at.0.as_second()))
}

#[tokio::test]
async fn a_job_whose_runtime_appears_later_starts_at_once() -> Result<()> {
    test("later", async |tenant| {
        let name = format!("{}-later", tenant.namespace);
        tenant.create("cluster-wide", &name, json!({})).await?;
        let namespaced = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "namespaced"},
            "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": name}},
        });
        tenant.world.cluster.apply_yaml(&tenant.namespace, &namespaced.to_string()).await?;
        for (job, kind) in
            [("cluster-wide", "ClusterTrainingRuntime"), ("namespaced", "TrainingRuntime")]
        {
            tenant.waits_because(job, "RuntimeNotFound").await?;
            let told = tenant.tells(job, "TrainJobResourcesCreationFailed").await?;
            ensure!(told.contains(&name), "{job}: {told}");

            let since = jiff::Timestamp::now();
            let mut later = runtime(&name, &json!({}), 3, None);
            later["kind"] = json!(kind);
            let asked = now();
            tenant.world.cluster.apply_yaml(&tenant.namespace, &later.to_string()).await?;
            let job_set = tenant.has_job_set(job).await?;
            let made = job_set.creation_timestamp().as_ref().map(Timestamp::from);
            ensure!(made.is_some_and(|at| at.since(asked) <= LATE), "{job}: made at {made:?}");
            tenant.runs(job).await?;
            let other = if job == "namespaced" { "cluster-wide" } else { "namespaced" };
            let requests = tenant.requests_since(since)?;
            let of_other = requests.iter().filter(|it| it.object.name == other);
            ensure!(of_other.filter(|it| it.verb == "create").count() == 0, "{requests:#?}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_clock_of_the_last_resume_stands_still_while_a_job_is_suspended() -> Result<()> {
    test("resume", async |tenant| {
        let spec = json!({"suspend": true, "activeDeadlineSeconds": 4});
        let job = tenant.create("job", RUNS, spec).await?;
        let due = created_at(&job).plus(4);
        consistently("the suspended job is not stopped", time_until(due.plus(3)), async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(finished_at(&job).is_err(), "{:?}", conditions_of(&job));
            Ok(())
        })
        .await?;
        tenant.patch("job", &json!({"spec": {"suspend": false}})).await?;
        let job = tenant.becomes("job", FAILED).await?;
        let resumed = conditions::find(conditions_of(&job), SUSPENDED).context("no Suspended")?;
        let due = Timestamp::from(&resumed.last_transition_time).plus(4);
        on_time(due, finished_at(&job)?)?;
        tenant.released("job").await
    })
    .await
}

#[tokio::test]
async fn by_configuration_the_ttl_and_never_the_deadline_applies_to_jobs_managed_by_others()
-> Result<()> {
    test("theirs", async |tenant| {
        let (finished, job) = tenant.create_elsewhere().await?;
        goes(tenant, "finished", finished_at(&finished)?.plus(1)).await?;
        let due = created_at(&job).plus(1);
        consistently("the unfinished one is left alone", time_until(due.plus(4)), async || {
            ensure!(tenant.jobs.get("unfinished").await? == job, "it has changed");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn by_configuration_a_job_that_its_ttl_deletes_goes_before_its_dependents() -> Result<()> {
    test("background", async |tenant| {
        // Long enough to see the end before it has passed.
        const TTL: i64 = 8;
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": TTL})).await?;
        tenant.has_job_set("job").await?;
        hold(&tenant.job_sets, "job").await?;
        let job = tenant.becomes("job", COMPLETE).await?;
        goes(tenant, "job", finished_at(&job)?.plus(TTL)).await?;
        ensure!(tenant.job_sets.get_opt("job").await?.is_some(), "its JobSet went first");
        let_go(&tenant.job_sets, "job").await?;
        tenant.job_set_gone("job").await
    })
    .await
}

/// Its deadline comes due while the creation of its JobSet waits for its turn.
#[tokio::test]
async fn what_waits_for_the_configured_rate_is_not_made_after_the_deadline() -> Result<()> {
    let world = POOL.take().await?;
    world.start_operator_with("clientConnection: {qps: 0.1, burst: 1}").await?;
    let body = async |tenant: &Tenant<'_>| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 5})).await?;
        tenant.fails_by_deadline("job").await?;
        let requests = tenant.world.requests(&tenant.namespace)?;
        let made =
            requests.iter().find(|it| it.verb == "create" && it.object.resource == "jobsets");
        ensure!(made.is_none(), "{requests:#?}");
        Ok(())
    };
    world.test("rate", body).await
}
