//! `cargo demo`: the examples on a real control plane, before your eyes.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use e2e::demo::setup::Setup;
use e2e::demo::{Played, play};
use e2e::stopped::stopped;
use launcher::say;

/// Plays the TrainJobs of examples/ on a real control plane on 127.0.0.1 and shows what becomes of
/// them. Succeeds if each did what it should, nothing came early or seconds late, and nothing is left.
#[derive(Debug, Parser)]
#[command(name = "cargo demo", bin_name = "cargo demo")]
struct Arguments {
    /// Leave the cluster and the operator running afterwards, until Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// How many fake nodes, of 8 GPUs each.
    #[arg(long, default_value_t = 4, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    nodes: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            say(format_args!("Error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Whatever it is doing when it is told to stop, dropping it stops everything.
    let Played { setup, kueue: _kueue, met } = tokio::select! {
        played = play(arguments.nodes) => played?,
        stopped = stopped() => {
            stopped?;
            say("Stopped.");
            return Ok(ExitCode::FAILURE);
        }
    };
    if arguments.keep {
        print_usage(&setup)?;
        stopped().await?;
        say("Stopped.");
    }
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_usage(setup: &Setup) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\nStill running. In another terminal, in the root of the repository:\n")?;
    writeln!(out, "  export KUBECONFIG={}", setup.release.cluster.kubeconfig().display())?;
    writeln!(out, "  alias kubectl={}", setup.release.cluster.kubectl().display())?;
    writeln!(out, "  kubectl apply -n {} -f examples/deadline.yaml", setup.namespace)?;
    writeln!(out, "  kubectl get -n {} trainjobs,jobsets,pods", setup.namespace)?;
    writeln!(out, "  cargo run --bin kubectl-trainjob -- status -n {}\n", setup.namespace)?;
    writeln!(out, "Logs are in {}.", setup.release.cluster.folder().display())?;
    writeln!(out, "Ctrl-C stops everything and removes it.")?;
    out.flush()
}
