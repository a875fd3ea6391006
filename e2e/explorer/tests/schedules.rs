//! Ten thousand schedules break no rule, and each can be seen again.

use explorer::{Options, explore, run};

const SCHEDULES: u64 = 10_000;

#[test]
fn no_schedule_breaks_a_rule() {
    let totals = explore(0, SCHEDULES, |_| {});
    assert_eq!(totals.schedules, SCHEDULES, "a thread broke off");
    if let Some((seed, violation)) = totals.violations.first() {
        let report = run(*seed, Options { trace: true, defect: None });
        panic!("seed {seed}: {violation}\n{}", report.trace.join("\n"));
    }
}

#[test]
fn schedules_meet_what_they_are_made_for() {
    let totals = explore(0, 500, |_| {});
    assert!(totals.sum.requests > 1_000, "{totals}");
    assert!(totals.sum.crashes > 500, "{totals}");
    assert!(totals.sum.conflicts > 50, "{totals}");
    assert!(totals.sum.late_checks > 10, "{totals}");
    assert!(totals.two_leaders > 50, "{totals}");
}

#[test]
fn the_same_seed_gives_the_same_schedule_and_another_seed_another() {
    let trace = |seed| run(seed, Options { trace: true, defect: None }).trace;
    for seed in 0..100 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
        assert_ne!(trace(seed), trace(seed + 1), "seeds {seed} and the next");
    }
}
