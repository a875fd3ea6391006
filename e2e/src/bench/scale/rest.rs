//! What a leader takes while nothing happens, and what is left of it after a while in which much does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use super::super::calls::{Micros, counted};
use super::super::figures::float;
use super::super::rig::Rig;
use super::super::usage::{grown, megabytes};
use super::replica::Replica;
use super::stock::{FREE, Job, Kind, set_ready};

/// How many seconds the last work may take to end.
const SETTLE: usize = 40;
/// For how many seconds the rate is measured that is possible.
const FULL_SPEED: usize = 15;
/// Writes under way: enough to keep two cores busy, and few enough for the operator to renew its Lease beside them.
const PLACES: usize = 16;

/// What it took while nothing happened.
#[derive(Debug, Clone, Serialize)]
pub(super) struct AtRest {
    pub(super) pss_mb: f64,
    pub(super) peak_mb: f64,
    pub(super) cpu_ms_per_second: f64,
    pub(super) calls_per_second: f64,
    /// Of what kinds these were.
    pub(super) calls: BTreeMap<String, usize>,
}

/// What came of a while with many writes.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Churn {
    pub(super) seconds: usize,
    /// Writes a second that the control plane took with the operator at work.
    pub(super) full_rate: f64,
    /// Writes a second meanwhile.
    pub(super) rate: f64,
    pub(super) before_mb: f64,
    pub(super) after_mb: f64,
    pub(super) peak_mb: f64,
}

/// Waits until it has settled, and looks on while nothing happens.
pub(super) async fn at_rest(rig: &Rig, replica: &Replica, seconds: usize) -> Result<AtRest> {
    settle(rig, seconds).await?;
    rig.progress.step("nothing happens", 0);
    let (before, begun) = (replica.threads()?, Micros::now());
    sleep(seconds_of(seconds)?).await;
    let (after, ended) = (replica.threads()?, Micros::now());
    let usage = replica.usage()?;
    let passed = ended.since(begun) / 1e3;
    let noted = rig.noted().await?.operator;
    let calls = counted(noted.all().filter(|call| (begun..ended).contains(&call.completed())));
    Ok(AtRest {
        pss_mb: megabytes(usage.now),
        peak_mb: megabytes(usage.peak),
        cpu_ms_per_second: grown(&before, &after).as_secs_f64() * 1e3 / passed,
        calls_per_second: float(calls.values().sum()) / passed,
        calls,
    })
}

/// Writes statuses of JobSets at half of the rate that is possible.
pub(super) async fn churn(
    rig: &Rig,
    replica: &Replica,
    jobs: usize,
    seconds: usize,
) -> Result<Churn> {
    let running = (jobs / 2..jobs - FREE).map(|number| Job { kind: Kind::Running, number });
    let written = Written { client: rig.admin.clone(), jobs: Arc::new(running.collect()) };
    rig.progress.step("statuses of JobSets are written as fast as possible", 0);
    let (next, full_rate) = written.full_rate(0, seconds.min(FULL_SPEED)).await?;
    settle(rig, seconds).await?;
    let before_mb = megabytes(replica.usage()?.now);
    rig.progress.step("statuses of JobSets are written at half of that rate", 0);
    let count = written.at_rate(next, full_rate / 2.0, seconds).await?;
    settle(rig, seconds).await?;
    let after = replica.usage()?;
    Ok(Churn {
        seconds,
        full_rate,
        rate: float(count) / float(seconds),
        before_mb,
        after_mb: megabytes(after.now),
        peak_mb: megabytes(after.peak),
    })
}

/// Waits until the last work has ended, but no longer than what is measured takes.
pub(super) async fn settle(rig: &Rig, seconds: usize) -> Result<()> {
    rig.progress.step("the operator comes to rest", 0);
    sleep(seconds_of(seconds.min(SETTLE))?).await;
    Ok(())
}

/// The running jobs whose JobSets are written to, in turns.
#[derive(Clone)]
struct Written {
    client: Client,
    jobs: Arc<Vec<Job>>,
}

impl Written {
    /// Does the write of this number, which changes something: a JobSet is ready in every other turn.
    async fn write(&self, number: usize) -> Result<()> {
        let (turn, place) = (number / self.jobs.len(), number % self.jobs.len());
        let job = self.jobs.get(place).context("no running jobs")?;
        set_ready(&self.client, &job.namespace(), &job.name(), u32::from(turn % 2 == 1)).await
    }

    /// Writes as fast as possible, from that of a number on. Returns the next number, and the writes a second.
    async fn full_rate(&self, from: usize, seconds: usize) -> Result<(usize, f64)> {
        let end = Instant::now() + seconds_of(seconds)?;
        let (begun, next) = (Instant::now(), Arc::new(AtomicUsize::new(from)));
        let mut workers = JoinSet::new();
        for _ in 0..PLACES {
            let (written, next) = (self.clone(), Arc::clone(&next));
            workers.spawn(async move {
                while Instant::now() < end {
                    written.write(next.fetch_add(1, Ordering::Relaxed)).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = workers.join_next().await {
            done??;
        }
        let next = next.load(Ordering::Relaxed);
        Ok((next, float(next - from) / begun.elapsed().as_secs_f64()))
    }

    /// Writes at a rate for so many seconds, unless that is more than is possible. Returns how many.
    async fn at_rate(&self, from: usize, rate: f64, seconds: usize) -> Result<usize> {
        let (end, mut next) = (Instant::now() + seconds_of(seconds)?, from);
        let mut beat = interval(Duration::from_secs_f64(1.0 / rate));
        let mut under_way = JoinSet::new();
        while Instant::now() < end {
            beat.tick().await;
            let (written, number) = (self.clone(), next);
            under_way.spawn(async move { written.write(number).await });
            next += 1;
            while under_way.len() >= PLACES {
                under_way.join_next().await.transpose()?.transpose()?;
            }
        }
        while let Some(done) = under_way.join_next().await {
            done??;
        }
        Ok(next - from)
    }
}

fn seconds_of(seconds: usize) -> Result<Duration> {
    Ok(Duration::from_secs(u64::try_from(seconds)?))
}
