//! Runs schedules on all cores, says how far it is, and shows the first that breaks a rule.

#![expect(clippy::print_stdout, reason = "a command talks to who started it")]

use std::process::ExitCode;

use clap::Parser;
use explorer::{Options, explore, run};

/// How many violations are listed.
const LISTED: usize = 20;

/// Runs the operator's core through random schedules and says which rule breaks, if one does.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many schedules to run.
    #[arg(long, default_value_t = 1_000_000)]
    schedules: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run only the schedule of this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Show what happens, step by step; only with --seed.
    #[arg(long, requires = "seed")]
    trace: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => one(seed, arguments.trace),
        None => all(arguments.from, arguments.schedules),
    }
}

fn one(seed: u64, trace: bool) -> ExitCode {
    let report = run(seed, Options { trace, defect: None });
    for line in &report.trace {
        println!("{line}");
    }
    if let Some(violation) = report.violation {
        println!("seed {seed}: {violation}");
        return ExitCode::FAILURE;
    }
    println!("seed {seed}: every rule holds");
    ExitCode::SUCCESS
}

fn all(from: u64, schedules: u64) -> ExitCode {
    let totals = explore(from, schedules, |totals| println!("{totals}"));
    println!("{totals}");
    if totals.schedules < schedules {
        println!("{} schedules were not run", schedules - totals.schedules);
        return ExitCode::FAILURE;
    }
    let Some((first, _)) = totals.violations.first() else { return ExitCode::SUCCESS };
    for (seed, violation) in totals.violations.iter().take(LISTED) {
        println!("seed {seed}: {violation}");
    }
    println!("the first of them, again with: cargo explore --seed {first} --trace");
    one(*first, true)
}
