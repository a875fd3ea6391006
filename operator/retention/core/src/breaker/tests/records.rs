//! What a leader makes of the record that another left (R40, R41).

use trainjob_api::time::Timestamp;

use super::{
    super::{News, PATIENCE, SETTLING, SLACK, STORE_INTERVAL},
    scene::{LIMIT, MAX_COUNT, Objects, Scene},
};

const DAY: i64 = 86_400;

/// A policy with so many objects that fail, due since an hour, and a leader that stored them.
fn with_backlog(count: usize) -> Scene {
    let mut scene = Scene::at_rest();
    scene.arrive(&Objects("a", count, scene.now), News::End);
    scene.pass(3_600);
    scene.settle();
    scene
}

fn through(scene: &Scene) -> Option<Timestamp> {
    scene.status.as_ref().map(|status| status.through)
}

#[test]
fn a_trip_outlives_its_leader_and_keeps_its_id() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.arrive(&Objects("a", 100, scene.now - DAY), News::Other);
    scene.settle();
    let id = scene.trip_id();
    for outage in [0, 30, DAY] {
        scene.now += outage;
        scene.arrive(&Objects("b", 1, scene.now), News::Other);
        scene.start();
        scene.pass(0);
        scene.settle();
        assert_eq!((scene.trip_id(), scene.deletable_in("a")), (id.clone(), 0), "after {outage} s");
        assert!(scene.deletable_in("b") > 0);
    }
    assert!(scene.acknowledge());
}

#[test]
fn an_edit_that_nobody_watched_is_counted_if_it_is_about_what_was_due_before() {
    for (before, expected) in [(SLACK, None), (SLACK + 1, Some(5_000))] {
        let mut scene = Scene::at_rest();
        scene.pass(600);
        scene.store();
        scene.exist(&Objects("a", 5_000, scene.now - before));
        scene.now += 3 * DAY;
        scene.start();
        scene.settle();
        assert_eq!(scene.tripped(), expected, "due {before} s before the outage");
    }
}

#[test]
fn what_waits_at_a_crash_waits_again() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.store();
    scene.arrive(&Objects("a", 40, scene.now - DAY), News::Other);
    for _ in 0..20 {
        scene.pass(SETTLING - 1);
        scene.settle();
        assert_eq!(scene.deletable(), 0);
        scene.start();
    }
    scene.pass(SETTLING);
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (None, 40));
}

#[test]
fn objects_that_fail_or_are_guarded_stay_expected_for_a_day() {
    for (after, tripped, deletable) in [(PATIENCE - 1, None, 5_000), (PATIENCE, Some(5_000), 0)] {
        let mut scene = Scene::at_rest();
        let due = scene.now;
        scene.arrive(&Objects("a", 5_000, due), News::End);
        scene.pass(after);
        scene.settle();
        let held_back = if tripped.is_some() { scene.now } else { due };
        assert_eq!(through(&scene), Some(Timestamp(held_back)));
        assert_eq!((scene.tripped(), scene.deletable()), (None, 5_000), "nothing changes for it");
        scene.start();
        scene.settle();
        assert_eq!((scene.tripped(), scene.deletable()), (tripped, deletable), "after {after} s");
    }
}

#[test]
fn what_was_let_go_stays_let_go() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.arrive(&Objects("a", 5_000, scene.now - 30 * DAY), News::Other);
    scene.settle();
    assert!(scene.acknowledge());
    scene.store();
    assert_eq!(scene.delete(1_000), 1_000);
    scene.start();
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (None, 4_000));
}

#[test]
fn a_backlog_hides_no_edit_that_a_leader_sees() {
    let mut scene = with_backlog(1);
    scene.arrive(&Objects("b", 5_000, scene.now - 1_800), News::Other);
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable_in("b")), (Some(5_000), 0));
    scene.start();
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable_in("b")), (Some(5_000), 0));
}

#[test]
fn an_edit_that_nobody_sees_is_told_from_a_backlog_by_its_due_instants() {
    for (before, tripped) in [(SLACK + 1, Some(5_000)), (SLACK, None)] {
        let mut scene = with_backlog(1);
        scene.exist(&Objects("b", 5_000, scene.now - 3_600 - before));
        scene.pass(STORE_INTERVAL);
        scene.start();
        scene.settle();
        assert_eq!(scene.tripped(), tripped, "due {before} s before the backlog");
        assert_eq!(scene.deletable_in("a"), 1);
    }
}

#[test]
fn a_policy_that_was_audited_meanwhile_is_judged_anew() {
    let mut scene = with_backlog(LIMIT + 1);
    scene.status = None;
    scene.start();
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (Some(MAX_COUNT.get() + 1), 0));
}

#[test]
fn a_breaker_that_starts_again_waits_until_the_same_record_is_stored_again() {
    let mut scene = Scene::at_rest();
    scene.arrive(&Objects("a", 1, scene.now), News::End);
    let stored = scene.status.clone().unwrap();
    assert_eq!((scene.breaker.awaits_storage(), scene.deletable()), (false, 1));
    scene.start();
    assert!(!scene.breaker.record().is_urgent(Some(&stored)), "nothing but time has passed");
    assert_eq!((scene.breaker.awaits_storage(), scene.deletable()), (true, 0));
    scene.settle();
    assert_eq!((scene.breaker.awaits_storage(), scene.deletable()), (false, 1));
}

#[test]
fn a_record_is_urgent_if_more_than_time_has_passed() {
    let mut scene = Scene::at_rest();
    let old = scene.status.clone().unwrap();
    assert!(old.is_urgent(None));
    scene.pass(600);
    scene.settle();
    assert!(!scene.status.as_ref().unwrap().is_urgent(Some(&old)));
    scene.arrive(&Objects("a", 100, scene.now - DAY), News::Other);
    scene.settle();
    assert!(scene.status.as_ref().unwrap().is_urgent(Some(&old)), "it has tripped");
    scene.leave_due(0);
    scene.edit("d2");
    scene.settle();
    assert!(scene.status.as_ref().unwrap().is_urgent(Some(&old)), "it has another digest");
}
