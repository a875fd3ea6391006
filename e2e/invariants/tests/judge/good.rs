//! Lives in which nothing is wrong.

use invariants::{Clock, Request};

use crate::scenario::{
    Scenario, complete, deadline, exceeded, recreated, released, request, resumed,
};

#[test]
fn good_lives_break_no_rule() {
    let resumed_and_complete = || {
        let mut scenario = resumed(Clock::LastResume);
        scenario.end_job_set(1_008_000, "set", "Completed");
        scenario.finish(1_008_010, "job", "Complete", "Over");
        scenario
    };
    let resumed_and_exceeded = |clock: Clock, at: i64| {
        let mut scenario = resumed(clock);
        scenario.finish(at, "job", "Failed", "DeadlineExceeded");
        scenario.delete(at + 5, "set");
        scenario.gone(at + 500, "set");
        scenario
    };
    for (what, scenario) in [
        ("nothing happens", Scenario::new()),
        ("complete, deleted by its TTL", complete()),
        ("failed by its deadline, deleted by its TTL", deadline()),
        ("resumed, complete", resumed_and_complete()),
        ("resumed, failed by its deadline", resumed_and_exceeded(Clock::Creation, 1_020_001)),
        ("failed by its deadline since", resumed_and_exceeded(Clock::LastResume, 1_025_001)),
        ("deleted and created again", recreated()),
    ] {
        assert_eq!(scenario.broken().1, [""; 0], "{what}");
    }
}

#[test]
fn what_a_process_asks_for_itself_takes_no_place() {
    let mut full = Scenario::new();
    for _ in 0..full.history.terms.in_flight {
        full.history.requests.push(request(1_000_000, "list", "pods", ""));
    }
    let of_all = |verb, resource| {
        let of_none = request(1_000_000, verb, resource, "");
        Request { namespace: String::new(), ..of_none }
    };
    full.history.requests.extend([
        of_all("list", "jobsets"),
        of_all("get", ""),
        request(1_000_000, "watch", "jobsets", ""),
        request(1_000_000, "get", "leases", "operator"),
        request(1_000_000, "list", "events", ""),
    ]);
    assert_eq!(full.broken().1, [""; 0]);
}

#[test]
fn a_record_that_ends_early_is_no_violation() {
    for (what, mut scenario, end) in [
        ("about to be released", exceeded(), 1_011_000),
        ("about to be deleted", released(), 1_025_000),
    ] {
        scenario.history.end = end;
        scenario.history.requests.retain(|request| request.sent <= end);
        assert_eq!(scenario.broken().1, [""; 0], "{what}");
    }
}

#[test]
fn a_creation_that_was_under_way_at_the_end_is_excused_if_it_is_deleted() {
    let mut scenario = released();
    // Sent a moment after the end, by another process, which has not yet heard of it.
    scenario.create_job_set(1_010_300, "job", "late");
    let create = scenario.history.requests.last_mut().unwrap();
    create.process = 2;
    let mut earlier = create.clone();
    (earlier.verb, earlier.sent) = ("get".into(), 1_009_000);
    scenario.history.requests.push(earlier);
    // The first JobSet is gone before the late one is there.
    scenario.history.changes.iter_mut().filter(|it| it.gone).for_each(|it| it.at = 1_010_200);
    scenario.history.changes.iter_mut().for_each(|it| {
        if it.object.uid == "late" {
            it.object.created = trainjob_api::time::Timestamp(1_011);
        }
    });
    scenario.delete(1_011_500, "late");
    scenario.gone(1_012_000, "late");
    scenario.delete(1_020_005, "job");
    scenario.gone(1_020_100, "snapshot-of-job");
    scenario.gone(1_020_110, "job");
    assert_eq!(scenario.broken().1, [""; 0]);
}
