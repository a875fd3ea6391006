//! Schedules of the retention engine break no rule, and seeded defects do.

use explorer::retention::{Defect, Options, Rule, explore, run};

const SCHEDULES: u64 = 300;
/// Schedules within which a defect has to show.
const FOUND_WITHIN: u64 = 500;
/// What once broke a rule: a policy that was not judged when the clock jumped, twice; a right that no policy needed for a while,
/// three times; a policy that was edited and edited back; an owner that was asked for again, twice; an answer about the owner of
/// another Job of the name; a leader that knew less of what was due than its judge, four times.
const ONCE_BROKEN: [u64; 13] = [
    17_031, 21_476, 11_482, 111_774, 113_631, 17_102, 21_655, 42_179, 159_597, 50_012, 52_436,
    93_179, 148_898,
];

#[test]
fn no_schedule_of_the_retention_engine_breaks_a_rule() {
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
fn schedules_of_the_retention_engine_meet_what_they_are_made_for() {
    let totals = explore(0, 400, |_| {});
    assert!(totals.sum.deletions > 300, "{totals}");
    assert!(totals.sum.trips > 20, "{totals}");
    assert!(totals.sum.crashes > 300, "{totals}");
    assert!(totals.sum.conflicts > 50, "{totals}");
    assert!(totals.two_leaders > 50, "{totals}");
}

#[test]
fn defects_of_the_retention_engine_are_found_by_the_rules_that_they_break() {
    let table = [
        (Defect::VersionNotFenced, Rule::EditsWin),
        (Defect::UidNotFenced, Rule::EditsWin),
        (Defect::HoldIgnored, Rule::NotEarly),
        (Defect::NotPlannedAgain, Rule::Governed),
        (Defect::AuditIgnored, Rule::Governed),
        (Defect::LikelyTimeActedOn, Rule::NotEarly),
        // Nobody can acknowledge it.
        (Defect::TripForgotten, Rule::Late),
        (Defect::AnyAcknowledgement, Rule::BreakerHolds),
        (Defect::StoreNotFenced, Rule::Fenced),
        (Defect::StoreNotAwaited, Rule::NotTripped),
        (Defect::SilenceIgnored, Rule::Live),
        (Defect::RateIgnored, Rule::Rate),
        (Defect::NoBackoff, Rule::Pressure),
        (Defect::AcceptedForgotten, Rule::Pressure),
        (Defect::FailureForgotten, Rule::Late),
        (Defect::OwnerIgnored, Rule::NotEarly),
        (Defect::RightIgnored, Rule::Allowed),
        (Defect::TerminatingIgnored, Rule::Governed),
        (Defect::PolicyStays, Rule::Governed),
        (Defect::GoneForgotten, Rule::Governed),
        (Defect::EndsUnexpected, Rule::TripFounded),
        (Defect::TimerLost, Rule::Late),
        (Defect::ClockStepIgnored, Rule::ClockStep),
        (Defect::LooksForgotten, Rule::Status),
    ];
    let is_left_out = |defect: &&Defect| table.iter().all(|(listed, _)| listed != *defect);
    let left_out = Defect::ALL.iter().filter(is_left_out);
    assert_eq!(left_out.collect::<Vec<_>>(), Vec::<&Defect>::new());
    let is_found = |(defect, rule): &(Defect, Rule)| {
        let options = Options { defect: Some(*defect), trace: false };
        let broken = |seed| run(seed, options).violation.map(|violation| violation.rule);
        (0..FOUND_WITHIN).any(|seed| broken(seed) == Some(*rule))
    };
    let missed: Vec<_> = table.iter().filter(|row| !is_found(row)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
