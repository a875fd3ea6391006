//! `cargo acceptance`: what takes more than Rust, Go and git to show.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use e2e::acceptance;
use launcher::say;
use tokio::signal::unix::{SignalKind, signal};

/// Installs, upgrades and uninstalls the chart with the real Helm, on a real control plane on 127.0.0.1.
/// Needs `helm` in PATH, or the environment variable HELM.
#[derive(Debug, Parser)]
#[command(name = "cargo acceptance", bin_name = "cargo acceptance")]
struct Arguments {}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments {} = Arguments::parse();
    let begun = Instant::now();
    let tell = |line: &str| say(format_args!("{:>6.1} s  {line}", begun.elapsed().as_secs_f64()));
    // Whatever it is doing when it is told to stop, dropping it stops everything.
    let outcome = tokio::select! {
        outcome = Box::pin(acceptance::chart::run(&tell)) => outcome,
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

async fn stopped() -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
