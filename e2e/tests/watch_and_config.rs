//! Runtimes that appear later, and what the configuration changes.
//!
//! One box for all, and one test at a time, each with an operator of its own configuration.

use anyhow::{Context, Result, ensure};
use e2e::cluster::Options;
use e2e::fixtures::tenant::{
    Tenant, conditions_of, created_at, deleted_at, finished_at, hold, let_go, now, on_time,
    time_until,
};
use e2e::fixtures::{COMPLETES, LATE, PATIENCE, RUNS, World, runtime, stays};
use e2e::until::until_ok;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};
use trainjob_api::TrainJob;
use trainjob_api::conditions::{self, COMPLETE, FAILED, SUSPENDED};
use trainjob_api::time::Timestamp;

/// Runs a test with an operator of this configuration, given as the fields of its section
/// `lifecycle`.
async fn test(
    prefix: &str,
    lifecycle: Value,
    story: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>,
) -> Result<()> {
    static ALONE: OnceCell<Mutex<World>> = OnceCell::const_new();
    let start = || async {
        anyhow::Ok(Mutex::new(Box::pin(World::without_operator(Options::default())).await?))
    };
    let world = ALONE.get_or_try_init(start).await?.lock().await;
    world.start_operator_with(&json!({"lifecycle": lifecycle}).to_string()).await?;
    let outcome = world.test(prefix, story).await;
    world.stop_operator().await?;
    outcome
}

#[tokio::test]
async fn a_job_whose_runtime_appears_later_starts_at_once() -> Result<()> {
    test("later", json!({}), async |tenant| {
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
            let waiting = tenant.becomes(job, "Waiting").await?;
            let why = conditions::find_true(conditions_of(&waiting), "Waiting").context("no")?;
            ensure!(why.reason == "RuntimeNotFound", "{job}: {}", why.reason);
            let told = tenant.tells(job, "TrainJobResourcesCreationFailed").await?;
            ensure!(told.contains(&name), "{job}: {told}");

            let known = tenant.requests_after(0)?.len();
            let mut later = runtime(&name, &json!({}), 3, None);
            later["kind"] = json!(kind);
            let asked = now();
            tenant.world.cluster.apply_yaml(&tenant.namespace, &later.to_string()).await?;
            let job_set = tenant.has_job_set(job).await?;
            let made = job_set.creation_timestamp().as_ref().map(Timestamp::from);
            ensure!(made.is_some_and(|at| at.since(asked) <= LATE), "{job}: made at {made:?}");
            tenant.runs(job).await?;
            let other = if job == "namespaced" { "cluster-wide" } else { "namespaced" };
            let requests = tenant.requests_after(known)?;
            let of_other = requests.iter().filter(|it| it.object.name == other);
            ensure!(of_other.filter(|it| it.verb == "create").count() == 0, "{requests:#?}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn by_default_the_time_a_job_is_suspended_counts_for_its_deadline() -> Result<()> {
    test("creation", json!({}), async |tenant| {
        let spec = json!({"suspend": true, "activeDeadlineSeconds": 4});
        tenant.create("job", RUNS, spec).await?;
        tenant.fails_by_deadline("job").await?;
        tenant.released("job").await
    })
    .await
}

#[tokio::test]
async fn the_clock_of_the_last_resume_stands_still_while_a_job_is_suspended() -> Result<()> {
    test("resume", json!({"deadlineClock": "LastResume"}), async |tenant| {
        let spec = json!({"suspend": true, "activeDeadlineSeconds": 4});
        let job = tenant.create("job", RUNS, spec).await?;
        let due = created_at(&job).plus(4);
        stays("the suspended job is not stopped", time_until(due.plus(3)), async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(finished_at(&job).is_err(), "{:?}", conditions_of(&job));
            Ok(())
        })
        .await?;
        tenant.patch("job", &json!({"spec": {"suspend": false}})).await?;
        tenant.runs("job").await?;
        let job = tenant.becomes("job", FAILED).await?;
        let resumed = conditions::find(conditions_of(&job), SUSPENDED).context("no Suspended")?;
        let due = Timestamp::from(&resumed.last_transition_time).plus(4);
        on_time(due, finished_at(&job)?)?;
        tenant.released("job").await
    })
    .await
}

/// A job of MultiKueue's that finished long ago, with a TTL and a deadline of one second.
async fn of_multikueue(tenant: &Tenant<'_>) -> Result<TrainJob> {
    let spec = json!({
        "managedBy": "kueue.x-k8s.io/multikueue",
        "activeDeadlineSeconds": 1,
        "ttlSecondsAfterFinished": 1,
    });
    tenant.create("unfinished", RUNS, spec.clone()).await?;
    tenant.create("finished", RUNS, spec).await?;
    let complete = json!({"status": {"conditions": [{
        "type": COMPLETE, "status": "True", "reason": "Mirrored", "message": "",
        "lastTransitionTime": now().to_string(),
    }]}});
    let how = PatchParams::default();
    Ok(tenant.jobs.patch_status("finished", &how, &Patch::Merge(complete)).await?)
}

#[tokio::test]
async fn a_job_that_somebody_else_manages_is_never_touched() -> Result<()> {
    test("elsewhere", json!({}), async |tenant| {
        let finished = of_multikueue(tenant).await?;
        let unfinished = tenant.jobs.get("unfinished").await?;
        let due = finished_at(&finished)?.plus(1);
        stays("both are left alone", time_until(due.plus(LATE)), async || {
            for job in [&finished, &unfinished] {
                let now = tenant.jobs.get(&job.name_any()).await?;
                ensure!(now == *job, "{:?}", now.status);
            }
            Ok(())
        })
        .await?;
        let requests = tenant.requests_after(0)?;
        ensure!(requests.is_empty(), "the operator asked for {requests:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn by_configuration_the_ttl_and_never_the_deadline_applies_to_jobs_managed_by_others()
-> Result<()> {
    test("theirs", json!({"ttlForManagedElsewhere": true}), async |tenant| {
        let finished = of_multikueue(tenant).await?;
        let due = finished_at(&finished)?.plus(1);
        tenant.gone("finished").await?;
        on_time(due, now())?;
        let job = tenant.jobs.get("unfinished").await?;
        let due = created_at(&job).plus(1);
        stays("the unfinished one is left alone", time_until(due.plus(4)), async || {
            ensure!(tenant.jobs.get("unfinished").await? == job, "it has changed");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_deleted_job_stays_visible_until_its_dependents_are_gone_or_not_as_configured()
-> Result<()> {
    for (propagation, stays_visible) in [("Foreground", true), ("Background", false)] {
        let lifecycle = json!({"deletionPropagation": propagation});
        test("propagation", lifecycle, async |tenant| {
            tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 2})).await?;
            let job = tenant.completes("job").await?;
            hold(&tenant.job_sets, "job").await?;
            until_ok("its deletion is asked for", PATIENCE, || async {
                let job = tenant.jobs.get_opt("job").await?;
                ensure!(job.is_none_or(|job| deleted_at(&job).is_some()), "not yet");
                Ok(())
            })
            .await?;
            on_time(finished_at(&job)?.plus(2), now())?;
            if stays_visible {
                let job = tenant.jobs.get_opt("job").await?;
                ensure!(job.is_some(), "it went before its JobSet");
            } else {
                tenant.gone("job").await?;
            }
            ensure!(tenant.job_sets.get_opt("job").await?.is_some(), "its JobSet is gone");
            let_go(&tenant.job_sets, "job").await?;
            tenant.gone("job").await?;
            tenant.job_set_gone("job").await?;
            let requests = tenant.requests("delete", "trainjobs", "job")?;
            let asked: Vec<_> = requests.iter().map(|it| &it.sent["propagationPolicy"]).collect();
            ensure!(asked == [propagation], "{asked:?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}
