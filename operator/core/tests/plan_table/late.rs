//! JobSets that somebody made after the end of the job, perhaps this operator a moment before (§3.4).

use serde_json::json;
use trainjob_core::{
    Action,
    action::DeletionReason,
    observed::{Reading, Settings},
};

use crate::{
    common::condition,
    scene::{ENDS, JOB_SET_UID, Scene, ended, words},
};

fn ended_at_2000(end: (&str, &str)) -> Scene {
    let mut scene = ended(&json!({}), end, 2_000);
    scene.readings.pods = Reading::Absent;
    scene
}

#[test]
fn a_jobset_made_after_the_end_is_deleted_in_every_terminal_state() {
    let delete =
        [Action::DeleteJobSet { uid: JOB_SET_UID.into(), reason: DeletionReason::JobEnded }];
    for end in ENDS {
        for created in [2_001, 90_000] {
            let scene = ended_at_2000(end).with_job_set_created(created).with_active(1);
            assert_eq!(scene.plan(3_000).actions, delete, "{end:?}, {created}");
            assert_eq!(scene.terminating().plan(3_000).actions, delete, "{end:?}");
        }
    }
}

#[test]
fn one_made_before_the_end_or_in_its_second_stays_unless_a_deadline_stopped_the_job() {
    for end in ENDS {
        let by_deadline = end.1 == "DeadlineExceeded";
        for created in [1_001, 1_999, 2_000] {
            let deleted = !ended_at_2000(end).with_job_set_created(created).words(3_000).is_empty();
            assert_eq!(deleted, by_deadline, "{end:?}, {created}");
        }
    }
}

#[test]
fn one_that_has_ended_runs_nothing_and_stays_because_its_clock_is_another() {
    for end in ENDS {
        for said in ["Completed", "Failed"] {
            let said = condition(said, "True", "SaidByJobSet", 2_000);
            let late = ended_at_2000(end).with_job_set_created(2_001).with_job_set_condition(said);
            let by_deadline = end.1 == "DeadlineExceeded";
            assert_eq!(!late.words(3_000).is_empty(), by_deadline, "{end:?}");
        }
    }
}

#[test]
fn one_that_is_going_or_somebody_else_s_is_let_be() {
    for end in ENDS {
        let late = ended_at_2000(end).with_job_set_created(2_001);
        assert_eq!(late.clone().with_job_set_terminating(2_990).words(3_000), [""; 0], "{end:?}");
        for owner in [None, Some("predecessor")] {
            let foreign = late.clone().with_foreign_job_set(owner).with_job_set_created(2_001);
            assert_eq!(foreign.with_active(1).words(3_000), [""; 0], "{end:?}, {owner:?}");
        }
    }
}

#[test]
fn it_is_deleted_with_the_job_where_the_ttl_has_passed() {
    let mut scene = ended(&json!({"ttlSecondsAfterFinished": 0}), ENDS[0], 2_000);
    scene = scene.with_job_set_created(2_001).under(Settings::default());
    assert_eq!(words(&scene.plan(3_000)), ["delete TrainJob", "tell TTLExpired"]);
}
