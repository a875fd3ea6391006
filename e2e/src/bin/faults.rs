//! `cargo faults`: a program is killed or refused at every call of whole lives of TrainJobs, or of objects under retention policies.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use e2e::faults::{Campaign, Kind, Plan, Program, Sample, Selection, report};
use e2e::stopped::stopped;
use launcher::say;

/// Lives the lives of TrainJobs, or of objects under retention policies, on a real control plane on 127.0.0.1, each time with one fault at one
/// call of the operator, or with two. Succeeds if each ends as if nothing had happened.
#[derive(Debug, Parser)]
#[command(name = "cargo faults", bin_name = "cargo faults")]
struct Arguments {
    /// Whose lives: of TrainJobs and the operator, of finished objects and the retention engine, or of TrainJobs whose Pods the
    /// accounting program counts.
    #[arg(long, default_value = "operator")]
    program: Program,
    /// How many lives are lived at a time.
    #[arg(long, default_value_t = 20, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    lanes: usize,
    /// Only the cases whose name contains this; may be given several times. A name is
    /// SCENARIO/CALL NUMBER/FAULT, such as 'deadline/delete jobsets job 1/before'; that of two faults in one life is
    /// both names with a plus between them.
    #[arg(long)]
    only: Vec<String>,
    /// Instead of single faults, so many pairs of them, drawn at random.
    #[arg(long)]
    pairs: Option<usize>,
    /// What the pairs are drawn by.
    #[arg(long, default_value_t = 1, requires = "pairs")]
    seed: u64,
    /// Instead of single faults, brown-outs: for some seconds, calls of one kind fail or hang by chance.
    #[arg(long, conflicts_with = "pairs")]
    brown_outs: bool,
    /// Begins no further case after so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
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
    let Arguments { program, lanes, only, pairs, seed, brown_outs, minutes, list } = arguments;
    let plan = Plan {
        program,
        selection: if only.is_empty() { Selection::All } else { Selection::Matching(only) },
        kind: match pairs {
            Some(count) => Kind::Pairs(Sample { count, seed }),
            None if brown_outs => Kind::BrownOuts,
            None => Kind::Single,
        },
        lanes,
        time: minutes.map(Duration::from_mins),
    };
    let tell = |line: &str| say(line);
    if list {
        let cases = Box::pin(Campaign::list(&plan, &tell)).await?;
        let mut out = io::stdout().lock();
        cases.iter().try_for_each(|case| writeln!(out, "{case}"))?;
        return Ok(true);
    }
    let campaign = Box::pin(Campaign::run(&plan, &tell)).await?;
    write!(io::stdout().lock(), "\n{}", report(&campaign))?;
    Ok(campaign.holds())
}
