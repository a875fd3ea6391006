//! Unfinished jobs whose manifest has made room for others: what their facts alone call for. And those whose runtime has.

use serde_json::json;
use trainjob_core::{
    Action,
    build::RuntimeKey,
    event::Event,
    observed::{Reading, Settings},
    take_over::Comparison,
};

use crate::{
    common::condition,
    scene::{CREATED, Scene, built, new},
};

fn suspended(scene: Scene) -> Scene {
    let mut recorded = condition("Suspended", "True", "Suspended", CREATED);
    recorded.message = "TrainJob is suspended".into();
    scene.with_conditions(&[recorded])
}

/// A job with a deadline at 2,000, suspended or not, and its JobSet; its status says what it should.
fn settled(suspend: bool) -> Scene {
    let scene = built(&json!({"suspend": suspend, "activeDeadlineSeconds": 1_000}));
    let scene = if suspend { suspended(scene) } else { scene };
    Scene { comparison: Comparison::OnResume, is_evicted: true, ..scene }
}

#[test]
fn settled_job_is_not_read_and_its_deadline_stays_armed() {
    for suspend in [false, true] {
        let plan = settled(suspend).plan(1_500);
        assert_eq!(plan.actions, [], "suspended: {suspend}");
        assert_eq!(plan.next.map(|at| at.0), Some(2_000), "suspended: {suspend}");
    }
}

#[test]
fn job_for_which_something_is_to_be_done_is_read_first() {
    let evicted = |scene| Scene { is_evicted: true, ..scene };
    let waiting = condition("Waiting", "True", "RuntimeNotFound", CREATED);
    for (what, scene, now) in [
        ("its deadline is due", settled(false), 2_000),
        ("it has no JobSet", evicted(new(&json!({}))), 1_500),
        (
            "its JobSet is somebody else's",
            settled(false).with_foreign_job_set(Some("other")),
            1_500,
        ),
        ("it is to be resumed", settled(false).with_job_set_suspended(true), 1_500),
        ("it is to be suspended", settled(true).with_job_set_suspended(false), 1_500),
        ("its JobSet is being deleted", settled(false).with_job_set_terminating(1_400), 1_500),
        (
            "its JobSet has ended",
            settled(false).with_job_set_condition(condition(
                "Completed",
                "True",
                "AllJobsCompleted",
                1_400,
            )),
            1_500,
        ),
        ("its status does not say that it is suspended", settled(true).with_conditions(&[]), 1_500),
        ("it says that it waits", settled(false).with_conditions(&[waiting]), 1_500),
        (
            "its JobSet is to be compared",
            Scene { comparison: Comparison::Due, ..settled(true) },
            1_500,
        ),
    ] {
        assert_eq!(scene.words(now), ["read TrainJob"], "{what}");
    }
}

#[test]
fn counts_are_written_and_the_deadline_is_announced_without_the_manifest() {
    assert_eq!(settled(false).with_active(1).words(1_500), ["write status"]);
    let mut scene = settled(false);
    scene.job.spec.active_deadline_seconds = Some(10_000);
    scene.settings = Settings { deadline_warning: 600, ..Settings::default() };
    let plan = scene.plan(CREATED + 10_000 - 600);
    let events: Vec<_> = plan.actions.iter().collect();
    assert!(
        matches!(events[..], [Action::RecordEvent(Event::DeadlineApproaching(_))]),
        "{events:?}"
    );
}

#[test]
fn runtime_is_read_where_something_is_made_from_it_and_nowhere_else() {
    let evicted = |scene| Scene { is_runtime_evicted: true, ..scene };
    let (unread, absent) = (Reading::NotRead, Reading::Absent);
    let found = Reading::Found(new(&json!({})).snapshot("then"));
    let fresh = || new(&json!({}));
    let suspended_one = || suspended(built(&json!({"suspend": true})));
    let waiting = condition("Waiting", "True", "RuntimeNotFound", CREATED);
    for (what, scene, snapshot, expected) in [
        ("new", fresh(), unread.clone(), &["read runtime"][..]),
        ("new, without a snapshot", fresh(), absent.clone(), &["read runtime"]),
        ("frozen", fresh(), found.clone(), &["create JobSet"]),
        ("to be compared", suspended_one(), unread.clone(), &["read snapshot", "read JobSet"]),
        ("to be compared, without a snapshot", suspended_one(), absent, &["read runtime"]),
        ("to be compared, frozen", suspended_one(), found, &["read JobSet"]),
        ("running", built(&json!({})), unread.clone(), &[]),
        (
            "told that there is none",
            fresh().with_conditions(&[waiting]),
            unread,
            &["write status", "read runtime"],
        ),
    ] {
        assert_eq!(evicted(scene.having_read(snapshot)).words(1_500), expected, "{what}");
    }
    let plan = evicted(fresh()).plan(1_500);
    let runtime = fresh().runtime.map(|runtime| runtime.key);
    assert_eq!(plan.actions, runtime.map(Action::ReadRuntime).as_slice());
    assert!(matches!(&plan.actions[..], [Action::ReadRuntime(RuntimeKey::Cluster { .. })]));
}
