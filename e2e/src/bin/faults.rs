//! `cargo faults`: the operator is killed or refused at every call of whole lives of TrainJobs.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use e2e::faults::{Campaign, Selection, report};
use e2e::stopped::stopped;
use launcher::say;

/// Lives the lives of TrainJobs on a real control plane on 127.0.0.1, each time with one fault at one
/// call of the operator. Succeeds if each ends as if nothing had happened.
#[derive(Debug, Parser)]
#[command(name = "cargo faults", bin_name = "cargo faults")]
struct Arguments {
    /// How many lives are lived at a time.
    #[arg(long, default_value_t = 20, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    lanes: usize,
    /// Only the cases whose name contains this; may be given several times. A name is
    /// SCENARIO/CALL NUMBER/FAULT, such as 'deadline/delete jobsets job 1/before'.
    #[arg(long)]
    only: Vec<String>,
    /// Prints the names of the cases and runs none.
    #[arg(long)]
    list: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    // Whatever it is doing when it is told to stop, dropping it stops everything.
    let ended = tokio::select! {
        ended = run(Arguments::parse()) => ended,
        _ = stopped() => {
            say("Stopped.");
            return ExitCode::FAILURE;
        }
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(format_args!("Error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<bool> {
    let Arguments { lanes, only, list } = arguments;
    let selection = if only.is_empty() { Selection::All } else { Selection::Matching(only) };
    let tell = |line: &str| say(line);
    if list {
        let cases = Box::pin(Campaign::list(&selection, lanes, &tell)).await?;
        let mut out = io::stdout().lock();
        cases.iter().try_for_each(|case| writeln!(out, "{case}"))?;
        return Ok(true);
    }
    let campaign = Box::pin(Campaign::run(&selection, lanes, &tell)).await?;
    write!(io::stdout().lock(), "\n{}", report(&campaign))?;
    Ok(campaign.holds())
}
