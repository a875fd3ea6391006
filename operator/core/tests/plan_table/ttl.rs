//! Time to live after the end (§2, §4).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Action, Plan,
    action::TtlDeletion,
    event::Event,
    facts::Outcome,
    observed::{Propagation, Reading, Settings},
    recreation::Origin,
};

use crate::{
    common::condition,
    scene::{ENDS, Scene, UID, VERSION, built, deletion, ended, new, words},
};

const COMPLETE: (&str, &str) = ENDS[0];

fn with_ttl(ttl: i32) -> Scene {
    ended(&json!({"ttlSecondsAfterFinished": ttl}), COMPLETE, 2_000)
}

#[test]
fn a_finished_job_is_deleted_by_its_uid_and_version_and_nothing_else_is_done() {
    for propagation in [Propagation::Foreground, Propagation::Background] {
        let settings = Settings { deletion_propagation: propagation, ..Settings::default() };
        // Counts that differ are not written any more: that would change the version.
        let plan = with_ttl(60).with_active(1).under(settings).plan(2_061);
        let deletion = TtlDeletion {
            uid: UID.into(),
            resource_version: VERSION.into(),
            propagation,
            outcome: Outcome::Complete,
            due: Timestamp(2_060),
        };
        let told = Event::TtlExpired { finished_at: Timestamp(2_000), ttl: 60 };
        let actions = vec![Action::DeleteTrainJob(deletion), Action::RecordEvent(told)];
        assert_eq!(plan, Plan { actions, ..Plan::default() });
    }
}

#[test]
fn a_ttl_fires_from_the_second_it_is_due_and_never_before() {
    for (ttl, due) in [(0, 2_000), (1, 2_001), (60, 2_060), (i32::MAX, 2_147_485_647)] {
        for now in [0, 1_999, due - 1] {
            let plan = with_ttl(ttl).plan(now);
            assert_eq!((words(&plan), plan.next), (vec![], Some(Timestamp(due))), "{ttl} at {now}");
        }
        for now in [due, due + 1, i64::MAX] {
            assert_eq!(deletion(&with_ttl(ttl).plan(now)).due, Timestamp(due), "{ttl} at {now}");
        }
    }
}

#[test]
fn every_way_to_end_counts_and_the_deletion_says_which() {
    let outcomes = [Outcome::Complete, Outcome::Failed, Outcome::Failed, Outcome::DeadlineExceeded];
    for (end, outcome) in ENDS.into_iter().zip(outcomes) {
        let fields = json!({"ttlSecondsAfterFinished": 60});
        let mut scene = ended(&fields, end, 2_000).without_job_set();
        scene.readings.pods = Reading::Absent;
        assert_eq!(deletion(&scene.plan(2_060)).outcome, outcome, "{end:?}");
    }
}

#[test]
fn a_job_is_kept_for_ever_without_a_ttl_or_where_its_ttl_does_not_apply() {
    let unfinished = json!({"ttlSecondsAfterFinished": 0});
    for (what, scene) in [
        ("no TTL", ended(&json!({}), COMPLETE, 2_000)),
        ("unfinished", built(&unfinished)),
        ("unfinished and being deleted", built(&unfinished).terminating()),
        ("deleted already: one DELETE, no repeats", with_ttl(0).terminating()),
        ("a remote copy", with_ttl(0).labelled("kueue.x-k8s.io/multikueue-origin")),
        ("out of range", with_ttl(-1)),
    ] {
        let plan = scene.plan(i64::MAX);
        assert!(!words(&plan).contains(&"delete TrainJob".into()), "{what}");
        assert_eq!(plan.next, None, "{what}");
    }
}

#[test]
fn a_suspended_unfinished_job_with_a_ttl_is_left_suspended() {
    let mut suspended = condition("Suspended", "True", "Suspended", 1_000);
    suspended.message = "TrainJob is suspended".into();
    let scene = built(&json!({"suspend": true, "ttlSecondsAfterFinished": 0}))
        .with_conditions(&[suspended])
        .up_to_date();
    for now in [1_000, 9_999, i64::MAX] {
        assert_eq!(scene.plan(now), Plan::default(), "at {now}");
    }
}

#[test]
fn an_owned_job_is_deleted_all_the_same() {
    let mut scene = with_ttl(0);
    scene.job.metadata.owner_references = Some(vec![OwnerReference {
        kind: "Workflow".into(),
        uid: "w".into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..OwnerReference::default()
    }]);
    assert_eq!(scene.words(2_000), ["delete TrainJob", "tell TTLExpired"]);
}

#[test]
fn an_end_in_the_future_is_taken_as_it_stands() {
    let scene = ended(&json!({"ttlSecondsAfterFinished": 60}), COMPLETE, 90_000);
    assert_eq!(scene.plan(2_000).next, Some(Timestamp(90_060)));
    assert_eq!(scene.words(90_060), ["delete TrainJob", "tell TTLExpired"]);
}

#[test]
fn the_finish_is_stored_before_a_ttl_of_zero_deletes() {
    let done = condition("Completed", "True", "AllJobsCompleted", 2_000);
    let scene = built(&json!({"ttlSecondsAfterFinished": 0})).with_job_set_condition(done);
    let finishing = scene.plan(2_000);
    assert_eq!(words(&finishing), ["write status"]);
    assert_eq!(scene.after(&finishing).words(2_000), ["delete TrainJob", "tell TTLExpired"]);
}

#[test]
fn the_jobset_s_own_ttl_is_none_of_the_job_s_business() {
    // Its JobSet is gone: neither is it made again nor is the job deleted early.
    let scene = with_ttl(60).without_job_set();
    let plan = scene.plan(2_059);
    assert_eq!((words(&plan), plan.next), (vec![], Some(Timestamp(2_060))));
    assert_eq!(scene.words(2_060), ["delete TrainJob", "tell TTLExpired"]);
}

#[test]
fn a_job_that_closes_a_loop_says_so_and_nothing_else_is_different() {
    for scene in [new(&json!({})), with_ttl(0), with_ttl(60)] {
        let mut closes = scene.clone();
        closes.readings.loop_closed_by = Some(Origin::Unknown);
        let mut expected = scene.words(2_000);
        expected.push("tell RecreateLoop".into());
        assert_eq!(closes.words(2_000), expected);
    }
}

#[test]
fn stored_values_out_of_range_count_as_unset_and_are_told_beside_the_rest() {
    let deadline = ("spec.activeDeadlineSeconds", json!({"activeDeadlineSeconds": -5}), -5, 1);
    let ttl = ("spec.ttlSecondsAfterFinished", json!({"ttlSecondsAfterFinished": -1}), -1, 0);
    let least = json!({"activeDeadlineSeconds": i64::MIN});
    let least = ("spec.activeDeadlineSeconds", least, i64::MIN, 1);
    let zero = json!({"activeDeadlineSeconds": 0});
    let zero = ("spec.activeDeadlineSeconds", zero, 0, 1);
    for (field, fields, value, minimum) in [deadline, ttl, least, zero] {
        let problem = trainjob_core::facts::OutOfRange { field, value, minimum };
        let told = Action::RecordEvent(Event::FieldOutOfRange(problem));
        let unfinished = built(&fields).plan(i64::MAX);
        assert_eq!(unfinished, Plan { actions: vec![told.clone()], ..Plan::default() }, "{field}");
        let finished = ended(&fields, COMPLETE, 2_000).plan(i64::MAX);
        assert_eq!(finished, Plan { actions: vec![told], ..Plan::default() }, "{field}");
    }
    assert_eq!(new(&json!({"activeDeadlineSeconds": -5})).words(1_000).len(), 3);
}
