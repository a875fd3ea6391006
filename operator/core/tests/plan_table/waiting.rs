//! Jobs that cannot go on: they wait, say why, and go on when they can (§1 "child", §8.4).

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use serde_json::json;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Action,
    action::Waiting,
    build::{Runtime, RuntimeKey, snapshot},
    event::Event,
    observed::Reading,
};

use crate::{
    common::{broken_runtime, condition, owner},
    scene::{CREATED, ENDS, Scene, UID, built, ended, new, status_write, words, written},
};

fn plain() -> RuntimeKey {
    RuntimeKey::Cluster { name: "plain".into() }
}

fn with_runtime(scene: Scene, runtime: Option<Runtime>) -> Scene {
    Scene { runtime, ..scene }
}

fn unusable_snapshot() -> ConfigMap {
    ConfigMap { data: None, ..new(&json!({})).snapshot("then") }
}

/// Jobs that wait, with what for, the reason they show, and a word of the message.
fn obstacles() -> Vec<(Scene, Waiting, &'static str, &'static str)> {
    let scene = new(&json!({}));
    let mut foreign = scene.snapshot("then");
    foreign.metadata.owner_references = Some(vec![owner("predecessor")]);
    let absent = scene.clone().having_read(Reading::Absent);
    let broken = with_runtime(absent.clone(), Some(broken_runtime()));
    let unbuildable = snapshot::render(&scene.job, &broken_runtime()).unwrap();
    let found = |config_map| scene.clone().having_read(Reading::Found(config_map));
    vec![
        (absent.without_runtime(), Waiting::Runtime(plain()), "RuntimeNotFound", "plain"),
        (broken, Waiting::Runtime(plain()), "BuildFailed", "mlPolicy.mpi"),
        (found(foreign), Waiting::Snapshot, "SnapshotConflict", "another object"),
        (found(unusable_snapshot()), Waiting::Snapshot, "SnapshotConflict", "missing"),
        (found(unbuildable), Waiting::Snapshot, "BuildFailed", "mlPolicy.mpi"),
        (scene.with_foreign_job_set(None), Waiting::JobSet, "JobSetConflict", "ns/tj"),
    ]
}

#[test]
fn a_job_that_cannot_go_on_says_so_once_and_does_nothing_else() {
    for (scene, waiting, reason, word) in obstacles() {
        let plan = scene.plan(2_000);
        assert_eq!(words(&plan), ["write status", "tell TrainJobResourcesCreationFailed"]);
        assert_eq!(written(&plan), [("Waiting".into(), "True".into(), reason.into())]);
        let message = status_write(&plan).conditions.as_ref().unwrap()[0].message.clone();
        assert!(message.contains(word), "{message}");
        assert_eq!(plan.actions[1], Action::RecordEvent(Event::CreationFailed(message)));
        assert_eq!(plan.waiting.as_ref(), Some(&waiting));

        let said = scene.after(&plan).plan(3_000);
        assert_eq!((words(&said), said.waiting), (vec![], Some(waiting)), "{reason}");
    }
}

#[test]
fn the_jobset_of_a_predecessor_is_told_of_only_when_it_stays() {
    let scene = new(&json!({})).with_foreign_job_set(Some("predecessor"));
    let soon = scene.plan(CREATED + 9);
    assert_eq!((words(&soon), soon.waiting), (vec![], Some(Waiting::JobSet)));
    assert_eq!(soon.next, Some(Timestamp(CREATED + 10)));
    let later = scene.plan(CREATED + 10);
    assert_eq!(words(&later), ["write status", "tell TrainJobResourcesCreationFailed"]);
}

#[test]
fn a_job_keeps_saying_that_it_waits_until_it_is_known_not_to() {
    // What was read is forgotten in between, so each time it has to be found out anew.
    for (scene, _, reason, _) in obstacles() {
        let waits = scene.clone().after(&scene.plan(2_000));
        let asked_again = waits.having_read(Reading::NotRead);
        let words = asked_again.words(3_000);
        assert!(!words.contains(&"write status".into()), "{reason}: {words:?}");
    }
}

#[test]
fn the_condition_goes_when_the_runtime_comes_and_otherwise_when_the_job_has_its_jobset() {
    for (reason, while_creating) in [
        ("RuntimeNotFound", &["write status", "create snapshot", "create JobSet"][..]),
        ("BuildFailed", &["create snapshot", "create JobSet"]),
        ("SnapshotConflict", &["create snapshot", "create JobSet"]),
        ("JobSetConflict", &["create snapshot", "create JobSet"]),
    ] {
        let waits = [condition("Waiting", "True", reason, 1_500)];
        let creating = new(&json!({})).with_conditions(&waits);
        assert_eq!(creating.words(2_000), while_creating, "{reason}");
        let plan = built(&json!({})).with_conditions(&waits).plan(2_000);
        assert_eq!((words(&plan), written(&plan)), (vec!["write status".into()], vec![]));
    }
}

#[test]
fn another_obstacle_is_news_but_no_transition() {
    let waits = condition("Waiting", "True", "RuntimeNotFound", 1_500);
    let scene = new(&json!({})).with_foreign_job_set(None).with_conditions(&[waits]);
    let plan = scene.plan(2_000);
    assert_eq!(words(&plan), ["write status", "tell TrainJobResourcesCreationFailed"]);
    let [waiting] = &status_write(&plan).conditions.clone().unwrap()[..] else { panic!() };
    assert_eq!(waiting.reason, "JobSetConflict");
    assert_eq!(Timestamp::from(&waiting.last_transition_time), Timestamp(1_500));
}

#[test]
fn a_runtime_that_comes_late_is_used() {
    let scene = new(&json!({})).having_read(Reading::Absent);
    assert!(!scene.clone().without_runtime().words(2_000).contains(&"create JobSet".into()));
    assert_eq!(scene.words(2_000), ["create snapshot", "create JobSet"]);
}

/// Owners of a JobSet that make it somebody else's.
fn strangers() -> [Option<OwnerReference>; 5] {
    let no_controller = OwnerReference { controller: None, ..owner(UID) };
    let other_kind = OwnerReference { kind: "OptimizationJob".into(), ..owner(UID) };
    let other_group = OwnerReference { api_version: "example.com/v1".into(), ..owner(UID) };
    [None, Some(owner("predecessor")), Some(no_controller), Some(other_kind), Some(other_group)]
}

#[test]
fn a_jobset_of_somebody_else_is_never_taken_for_the_job_s_own() {
    let eager = json!({"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 9_000});
    let done = condition("Completed", "True", "AllJobsCompleted", 1_500);
    for stranger in strangers() {
        for suspend in [false, true] {
            for terminating in [false, true] {
                let theirs = |mut scene: Scene| {
                    scene = scene.with_foreign_job_set(None);
                    scene.job_set().metadata.owner_references = stranger.clone().map(|o| vec![o]);
                    scene = scene.with_active(5).with_job_set_suspended(!suspend);
                    scene = scene.with_job_set_condition(done.clone());
                    if terminating { scene.with_job_set_terminating(1_100) } else { scene }
                };
                let fields = json!({"suspend": suspend});
                let mut scenes = vec![
                    new(&fields),
                    new(&fields).terminating(),
                    new(&eager),
                    new(&eager).terminating(),
                ];
                scenes.extend(ENDS.map(|end| ended(&eager, end, 1_050)));
                for scene in scenes.into_iter().map(theirs) {
                    let plan = scene.plan(2_000);
                    for action in &plan.actions {
                        assert!(
                            matches!(action, Action::WriteStatus(write) if write.jobs_status.is_none())
                                || matches!(
                                    action,
                                    Action::RecordEvent(_) | Action::CheckPods { .. }
                                ),
                            "{stranger:?}: {action:?}"
                        );
                    }
                    let complete = matches!(plan.actions.first(), Some(Action::WriteStatus(_)))
                        && written(&plan).iter().any(|(kind, ..)| kind == "Complete");
                    assert!(!complete, "{stranger:?}: {plan:?}");
                }
            }
        }
    }
}

#[test]
fn the_jobset_of_a_predecessor_is_waited_for_until_it_is_gone() {
    let predecessor = Some("predecessor");
    let scene = new(&json!({})).with_foreign_job_set(predecessor).with_job_set_terminating(900);
    assert_eq!(scene.plan(2_000).waiting, Some(Waiting::JobSet));
    assert_eq!(scene.without_job_set().words(2_000), ["create snapshot", "create JobSet"]);
}
