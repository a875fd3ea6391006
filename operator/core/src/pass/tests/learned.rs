//! What a pass learns and forgets.

use json_patch::Patch;
use trainjob_api::time::Timestamp;

use super::*;
use crate::{
    build::RuntimeKey,
    lifecycle::hold::{self, Hold, News},
    recreation::Origin,
};

#[test]
fn job_is_known_to_exist_once_it_was_read_under_its_own_uid() {
    for (expected, there, afterwards) in
        [(true, UID, false), (true, "V", true), (false, UID, false), (false, "V", false)]
    {
        let mut scene = Scene::default();
        scene.memory.readings.needs_existence_check = expected;
        let mut pass = scene.acting(vec![Action::ReadTrainJob]);
        scene.answered(&mut pass, Ok(Reply::TrainJob(there.into())));
        let known = scene.memory.readings().needs_existence_check;
        assert_eq!(known, afterwards, "{expected}, {there}");
    }
}

#[test]
fn job_is_planned_again_when_its_runtime_was_read_and_tried_again_when_that_is_gone() {
    let key = RuntimeKey::Cluster { name: "r".into() };
    for (answer, expected) in [(Ok(Reply::Done), None), (failed(Class::Gone), Some(End::Failed))] {
        let mut scene = Scene::default();
        let mut pass = scene.acting(vec![Action::ReadRuntime(key.clone())]);
        scene.answered(&mut pass, answer);
        match scene.next(&mut pass, START) {
            Next::Plan => assert_eq!(expected, None),
            Next::Over(Over { end, retry }) => {
                assert_eq!(expected, Some(end));
                assert!(retry.is_some(), "nobody would look at it again");
            }
            Next::Call => panic!("there is nothing else to do"),
        }
    }
}

#[test]
fn event_of_a_hold_is_recorded_once() {
    let mut scene = Scene { finished: true, ..Scene::default() };
    let hold = Hold { until: Timestamp(2_000), end: hold::End::AsWished };
    let mut pass = scene.acting(vec![Action::RecordEvent(Event::Held(hold))]);
    assert_eq!(scene.memory.readings().hold, News::None);
    scene.answered(&mut pass, Ok(Reply::Done));
    assert_eq!(scene.memory.readings().hold, News::Recorded);
}

#[test]
fn event_of_a_loop_is_recorded_once() {
    let mut scene = Scene::default();
    scene.memory.loop_closed(Origin::Unknown);
    let mut pass = scene.acting(vec![Action::RecordEvent(Event::RecreateLoop(Origin::Unknown))]);
    assert_eq!(scene.memory.readings().loop_closed_by, Some(Origin::Unknown));
    scene.answered(&mut pass, Ok(Reply::Done));
    assert_eq!(scene.memory, JobMemory::default());
}

#[test]
fn digest_of_a_jobset_is_forgotten_when_its_change_fails_and_no_other_failure_ends_it() {
    let update = Action::UpdateJobSet {
        uid: "J".into(),
        resource_version: "5".into(),
        patch: Text::of(&Patch::default()).unwrap(),
    };
    for (action, known) in
        [(create_job_set(), false), (update, false), (Action::ReadSnapshot, true)]
    {
        let mut scene = Scene::default();
        scene.memory.spec_applied(7, None);
        let mut pass = scene.acting(vec![action.clone()]);
        scene.answered(&mut pass, failed(Class::Transient));
        let digest = scene.memory.readings().applied_spec_hash;
        assert_eq!(digest, known.then_some(7), "{action:?}");
    }
}

#[test]
fn job_is_planned_again_when_the_digest_of_its_jobset_is_new() {
    let mut scene = Scene::default();
    let applied = |digest| Plan { applied_spec_hash: Some(digest), ..Plan::default() };
    let mut pass = Pass::new(Priority::Live);
    for digest in [7, 8] {
        assert_eq!(scene.next(&mut pass, START), Next::Plan);
        scene.planned(&mut pass, applied(digest), START);
    }
    assert_eq!(scene.next(&mut pass, START), Next::Plan);
    assert_eq!(scene.memory.readings().applied_spec_hash, Some(8));
    assert_eq!(scene.settled(applied(8)), None);
}

#[test]
fn when_counts_were_written_is_forgotten_when_a_finished_job_has_settled_with_all_of_them() {
    for (finished, plan, remembered) in [
        (false, plan(vec![]), true),
        (false, plan(vec![counts()]), true),
        (true, plan(vec![counts()]), true),
        (true, plan(vec![]), false),
    ] {
        let mut scene = Scene { finished, ..Scene::default() };
        scene.memory.counts_written = Some(START);
        let postponed = !plan.actions.is_empty();
        let retry = scene.settled(plan);
        assert_eq!(retry.is_some(), postponed, "finished: {finished}");
        let written = scene.memory.counts_written.is_some();
        assert_eq!(written, remembered, "finished: {finished}, postponed: {postponed}");
    }
}

#[test]
fn snapshot_in_the_way_is_what_the_job_is_planned_with() {
    let mut scene = Scene::default();
    let mut pass = scene.acting(vec![Action::CreateSnapshot(Box::new(config_map(UID, "a")))]);
    assert_eq!(scene.answered(&mut pass, failed(Class::Exists)), Answered::Continued);
    let there = scene.answered(&mut pass, Ok(read(config_map(UID, "b"))));
    assert_eq!(there, Answered::Continued);
    assert_eq!(scene.memory.readings().snapshot, Reading::Found(config_map(UID, "b")));
    assert_eq!(scene.next(&mut pass, START), Next::Plan);
}

#[test]
fn secret_in_the_way_is_somebody_elses_without_a_witness_that_is_the_jobs_own() {
    for witness in [None, Some("files")] {
        let mut scene = Scene::default();
        let witness_name = witness.map(str::to_owned);
        let probe = Action::ProbeSecret { claim: Box::new(secret()), witness: witness_name };
        let mut pass = scene.acting(vec![probe]);
        assert_eq!(scene.answered(&mut pass, failed(Class::Exists)), Answered::Continued);
        if witness.is_some() {
            let of_another = Ok(read(config_map("V", "a")));
            assert_eq!(scene.answered(&mut pass, of_another), Answered::Continued);
        }
        let taken = NameConflict::Foreign { kind: "Secret", name: "keys".into() };
        assert_eq!(scene.memory.readings().name_conflict, Some(taken), "{witness:?}");
        assert_eq!(scene.next(&mut pass, START), Next::Plan, "{witness:?}");
    }
}
