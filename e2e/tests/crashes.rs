//! Traps that take the end of an operator and the start of the next: each one is killed, never asked.
//!
//! Each test has a box to itself.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{
    conditions_of, created_at, deleted_at, finished_at, is_failed_by_deadline, now, time_until,
};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{
    COMPLETES, FAILS, LATE, Operation, PATIENCE, POOL, RUNS, SYSTEM, VANISHES, consistently,
};
use e2e::operator::{SERVICE_ACCOUNT, install_operator_rbac};
use e2e::until::{until, until_ok};
use futures::future::try_join_all;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::conditions::{self, COMPLETE, FAILED};

/// Time enough, in seconds, for a job to run and whatever else comes before its deadline.
const DEADLINE: i64 = 20;

/// Time enough, in seconds, to see that a job has finished before it is deleted.
const TTL: i64 = 10;

/// Runs a test in a box to itself, with an operator.
async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    let with_operator = async |tenant: &Tenant<'_>| {
        tenant.world.start_operator().await?;
        body(tenant).await
    };
    POOL.test(prefix, with_operator).await
}

/// Kills the operator and starts another.
async fn crash(tenant: &Tenant<'_>) -> Result<()> {
    tenant.world.kill_operator();
    tenant.world.start_operator().await?;
    Ok(())
}

#[tokio::test]
async fn an_operator_killed_between_the_failed_condition_and_the_deletion_releases_after_its_start()
-> Result<()> {
    test("half-way", async |tenant| {
        let denial = tenant.deny(Operation::Delete).await?;
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
        tenant.runs("job").await?;
        let failed = tenant.fails_by_deadline("job").await?;
        tenant.world.kill_operator();
        denial.lift().await?;
        ensure!(tenant.running_pods_of("job").await? == 1, "its Pod does not run any more");

        tenant.world.start_operator().await?;
        tenant.released("job").await?;
        let job = tenant.jobs.get("job").await?;
        ensure!(job.status == failed.status, "{:?} became {:?}", failed.status, job.status);
        let told = tenant.told("job", "DeadlineExceeded").await?.len();
        // Not at all, if the operator was killed before it could.
        ensure!(told <= 1, "DeadlineExceeded was told {told} times");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn missing_permission_to_delete_jobsets_is_reported_and_job_is_released_once_granted()
-> Result<()> {
    test("rbac", async |tenant| {
        let roles: Api<ClusterRole> = Api::all(tenant.client.clone());
        let name = format!("{SERVICE_ACCOUNT}-{SYSTEM}");
        let mut role = roles.get(&name).await?;
        for rule in role.rules.iter_mut().flatten() {
            if rule.resources.iter().flatten().any(|resource| resource == "jobsets") {
                rule.verbs.retain(|verb| verb != "delete");
            }
        }
        let without = Patch::Merge(json!({"rules": role.rules}));
        roles.patch(&name, &PatchParams::default(), &without).await?;

        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
        tenant.runs("job").await?;
        tenant.fails_by_deadline("job").await?;
        let note = tenant.tells("job", "ReleaseFailed").await?;
        ensure!(
            note.contains("cannot delete resource \"jobsets\""),
            "which permission it is: {note}"
        );
        ensure!(tenant.running_pods_of("job").await? == 1, "its Pod does not run any more");

        install_operator_rbac(&tenant.world.cluster, SYSTEM).await?;
        tenant.released("job").await?;
        let told = tenant.told("job", "ReleaseFailed").await?.len();
        ensure!(told == 1, "ReleaseFailed was told {told} times");
        Ok(())
    })
    .await
}

// Trap 2: the JobSet of a finished job disappears.

#[tokio::test]
async fn a_finished_job_keeps_its_end_and_gets_no_second_jobset_however_the_first_one_went()
-> Result<()> {
    test("gone", async |tenant| {
        let jobs = [
            ("complete", COMPLETES, json!({}), COMPLETE),
            ("failed", FAILS, json!({}), FAILED),
            ("stopped", RUNS, json!({"activeDeadlineSeconds": DEADLINE}), FAILED),
            ("vanished", VANISHES, json!({}), COMPLETE),
        ];
        let ended = jobs.map(async |(name, runtime, spec, end)| {
            tenant.create(name, runtime, spec).await?;
            // A deadline may pass before there is one.
            tenant.has_job_set(name).await?;
            tenant.becomes(name, end).await?;
            match name {
                // By its deadline, or by its own TTL.
                "stopped" | "vanished" => tenant.job_set_gone(name).await?,
                _ => tenant.delete_job_set(name).await?,
            }
            let job = tenant.poke(name, 100).await?;
            anyhow::Ok((name, conditions_of(&job).to_vec()))
        });
        let ended = try_join_all(ended).await?;
        let as_they_were = async || {
            for (name, end) in &ended {
                ensure!(tenant.job_sets.get_opt(name).await?.is_none(), "{name} runs again");
                let job = tenant.jobs.get(name).await?;
                let now = conditions_of(&job);
                ensure!(now == end, "{name}: it was {end:?}, it is {now:?}");
            }
            Ok(())
        };
        as_they_were().await?;
        crash(tenant).await?;
        try_join_all(ended.iter().map(|(name, _)| tenant.poke(name, 5))).await?;
        consistently("the jobs are as they were", Duration::from_secs(4), as_they_were).await?;

        for (name, end) in &ended {
            let made = creations(tenant, name)?;
            ensure!(made == 1, "{name}: {made} JobSets were made");
            let writes = tenant.requests("patch", "trainjobs", name)?;
            let writes = writes.iter().filter(|request| request.code() == 200).count();
            ensure!(writes <= 6, "{name}: {writes} status writes for {end:?}");
        }
        Ok(())
    })
    .await
}

/// How many JobSets of this name the operator has made.
fn creations(tenant: &Tenant<'_>, name: &str) -> Result<usize> {
    // In a creation the name is part of what is sent, which is noted by name all the same.
    let made = tenant.requests("create", "jobsets", name)?;
    Ok(made.iter().filter(|request| request.code() == 201).count())
}

// Trap 3: success and deadline are seen in the same pass.

#[tokio::test]
async fn a_job_that_completed_before_its_deadline_is_complete_even_if_both_are_seen_late()
-> Result<()> {
    test("photo-finish", async |tenant| {
        let spec = json!({"activeDeadlineSeconds": DEADLINE});
        let job = tenant.create("job", COMPLETES, spec).await?;
        tenant.has_job_set("job").await?;
        tenant.world.kill_operator();
        let completed_at = until_ok("its JobSet completes", PATIENCE, || async {
            let job_set = tenant.job_sets.get("job").await?;
            let conditions = job_set.data.pointer("/status/conditions").and_then(Value::as_array);
            let completed = conditions.into_iter().flatten().find(|it| it["type"] == "Completed");
            let at = completed.context("not yet")?["lastTransitionTime"].clone();
            Ok(at.as_str().context("no time")?.to_owned())
        })
        .await?;
        let due = created_at(&job).plus(DEADLINE);
        consistently(
            "nobody looks while the deadline passes",
            time_until(due.plus(1)),
            async || {
                ensure!(conditions_of(&tenant.jobs.get("job").await?).is_empty(), "it has an end");
                Ok(())
            },
        )
        .await?;

        tenant.world.start_operator().await?;
        let job = tenant.becomes("job", COMPLETE).await?;
        let at = finished_at(&job)?.to_string();
        ensure!(at == completed_at, "it finished at {at}, its JobSet at {completed_at}");
        consistently(
            "it stays Complete, and its JobSet stays",
            Duration::from_secs(3),
            async || {
                let job = tenant.jobs.get("job").await?;
                let failed = conditions::find(conditions_of(&job), FAILED);
                ensure!(failed.is_none(), "it is also {failed:?}");
                ensure!(tenant.job_sets.get_opt("job").await?.is_some(), "its JobSet is gone");
                Ok(())
            },
        )
        .await?;
        let told = tenant.told("job", "DeadlineExceeded").await?.len();
        ensure!(told == 0, "DeadlineExceeded was told {told} times");
        Ok(())
    })
    .await
}

// What comes due while no operator runs is done at the next start (lifecycle §2.6, §5).

#[tokio::test]
async fn a_deadline_and_a_ttl_that_pass_while_no_operator_runs_are_acted_on_at_its_start()
-> Result<()> {
    test("overslept", async |tenant| {
        let deadline = json!({"activeDeadlineSeconds": DEADLINE});
        let stopped = tenant.create("stopped", RUNS, deadline).await?;
        tenant.create("expired", COMPLETES, json!({"ttlSecondsAfterFinished": TTL})).await?;
        tenant.runs("stopped").await?;
        let expired = tenant.becomes("expired", COMPLETE).await?;
        tenant.world.kill_operator();
        let due = created_at(&stopped).plus(DEADLINE).max(finished_at(&expired)?.plus(TTL));
        consistently("nobody acts", time_until(due.plus(1)), async || {
            ensure!(finished_at(&tenant.jobs.get("stopped").await?).is_err(), "it was stopped");
            ensure!(deleted_at(&tenant.jobs.get("expired").await?).is_none(), "it was deleted");
            Ok(())
        })
        .await?;

        tenant.world.start_operator().await?;
        let ready = now();
        tenant.gone("expired").await?;
        let job = tenant.becomes("stopped", FAILED).await?;
        ensure!(is_failed_by_deadline(&job), "{:?}", conditions_of(&job));
        let at = finished_at(&job)?;
        ensure!(at >= due, "it was due at {due} and stopped early, at {at}");
        // How long a program takes to start is no question of this test.
        ensure!(at.since(ready) <= LATE, "the operator was ready at {ready}, and acted at {at}");
        tenant.released("stopped").await
    })
    .await
}

#[tokio::test]
async fn an_operator_killed_while_it_makes_a_job_goes_on_after_its_start_and_makes_it_once()
-> Result<()> {
    test("unmade", async |tenant| {
        let denial = tenant.deny(Operation::Create).await?;
        let job = tenant.create("job", RUNS, json!({})).await?;
        let snapshot = until("the snapshot is made", PATIENCE, || async {
            tenant.config_maps.get_opt("job-runtime-snapshot").await.ok()?
        })
        .await?;
        tenant.tells("job", "TrainJobResourcesCreationFailed").await?;
        tenant.world.kill_operator();
        denial.lift().await?;

        tenant.world.start_operator().await?;
        let job_set = tenant.has_job_set("job").await?;
        tenant.runs("job").await?;
        crash(tenant).await?;
        tenant.poke("job", 5).await?;
        consistently("there is one of each, as it was", Duration::from_secs(3), async || {
            let now = tenant.job_sets.get("job").await?;
            ensure!(now.uid() == job_set.uid(), "its JobSet was made anew");
            let now = tenant.config_maps.get("job-runtime-snapshot").await?;
            ensure!(now == snapshot, "the snapshot has changed");
            Ok(())
        })
        .await?;
        ensure!(creations(tenant, "job")? == 1, "more than one JobSet was made");
        ensure!(tenant.jobs.get("job").await?.uid() == job.uid(), "another job");
        Ok(())
    })
    .await
}
