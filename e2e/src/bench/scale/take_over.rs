//! A leader ends, and one that has seen everything takes over.
//!
//! TTLs that come while nobody leads are what is overdue then. Deadlines come in the seconds after that, and a new job
//! is submitted.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, Patch, PatchParams, PostParams};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::sleep;
use trainjob_api::{JobSet, TrainJob};

use super::super::calls::Micros;
use super::super::jobs::{arm_one, end_at, in_seconds, on_torch, still_to_come};
use super::super::rig::Rig;
use super::judged::{TakeOver, judged};
use super::plan::{Ending, Plan};
use super::replica::Replica;
use super::stock::{Job, Kind, OVERDUE, free};
use crate::testenv::fixtures::PATIENCE;

/// TTLs that come while nobody leads.
const LATE: usize = 10;
/// Deadlines that come after somebody has taken over.
pub(super) const DEADLINES: usize = 20;
/// The seconds in which they come.
const WITHIN: i64 = 30;
/// The namespace of new jobs.
pub(super) const NEW: &str = "new-jobs";
/// How long before the TTLs come a leader is asked to stop, in microseconds: it gives its Lease back in less.
const JUST_BEFORE: i64 = 20_000;
/// The default of the duration of a Lease, in seconds.
pub(super) const LEASE: i64 = 15;
/// What the last deadline may be late, and then some.
const AFTER: Duration = Duration::from_secs(5);

/// Ends a leader and sees what the follower does. The number of the take-over says which jobs it takes.
pub(super) async fn run(
    rig: &Rig,
    jobs: usize,
    (number, ending): (usize, Ending),
    leader: Replica,
    follower: &Replica,
) -> Result<TakeOver> {
    rig.progress.step(format!("{}: TTLs and deadlines are armed", ending.name()), 0);
    let mut plan = armed(rig, jobs, number, ending).await?;
    let last = plan.deadlines.values().max().copied().context("no deadlines")?;
    ensure!(plan.ends.since(Micros::now()) > 0.0, "arming took too long: the machine is too busy");
    sleep(plan.ends.away()).await;
    rig.progress.step(format!("{}: another one takes over", ending.name()), 0);
    plan.ends = Micros::now();
    end(&leader, ending)?;
    if ending != Ending::Terminated {
        sleep(Duration::from_secs(1)).await;
    }
    let new: Api<TrainJob> = Api::namespaced(rig.admin.clone(), NEW);
    new.create(&PostParams::default(), &TrainJob::new(&plan.new.0, on_torch())).await?;
    plan.new.1 = Micros::now();
    sleep(last.away() + AFTER).await;
    let resumed = match ending {
        Ending::Paused => Some(Micros::now()),
        Ending::Terminated | Ending::Killed => None,
    };
    if resumed.is_some() {
        leader.operator.process().signal(Signal::CONT)?;
    }
    let status = leader.operator.wait(PATIENCE).await?;
    let calls = rig.noted().await?.operator;
    let mut taken = judged(&calls, &plan, [&leader.token, &follower.token], resumed);
    taken.exit_code = status.code();
    taken.usage = Some(follower.usage()?);
    collect(rig, jobs, number).await;
    Ok(taken)
}

fn end(leader: &Replica, ending: Ending) -> Result<()> {
    match ending {
        Ending::Terminated => leader.operator.sigterm(),
        Ending::Killed => {
            leader.operator.kill9();
            Ok(())
        }
        Ending::Paused => leader.operator.process().pause(),
    }
}

/// The finished jobs whose TTLs come in the take-over of this number.
fn late(number: usize) -> impl Iterator<Item = Job> {
    let from = OVERDUE + number * LATE;
    (from..from + LATE).map(|number| Job { kind: Kind::Finished, number })
}

/// The running jobs whose deadlines come.
fn deadlined(number: usize, jobs: usize) -> impl Iterator<Item = Job> {
    (number * DEADLINES..(number + 1) * DEADLINES).map(move |number| free(number, jobs))
}

async fn armed(rig: &Rig, jobs: usize, number: usize, ending: Ending) -> Result<Plan> {
    let second = in_seconds(0.0);
    // How long after it ends TTLs come, and somebody leads at the latest.
    let (ttl, leads) = match ending {
        Ending::Terminated => (0, 1),
        Ending::Killed | Ending::Paused => (5, LEASE + 2),
    };
    let (mut ttls, mut deadlines) = (HashMap::new(), HashMap::new());
    for job in late(number) {
        let due = second.plus(ttl);
        end_at(&api(rig, &job), &job.name(), due.plus(-job.seconds())).await?;
        ttls.insert(job.name(), Micros::of(due));
    }
    let apart =
        (0..).map(|place| place * (WITHIN - 1) / i64::try_from(DEADLINES).unwrap_or(WITHIN));
    for (job, after) in deadlined(number, jobs).zip(apart) {
        let (due, api) = (second.plus(leads + after), api(rig, &job));
        arm_one(&api, &api.get(&job.name()).await?, due).await?;
        deadlines.insert(job.name(), Micros::of(due));
    }
    still_to_come(second)?;
    let before = if ending == Ending::Terminated { JUST_BEFORE } else { 0 };
    let ends = Micros(Micros::of(second).0 - before);
    let new = (format!("new-{number}"), Micros::of(second));
    Ok(Plan { ending, ends, ttls, deadlines, new })
}

fn api(rig: &Rig, job: &Job) -> Api<TrainJob> {
    Api::namespaced(rig.admin.clone(), &job.namespace())
}

/// Does what the garbage collector would do, which does not run. What was not deleted is counted already.
async fn collect(rig: &Rig, jobs: usize, number: usize) {
    let how = PatchParams::default();
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for job in late(number) {
        let _ = api(rig, &job).patch_metadata(&job.name(), &how, &none).await;
    }
    for job in deadlined(number, jobs) {
        let sets: Api<JobSet> = Api::namespaced(rig.admin.clone(), &job.namespace());
        let _ = sets.patch_metadata(&job.name(), &how, &none).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_overs_have_jobs_of_their_own() {
        let names = |number| {
            late(number).chain(deadlined(number, 2_000)).map(|job| job.name()).collect::<Vec<_>>()
        };
        let all = [names(0), names(1), names(2)].concat();
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!((all.len(), different.len()), (90, 90));
        assert!(all.iter().all(|name| name.starts_with("done-") || name.starts_with("free-")));
    }
}
