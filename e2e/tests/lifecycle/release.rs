//! What a deadline stops is stopped until it is released, whatever is in the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::status::{deleted_at, finished_at, is_failed_by_deadline, now};
use e2e::fixtures::{Operation, PATIENCE, RUNS, STUBBORN, Verdict, consistently};
use e2e::until::{until, until_ok};
use futures::future;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{WINDOW, orphan, test};

/// The deadline of jobs that have their JobSet, or run, before it comes.
const DEADLINE: i64 = 10;

// Trap 1: the deadline's deletion of the JobSet fails.

#[tokio::test]
async fn a_jobset_deletion_denied_by_admission_is_retried_until_the_job_is_released() -> Result<()>
{
    test("denied", async |tenant| {
        let denial = tenant.deny(Operation::Delete).await?;
        let spec = json!({"activeDeadlineSeconds": DEADLINE, "ttlSecondsAfterFinished": 0});
        tenant.create("job", RUNS, spec).await?;
        tenant.runs("job").await?;
        tenant.fails_by_deadline("job").await?;
        tenant.tells("job", "DeadlineExceeded").await?;
        let note = tenant.tells("job", "ReleaseFailed").await?;
        ensure!(note.contains("denied by a test"), "the event does not say why: {note}");

        consistently("the unreleased job outlives its TTL", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(deleted_at(&job).is_none(), "it is being deleted");
            ensure!(tenant.running_pods_of("job").await? == 1, "its Pod does not run");
            let told = tenant.told("job", "ReleaseFailed").await?.len();
            ensure!(told == 1, "the same failure was told {told} times");
            Ok(())
        })
        .await?;

        denial.lift().await?;
        tenant.gone("job").await?;
        tenant.released("job").await?;
        let tries = tenant.requests("delete", "jobsets", "job")?;
        ensure!((3..40).contains(&tries.len()), "{} tries in about ten seconds", tries.len());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_jobset_deletion_refused_with_whatever_code_is_tried_again_until_it_succeeds()
-> Result<()> {
    test("refused", async |tenant| {
        // Each is refused a few times, with the code its name ends in.
        let webhook = tenant
            .test_webhook(10, |name, time| match name.rsplit('-').next().map(str::parse) {
                Some(Ok(code)) if time <= 4 => Verdict::Refuse(code),
                _ => Verdict::Allow,
            })
            .await?;
        let names = ["by-403", "by-409", "by-422", "by-429", "by-500", "by-503", "by-504"];
        future::try_join_all(names.map(async |name| {
            tenant.create(name, RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
            tenant.has_job_set(name).await?;
            tenant.fails_by_deadline(name).await?;
            tenant.released(name).await?;
            // One that was let through may still be about a JobSet that has changed meanwhile.
            let tries = tenant.requests("delete", "jobsets", name)?;
            let refused = if name == "by-409" { 4 } else { 0 };
            let conflicts = tries.iter().filter(|call| call.code() == 409).count();
            // The audit log need not have a 409 for a refusal that came after the operator had given up.
            let outdated = conflicts.saturating_sub(refused);
            let asked = webhook.asked(name);
            // On a busy machine, one that was let through may fail for another reason.
            ensure!(
                (5..=7).contains(&asked.saturating_sub(outdated)),
                "{name}: {asked} tries, where the fifth was let through"
            );
            ensure!(is_failed_by_deadline(&tenant.jobs.get(name).await?), "{name} has changed");
            anyhow::Ok(())
        }))
        .await?;
        for name in ["by-403", "by-409", "by-422", "by-500", "by-503", "by-504"] {
            let told = tenant.told(name, "ReleaseFailed").await?.len();
            ensure!(told == 1, "{name}: told {told} times");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_jobset_deletion_behind_a_dead_webhook_is_retried_until_the_job_is_released() -> Result<()>
{
    test("dead", async |tenant| {
        let webhook = tenant.dead_webhook().await?;
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
        tenant.runs("job").await?;
        tenant.fails_by_deadline("job").await?;
        let note = tenant.tells("job", "ReleaseFailed").await?;
        ensure!(note.contains("webhook.e2e.trainjob.dev"), "which webhook it was: {note}");
        ensure!(tenant.running_pods_of("job").await? == 1, "its Pod does not run");
        tenant.remove_webhook(webhook).await?;
        tenant.released("job").await
    })
    .await
}

#[tokio::test]
async fn a_jobset_deletion_that_gets_no_answer_is_given_up_and_tried_again() -> Result<()> {
    test("hanging", async |tenant| {
        // Longer than the operator waits for any answer; the API server would wait on.
        let seconds = 30;
        let hang_once = |_: &str, time| if time == 1 { Verdict::Hang } else { Verdict::Allow };
        let webhook = tenant.test_webhook(seconds, hang_once).await?;
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
        tenant.has_job_set("job").await?;
        let job = tenant.fails_by_deadline("job").await?;
        until("the operator was left waiting", PATIENCE, || async {
            (webhook.asked("job") == 1).then_some(())
        })
        .await?;
        tenant.released("job").await?;
        ensure!(webhook.asked("job") == 2, "asked {} times", webhook.asked("job"));
        let took = now().since(finished_at(&job)?);
        ensure!(took < i64::from(seconds), "released only when the API server gave up: {took} s");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_webhook_that_times_out_does_not_keep_a_job_from_its_release() -> Result<()> {
    test("slow", async |tenant| {
        let answers = Arc::new(AtomicBool::new(false));
        let does_answer = Arc::clone(&answers);
        let judge = move |_: &str, _| {
            if does_answer.load(Ordering::SeqCst) { Verdict::Allow } else { Verdict::Hang }
        };
        let webhook = tenant.test_webhook(1, judge).await?;
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
        tenant.has_job_set("job").await?;
        tenant.fails_by_deadline("job").await?;
        tenant.tells("job", "ReleaseFailed").await?;
        let event = tenant.told("job", "ReleaseFailed").await?.pop().context("not told")?;
        // In whole seconds, and each try takes one.
        let told_at = event.metadata.creation_timestamp.context("never created")?.0;
        // The webhook is served by this thread, which may count later than the API server tries.
        until_ok("the tries before are noted", PATIENCE, || async {
            let mut tries = tenant.requests("delete", "jobsets", "job")?;
            tries.retain(|it| it.at.0 <= told_at);
            ensure!(tries.len() >= 3, "told after {} tries", tries.len());
            Ok(())
        })
        .await?;
        let hung = webhook.asked("job");
        answers.store(true, Ordering::SeqCst);
        tenant.released("job").await?;
        ensure!(webhook.asked("job") > hung, "what hung was called a success");
        let told = tenant.told("job", "ReleaseFailed").await?.len();
        ensure!(told == 1, "told {told} times");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_others_change_all_the_time_is_still_stopped_by_its_deadline() -> Result<()> {
    test("busy", async |tenant| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
        tenant.has_job_set("job").await?;
        let adversary = async {
            for change in 0_u64.. {
                let labels = json!({"metadata": {"labels": {"change": change.to_string()}}});
                let (how, patch) = (PatchParams::default(), Patch::Merge(&labels));
                let (job, job_set) = tokio::join!(
                    tenant.patch("job", &labels),
                    tenant.job_sets.patch("job", &how, &patch),
                );
                job?;
                // It may be gone.
                job_set.ok();
            }
            anyhow::Ok(())
        };
        let end = async {
            tenant.fails_by_deadline("job").await?;
            tenant.released("job").await
        };
        tokio::select! {
            outcome = adversary => outcome.context("the adversary gave up"),
            outcome = end => outcome,
        }?;
        let writes = tenant.requests("patch", "trainjobs", "job")?;
        let conflicts = writes.iter().filter(|write| write.code() == 409).count();
        let stored = writes.iter().filter(|write| write.code() == 200).count();
        ensure!(stored <= 20, "{stored} status writes, and {conflicts} conflicts");
        Ok(())
    })
    .await
}

// Trap 17: the JobSet is gone and its Pods are not.

#[tokio::test]
async fn a_job_whose_jobset_went_before_its_pods_is_not_called_released_while_one_runs()
-> Result<()> {
    test("orphans", async |tenant| {
        let spec = json!({"activeDeadlineSeconds": DEADLINE, "ttlSecondsAfterFinished": 1});
        tenant.create("job", STUBBORN, spec).await?;
        tenant.runs("job").await?;
        let job = tenant.fails_by_deadline("job").await?;
        orphan(tenant, "job").await?;
        ensure!(tenant.running_pods_of("job").await? == 1, "the Pod went too fast for this test");
        let last_seen = until("the Pod is gone", PATIENCE, || async {
            let kept = tenant.jobs.get_opt("job").await.ok()?.map(|job| deleted_at(&job));
            match (tenant.running_pods_of("job").await.ok()?, kept) {
                (0, _) => Some(Ok(now())),
                (_, Some(None)) => None,
                // It runs, and ran when the job was looked at.
                _ => Some(Err(anyhow!("the job was deleted while its Pod ran"))),
            }
        })
        .await??;
        ensure!(last_seen.since(finished_at(&job)?) > 2, "the Pod went before the TTL had passed");
        tenant.gone("job").await
    })
    .await
}

// Trap 18: a job that is kept by somebody's finalizer while its Pods run.

#[tokio::test]
async fn a_job_that_a_finalizer_keeps_is_still_stopped_by_its_deadline_and_released() -> Result<()>
{
    test("undead", async |tenant| {
        let spec = json!({"activeDeadlineSeconds": 15, "ttlSecondsAfterFinished": 1});
        tenant.create("job", RUNS, spec).await?;
        hold(&tenant.jobs, "job").await?;
        tenant.runs("job").await?;
        tenant.delete("job").await?;
        let job = tenant.fails_by_deadline("job").await?;
        ensure!(deleted_at(&job).is_some(), "it is not being deleted");
        tenant.released("job").await?;
        consistently("its TTL does not delete it again", Duration::from_secs(3), async || {
            let deletions = tenant.requests("delete", "trainjobs", "job")?;
            ensure!(deletions.is_empty(), "it was deleted already: {deletions:#?}");
            Ok(())
        })
        .await?;
        let_go(&tenant.jobs, "job").await?;
        tenant.gone("job").await
    })
    .await
}
