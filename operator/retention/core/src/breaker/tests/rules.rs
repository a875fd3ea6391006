//! R41 to R43 in examples.

use std::num::NonZeroU64;

use super::{
    super::{DueObject, Hold, News, SETTLING, SLACK, Stage, Standing},
    scene::{LIMIT, MAX_COUNT, Objects, Scene, at, due_object},
};
use crate::uid::Uid;

const DAY: i64 = 86_400;

/// A policy that has tripped in namespace `a`, and stored that.
fn tripped(count: usize) -> Scene {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.arrive(&Objects("a", count, scene.now - DAY), News::Other);
    scene.settle();
    assert_eq!(scene.tripped(), Some(count as u64));
    scene
}

#[test]
fn what_time_or_an_end_makes_due_is_expected_and_what_an_edit_makes_due_is_not() {
    for (due, news, is_expected) in [
        (0, News::Other, true),
        (-SLACK, News::Other, true),
        (-SLACK - 1, News::Other, false),
        (-DAY, News::End, true),
    ] {
        let mut scene = Scene::at_rest();
        scene.pass(600);
        scene.arrive(&Objects("a", 1, scene.now + due), news);
        assert_eq!(scene.deletable() == 1, is_expected, "{due} {news:?}");
    }
}

#[test]
fn an_object_stands_as_it_stood_as_long_as_the_same_of_it_is_due() {
    let mut scene = Scene::at_rest();
    let since = at(scene.now + 600);
    scene.pass(600);
    let waiting = Standing::Waiting { since };
    let expected = Standing::Expected { since };
    let uid = Uid::from("u");
    for (first, then, stage, standing) in [
        ((DAY, News::End), (2 * DAY, News::Other), Stage::Object, expected),
        ((DAY, News::Other), (0, News::End), Stage::Object, waiting),
        // The time of its Pods had come; that of the object came by an edit.
        ((0, News::Other), (DAY, News::Other), Stage::Pods, waiting),
        ((0, News::Other), (0, News::Other), Stage::Pods, expected),
    ] {
        for ((ago, news), stage) in [(first, stage), (then, Stage::Object)] {
            let due = scene.now - ago;
            let object = DueObject { stage, ..due_object(&"a".into(), due) };
            scene.breaker.observe(uid.clone(), object, news, at(scene.now));
        }
        assert_eq!(scene.breaker.standing(&uid), Some(standing), "{first:?}, {then:?}");
        scene.breaker.forget(&uid);
        assert_eq!(scene.breaker.may_delete(&uid), Err(Hold::NotDue));
    }
}

#[test]
fn an_edit_of_more_than_the_limit_trips_before_its_first_object_goes_however_slow_it_is() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    for _ in 0..=LIMIT {
        scene.arrive(&Objects("a", 1, scene.now - DAY), News::Other);
        scene.settle();
        assert_eq!(scene.deletable(), 0);
        scene.pass(2);
    }
    assert_eq!(scene.tripped(), Some(MAX_COUNT.get() + 1));
}

#[test]
fn no_more_than_the_limit_is_let_go_in_two_minutes() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    let mut gone = Vec::new();
    for _ in 0..600 {
        scene.pass(3);
        scene.arrive(&Objects("a", 1, scene.now - DAY), News::Other);
        scene.settle();
        gone.push(scene.delete(LIMIT));
    }
    assert_eq!(scene.tripped(), None);
    let most = gone.windows(40).map(|two_minutes| two_minutes.iter().sum::<usize>()).max();
    assert_eq!(most, Some(40), "{gone:?}");
}

#[test]
fn more_than_ten_namespaces_or_ten_times_the_limit_trip_the_whole_policy() {
    const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    for (namespaces, each, whole) in
        [(10, LIMIT + 1, false), (11, LIMIT + 1, true), (12, 41, false), (12, 42, true)]
    {
        let mut scene = Scene::at_rest();
        scene.pass(600);
        for name in &NAMES[..namespaces] {
            scene.arrive(&Objects(name, each, scene.now - DAY), News::Other);
        }
        scene.arrive(&Objects("other", 1, scene.now), News::End);
        scene.settle();
        let others = usize::from(!whole);
        assert_eq!(scene.deletable(), others, "{each} in each of {namespaces}");
    }
}

#[test]
fn an_acknowledgement_allows_the_number_and_a_tenth_and_otherwise_it_is_counted_anew() {
    for (more, accepted) in [(0, true), (10, true), (11, false)] {
        let mut scene = tripped(100);
        let first = scene.trip_id();
        scene.arrive(&Objects("a", more, scene.now - DAY), News::Other);
        assert_eq!(scene.acknowledge(), accepted, "{more} more");
        scene.store();
        assert_eq!(scene.deletable(), if accepted { 100 + more } else { 0 });
        if !accepted {
            assert_eq!(scene.tripped(), Some(111));
            assert_ne!(scene.trip_id(), first);
            assert!(scene.acknowledge(), "the new number can be acknowledged");
        }
    }
}

#[test]
fn what_came_due_in_its_time_during_a_trip_needs_no_room_in_the_acknowledgement() {
    let mut scene = tripped(100);
    scene.pass(3_600);
    scene.arrive(&Objects("a", 5_000, scene.now), News::End);
    scene.settle();
    assert_eq!(scene.tripped(), Some(100));
    assert!(scene.acknowledge());
    scene.store();
    assert_eq!(scene.deletable(), 5_100);
}

#[test]
fn an_old_acknowledgement_fits_no_later_trip() {
    let mut scene = tripped(100);
    let old = scene.trip_id().unwrap();
    assert!(scene.acknowledge());
    scene.store();
    assert_eq!(scene.delete(100), 100);
    for _ in 0..3 {
        // The leader changes within the same second, so that only the status remembers.
        scene.start();
        scene.settle();
        scene.arrive(&Objects("a", 200, scene.now - DAY), News::Other);
        let _ = scene.judge(Some(old.as_str()));
        scene.store();
        assert_eq!((scene.tripped(), scene.deletable()), (Some(200), 0));
        assert!(scene.acknowledge());
        scene.store();
        assert_eq!(scene.delete(200), 200);
    }
}

#[test]
fn a_trip_that_no_status_shows_cannot_be_acknowledged() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.arrive(&Objects("a", 100, scene.now - DAY), News::Other);
    let _ = scene.judge(None);
    assert!(!scene.acknowledge(), "another policy may have a trip of this id");
    assert_eq!((scene.tripped(), scene.deletable()), (Some(100), 0));
    scene.store();
    scene.start();
    assert!(scene.acknowledge(), "another leader stored it");
}

#[test]
fn an_acknowledgement_lets_nothing_go_that_came_after_it() {
    let mut scene = tripped(100);
    assert!(scene.acknowledge());
    scene.arrive(&Objects("a", 100, scene.now - DAY), News::Other);
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (Some(100), 0));
}

#[test]
fn a_namespace_that_trips_later_is_not_part_of_an_acknowledgement_of_before() {
    let mut scene = tripped(100);
    let id = scene.trip_id().unwrap();
    scene.arrive(&Objects("b", 100, scene.now - DAY), News::Other);
    let _ = scene.judge(Some(id.as_str()));
    scene.store();
    assert_eq!((scene.deletable_in("a"), scene.deletable_in("b")), (100, 0));
}

#[test]
fn an_edit_that_leaves_no_more_than_the_limit_ends_a_trip_and_the_rest_goes() {
    for left in [LIMIT, LIMIT + 1] {
        let mut scene = tripped(100);
        scene.pass(10);
        scene.leave_due(left);
        scene.settle();
        assert_eq!(scene.tripped().is_none(), left == LIMIT);
        assert_eq!(scene.deletable(), 0, "two minutes are not over");
        scene.pass(SETTLING);
        scene.settle();
        assert_eq!(scene.deletable(), if left == LIMIT { LIMIT } else { 0 });
    }
}

#[test]
fn an_edit_of_the_policy_is_judged_by_itself() {
    for (left, expected) in [(LIMIT, None), (LIMIT + 1, Some(MAX_COUNT.get() + 1))] {
        let mut scene = tripped(100);
        scene.leave_due(left);
        scene.edit("d2");
        scene.settle();
        assert_eq!(scene.tripped(), expected);
    }
}

#[test]
fn a_larger_limit_ends_a_trip() {
    let mut scene = tripped(100);
    scene.breaker.update(8, NonZeroU64::new(100).unwrap());
    scene.settle();
    assert_eq!(scene.tripped(), None);
}

#[test]
fn a_trip_that_grows_is_counted_anew_every_two_minutes() {
    let mut scene = tripped(100);
    let mut ids = vec![scene.trip_id()];
    for _ in 0..SETTLING {
        scene.pass(1);
        scene.arrive(&Objects("a", 100, scene.now - DAY), News::Other);
        scene.settle();
        ids.push(scene.trip_id());
    }
    ids.dedup();
    assert_eq!(ids.len(), 2);
    assert_eq!(scene.tripped(), Some(12_100));
}

#[test]
fn nothing_goes_that_rests_on_what_is_not_stored() {
    let mut scene = Scene::at_rest();
    scene.arrive(&Objects("a", 1, scene.now), News::End);
    assert_eq!(scene.deletable(), 1);
    scene.start();
    assert_eq!(scene.breaker.may_delete(&scene.due[0].0), Err(Hold::NotStored));
    scene.store();
    assert_eq!(scene.deletable(), 1);
}

#[test]
fn the_end_of_one_namespaces_trip_makes_no_other_wait_for_the_store() {
    let mut scene = tripped(100);
    scene.arrive(&Objects("b", 7, scene.now), News::End);
    assert!(scene.acknowledge());
    assert_eq!((scene.deletable_in("a"), scene.deletable_in("b")), (0, 7));
}

#[test]
fn a_verdict_says_when_it_is_worth_judging_again() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    assert_eq!(scene.judge(None).next, None);
    let since = scene.now;
    scene.arrive(&Objects("a", 1, since - DAY), News::Other);
    scene.pass(10);
    scene.arrive(&Objects("a", 1, since - DAY), News::Other);
    assert_eq!(scene.judge(None).next, Some(at(since + SETTLING)));
    scene.pass(SETTLING - 10);
    assert_eq!(scene.judge(None).next, Some(at(since + 10 + SETTLING)));
    scene.arrive(&Objects("a", 100, since - DAY), News::Other);
    let verdict = scene.judge(None);
    assert_eq!(verdict.tripped.as_ref(), scene.breaker.tripped());
    assert_eq!(verdict.next, Some(at(since + 10 + SETTLING)));
    assert_eq!(scene.judge(None).tripped, None, "it is news once");
}

#[test]
fn what_waits_without_an_acknowledgement_is_told_with_the_end_of_its_wait() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    assert_eq!(scene.breaker.waiting(), None);
    scene.arrive(&Objects("a", 3, scene.now), News::Other);
    assert_eq!(scene.breaker.waiting(), None, "time made them due");
    let since = scene.now;
    scene.arrive(&Objects("a", 2, since - DAY), News::Other);
    scene.pass(10);
    scene.arrive(&Objects("b", 1, since - DAY), News::Other);
    let told = |scene: &Scene| {
        let waiting = scene.breaker.waiting()?;
        let there = |name: &str| waiting.namespaces.get(name).copied().unwrap_or_default();
        Some((waiting.count(), there("a"), there("b"), waiting.until))
    };
    assert_eq!(told(&scene), Some((3, 2, 1, at(since + 10 + SETTLING))));
    scene.arrive(&Objects("a", 100, since - DAY), News::Other);
    scene.settle();
    assert_eq!(told(&scene), Some((1, 0, 1, at(since + 10 + SETTLING))), "the rest has tripped");
    scene.pass(SETTLING);
    scene.settle();
    assert_eq!(told(&scene), None);
}
