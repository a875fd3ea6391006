//! `scale`: as many jobs as a large cluster has, of which almost none needs anything.
//!
//! One control plane of an API server with its etcd, in which all jobs are stored before the API server starts: nothing
//! else acts on them. In it a cold start, rest, churn if it is asked for, and take-overs by a follower that has seen
//! everything. Jobs of a megabyte have a control plane of their own.

pub(super) mod case;
mod cold;
mod hostile;
mod judged;
mod plan;
mod replica;
mod report;
mod rest;
mod stock;
mod take_over;

use anyhow::{Result, bail};

use self::case::Case;
use self::cold::{ColdStart, Listed};
use self::hostile::Hostile;
use self::judged::TakeOver;
use self::plan::Ending;
use self::replica::Replica;
use self::rest::{AtRest, Churn};
use self::take_over::NEW;
use super::Size;
use super::progress::Progress;
use super::report::Report;
use super::rig::Rig;

/// As many finished jobs as the bars are about, and as many unfinished ones.
const JOBS: usize = 100_000;
/// The same of `failover`, whose bars hold at any number.
const FEW_JOBS: usize = 1_000;

/// What came of the jobs that are there.
struct Resident {
    jobs: usize,
    listed: Listed,
    cold: ColdStart,
    at_rest: Option<AtRest>,
    churn: Option<Churn>,
    take_overs: Vec<TakeOver>,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let cases = match size.case {
        Some(super::Case::Scale(case)) => vec![case],
        Some(super::Case::Tenant(_)) => bail!("there is no such case of scale"),
        None => vec![Case::Resident, Case::Hostile],
    };
    let (mut resident, mut hostile) = (None, None);
    for case in cases {
        match case {
            Case::Resident => {
                let jobs = size.jobs.unwrap_or(JOBS);
                let endings = [Ending::Terminated, Ending::Killed];
                resident = Some(resident_round(size, jobs, &endings, progress).await?);
            }
            Case::Hostile => hostile = Some(hostile_round(size, progress).await?),
        }
    }
    Ok(report::of_scale(size, resident.as_ref(), hostile.as_ref()))
}

/// `failover`: take-overs alone.
pub(super) async fn failover(size: Size, progress: &Progress) -> Result<Report> {
    let jobs = size.jobs.unwrap_or(FEW_JOBS);
    let size = Size { seconds: 0, churn: 0, ..size };
    let resident = resident_round(size, jobs, &Ending::ALL, progress).await?;
    Ok(report::of_failover(size, &resident))
}

async fn resident_round(
    size: Size,
    jobs: usize,
    endings: &[Ending],
    progress: &Progress,
) -> Result<Resident> {
    let rig = Rig::start(stock::control_plane(size.fsync), progress).await?;
    stock::fill(&rig, jobs).await?;
    rig.bare_namespace(NEW).await?;
    rig.progress.step("the raw client lists everything", 0);
    // The first one waits for what the API server keeps.
    cold::listed(&rig).await?;
    let listed = cold::listed(&rig).await?;
    let (mut leader, cold) = cold::start(&rig, "replica-0").await?;
    let at_rest = match size.seconds {
        0 => None,
        seconds => Some(rest::at_rest(&rig, &leader, seconds).await?),
    };
    let mut take_overs = Vec::new();
    for (number, ending) in endings.iter().enumerate() {
        rig.progress.step("another operator starts", 0);
        let follower = Replica::launch(&rig, &format!("replica-{}", number + 1)).await?;
        follower.ready().await?;
        let turn = (number, *ending);
        take_overs.push(take_over::run(&rig, jobs, turn, leader, &follower).await?);
        leader = follower;
    }
    // At the end, because everything that is asked for meanwhile is noted.
    let churn = match size.churn {
        0 => None,
        seconds => Some(rest::churn(&rig, &leader, jobs, seconds).await?),
    };
    Ok(Resident { jobs, listed, cold, at_rest, churn, take_overs })
}

async fn hostile_round(size: Size, progress: &Progress) -> Result<Hostile> {
    let rig = Rig::start(stock::control_plane(size.fsync), progress).await?;
    hostile::run(&rig, size.hostile, size.seconds).await
}
