//! What a job is made into, and from what (`trainer-behaviour` §2.8, §3.11).

use serde_json::json;
use trainjob_api::{JobSet, time::Timestamp};
use trainjob_core::{
    Action, Plan,
    action::Waiting,
    build::{build, snapshot},
    mark::Marking,
    observed::Reading,
    text::Text,
};

use crate::{
    common::{broken_runtime, owner, runtime, set_spec},
    scene::{CREATED, UID, built, new, words, written},
};

/// The JobSet that a plan creates last.
fn created(plan: &Plan) -> JobSet {
    match plan.actions.last() {
        Some(Action::CreateJobSet { job_set, .. }) => job_set.read().unwrap(),
        other => panic!("no JobSet but {other:?}"),
    }
}

#[test]
fn a_new_job_freezes_its_runtime_and_gets_its_jobset() {
    for suspend in [false, true] {
        let scene = new(&json!({"suspend": suspend}));
        let plan = scene.plan(CREATED);
        let expected = build(&scene.job, &runtime("now")).unwrap().job_set;
        let frozen = snapshot::render(&scene.job, &runtime("now")).unwrap();
        let made = plan.actions.iter().filter(|a| !matches!(a, Action::WriteStatus(_)));
        assert_eq!(
            made.collect::<Vec<_>>(),
            [
                &Action::CreateSnapshot(frozen.into()),
                &Action::CreateJobSet {
                    job_set: Text::of(&expected).unwrap(),
                    marking: Marking::Off
                }
            ]
        );
        assert_eq!(expected.spec.suspend, Some(suspend));
        assert_eq!(expected.metadata.owner_references, Some(vec![owner(UID)]));
        assert_eq!((plan.next, plan.waiting), (None, None));
        assert!(plan.applied_spec_hash.is_some());
    }
}

#[test]
fn a_job_that_may_have_gone_with_its_jobset_is_looked_for_before_anything_is_made_anew() {
    let mut scene = new(&json!({"activeDeadlineSeconds": 60}));
    scene.readings.needs_existence_check = true;
    assert_eq!(scene.words(CREATED), ["read TrainJob"]);
    // Nothing is made for it, so nothing has to be asked.
    let terminating = scene.clone().terminating();
    assert_eq!(terminating.words(CREATED), Vec::<String>::new());
    assert_eq!(scene.words(CREATED + 60), ["write status", "tell DeadlineExceeded"]);
}

#[test]
fn a_job_that_has_a_snapshot_is_made_from_it_whatever_became_of_its_runtime() {
    let scene = new(&json!({}));
    let snapshot = scene.snapshot("then");
    for (what, runtime) in
        [("edited", Some(runtime("now"))), ("broken", Some(broken_runtime())), ("gone", None)]
    {
        let mut scene = scene.clone().having_read(Reading::Found(snapshot.clone()));
        scene.runtime = runtime;
        let plan = scene.plan(CREATED);
        assert_eq!(words(&plan), ["create JobSet"], "{what}");
        assert!(format!("{:?}", created(&plan)).contains("then"), "{what}");
    }
}

#[test]
fn whether_there_is_a_snapshot_is_found_out_by_creating_it_or_by_reading_where_that_cannot_be() {
    let scene = new(&json!({}));
    let (absent, broken) = (Reading::Absent, Some(broken_runtime()));
    for (what, runtime, snapshot, expected) in [
        ("new", scene.runtime.clone(), Reading::NotRead, &["create snapshot", "create JobSet"][..]),
        ("read", scene.runtime.clone(), absent.clone(), &["create snapshot", "create JobSet"]),
        ("no runtime", None, Reading::NotRead, &["read snapshot"]),
        ("broken runtime", broken, Reading::NotRead, &["read snapshot"]),
    ] {
        let mut scene = scene.clone().having_read(snapshot);
        scene.runtime = runtime;
        let plan = scene.plan(CREATED);
        assert_eq!(words(&plan), expected, "{what}");
        assert_eq!(plan.waiting, None, "{what}");
    }
}

#[test]
fn an_unfinished_job_gets_its_jobset_again_when_somebody_deletes_it_but_not_before_it_is_gone() {
    let scene = built(&json!({}));
    let going = scene.clone().with_job_set_terminating(2_000).plan(2_000);
    assert_eq!((words(&going), going.waiting), (vec![], Some(Waiting::JobSet)));
    assert_eq!(going.next, Some(Timestamp(2_060)));
    let kept = scene.clone().with_job_set_terminating(2_000).plan(2_060);
    let told = ["write status", "tell TrainJobResourcesCreationFailed"];
    assert_eq!(words(&kept), told);
    assert_eq!(kept.waiting, Some(Waiting::JobSet));
    assert_eq!(written(&kept), [("Waiting".into(), "True".into(), "JobSetTerminating".into())]);
    assert_eq!(scene.without_job_set().words(2_000), ["create snapshot", "create JobSet"]);
}

#[test]
fn what_lifecycle_fields_say_makes_no_other_jobset_and_everything_else_does() {
    let applied_spec_hash = |fields| new(&fields).plan(CREATED).applied_spec_hash.unwrap();
    let plain = applied_spec_hash(json!({}));
    for same in [
        json!({"suspend": true}),
        json!({"activeDeadlineSeconds": 60}),
        json!({"ttlSecondsAfterFinished": 60}),
    ] {
        assert_eq!(applied_spec_hash(same.clone()), plain, "{same}");
    }
    for different in [
        json!({"trainer": {}}),
        json!({"trainer": {"image": "other"}}),
        json!({"runtimePatches": []}),
        json!({"runtimePatches": crate::common::patches("1")}),
        json!({"runtimePatches": crate::common::patches("2")}),
    ] {
        assert_ne!(applied_spec_hash(different.clone()), plain, "{different}");
    }
    let mut edited = new(&json!({"trainer": {"image": "a"}}));
    let before = edited.plan(CREATED).applied_spec_hash;
    set_spec(&mut edited.job, &json!({"trainer": {"image": "b"}}));
    assert_ne!(edited.plan(CREATED).applied_spec_hash, before);
}
