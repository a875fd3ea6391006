//! The traps of `docs/retention.md` that are the breaker's, by their numbers.

use super::{
    super::{CLOCK_AHEAD, News, Reason, SETTLING, Trip},
    scene::{BEGIN, Objects, Scene, at},
};

const DAY: i64 = 86_400;

#[test]
fn trap_13_a_ttl_edited_from_a_week_to_a_minute_deletes_nothing_before_the_acknowledgement() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.exist(&Objects("a", 10_000, scene.now - 3_600));
    scene.edit("d2");
    for _ in 0..10 {
        scene.pass(60);
        scene.settle();
        assert_eq!((scene.tripped(), scene.deletable()), (Some(10_000), 0));
    }
    assert!(scene.acknowledge());
    assert_eq!(scene.deletable(), 0, "the acknowledgement is not stored yet");
    scene.store();
    assert_eq!((scene.tripped(), scene.deletable()), (None, 10_000));
}

#[test]
fn trap_14_labels_of_5000_objects_or_of_a_namespace_trip_that_namespace_alone() {
    // The objects of an edited namespace are looked at like those of edited labels.
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.arrive(&Objects("a", 5_000, scene.now - DAY), News::Other);
    scene.arrive(&Objects("b", 3, scene.now), News::Other);
    for _ in 0..10 {
        scene.settle();
        assert_eq!(scene.tripped(), Some(5_000));
        assert_eq!((scene.deletable_in("a"), scene.deletable_in("b")), (0, 3));
        scene.pass(60);
    }
    scene.arrive(&Objects("a", 1, scene.now), News::End);
    assert_eq!(scene.deletable_in("a"), 0, "nothing goes where it has tripped");
}

#[test]
fn trap_15_40_unexpected_objects_of_100_are_deleted_after_two_minutes() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.arrive(&Objects("a", 40, scene.now - DAY), News::Other);
    scene.settle();
    scene.pass(SETTLING - 1);
    scene.settle();
    assert_eq!(scene.deletable(), 0);
    scene.pass(1);
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (None, 40));
}

#[test]
fn trap_16_a_ttl_of_zero_with_30_ends_each_second_for_an_hour_never_trips_or_waits() {
    let mut scene = Scene::at_rest();
    for second in 0..3_600 {
        scene.pass(1);
        scene.arrive(&Objects("a", 30, scene.now), News::End);
        if second % 30 == 0 {
            scene.settle();
        }
        assert_eq!(scene.delete(50), 30, "in second {second}");
    }
    assert_eq!(scene.tripped(), None);
}

#[test]
fn trap_17_leaders_on_api_servers_ten_seconds_apart_delete_on_time() {
    let mut scene = Scene::at_rest();
    for by in [-10, 10, -10, 10] {
        scene.pass(300);
        scene.store();
        scene.now += by;
        scene.arrive(&Objects("a", 100, scene.now), News::End);
        scene.start();
        scene.settle();
        assert_eq!((scene.tripped(), scene.delete(100)), (None, 100), "by {by}");
    }
}

#[test]
fn trap_18_a_clock_that_jumps_an_hour_stops_everything_until_it_is_acknowledged() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.step_clock(3_600);
    scene.arrive(&Objects("a", 10, scene.now - 60), News::Other);
    for _ in 0..10 {
        scene.settle();
        assert_eq!(scene.deletable(), 0);
        scene.pass(60);
        scene.start();
    }
    assert_eq!(scene.breaker.tripped().map(Trip::reason), Some(Reason::ClockStep));
    assert!(scene.acknowledge());
    scene.store();
    assert_eq!((scene.tripped(), scene.deletable()), (None, 10));
}

#[test]
fn trap_18_a_jump_that_was_acknowledged_is_not_taken_for_another_by_a_leader_with_an_old_view() {
    for jumps_again in [false, true] {
        let mut scene = Scene::at_rest();
        scene.arrive(&Objects("a", 60, scene.now), News::End);
        scene.step_clock(3_600);
        scene.store();
        let (before, id) = (scene.status.clone(), scene.trip_id().unwrap());
        assert!(scene.acknowledge());
        scene.store();
        let acknowledged = std::mem::replace(&mut scene.status, before);
        // By now that acknowledgement would not be enough, so a leader that does not know better counts again.
        scene.exist(&Objects("a", 40, scene.now));
        scene.start();
        let counted = scene.judge(Some(id.as_str())).tripped.map(|trip| trip.count());
        assert_eq!(counted, Some(100));
        if jumps_again {
            scene.step_clock(3_600);
        }
        scene.status = acknowledged;
        scene.start_again();
        assert_eq!(scene.tripped(), jumps_again.then_some(100));
    }
}

#[test]
fn trap_18_a_jump_while_nothing_could_be_judged_outlives_a_status_that_says_nothing_of_it() {
    for has_jumped in [false, true] {
        let mut scene = Scene::at_rest();
        scene.pass(7_200);
        scene.store();
        scene.now -= 3_600;
        scene.arrive(&Objects("a", 1, scene.now), News::End);
        scene.start();
        assert_eq!(scene.tripped(), Some(1), "the status is ahead");
        if has_jumped {
            scene.breaker.note_step(1, at(scene.now));
        }
        // Another leader, which began after the jump, has had it acknowledged.
        scene.status.as_mut().unwrap().through = at(scene.now);
        scene.start_again();
        assert_eq!(scene.tripped(), has_jumped.then_some(1));
    }
}

#[test]
fn trap_18_a_clock_set_back_while_nobody_watched_is_noticed_at_the_start() {
    for (ahead, expected) in [(0, None), (CLOCK_AHEAD, None), (CLOCK_AHEAD + 1, Some(1))] {
        let mut scene = Scene::at_rest();
        scene.pass(7_200);
        scene.store();
        scene.now -= ahead;
        scene.arrive(&Objects("a", 1, scene.now), News::End);
        scene.start();
        scene.settle();
        assert_eq!(scene.tripped(), expected, "{ahead} s ahead");
    }
}

#[test]
fn trap_19_50_000_overdue_after_three_days_go_without_a_trip_with_a_kill_among_them() {
    let mut scene = Scene::at_rest();
    scene.now += 3 * DAY;
    for hour in 0..72 {
        scene.exist(&Objects("a", 695, BEGIN + hour * 3_600));
    }
    scene.start();
    let mut deleted = 0;
    while !scene.due.is_empty() {
        if deleted == 30_000 {
            scene.now += 15;
            scene.start();
        }
        scene.settle();
        assert_eq!(scene.tripped(), None, "after {deleted}");
        let more = scene.delete(1_000);
        assert!(more > 0, "stuck after {deleted}");
        deleted += more;
        scene.pass(20);
        // Work of today goes meanwhile.
        scene.arrive(&Objects("b", 1, scene.now), News::End);
        assert_eq!(scene.deletable_in("b"), 1);
        scene.leave_due(scene.due.len() - 1);
    }
    assert_eq!(deleted, 72 * 695);
}

#[test]
fn trap_20_a_first_policy_with_50_000_overdue_trips_before_the_first() {
    let mut scene = Scene::of_new_policy(&[Objects("a", 50_000, BEGIN - DAY)]);
    assert_eq!((scene.tripped(), scene.deletable()), (Some(50_000), 0));
    scene.settle();
    assert_eq!((scene.tripped(), scene.deletable()), (Some(50_000), 0));
    let few = Scene::of_new_policy(&[Objects("a", 50, BEGIN - DAY)]);
    assert_eq!((few.tripped(), few.deletable()), (None, 0), "not stored yet");
}

#[test]
fn trap_21_a_leader_killed_every_ten_seconds_during_10_000_deletions_never_trips() {
    let mut scene = Scene::at_rest();
    scene.arrive(&Objects("a", 10_000, scene.now), News::Other);
    let mut deleted = 0;
    for kill in 0..100 {
        scene.start();
        scene.pass(0);
        scene.settle();
        assert_eq!(scene.tripped(), None, "after {kill} kills");
        // What is deleted until the kill is stored by nobody.
        let goes = scene.delete(200);
        assert_eq!(goes, 200.min(10_000 - deleted));
        deleted += goes;
        scene.pass(10);
    }
    assert_eq!(deleted, 10_000);
}
