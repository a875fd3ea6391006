//! `cargo bench-box NAME`: what the operator costs, beside a client that makes the same calls.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use e2e::bench::{Bench, Case, Size, run};
use launcher::say;
use tokio::signal::unix::{SignalKind, signal};

/// Measures the operator on a real control plane on 127.0.0.1, beside a client that makes the same
/// calls and does nothing else. Fails if a bar is missed.
#[derive(Debug, Parser)]
#[command(name = "cargo bench-box", bin_name = "cargo bench-box")]
struct Arguments {
    /// What to measure.
    #[arg(required = true)]
    benches: Vec<Bench>,
    /// How many TrainJobs a round has, `scale` and `failover` finished ones and as many unfinished ones, `retention`
    /// finished objects, `accounting` Pods, or `accounting-restarts` restarts; by default as many as the bars are
    /// about.
    #[arg(long)]
    jobs: Option<usize>,
    /// How many rounds each side has.
    #[arg(long, default_value_t = Size::default().rounds, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    rounds: usize,
    /// How long jobs fall due in a round of `drip`, the neighbour is measured in one of `tenant`, `scale` is at rest,
    /// and a step of `retention`, or the churn of `accounting`, takes.
    #[arg(long, default_value_t = Size::default().seconds, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    seconds: usize,
    /// The only case of `tenant` or `scale`; by default they have all.
    #[arg(long)]
    case: Option<Case>,
    /// For how many seconds statuses of JobSets are written in `scale`, at half of the rate that is possible; 0 leaves
    /// it out.
    #[arg(long, default_value_t = Size::default().churn)]
    churn: usize,
    /// How many TrainJobs of a megabyte `scale` has.
    #[arg(long, default_value_t = Size::default().hostile)]
    hostile: usize,
    /// How many Jobs the TTL controller of Kubernetes gets in `storm`; 0 leaves it out.
    #[arg(long, default_value_t = Size::default().peer_jobs)]
    peer_jobs: usize,
    /// How many rounds Kubeflow Trainer has in `burst` and `deadlines`, each of minutes; 0 leaves it out, also of `life`.
    #[arg(long, default_value_t = Size::default().trainer_rounds)]
    trainer_rounds: usize,
    /// Let etcd answer before the disk has what it was told.
    #[arg(long)]
    no_fsync: bool,
}

impl Arguments {
    const fn size(&self) -> Size {
        let &Self {
            jobs, rounds, seconds, case, churn, hostile, peer_jobs, trainer_rounds, ..
        } = self;
        let (fsync, aloud) = (!self.no_fsync, true);
        Size {
            jobs,
            rounds,
            seconds,
            case,
            churn,
            hostile,
            peer_jobs,
            trainer_rounds,
            fsync,
            aloud,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match until_stopped(&Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            say(format_args!("Error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn until_stopped(arguments: &Arguments) -> Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Whatever it is doing when it is told to stop, dropping it stops everything.
    tokio::select! {
        code = measure(arguments) => code,
        _ = interrupt.recv() => Ok(ExitCode::FAILURE),
        _ = terminate.recv() => Ok(ExitCode::FAILURE),
    }
}

async fn measure(arguments: &Arguments) -> Result<ExitCode> {
    let size = arguments.size();
    let mut reports = Vec::new();
    for bench in &arguments.benches {
        let report = run(*bench, size).await?;
        let mut out = io::stdout().lock();
        write!(out, "{report}")?;
        out.flush()?;
        reports.push(report);
    }
    let missed: Vec<String> = reports
        .iter()
        .flat_map(|report| report.missed().map(|bar| format!("{}: {bar}", report.bench)))
        .collect();
    for bar in &missed {
        say(bar);
    }
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
