//! Runs schedules on all cores, says how far it is, and shows the first that breaks a rule.

#![expect(clippy::print_stdout, reason = "a command talks to who started it")]

use std::{fmt::Display, process::ExitCode};

use clap::{Parser, ValueEnum};
use explorer::{Options, accounting, explore, retention, run};

/// How many violations are listed.
const LISTED: usize = 20;

/// Whose decisions are explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    /// Those of the operator.
    Operator,
    /// Those of the retention engine.
    Retention,
    /// Those of the accounting program.
    Accounting,
}

/// Runs a program's core through random schedules and says which rule breaks, if one does.
#[derive(Debug, Parser)]
struct Arguments {
    /// Whose core.
    #[arg(long, value_enum, default_value = "operator")]
    program: Program,
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
    let Arguments { program, schedules, from, seed, trace } = Arguments::parse();
    match (program, seed) {
        (_, Some(seed)) => one(program, seed, trace),
        (Program::Operator, None) => {
            let totals = explore(from, schedules, |totals| println!("{totals}"));
            println!("{totals}");
            all(program, schedules, totals.schedules, &totals.violations)
        }
        (Program::Retention, None) => {
            let totals = retention::explore(from, schedules, |totals| println!("{totals}"));
            println!("{totals}");
            all(program, schedules, totals.schedules, &totals.violations)
        }
        (Program::Accounting, None) => {
            let totals = accounting::explore(from, schedules, |totals| println!("{totals}"));
            println!("{totals}");
            all(program, schedules, totals.schedules, &totals.violations)
        }
    }
}

fn one(program: Program, seed: u64, trace: bool) -> ExitCode {
    let (lines, violation) = match program {
        Program::Operator => {
            let report = run(seed, Options { trace, defect: None });
            (report.trace, report.violation.map(|violation| violation.to_string()))
        }
        Program::Retention => {
            let report = retention::run(seed, retention::Options { trace, defect: None });
            (report.trace, report.violation.map(|violation| violation.to_string()))
        }
        Program::Accounting => {
            let report = accounting::run(seed, accounting::Options { trace, defect: None });
            (report.trace, report.violation.map(|violation| violation.to_string()))
        }
    };
    for line in &lines {
        println!("{line}");
    }
    if let Some(violation) = violation {
        println!("seed {seed}: {violation}");
        return ExitCode::FAILURE;
    }
    println!("seed {seed}: every rule holds");
    ExitCode::SUCCESS
}

/// What all schedules came to, of which so many were asked for.
fn all(
    program: Program,
    asked_for: u64,
    schedules: u64,
    violations: &[(u64, impl Display)],
) -> ExitCode {
    if schedules < asked_for {
        println!("{} schedules were not run", asked_for - schedules);
        return ExitCode::FAILURE;
    }
    let Some((first, _)) = violations.first() else { return ExitCode::SUCCESS };
    for (seed, violation) in violations.iter().take(LISTED) {
        println!("seed {seed}: {violation}");
    }
    let of = match program {
        Program::Operator => "",
        Program::Retention => " --program retention",
        Program::Accounting => " --program accounting",
    };
    println!("the first of them, again with: cargo explore{of} --seed {first} --trace");
    one(program, *first, true)
}
