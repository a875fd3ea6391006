//! The release of what a job held that its deadline failed (§1 "released", §2.9, §3.3b).

use serde_json::json;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Action, Plan,
    action::{DeletionReason, Waiting, WaitingChange},
    observed::Reading,
    running_pods::{Cause, RunningPod, RunningPods},
};

use crate::scene::{JOB_SET_UID, Scene, deletion, ended, words};

const BY_DEADLINE: (&str, &str) = ("Failed", "DeadlineExceeded");

/// A job that its deadline failed at 2000, with a TTL that has passed.
fn failed(pods: Reading<RunningPods>) -> Scene {
    let mut scene = ended(&json!({"ttlSecondsAfterFinished": 60}), BY_DEADLINE, 2_000);
    scene.readings.pods = pods;
    scene
}

#[test]
fn a_job_that_its_deadline_failed_is_released_only_when_its_pods_are_seen_gone() {
    let unknown = Reading::NotRead;
    let running = Reading::Found(RunningPods::unnamed());
    let gone = Reading::Absent;
    let going =
        |since: i64, pods: &Reading<_>| failed(pods.clone()).with_job_set_terminating(since);
    let without = |pods: &Reading<_>| failed(pods.clone()).without_job_set();
    // At 3000, for each: what is done, what it waits for, and when it is looked at again.
    let (release, finalizer) = (Some(Waiting::Release), Some(Waiting::Finalizer));
    for (what, scene, done, waiting, next) in [
        ("its JobSet runs", failed(unknown.clone()), "delete JobSet", None, None),
        ("its JobSet runs, read before", failed(gone.clone()), "delete JobSet", None, None),
        ("its JobSet goes", going(2_970, &unknown), "", None, Some(3_030)),
        ("its JobSet goes, its Pods are gone", going(2_970, &gone), "", None, Some(3_030)),
        ("its JobSet goes, its Pods run", going(2_970, &running), "", None, Some(3_030)),
        ("its JobSet has been going for long", going(2_940, &unknown), "check Pods", None, None),
        ("its Pods take long", going(2_940, &running), "", release.clone(), None),
        (
            "a finalizer keeps its JobSet",
            going(2_940, &gone),
            "tell ReleaseBlockedwrite waiting",
            finalizer,
            None,
        ),
        ("its JobSet is gone", without(&unknown), "check Pods", None, None),
        ("its JobSet is gone, its Pods run", without(&running), "", release, None),
    ] {
        let plan = scene.plan(3_000);
        assert_eq!(words(&plan).concat(), done, "{what}");
        assert_eq!((plan.waiting, plan.next), (waiting, next.map(Timestamp)), "{what}");
    }
}

#[test]
fn its_ttl_awaits_its_release_and_counts_from_its_failure() {
    let plan = failed(Reading::Absent).without_job_set().plan(3_000);
    assert_eq!(words(&plan), ["delete TrainJob", "tell TTLExpired"]);
    assert_eq!(deletion(&plan).due, Timestamp(2_060));
    assert_eq!(failed(Reading::Absent).without_job_set().plan(2_059).next, Some(Timestamp(2_060)));
}

#[test]
fn the_deletion_of_a_jobset_is_planned_until_it_is_under_way_however_often_it_failed() {
    for now in [2_000, 2_001, 90_000] {
        let expected =
            Action::DeleteJobSet { uid: JOB_SET_UID.into(), reason: DeletionReason::JobEnded };
        assert_eq!(failed(Reading::NotRead).plan(now).actions, [expected], "at {now}");
    }
}

#[test]
fn pods_of_somebody_else_s_jobset_of_the_same_name_do_not_count() {
    let alone = failed(Reading::NotRead).without_job_set();
    for (scene, except_job_set) in [
        (alone.clone(), None),
        (alone.with_foreign_job_set(Some("predecessor")), Some(JOB_SET_UID.into())),
        (failed(Reading::NotRead).with_job_set_terminating(2_000), None),
    ] {
        let check = Action::CheckPods { except_job_set, name_them: true };
        assert_eq!(scene.plan(3_000).actions, [check]);
    }
}

#[test]
fn a_release_goes_on_while_the_job_is_being_deleted() {
    let words = |scene: Scene| scene.terminating().words(3_000);
    assert_eq!(words(failed(Reading::NotRead)), ["delete JobSet"]);
    assert_eq!(words(failed(Reading::NotRead).without_job_set()), ["check Pods"]);
    assert_eq!(words(failed(Reading::Absent).without_job_set()), [""; 0]);
}

#[test]
fn the_counts_of_a_job_that_its_deadline_failed_stay_as_they_were() {
    let scene = failed(Reading::NotRead).with_active(1).with_job_set_terminating(2_990);
    assert_eq!(scene.words(3_000), [""; 0]);
}

#[test]
fn only_what_must_be_asked_for_again_is() {
    assert!(Waiting::Release.must_ask_again() && Waiting::Snapshot.must_ask_again());
    assert!(!Waiting::Finalizer.must_ask_again() && !Waiting::JobSet.must_ask_again());
}

fn named(names: &[&str]) -> Reading<RunningPods> {
    let pod = |name: &&str| RunningPod {
        name: (*name).into(),
        node: Some("n1".into()),
        since: Timestamp(1_500),
        cause: Cause::NodeNotReady,
    };
    Reading::Found(RunningPods { named: names.iter().map(pod).collect(), more: false })
}

/// The same job, with the condition that it has been given, if it was given one.
fn after(scene: &Scene, plan: &Plan) -> Scene {
    let mut scene = scene.clone();
    let mut list = scene.status().conditions.clone().unwrap();
    for action in &plan.actions {
        let Action::WriteWaiting(write) = action else { continue };
        match &write.change {
            WaitingChange::Add(condition) => list.insert(0, condition.clone()),
            WaitingChange::Update { index, reason, message, .. } => {
                list[*index].reason = reason.as_str().into();
                list[*index].message.clone_from(message);
            }
            WaitingChange::Remove { index } => {
                list.remove(*index);
            }
        }
    }
    scene.status().conditions = Some(list);
    scene
}

#[test]
fn a_job_that_is_not_released_says_once_which_pods_still_run_and_stops_saying_so() {
    let text = |scene: &mut Scene| {
        let conditions = scene.status().conditions.clone().unwrap();
        let kinds: Vec<_> = conditions.iter().map(|condition| &*condition.type_).collect();
        (kinds.concat(), conditions[0].message.clone())
    };
    let scene = failed(named(&["a", "b"])).without_job_set();
    let plan = scene.plan(3_000);
    assert_eq!(words(&plan), ["tell ReleaseDelayed", "write waiting"]);
    let mut scene = after(&scene, &plan);
    let (kinds, first) = text(&mut scene);
    assert_eq!(kinds, "WaitingFailed", "the last condition stays the terminal one");
    assert!(first.contains("Pod a on node n1 since"), "{first}");
    assert!(first.contains("its node is not ready"), "{first}");
    assert_eq!(scene.words(3_600), ["tell ReleaseDelayed"], "nothing has changed");

    scene.readings.pods = named(&["b"]);
    let plan = scene.plan(3_601);
    assert_eq!(words(&plan), ["tell ReleaseDelayed", "write waiting"]);
    let mut scene = after(&scene, &plan);
    let (kinds, then) = text(&mut scene);
    assert_eq!(kinds, "WaitingFailed");
    assert!(then.contains("Pod b on node n1") && !then.contains("Pod a"), "{then}");

    scene.readings.pods = Reading::Absent;
    scene.job.spec.ttl_seconds_after_finished = None;
    let plan = scene.plan(3_700);
    assert_eq!(words(&plan), ["write waiting"]);
    let mut scene = after(&scene, &plan);
    assert_eq!(text(&mut scene).0, "Failed");
    assert_eq!(scene.words(3_701), [""; 0]);
}

#[test]
fn nothing_is_said_of_a_release_that_has_just_begun() {
    for (now, name_them) in [(2_000, false), (2_009, false), (2_010, true)] {
        let check = Action::CheckPods { except_job_set: None, name_them };
        assert_eq!(failed(Reading::NotRead).without_job_set().plan(now).actions, [check], "{now}");
    }
    let unnamed = failed(Reading::Found(RunningPods::unnamed())).without_job_set();
    assert_eq!(unnamed.words(2_001), [""; 0]);
}

#[test]
fn a_pod_that_no_jobset_made_is_told_of_and_holds_up_nothing() {
    let mut scene = failed(Reading::Absent).without_job_set();
    scene.readings.stray_pod = Some("by-hand".into());
    assert_eq!(scene.words(3_000), ["delete TrainJob", "tell TTLExpired", "tell StrayPod"]);
    assert_eq!(scene.words(2_001), ["tell StrayPod"]);
    scene.readings.pods = named(&["a"]);
    assert_eq!(scene.words(3_000), ["tell StrayPod", "tell ReleaseDelayed", "write waiting"]);
}
