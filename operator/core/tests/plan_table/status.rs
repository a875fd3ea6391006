//! What a job's status says (§7, `trainer-behaviour` B.6).

use std::slice;

use serde_json::json;
use trainjob_api::{
    time::Timestamp,
    v1alpha1::train_job::{JobStatus, TrainerStatus},
};
use trainjob_core::{Action, action::Urgency};

use crate::{
    common::{condition, set_spec},
    scene::{ENDS, Scene, built, ended, new, status_write, words, written},
};

fn counts(active: i32) -> Vec<JobStatus> {
    vec![JobStatus { name: "node".into(), active, ..JobStatus::default() }]
}

fn stored(mut scene: Scene, counts: Option<Vec<JobStatus>>) -> Scene {
    scene.status().jobs_status = counts;
    scene
}

#[test]
fn counts_are_the_jobset_s_and_written_at_once_when_nothing_is_active_any_more() {
    use Urgency::{AtOnce, Coalesced};
    for (before, after, expected) in [
        (None, Some(1), Some(Coalesced)),
        (Some(2), Some(1), Some(Coalesced)),
        (Some(1), Some(0), Some(AtOnce)),
        (None, Some(0), Some(Coalesced)),
        (Some(0), Some(1), Some(Coalesced)),
        (Some(1), Some(1), None),
        (None, None, None),
        // A JobSet that counts nothing yet: the field is removed.
        (Some(1), None, Some(AtOnce)),
        (Some(0), None, Some(Coalesced)),
    ] {
        for finished in [false, true] {
            let scene =
                if finished { ended(&json!({}), ENDS[0], 2_000) } else { built(&json!({})) };
            let scene = match after {
                Some(active) => scene.with_active(active),
                None => scene,
            };
            let plan = stored(scene, before.map(counts)).plan(2_000);
            let Some(urgency) = expected else {
                assert_eq!(words(&plan), [""; 0], "{before:?} -> {after:?}");
                continue;
            };
            let write = status_write(&plan);
            assert_eq!(write.urgency, urgency, "{before:?} -> {after:?}");
            assert_eq!(write.conditions, None);
            assert_eq!(write.jobs_status, Some(after.map(counts).unwrap_or_default()));
        }
    }
}

#[test]
fn counts_stay_when_the_jobset_is_gone() {
    for scene in [ended(&json!({}), ENDS[0], 2_000), new(&json!({})).terminating()] {
        assert_eq!(stored(scene.without_job_set(), Some(counts(1))).words(3_000), [""; 0]);
    }
}

#[test]
fn the_counts_of_somebody_else_s_jobset_are_not_shown() {
    let scene = new(&json!({})).with_foreign_job_set(Some("predecessor")).with_active(3);
    assert_eq!(status_write(&stored(scene, Some(counts(1))).plan(2_000)).jobs_status, None);
}

#[test]
fn what_others_wrote_into_the_status_stays() {
    let mut scene = built(&json!({"suspend": true}))
        .with_conditions(&[condition("TheirOwn", "True", "Theirs", 1_100)]);
    scene.status().trainer_status = Some(TrainerStatus::default());
    let theirs = ("TheirOwn".into(), "True".into(), "Theirs".into());
    let suspended = ("Suspended".into(), "True".into(), "Suspended".into());
    assert_eq!(written(&scene.plan(2_000)), [theirs, suspended]);
}

/// One step in the life of conditions.
fn step(scene: &mut Scene, now: i64) -> Vec<(String, String, String)> {
    let plan = scene.plan(now);
    *scene = scene.clone().after(&plan);
    scene
        .job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone()))
        .collect()
}

#[test]
fn conditions_live_as_they_do_with_kubeflow_trainer() {
    let name = |(a, b, c): (&str, &str, &str)| (a.to_owned(), b.to_owned(), c.to_owned());
    let resumed = name(("Suspended", "False", "Resumed"));

    assert_eq!(built(&json!({})).words(1_000), [""; 0], "a job that runs has none");

    let mut scene = built(&json!({"suspend": true, "activeDeadlineSeconds": 900}));
    assert_eq!(step(&mut scene, 1_000), [name(("Suspended", "True", "Suspended"))]);
    set_spec(&mut scene.job, &json!({"suspend": false}));
    assert_eq!(step(&mut scene, 1_100), slice::from_ref(&resumed));

    for (of_job_set, reason, end) in [
        ("Completed", "AllJobsCompleted", ("Complete", "True", "AllJobsCompleted")),
        ("Failed", "FailedJobs", ("Failed", "True", "FailedJobs")),
    ] {
        let said = condition(of_job_set, "True", reason, 1_200);
        let mut scene = scene.clone().with_job_set_condition(said);
        assert_eq!(step(&mut scene, 1_201), [resumed.clone(), name(end)]);
    }
    let late = name(("Failed", "True", "DeadlineExceeded"));
    assert_eq!(step(&mut scene, 1_900), [resumed, late]);
}

#[test]
fn a_transition_time_moves_only_with_the_status() {
    let mut scene = built(&json!({"suspend": true})).with_conditions(&[condition(
        "Suspended",
        "True",
        "Suspended",
        1_100,
    )]);
    // The message is put right, the time stays.
    let plan = scene.plan(2_000);
    let [suspended] = &status_write(&plan).conditions.clone().unwrap()[..] else { panic!() };
    assert_eq!(suspended.message, "TrainJob is suspended");
    assert_eq!(Timestamp::from(&suspended.last_transition_time), Timestamp(1_100));

    set_spec(&mut scene.job, &json!({"suspend": false}));
    let plan = scene.plan(2_000);
    let [resumed] = &status_write(&plan).conditions.clone().unwrap()[..] else { panic!() };
    assert_eq!(Timestamp::from(&resumed.last_transition_time), Timestamp(2_000));
}

#[test]
fn suspension_is_not_recorded_for_a_finished_job() {
    for end in ENDS {
        let scene = ended(&json!({"suspend": true}), end, 2_000).without_job_set();
        let writes = |action: &Action| matches!(action, Action::WriteStatus(_));
        assert!(!scene.plan(3_000).actions.iter().any(writes), "{end:?}");
    }
}

#[test]
fn a_job_that_is_being_deleted_gets_nothing_new_but_its_status_is_kept() {
    let done = condition("Completed", "True", "AllJobsCompleted", 2_000);
    for (what, scene, expected) in [
        ("no JobSet", new(&json!({})), vec![]),
        ("to be resumed", built(&json!({})).with_job_set_suspended(true), vec![]),
        ("without runtime", new(&json!({})).without_runtime(), vec![]),
        ("suspended", new(&json!({"suspend": true})), vec!["write status"]),
        ("running", built(&json!({})).with_active(1), vec!["write status"]),
        ("ended", built(&json!({})).with_job_set_condition(done), vec!["write status"]),
        // Somebody's finalizer may keep it for long, and its JobSet with it.
        (
            "suspended, and its JobSet runs",
            built(&json!({"suspend": true})).with_job_set_suspended(false),
            vec!["write status", "suspend JobSet"],
        ),
        (
            "suspended, and its JobSet goes, too",
            built(&json!({"suspend": true}))
                .with_job_set_suspended(false)
                .with_job_set_terminating(1_990),
            vec!["write status"],
        ),
    ] {
        assert_eq!(scene.terminating().words(2_000), expected, "{what}");
    }
}
