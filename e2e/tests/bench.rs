//! The benches run through, and what they count holds at any size. What they measure depends on how
//! the operator is built and on the machine, and is judged by `cargo bench-box` alone.

use anyhow::{Result, ensure};
use e2e::bench::{Bar, Bench, Case, Size, TenantCase, run};

const SMALL: Size = Size {
    jobs: Some(100),
    rounds: 1,
    seconds: 3,
    case: None,
    churn: 0,
    hostile: 20,
    peer_jobs: 10,
    // To build it takes minutes, and what it does is not ours to judge.
    trainer_rounds: 0,
    fsync: false,
    aloud: false,
};

/// Runs a bench and sees that what it counts is as it must be.
async fn counts_hold(bench: Bench, size: Size) -> Result<()> {
    let report = Box::pin(run(bench, size)).await?;
    let counted: Vec<&Bar> = report.bars.iter().filter(|bar| bar.counted).collect();
    ensure!(!counted.is_empty(), "nothing is counted");
    ensure!(counted.iter().all(|bar| bar.is_met()), "{report}");
    Ok(())
}

// Trap 14.
#[tokio::test]
async fn of_two_thousand_jobs_due_in_the_same_second_none_is_early_or_lost_and_a_new_one_is_built()
-> Result<()> {
    let size = Size { jobs: Some(2_000), ..SMALL };
    counts_hold(Bench::Storm, size).await
}

#[tokio::test]
async fn suspended_jobs_get_all_they_need_and_nothing_else_is_asked_for() -> Result<()> {
    counts_hold(Bench::Burst, SMALL).await
}

#[tokio::test]
async fn jobs_that_fall_due_among_many_are_deleted_and_none_before_its_time() -> Result<()> {
    counts_hold(Bench::Drip, SMALL).await
}

#[tokio::test]
async fn new_jobs_and_deadlines_get_what_they_wait_for_beside_a_backlog() -> Result<()> {
    counts_hold(Bench::Mixed, SMALL).await
}

#[tokio::test]
async fn deadlines_of_the_same_second_stop_every_job_and_none_before_its_time() -> Result<()> {
    counts_hold(Bench::Deadlines, SMALL).await
}

#[tokio::test]
async fn whole_lives_take_no_reads_and_no_idle_writes() -> Result<()> {
    counts_hold(Bench::Life, SMALL).await
}

// One of each kind: each has a control plane of its own.
#[tokio::test]
async fn a_neighbour_of_a_bad_tenant_is_served() -> Result<()> {
    for case in
        [TenantCase::HangPost, TenantCase::FewDelete, TenantCase::Flood, TenantCase::Warnings]
    {
        let size = Size { case: Some(Case::Tenant(case)), jobs: Some(30), ..SMALL };
        counts_hold(Bench::Tenant, size).await?;
    }
    Ok(())
}

#[tokio::test]
async fn usual_reviews_are_answered_beside_hostile_ones_within_the_memory_limit() -> Result<()> {
    counts_hold(Bench::Admission, Size { jobs: Some(2_000), ..SMALL }).await
}

#[tokio::test]
async fn backlog_of_finished_objects_is_deleted_once_each_and_what_falls_due_beside_it()
-> Result<()> {
    counts_hold(Bench::Retention, Size { jobs: Some(400), ..SMALL }).await
}

#[tokio::test]
async fn pods_that_end_are_counted_and_released_once_each() -> Result<()> {
    counts_hold(Bench::Accounting, Size { jobs: Some(160), ..SMALL }).await
}

#[tokio::test]
async fn followers_take_over_and_miss_nothing() -> Result<()> {
    counts_hold(Bench::Failover, Size { jobs: Some(1_000), ..SMALL }).await
}

#[tokio::test]
async fn cold_start_deletes_what_is_overdue_and_jobs_of_a_megabyte_get_their_job_sets() -> Result<()>
{
    counts_hold(Bench::Scale, Size { jobs: Some(1_000), churn: 2, ..SMALL }).await
}
