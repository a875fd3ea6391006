//! Defects seeded into good lives, each of which breaks one of L1–L5.

use invariants::{Hold, Job, Rule, State};
use trainjob_api::time::Timestamp;

use crate::safe::breaks;
use crate::scenario::{
    Scenario, complete, deadline, exceeded, finished, object, released, request, running, vanish,
};

#[test]
fn l1_sees_a_ttl_that_is_forgotten_late_or_leaves_something() {
    breaks(Rule::L1, "forgotten", finished());

    let mut late = finished();
    late.delete(1_025_000, "job");
    vanish(&mut late, 1_025_100);
    breaks(Rule::L1, "late", late);

    let mut stuck = finished();
    stuck.delete(1_012_003, "job");
    breaks(Rule::L1, "not collected", stuck);

    let mut orphaned = complete();
    orphaned.history.changes.retain(|it| !(it.gone && it.object.uid == "set"));
    breaks(Rule::L1, "a child stays", orphaned);
}

/// A finished job that is held until second 1,020, and deleted at `at`.
fn held(at: i64) -> Scenario {
    let mut held = finished();
    held.edit(1_005_000, "job", |job| job.hold = Some(Hold::Until(Timestamp(1_020))));
    held.delete(at, "job");
    vanish(&mut held, at + 100);
    held
}

#[test]
fn l1_counts_from_the_end_of_a_hold_or_from_its_removal() {
    assert_eq!(held(1_020_003).broken().1, [""; 0]);
    breaks(Rule::L1, "late after its hold", held(1_031_000));

    let removed = |deleted: i64| {
        let mut removed = finished();
        removed.edit(1_005_000, "job", |job| job.hold = Some(Hold::Unreadable));
        removed.edit(1_030_000, "job", |job| job.hold = None);
        removed.delete(deleted, "job");
        vanish(&mut removed, deleted + 100);
        removed
    };
    assert_eq!(removed(1_030_005).broken().1, [""; 0]);
    breaks(Rule::L1, "late after its hold was removed", removed(1_041_000));
}

#[test]
fn l1_counts_from_the_maximum_where_a_hold_would_reach_further() {
    let mut held = finished();
    held.history.terms.maximum_hold = 20;
    held.edit(1_005_000, "job", |job| job.hold = Some(Hold::Unreadable));
    let mut late = held.clone();
    held.delete(1_032_003, "job");
    vanish(&mut held, 1_032_100);
    assert_eq!(held.broken().1, [""; 0]);
    late.delete(1_043_000, "job");
    vanish(&mut late, 1_043_100);
    breaks(Rule::L1, "late", late);
}

#[test]
fn l1_does_not_mind_a_finalizer_of_somebody_else() {
    let mut held = finished();
    held.change(1_003_000, "job", |object| object.finalizers.push("example.com/hold".into()));
    held.delete(1_012_003, "job");
    assert_eq!(held.broken().1, [""; 0]);
}

#[test]
fn l2_sees_a_deadline_that_is_forgotten_late_or_not_enforced() {
    breaks(Rule::L2, "forgotten", running());

    let mut late = running();
    late.finish(1_021_000, "job", "Failed", "DeadlineExceeded");
    late.delete(1_021_010, "set");
    late.gone(1_021_400, "pod");
    late.gone(1_021_500, "set");
    late.delete(1_031_005, "job");
    late.gone(1_031_100, "snapshot-of-job");
    late.gone(1_031_110, "job");
    breaks(Rule::L2, "late", late);

    let mut kept = running();
    kept.finish(1_010_004, "job", "Failed", "DeadlineExceeded");
    breaks(Rule::L2, "its JobSet stays", kept);

    breaks(Rule::L2, "its JobSet never goes", exceeded());

    let mut leaked = released();
    leaked.history.changes.retain(|it| !(it.gone && it.object.uid == "pod"));
    breaks(Rule::L2, "its Pod runs on", leaked);
}

#[test]
fn l3_sees_a_write_that_nothing_called_for() {
    let mut restless = Scenario::new();
    restless.create_job("job", Job::default());
    restless.create_children(1_000_100, "job", "set");
    restless.write_status(1_000_200, "job", |job| job.counts += 1);
    assert_eq!(restless.clone().broken().1, [""; 0]);
    restless.write_status(1_040_000, "job", |job| job.counts += 1);
    breaks(Rule::L3, "out of nowhere", restless);
}

#[test]
fn l4_sees_a_watch_that_is_not_replaced() {
    let watched_until_1_007_000 = || {
        let mut scenario = deadline();
        scenario.history.requests.retain(|it| it.verb != "watch" || it.sent < 1_010_000);
        scenario
    };
    for (next, is_late) in [(1_097_000, false), (1_099_000, true)] {
        let mut stalled = watched_until_1_007_000();
        stalled.history.requests.push(request(next, "watch", "trainjobs", ""));
        if is_late {
            breaks(Rule::L4, "a gap", stalled);
        } else {
            assert_eq!(stalled.broken().1, [""; 0], "replaced in time");
        }
    }

    let mut silent = watched_until_1_007_000();
    silent.history.requests.push(request(1_099_000, "list", "pods", ""));
    breaks(Rule::L4, "silence at the end", silent);
}

#[test]
fn l5_sees_one_job_delayed_by_the_failures_of_another() {
    let mut scenario = finished();
    scenario.store(1_000_000, object("bad", "bad", None, 1_000, State::TrainJob(Job::default())));
    for n in 0..6 {
        let mut refused = request(1_011_000 + n * 2_000, "create", "jobsets", "bad");
        refused.owner = Some("bad".into());
        refused.answer.code = Some(422);
        refused.answer.served = Some(422);
        scenario.history.requests.push(refused);
    }
    scenario.delete(1_025_000, "job");
    vanish(&mut scenario, 1_025_100);
    breaks(Rule::L5, "late", scenario);
}
