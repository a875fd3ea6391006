//! What the operator costs, beside a client that makes the same calls and does nothing else:
//! `cargo bench-box NAME`. What each bench does and how to read it is in `docs/benchmarks.md`.
//!
//! The operator runs as it ships, with its default configuration. The raw client lives in this
//! process, has the same HTTP stack, the same permissions in the same flow of the API server's priority
//! and fairness, and as many requests under way. Both are measured by what the API server noted, in
//! rounds that alternate, each in a control plane of its own, so that none inherits the heap or the
//! store of another.

mod accounting;
mod admission;
mod armed;
mod burst;
mod calls;
mod case;
mod deadlines;
mod drip;
mod etcd;
mod figures;
mod jobs;
mod judge;
mod life;
mod mixed;
mod peer;
mod progress;
mod raw;
mod report;
mod retention;
mod rig;
mod scale;
mod storm;
mod template;
mod tenant;
mod trainer;
mod usage;

use anyhow::Result;
use clap::ValueEnum;

use progress::Progress;

pub use case::Case;
pub use report::{Bar, Bound, Report};
pub use scale::case::Case as ScaleCase;
pub use tenant::case::Case as TenantCase;

/// The benches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// Finished TrainJobs that are all due in the same second.
    Storm,
    /// Suspended TrainJobs that all need their snapshot, JobSet and status.
    Burst,
    /// A few TrainJobs due each second, among many that are not.
    Drip,
    /// New work and deadlines while a backlog of expired TrainJobs is deleted.
    Mixed,
    /// The calls of whole lives.
    Life,
    /// Running TrainJobs whose deadlines all come in the same second.
    Deadlines,
    /// What a bad neighbour costs the others.
    Tenant,
    /// What a review costs.
    Admission,
    /// The retention engine: memory, edits of policies, a backlog.
    Retention,
    /// The accounting program: memory, jobs that end and are deleted, completions.
    Accounting,
    /// The accounting program: how much later a training is restarted.
    AccountingRestarts,
    /// A hundred thousand jobs: memory, a cold start, take-overs, rest.
    Scale,
    /// Take-overs alone, in every way in which a leader ends.
    Failover,
}

/// How large a bench is. Where nothing is said, it is as large as its bars ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// TrainJobs of a round; finished ones of [`Bench::Scale`] and [`Bench::Failover`], which have as many unfinished
    /// ones; finished objects of [`Bench::Retention`]; Pods of [`Bench::Accounting`]; restarts of
    /// [`Bench::AccountingRestarts`].
    pub jobs: Option<usize>,
    /// Rounds of each side.
    pub rounds: usize,
    /// How long jobs fall due in a round of [`Bench::Drip`], a neighbour is measured in one of [`Bench::Tenant`],
    /// [`Bench::Scale`] is at rest, and each step of [`Bench::Retention`] and the churn of [`Bench::Accounting`] take.
    pub seconds: usize,
    /// The only case of [`Bench::Tenant`] or [`Bench::Scale`]; by default they have all.
    pub case: Option<Case>,
    /// How long statuses of JobSets are written in [`Bench::Scale`]; 0 leaves it out.
    pub churn: usize,
    /// TrainJobs of a megabyte in [`Bench::Scale`].
    pub hostile: usize,
    /// Jobs of the TTL controller of Kubernetes in [`Bench::Storm`]; 0 leaves it out.
    pub peer_jobs: usize,
    /// Rounds of Kubeflow Trainer in [`Bench::Burst`] and [`Bench::Deadlines`], with as many jobs as the others
    /// have, and whether it is in [`Bench::Life`]; 0 leaves it out.
    pub trainer_rounds: usize,
    /// Whether etcd waits for the disk, as in production.
    pub fsync: bool,
    /// Whether to say what is being done.
    pub aloud: bool,
}

impl Default for Size {
    fn default() -> Self {
        let (rounds, seconds, peer_jobs, trainer_rounds) = (3, 60, 600, 1);
        Self {
            jobs: None,
            rounds,
            seconds,
            case: None,
            churn: 0,
            hostile: 1_000,
            peer_jobs,
            trainer_rounds,
            fsync: true,
            aloud: true,
        }
    }
}

/// Runs a bench.
pub async fn run(bench: Bench, size: Size) -> Result<Report> {
    let progress = Progress::new(size.aloud);
    let _telling = progress.keep_telling();
    // On the heap: the futures are large.
    match bench {
        Bench::Storm => Box::pin(storm::run(size, &progress)).await,
        Bench::Burst => Box::pin(burst::run(size, &progress)).await,
        Bench::Drip => Box::pin(drip::run(size, &progress)).await,
        Bench::Mixed => Box::pin(mixed::run(size, &progress)).await,
        Bench::Life => Box::pin(life::run(size, &progress)).await,
        Bench::Deadlines => Box::pin(deadlines::run(size, &progress)).await,
        Bench::Tenant => Box::pin(tenant::run(size, &progress)).await,
        Bench::Admission => Box::pin(admission::run(size, &progress)).await,
        Bench::Retention => Box::pin(retention::run(size, &progress)).await,
        Bench::Accounting => Box::pin(accounting::run(size, &progress)).await,
        Bench::AccountingRestarts => Box::pin(accounting::restarts::run(size, &progress)).await,
        Bench::Scale => Box::pin(scale::run(size, &progress)).await,
        Bench::Failover => Box::pin(scale::failover(size, &progress)).await,
    }
}
