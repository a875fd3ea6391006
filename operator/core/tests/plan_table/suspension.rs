//! Suspending and resuming (`trainer-behaviour` §3.11), and what may change meanwhile.

use serde_json::{Value, json};
use trainjob_api::JobSet;
use trainjob_core::{
    Action, Plan,
    action::{DeletionReason, Waiting},
    build::snapshot,
    observed::Reading,
    take_over::Comparison,
};

use crate::{
    common::{broken_runtime, condition, patches, set_spec},
    scene::{CREATED, JOB_SET_UID, JOB_SET_VERSION, Scene, built, new, words},
};

/// A job that says `suspend` and whose JobSet is suspended or not; its status says what it should.
fn job(suspend: bool, job_set_suspended: bool) -> Scene {
    let mut recorded = condition("Suspended", "True", "Suspended", CREATED);
    recorded.message = "TrainJob is suspended".into();
    let conditions = if suspend { vec![recorded] } else { vec![] };
    built(&json!({"suspend": suspend}))
        .with_job_set_suspended(job_set_suspended)
        .with_conditions(&conditions)
}

/// The same after its patches were changed, with its JobSet as it was.
fn patched(mut scene: Scene) -> Scene {
    set_spec(&mut scene.job, &json!({"runtimePatches": patches("new")}));
    scene
}

/// The same, with everything read that following the job may take.
fn read(mut scene: Scene) -> Scene {
    scene.readings.snapshot = Reading::Found(scene.snapshot("now"));
    scene.read_job_set();
    scene
}

fn resume(suspend: bool) -> Action {
    Action::SuspendJobSet {
        uid: JOB_SET_UID.into(),
        resource_version: JOB_SET_VERSION.into(),
        suspend,
    }
}

/// What the patches of a job say in its JobSet.
fn patch_of(job_set: &JobSet) -> Value {
    let job_set = serde_json::to_value(job_set).unwrap();
    job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"]["labels"]
        ["patch"]
        .clone()
}

#[test]
fn a_jobset_is_suspended_and_resumed_with_its_job_and_left_alone_while_it_runs() {
    for (suspend, job_set_suspended, expected) in [
        (true, false, vec![resume(true)]),
        (true, true, vec![]),
        (false, true, vec![resume(false)]),
        (false, false, vec![]),
    ] {
        let plan = job(suspend, job_set_suspended).up_to_date().plan(2_000);
        assert_eq!(plan.actions, expected, "job {suspend}, JobSet {job_set_suspended}");
        assert_eq!((plan.applied_spec_hash, plan.waiting), (None, None));
    }
}

#[test]
fn manual_edits_of_a_running_jobset_survive_and_edits_of_its_job_do_not_reach_it() {
    let mut scene = patched(job(false, false)).up_to_date();
    assert_eq!(scene.plan(2_000), Plan::default());
    scene.readings.applied_spec_hash = None;
    assert_eq!(scene.plan(2_000), Plan::default());
}

#[test]
fn stopping_comes_first_and_takes_one_call() {
    // Even where the job was changed too, and nothing is known of what its JobSet was made from.
    assert_eq!(patched(job(true, false)).plan(2_000).actions, [resume(true)]);
}

#[test]
fn the_end_of_a_suspension_is_recorded_before_the_jobset_is_resumed() {
    let scene = job(false, true).up_to_date().with_conditions(&[condition(
        "Suspended",
        "True",
        "Suspended",
        1_100,
    )]);
    assert_eq!(scene.words(2_000), ["write status", "resume JobSet"]);
}

#[test]
fn a_suspended_jobset_follows_its_job() {
    for suspend in [true, false] {
        let scene = patched(job(suspend, true));
        let before = job(suspend, true).up_to_date();
        for (what, applied_spec_hash) in
            [("unknown", None), ("older", before.readings.applied_spec_hash)]
        {
            let mut scene = scene.clone();
            scene.readings.applied_spec_hash = applied_spec_hash;
            assert_eq!(scene.words(2_000), ["read snapshot", "read JobSet"], "{what}");

            scene.readings.snapshot = Reading::Found(scene.snapshot("now"));
            assert_eq!(scene.words(2_000), ["read JobSet"], "{what}");

            scene.read_job_set();
            let plan = scene.plan(2_000);
            let job_set = scene.updated(&plan);
            assert_eq!(patch_of(&job_set), "new", "{what}");
            assert_eq!(job_set.spec.suspend, Some(suspend), "changed and resumed in one call");
            assert_eq!(job_set.metadata.uid.as_deref(), Some(JOB_SET_UID));
            assert_eq!(job_set.metadata.resource_version.as_deref(), Some(JOB_SET_VERSION));
            assert_eq!(
                plan.applied_spec_hash,
                scene.up_to_date().readings.applied_spec_hash,
                "{what}"
            );
        }
    }
}

#[test]
fn a_suspended_jobset_that_needs_no_change_is_known_to_from_then_on() {
    let scene = read(job(true, true));
    let plan = scene.plan(2_000);
    assert_eq!(
        (words(&plan), plan.applied_spec_hash),
        (vec![], scene.up_to_date().readings.applied_spec_hash)
    );
}

#[test]
fn a_job_whose_snapshot_is_gone_freezes_its_runtime_again() {
    let mut scene = read(patched(job(false, true)));
    scene.readings.snapshot = Reading::Absent;
    assert_eq!(scene.words(2_000), ["create snapshot", "update JobSet"]);
}

#[test]
fn that_nobody_knows_what_a_jobset_was_made_from_does_not_keep_it_from_running() {
    let mut foreign = new(&json!({})).snapshot("now");
    foreign.metadata.owner_references = None;
    for (what, snapshot) in [("gone", Reading::Absent), ("foreign", Reading::Found(foreign))] {
        for (suspend, expected) in [(false, vec![resume(false)]), (true, vec![])] {
            let scene = read(patched(job(suspend, true))).without_runtime();
            let plan = scene.having_read(snapshot.clone()).plan(2_000);
            assert_eq!((plan.actions, plan.waiting), (expected, None), "{what}, {suspend}");
        }
    }
}

#[test]
fn a_broken_runtime_keeps_only_that_jobset_from_running_that_was_made_from_it() {
    let scene = read(patched(job(false, true)));
    let mut edited_since = scene.clone().having_read(Reading::Absent);
    edited_since.runtime = Some(broken_runtime());
    let plan = edited_since.plan(2_000);
    assert_eq!((plan.actions, plan.waiting), (vec![resume(false)], None));
    let frozen = snapshot::render(&scene.job, &broken_runtime()).unwrap();
    let plan = scene.having_read(Reading::Found(frozen)).plan(2_000);
    assert_eq!(words(&plan), ["write status", "tell TrainJobResourcesCreationFailed"]);
    assert_eq!(plan.waiting, Some(Waiting::Snapshot));
}

#[test]
fn a_jobset_that_was_read_but_is_another_than_the_one_that_is_known_is_not_touched() {
    // Ours was deleted and another made in its place; the watch does not know it yet.
    let mut scene = read(patched(job(false, true)));
    scene.readings.job_set.as_mut().unwrap().uid = "other".into();
    assert_eq!(scene.words(2_000), ["read JobSet"]);
}

#[test]
fn a_job_set_is_made_suspended_or_running_as_the_job_says() {
    for suspend in [true, false] {
        let plan = new(&json!({"suspend": suspend})).plan(2_000);
        let Some(Action::CreateJobSet { job_set, .. }) = plan.actions.last() else {
            panic!("{plan:?}")
        };
        assert_eq!(job_set.read().unwrap().spec.suspend, Some(suspend));
    }
}

/// A suspended job after a change that JobSet does not let through, with everything read.
fn changed_for_good() -> Scene {
    let mut scene = job(true, true);
    set_spec(&mut scene.job, &json!({"trainer": {"image": "another"}}));
    read(scene)
}

#[test]
fn a_jobset_that_never_ran_is_made_anew_where_it_cannot_be_changed() {
    let mut scene = changed_for_good();
    scene.job_set().metadata.generation = Some(1);
    let plan = scene.plan(2_000);
    let reason = DeletionReason::Rebuild { resource_version: JOB_SET_VERSION.into() };
    let deletion = Action::DeleteJobSet { uid: JOB_SET_UID.into(), reason };
    assert_eq!(plan.actions, [deletion]);
    assert_eq!(plan.applied_spec_hash, None, "what it is made from is known when it is made");
    let unfrozen = scene.having_read(Reading::Absent);
    assert_eq!(unfrozen.words(2_000), ["create snapshot", "delete JobSet"]);
}

#[test]
fn a_jobset_that_has_begun_keeps_what_it_cannot_change_and_users_are_told_once() {
    for (what, generation, active) in [("resumed before", Some(3), 0), ("active", Some(1), 1)] {
        let mut scene = changed_for_good().with_active(active);
        scene.job_set().metadata.generation = generation;
        let plan = scene.plan(2_000);
        let actions: Vec<_> = words(&plan).into_iter().filter(|it| it != "write status").collect();
        assert_eq!(actions, ["tell ChangeNotApplied"], "{what}");
        scene.readings.applied_spec_hash = plan.applied_spec_hash;
        let again: Vec<_> =
            scene.words(2_000).into_iter().filter(|it| it != "write status").collect();
        assert_eq!(again, Vec::<String>::new(), "{what}");
    }
}

#[test]
fn suspended_jobset_that_nobody_changed_since_the_take_over_is_compared_when_it_is_resumed() {
    let read = || vec!["read snapshot".to_owned(), "read JobSet".to_owned()];
    for (suspend, comparison, expected) in [
        (true, Comparison::OnResume, vec![]),
        (true, Comparison::Due, read()),
        (false, Comparison::OnResume, read()),
        (false, Comparison::Due, read()),
    ] {
        let scene = Scene { comparison, ..patched(job(suspend, true)) };
        assert_eq!(scene.words(2_000), expected, "suspended: {suspend}, {comparison:?}");
    }
}

#[test]
fn suspended_jobset_of_a_job_that_says_it_waits_is_compared_at_once() {
    let waiting = condition("Waiting", "True", "BuildFailed", CREATED);
    let mut scene = Scene { comparison: Comparison::OnResume, ..job(true, true) };
    let conditions = scene.job.status.as_ref().and_then(|status| status.conditions.clone());
    scene = scene.with_conditions(&[conditions.unwrap(), vec![waiting]].concat());
    assert_eq!(scene.words(2_000), ["read snapshot", "read JobSet"]);
}
