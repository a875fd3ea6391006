//! `cargo acceptance`: what takes more than Rust, Go and git to show.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use e2e::acceptance;
use e2e::stopped::stopped;
use launcher::say;

/// Installs, upgrades and uninstalls the chart with the real Helm, follows the guide from Kubeflow Trainer to it
/// and back, hands marked JobSets to operators that know no marks, deletes by retention policies with the chart's RBAC, tries what the chart lets the accounting program do to Pods,
/// fills dashboards and sets off alerts in a real Prometheus, uses the Python SDK and kubectl as users do, and queues
/// jobs with the real Kueue, on real control planes on 127.0.0.1. Also runs the programs as the image has
/// them, which `.ci/image target/image` makes, and those of a release, which `.ci/release --dry-run` makes, does much of it again on older releases of Kubernetes and JobSet, and
/// trains on a real node, where there are root, apt and cgroup v1. Needs prometheus with promtool, and python3 with what is in e2e/python/requirements.txt, in PATH or by the
/// environment variables PROMETHEUS and PYTHON.
#[derive(Debug, Parser)]
#[command(name = "cargo acceptance", bin_name = "cargo acceptance")]
struct Arguments {
    /// Only this part; several times for several parts.
    #[arg(long)]
    only: Vec<Part>,
}

/// What can be shown by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Chart,
    Image,
    Artifacts,
    Retention,
    Accounting,
    Handover,
    Migration,
    Monitoring,
    Sdk,
    Kubectl,
    Kueue,
    Versions,
    Node,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { only } = Arguments::parse();
    let begun = Instant::now();
    let tell = |line: &str| say(format_args!("{:>6.1} s  {line}", begun.elapsed().as_secs_f64()));
    // Whatever it is doing when it is told to stop, dropping it stops everything.
    let outcome = tokio::select! {
        outcome = Box::pin(all(&tell, &only)) => outcome,
        _ = stopped() => {
            say("Stopped.");
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("Error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn all(tell: &(dyn Fn(&str) + Sync), only: &[Part]) -> Result<()> {
    let wanted = |part| only.is_empty() || only.contains(&part);
    if wanted(Part::Chart) {
        acceptance::chart::run(tell).await?;
    }
    if wanted(Part::Image) {
        acceptance::image::run(tell).await?;
    }
    if wanted(Part::Artifacts) {
        acceptance::artifacts::run(tell).await?;
    }
    if wanted(Part::Retention) {
        acceptance::retention::run(tell).await?;
    }
    if wanted(Part::Accounting) {
        acceptance::accounting::run(tell).await?;
    }
    if wanted(Part::Handover) {
        acceptance::handover::run(tell).await?;
    }
    if wanted(Part::Migration) {
        acceptance::migration::run(tell).await?;
    }
    if wanted(Part::Monitoring) {
        acceptance::monitoring::run(tell).await?;
    }
    if wanted(Part::Sdk) {
        acceptance::sdk::run(tell).await?;
    }
    if wanted(Part::Kubectl) {
        acceptance::kubectl::run(tell).await?;
    }
    if wanted(Part::Kueue) {
        acceptance::kueue::run(tell).await?;
    }
    if wanted(Part::Versions) {
        acceptance::versions::run(tell).await?;
    }
    if wanted(Part::Node) {
        acceptance::node::run(tell).await?;
    }
    Ok(())
}
