//! What a leader makes of the record that another left (R40, R41).

use super::{
    super::{News, SETTLING, SLACK, STORE_INTERVAL, Scope},
    scene::{MAX_COUNT, Objects, Scene},
};

const DAY: i64 = 86_400;
const LIMIT: usize = MAX_COUNT as usize;

/// A policy with so many objects that fail, since long, and a leader that stored them.
fn with_backlog(count: usize) -> Scene {
    let mut scene = Scene::at_rest();
    scene.arrive(&Objects("a", count, scene.now), News::End);
    scene.pass(DAY);
    scene.settle();
    scene
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
        scene.arrive(&Objects("a", 5_000, scene.now - before), News::Other);
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
fn objects_that_failed_or_were_guarded_for_a_day_stay_expected() {
    let mut scene = with_backlog(5_000);
    scene.start();
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (None, 5_000));
}

#[test]
fn a_backlog_with_a_few_more_objects_than_stored_waits_for_two_minutes() {
    let mut scene = with_backlog(5_000);
    scene.arrive(&Objects("b", LIMIT, scene.now - DAY), News::Other);
    for _ in 0..5 {
        // Each leader leaves a record from which the next one concludes the same.
        scene.start();
        scene.pass(10);
        scene.settle();
        assert_eq!((scene.tripped(), scene.deletable()), (None, 0));
    }
    scene.pass(SETTLING);
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (None, 5_000 + LIMIT));
}

#[test]
fn an_edit_beside_a_doubtful_backlog_trips_its_own_namespace_alone() {
    let mut scene = with_backlog(5_000);
    scene.arrive(&Objects("b", 1, scene.now - DAY), News::Other);
    scene.start();
    // In the very second of the start.
    scene.arrive(&Objects("c", 100, scene.now - 2 * DAY), News::Other);
    scene.settle();
    assert_eq!(scene.tripped(), Some(100));
    scene.pass(SETTLING);
    scene.settle();
    assert_eq!((scene.deletable_in("a"), scene.deletable_in("c")), (5_000, 0));
}

#[test]
fn a_backlog_with_many_more_objects_than_stored_is_judged_like_an_edit() {
    let mut scene = with_backlog(LIMIT);
    scene.arrive(&Objects("b", LIMIT + 1, scene.now - DAY), News::Other);
    scene.start();
    scene.pass(0);
    scene.settle();
    let namespaces = |scene: &Scene| match scene.breaker.tripped().map(|trip| trip.scope.clone()) {
        Some(Scope::Namespaces(namespaces)) => namespaces.keys().map(ToString::to_string).collect(),
        other => vec![format!("{other:?}")],
    };
    assert_eq!(namespaces(&scene), ["b"]);
    scene.pass(SETTLING);
    scene.settle();
    assert_eq!((scene.deletable_in("a"), scene.deletable_in("b")), (LIMIT, 0));
}

#[test]
fn a_few_old_failures_do_not_hide_an_edit() {
    let mut scene = with_backlog(1);
    scene.arrive(&Objects("b", 5_000, scene.now - DAY + 60), News::Other);
    scene.pass(STORE_INTERVAL);
    scene.start();
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable_in("b")), (Some(5_000), 0));
}

#[test]
fn a_policy_that_was_audited_meanwhile_is_judged_anew() {
    let mut scene = with_backlog(LIMIT + 1);
    scene.status = None;
    scene.start();
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (Some(MAX_COUNT + 1), 0));
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
    scene.rows.clear();
    scene.edit("d2");
    scene.settle();
    assert!(scene.status.as_ref().unwrap().is_urgent(Some(&old)), "it has another digest");
}
