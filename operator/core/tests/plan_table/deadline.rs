//! The active deadline (§3).

use serde_json::json;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Action, Plan,
    action::{DeletionReason, StatusWrite, Urgency},
    event::Event,
    lifecycle::deadline::{Clock, Explanation},
    observed::Settings,
};

use crate::{
    common::condition,
    scene::{CREATED, JOB_SET_UID, Scene, UID, VERSION, built, new, words, written},
};

const CLOCKS: [Clock; 2] = [Clock::Creation, Clock::LastResume];

fn counting_from(clock: Clock) -> Settings {
    Settings { deadline_clock: clock, ..Settings::default() }
}

#[test]
fn a_deadline_stores_the_failure_then_tells_then_deletes_the_jobset() {
    let plan = built(&json!({"activeDeadlineSeconds": 60})).plan(1_061);
    let due = Timestamp(1_060);
    let failed = StatusWrite {
        uid: UID.into(),
        resource_version: VERSION.into(),
        conditions: Some(vec![{
            let mut failed = condition("Failed", "True", "DeadlineExceeded", 1_061);
            failed.message = "TrainJob exceeded its active deadline. Its 60 seconds \
                (spec.activeDeadlineSeconds) count from its creation at 1970-01-01T00:16:40Z \
                (lifecycle.deadlineClock: Creation) and were over at 1970-01-01T00:17:40Z."
                .into();
            failed
        }]),
        jobs_status: None,
        urgency: Urgency::AtOnce,
        deadline_due: Some(due),
    };
    let expected = Plan {
        actions: vec![
            Action::WriteStatus(failed),
            Action::RecordEvent(Event::DeadlineExceeded(Explanation {
                seconds: 60,
                start: Timestamp(CREATED),
                due,
                clock: Clock::Creation,
                suspended: None,
            })),
            Action::DeleteJobSet { uid: JOB_SET_UID.into(), reason: DeletionReason::JobEnded },
        ],
        ..Plan::default()
    };
    assert_eq!(plan, expected);
}

#[test]
fn users_are_told_before_a_long_deadline_comes() {
    let default = Settings::default();
    let never = Settings { deadline_warning: 0, ..default };
    let (hour, longer) = (3_600, 3_601);
    for (case, seconds, settings, before_due, told) in [
        ("not yet", longer, default, 601, false),
        ("ten minutes before", longer, default, 600, true),
        ("until it comes", longer, default, 1, true),
        ("an hour is short", hour, default, 600, false),
        ("it is switched off", longer, never, 600, false),
        (
            "the period is longer than the deadline",
            longer,
            Settings { deadline_warning: 9_999, ..default },
            longer,
            true,
        ),
    ] {
        let due = CREATED + seconds;
        let plan = built(&json!({"activeDeadlineSeconds": seconds}))
            .under(settings)
            .plan(due - before_due);
        let expected: &[&str] = if told { &["tell DeadlineApproaching"] } else { &[] };
        assert_eq!(words(&plan), expected, "{case}");
        let next = if case == "not yet" { due - 600 } else { due };
        assert_eq!(plan.next, Some(Timestamp(next)), "{case}");
    }
}

#[test]
fn a_deadline_fires_from_the_second_it_is_due_and_never_before() {
    for clock in CLOCKS {
        let scene = built(&json!({"activeDeadlineSeconds": 60})).under(counting_from(clock));
        for now in [0, 999, 1_000, 1_059] {
            let plan = scene.plan(now);
            assert_eq!((words(&plan), plan.next), (vec![], Some(Timestamp(1_060))), "at {now}");
        }
        for now in [1_060, 1_061, i64::MAX] {
            let stopped = ["write status", "tell DeadlineExceeded", "delete JobSet"];
            assert_eq!(scene.words(now), stopped, "at {now}");
        }
    }
}

#[test]
fn suspension_and_resume_count_as_the_clock_says() {
    let suspended = || vec![condition("Suspended", "True", "Suspended", 1_010)];
    let resumed = |at| vec![condition("Suspended", "False", "Resumed", at)];
    // When it is due, by the clock from creation and by the clock from the last resume.
    for (what, suspend, conditions, by_creation, by_resume) in [
        ("never suspended", false, vec![], Some(1_060), Some(1_060)),
        ("created suspended", true, vec![], Some(1_060), None),
        ("suspended", true, suspended(), Some(1_060), None),
        ("suspended again", true, resumed(1_020), Some(1_060), None),
        ("resumed, not yet recorded", false, suspended(), Some(1_060), None),
        ("resumed", false, resumed(1_020), Some(1_060), Some(1_080)),
        ("resumed after the first deadline", false, resumed(5_000), Some(1_060), Some(5_060)),
        ("resumed in the future", false, resumed(90_000), Some(1_060), Some(90_060)),
    ] {
        for (clock, due) in CLOCKS.into_iter().zip([by_creation, by_resume]) {
            let scene = built(&json!({"activeDeadlineSeconds": 60, "suspend": suspend}))
                .with_conditions(&conditions)
                .under(counting_from(clock));
            let exceeded = |now| words(&scene.plan(now)).contains(&"delete JobSet".into());
            if let Some(due) = due {
                assert!(!exceeded(due - 1) && exceeded(due), "{what}, {clock:?}");
                assert_eq!(scene.plan(due - 1).next, Some(Timestamp(due)), "{what}, {clock:?}");
            } else {
                assert!(!exceeded(i64::MAX), "{what}, {clock:?}");
                assert_eq!(scene.plan(1_000).next, None, "{what}, {clock:?}");
            }
        }
    }
}

#[test]
fn a_job_resumed_after_its_old_deadline_gets_a_full_new_one_by_the_clock_of_the_last_resume() {
    let scene = built(&json!({"activeDeadlineSeconds": 60}))
        .with_conditions(&[condition("Suspended", "True", "Suspended", 1_010)])
        .under(counting_from(Clock::LastResume));
    let recording = scene.plan(5_000);
    assert_eq!(words(&recording), ["write status"]);
    assert_eq!(written(&recording), [("Suspended".into(), "False".into(), "Resumed".into())]);
    let recorded = scene.after(&recording).plan(5_000);
    assert_eq!((words(&recorded), recorded.next), (vec![], Some(Timestamp(5_060))));
}

#[test]
fn a_suspended_job_fails_by_the_clock_from_creation_and_its_status_says_both() {
    let plan = built(&json!({"activeDeadlineSeconds": 60, "suspend": true})).plan(1_060);
    let (suspended, failed) = (("Suspended", "Suspended"), ("Failed", "DeadlineExceeded"));
    let expected =
        [suspended, failed].map(|(kind, reason)| (kind.into(), "True".into(), reason.into()));
    assert_eq!(written(&plan), expected);
}

#[test]
fn a_deadline_fires_whether_or_not_anything_ever_ran() {
    let late = json!({"activeDeadlineSeconds": 60});
    let stored_then_told = ["write status", "tell DeadlineExceeded"];
    let stopped = ["write status", "tell DeadlineExceeded", "delete JobSet"];
    for (what, scene, expected) in [
        ("no JobSet", new(&late), &stored_then_told[..]),
        ("no runtime", new(&late).without_runtime(), &stored_then_told),
        ("a foreign JobSet", new(&late).with_foreign_job_set(None), &stored_then_told),
        ("its JobSet is going", built(&late).with_job_set_terminating(1_050), &stored_then_told),
        ("its JobSet is suspended", built(&late).with_job_set_suspended(true), &stopped),
        ("it is being deleted", built(&late).terminating(), &stopped),
        (
            "it is a remote copy",
            built(&late).labelled("kueue.x-k8s.io/multikueue-origin"),
            &stopped,
        ),
    ] {
        assert_eq!(scene.words(9_999), expected, "{what}");
    }
}

#[test]
fn a_deadline_beyond_the_range_of_time_never_fires() {
    for (seconds, fires) in [(i64::MAX, false), (i64::MAX - CREATED, false), (1, true)] {
        for clock in CLOCKS {
            let scene =
                built(&json!({"activeDeadlineSeconds": seconds})).under(counting_from(clock));
            assert_eq!(!scene.words(i64::MAX).is_empty(), fires, "{seconds}");
        }
    }
}

#[test]
fn a_job_that_waits_for_something_still_has_its_deadline() {
    let late = json!({"activeDeadlineSeconds": 60});
    let waits = |scene: Scene| {
        let plan = scene.plan(CREATED);
        assert_eq!(plan.next, Some(Timestamp(1_060)), "{plan:?}");
    };
    waits(new(&late).with_foreign_job_set(None));
    waits(new(&late).without_runtime());
    waits(built(&late).with_job_set_terminating(CREATED));
    waits(built(&late).terminating());
}
