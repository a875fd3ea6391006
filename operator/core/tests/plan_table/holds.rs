//! Holds: an annotation keeps a finished job beyond its TTL (§2, T11).

use serde_json::json;
use trainjob_api::{lifecycle::v1alpha1::HOLD_ANNOTATION, time::Timestamp};
use trainjob_core::{
    lifecycle::hold::News,
    observed::{Reading, Settings},
};

use crate::scene::{ENDS, Scene, built, deletion, ended, words};

/// A job that ended so at 2000, has a TTL of 60 seconds, and is held until `until`.
fn held_after(end: (&str, &str), until: &str) -> Scene {
    let mut scene = ended(&json!({"ttlSecondsAfterFinished": 60}), end, 2_000);
    let hold = (HOLD_ANNOTATION.to_owned(), until.to_owned());
    scene.job.metadata.annotations = Some([hold].into());
    scene
}

fn held(until: &str) -> Scene {
    held_after(ENDS[0], until)
}

/// The instant so many seconds after 1970, as an annotation names it.
fn at(seconds: i64) -> String {
    Timestamp(seconds).to_string()
}

#[test]
fn a_held_job_is_deleted_when_its_hold_ends_and_not_before() {
    let scene = held(&at(2_100));
    let waiting = scene.plan(2_059);
    assert_eq!((words(&waiting), waiting.next), (vec![], Some(Timestamp(2_060))));
    for now in [2_060, 2_099] {
        let plan = scene.plan(now);
        assert_eq!(words(&plan), ["tell Held"], "at {now}");
        assert_eq!(plan.next, Some(Timestamp(2_100)), "at {now}");
    }
    for now in [2_100, 9_999] {
        assert_eq!(deletion(&scene.plan(now)).due, Timestamp(2_100), "at {now}");
    }
}

#[test]
fn a_hold_ends_at_the_maximum_however_it_is_written() {
    let settings = Settings { maximum_hold: 1_000, ..Settings::default() };
    for (until, event) in [
        (at(4_102_444_800), "tell HoldCapped"),
        ("tomorrow".to_owned(), "tell HoldInvalid"),
        (String::new(), "tell HoldInvalid"),
    ] {
        let scene = held(&until).under(settings);
        let plan = scene.plan(2_060);
        assert_eq!(words(&plan), [event], "{until}");
        assert_eq!(plan.next, Some(Timestamp(3_060)), "{until}");
        assert_eq!(deletion(&scene.plan(3_060)).due, Timestamp(3_060), "{until}");
    }
}

#[test]
fn a_hold_that_has_ended_and_one_that_is_not_allowed_delay_nothing() {
    let no_holds = Settings { maximum_hold: 0, ..Settings::default() };
    for (until, settings) in
        [(at(2_059), Settings::default()), (at(9_999), no_holds), ("soon".into(), no_holds)]
    {
        let scene = held(&until).under(settings);
        assert_eq!(deletion(&scene.plan(2_060)).due, Timestamp(2_060), "{until}");
    }
}

#[test]
fn a_hold_is_told_of_once_and_again_when_it_is_changed() {
    for (news, now, expected) in [
        (News::None, 2_060, vec!["tell Held"]),
        (News::Recorded, 2_061, vec![]),
        (News::Edited, 2_061, vec!["tell Held"]),
        (News::None, 2_060 + 3_600, vec![]),
        (News::Edited, 2_060 + 3_600, vec!["tell Held"]),
    ] {
        let mut scene = held(&at(9_999));
        scene.readings.hold = news;
        assert_eq!(scene.words(now), expected, "{news:?} at {now}");
    }
}

#[test]
fn lateness_counts_from_the_change_that_made_the_deletion_due() {
    for (news, due) in [(News::Edited, 5_000), (News::None, 2_060), (News::Recorded, 2_060)] {
        let mut scene = ended(&json!({"ttlSecondsAfterFinished": 60}), ENDS[0], 2_000);
        scene.readings.hold = news;
        assert_eq!(deletion(&scene.plan(5_000)).due, Timestamp(due), "{news:?}");
    }
}

#[test]
fn a_hold_delays_no_deadline_and_no_release() {
    let fields = json!({"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 0});
    let annotations = [(HOLD_ANNOTATION.to_owned(), at(9_999))];
    let mut running = built(&fields);
    running.job.metadata.annotations = Some(annotations.into());
    let plan = running.plan(1_060);
    assert_eq!(words(&plan), ["write status", "tell DeadlineExceeded", "delete JobSet"]);

    let failed = held_after(("Failed", "DeadlineExceeded"), &at(9_999));
    assert_eq!(failed.words(2_000), ["delete JobSet"]);
    let mut gone = failed.without_job_set();
    assert_eq!(gone.words(5_000), ["check Pods"]);
    gone.readings.pods = Reading::Absent;
    assert_eq!(gone.words(5_000), ["tell Held"]);
}

#[test]
fn a_hold_waits_for_the_time_to_be_known() {
    let plan = held(&at(2_100)).plan_held(9_999);
    assert_eq!((words(&plan), plan.next), (vec![], Some(Timestamp(2_060))));
}
