//! Schedules of the accounting program break no rule, and seeded defects do.

use explorer::accounting::{Defect, Options, Rule, explore, run};

const SCHEDULES: u64 = 2_000;
/// Schedules within which a defect has to show.
const FOUND_WITHIN: u64 = 3_000;
/// What once broke a rule: JobSets that were numbered by who was counted first; a Pod that had gone before it was let go; a Pod
/// that was let go while a store counted it; a write that succeeded while a Pod was let go; silence about the TrainJob.
const ONCE_BROKEN: [u64; 5] = [217, 0, 12_997, 319, 6_224];

#[test]
fn no_schedule_of_the_accounting_program_breaks_a_rule() {
    let totals = explore(0, SCHEDULES, |_| {});
    assert_eq!(totals.schedules, SCHEDULES, "a thread broke off");
    if let Some((seed, violation)) = totals.violations.first() {
        let report = run(*seed, Options { trace: true, defect: None });
        panic!("seed {seed}: {violation}\n{}", report.trace.join("\n"));
    }
}

#[test]
fn schedules_that_once_broke_a_rule_break_none() {
    for seed in ONCE_BROKEN {
        let report = run(seed, Options::default());
        assert_eq!(report.violation, None, "seed {seed}");
        assert!(report.steps > 0, "seed {seed}");
    }
}

#[test]
fn schedules_of_the_accounting_program_meet_what_they_are_made_for() {
    let totals = explore(0, 400, |_| {});
    let sum = &totals.sum;
    assert!(sum.stores > 1_000, "{totals}");
    assert!(sum.refused > 1_000, "{totals}");
    assert!(sum.lost > 200, "{totals}");
    assert!(sum.late > 50, "{totals}");
    assert!(sum.crashes > 500, "{totals}");
    assert!(sum.counted > 1_000, "{totals}");
    assert!(sum.uncounted > 100, "{totals}");
    assert!(sum.let_go > 50, "{totals}");
    assert!(sum.forced > 10, "{totals}");
    assert!(sum.deleted_records > 10, "{totals}");
    assert!(sum.suspensions > 10, "{totals}");
    assert!(totals.two_leaders > 100, "{totals}");
}

#[test]
fn the_same_seed_gives_the_same_schedule_and_another_seed_another() {
    let trace = |seed| run(seed, Options { trace: true, defect: None }).trace;
    for seed in 0..50 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
        assert_ne!(trace(seed), trace(seed + 1), "seeds {seed} and the next");
    }
}

#[test]
fn defects_of_the_accounting_program_are_found_by_the_rules_that_they_break() {
    let table = [
        (Defect::ProvesByWatch, Rule::A1),
        (Defect::TakesOldNews, Rule::A1),
        (Defect::NoAnnotation, Rule::A1),
        (Defect::ReleasesFirst, Rule::A2),
        (Defect::CountsSilence, Rule::A2),
        (Defect::ClearsTooEarly, Rule::A3),
        (Defect::ForgetsSums, Rule::A4),
        (Defect::StoresOnlyUids, Rule::A5),
        (Defect::TellsNoLosses, Rule::A6),
        (Defect::TellsLossesTwice, Rule::A6),
        (Defect::TellsNoRecreation, Rule::A6),
        (Defect::GuessesEnds, Rule::A7),
        (Defect::IgnoresGenerations, Rule::A7),
        (Defect::BelievesWatch, Rule::A7),
        (Defect::NeverRepeats, Rule::A8),
        (Defect::ValveStaysShut, Rule::A8),
        (Defect::IgnoresForce, Rule::A8),
        (Defect::KeepsAllFailures, Rule::A8),
        (Defect::WritesAgain, Rule::A9),
        (Defect::StoresWithoutVersion, Rule::A9),
        (Defect::KeepsLastFailures, Rule::A11),
        (Defect::TakesOthersRecord, Rule::A12),
    ];
    assert_eq!(table.map(|(defect, _)| defect), Defect::ALL);
    let is_found = |(defect, rule): &(Defect, Rule)| {
        let options = Options { defect: Some(*defect), trace: false };
        let broken = |seed| run(seed, options).violation.map(|violation| violation.rule);
        (0..FOUND_WITHIN).any(|seed| broken(seed) == Some(*rule))
    };
    let missed: Vec<_> = table.iter().filter(|row| !is_found(row)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
