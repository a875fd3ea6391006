//! What a job has beside its snapshot and its JobSet: Secrets, ConfigMaps, and a PodGroup.

use serde_json::json;
use trainjob_api::ClusterTrainingRuntime;
use trainjob_core::{
    Action,
    action::Waiting,
    build::{Runtime, build, snapshot},
    facts::PodGroupFacts,
    observed::{NameConflict, Reading},
};

use crate::{
    common::{patches, runtime, set_spec},
    scene::{CREATED, ENDS, Group, Scene, UID, built, ended, new, status_write, words, written},
};

/// The ConfigMap of its job.
const HOSTFILE: &str = "tj-mpi-hostfile";

/// A runtime whose jobs need a ConfigMap and a Secret.
fn mpi_runtime() -> Runtime {
    let replicated_job = |name: &str| {
        let containers = json!([{"name": "node", "image": "mpi"}]);
        json!({"name": name, "template": {"spec": {"template": {"spec": {"containers": containers}}}}})
    };
    let template =
        json!({"spec": {"replicatedJobs": [replicated_job("node"), replicated_job("launcher")]}});
    let spec = json!({"mlPolicy": {"mpi": {}}, "template": template});
    let runtime = json!({"metadata": {"name": "plain"}, "spec": spec});
    serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap().into()
}

/// A runtime whose jobs are gangs of `nodes` Pods.
fn gang_runtime(nodes: i32) -> Runtime {
    let mut gang = runtime("now");
    gang.spec.pod_group_policy = serde_json::from_value(json!({"coscheduling": {}})).unwrap();
    gang.spec.ml_policy = serde_json::from_value(json!({"numNodes": nodes})).unwrap();
    gang
}

fn on(scene: Scene, runtime: Runtime) -> Scene {
    Scene { runtime: Some(runtime), ..scene }
}

/// A new job of three Pods that start together or not at all.
fn gang() -> Scene {
    Scene { pod_group: Group::Absent, ..on(new(&json!({})), gang_runtime(3)) }
}

/// The PodGroup of this job, or of another, that asks for so many Pods.
fn group(members: i32, owner: &str) -> PodGroupFacts {
    let built = build(&gang().job, &gang_runtime(members)).unwrap().pod_group.unwrap();
    PodGroupFacts {
        uid: "uid-of-group".into(),
        resource_version: "80".into(),
        train_job_uid: Some(owner.into()),
        terminating: false,
        spec: built.spec,
    }
}

fn with_group(scene: Scene, group: PodGroupFacts) -> Scene {
    Scene { pod_group: Group::There(Box::new(group)), ..scene }
}

#[test]
fn secrets_and_config_maps_are_made_before_the_jobset_that_needs_them() {
    let scene = on(new(&json!({})), mpi_runtime());
    // Only the snapshot tells whether a Secret that is there is the job's own.
    assert_eq!(scene.words(CREATED), ["read snapshot"]);
    let absent = scene.clone().having_read(Reading::Absent);
    assert_eq!(
        absent.words(CREATED),
        ["probe Secret", "create snapshot", "create Secret", "create ConfigMap", "create JobSet"]
    );
    let frozen = snapshot::render(&scene.job, &mpi_runtime()).unwrap();
    let found = scene.having_read(Reading::Found(frozen));
    assert_eq!(found.words(CREATED), ["create Secret", "create ConfigMap", "create JobSet"]);
}

#[test]
fn a_name_that_somebody_else_has_taken_is_waited_for() {
    let mut scene = on(new(&json!({})), mpi_runtime()).having_read(Reading::Absent);
    for (taken, said) in [
        (
            NameConflict::Foreign { kind: "ConfigMap", name: HOSTFILE.into() },
            "is not known to belong to this TrainJob",
        ),
        (
            NameConflict::Foreign { kind: "Secret", name: "tj-mpi-ssh-auth".into() },
            "delete or rename it",
        ),
        (NameConflict::Terminating { name: HOSTFILE.into() }, "see which finalizer keeps it"),
    ] {
        scene.readings.name_conflict = Some(taken);
        let plan = scene.plan(CREATED);
        assert_eq!(words(&plan), ["write status", "tell TrainJobResourcesCreationFailed"]);
        assert_eq!(written(&plan), [("Waiting".into(), "True".into(), "NameConflict".into())]);
        assert_eq!(plan.waiting, Some(Waiting::Name));
        let message = &status_write(&plan).conditions.as_ref().unwrap()[0].message;
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn an_outdated_config_map_of_the_job_s_own_is_deleted_while_there_is_no_jobset() {
    let outdated = NameConflict::Outdated {
        name: HOSTFILE.into(),
        uid: "uid-of-hostfile".into(),
        resource_version: "70".into(),
    };
    let expected = Action::DeleteConfigMap {
        name: HOSTFILE.into(),
        uid: "uid-of-hostfile".into(),
        resource_version: "70".into(),
    };
    let deletes = |mut scene: Scene| {
        scene.readings.name_conflict = Some(outdated.clone());
        scene.plan(CREATED + 60).actions.contains(&expected)
    };
    for absent in [
        on(new(&json!({})), mpi_runtime()).having_read(Reading::Absent),
        on(new(&json!({"suspend": true})), mpi_runtime()).having_read(Reading::Absent),
    ] {
        assert!(deletes(absent));
    }
    for (what, scene) in [
        ("running", on(built(&json!({})), mpi_runtime())),
        ("suspended", on(built(&json!({"suspend": true})), mpi_runtime())),
        ("of another", on(new(&json!({})), mpi_runtime()).with_foreign_job_set(Some("other"))),
        ("going", on(built(&json!({})), mpi_runtime()).with_job_set_terminating(CREATED)),
        ("ended", on(ended(&json!({}), ENDS[0], CREATED), mpi_runtime())),
    ] {
        assert!(!deletes(scene), "{what}");
    }
    // Whether the TrainJob is still there is seen first.
    let mut doubtful = on(new(&json!({})), mpi_runtime());
    doubtful.readings.needs_existence_check = true;
    assert!(!deletes(doubtful));
}

#[test]
fn a_gang_has_its_group_before_its_jobset() {
    let scene = gang();
    assert_eq!(scene.words(CREATED), ["create snapshot", "create PodGroup", "create JobSet"]);
    let there = with_group(scene.clone(), group(3, UID));
    assert_eq!(there.words(CREATED), ["create snapshot", "create JobSet"]);
    let smaller = with_group(scene, group(2, UID)).plan(CREATED);
    assert_eq!(words(&smaller), ["create snapshot", "update PodGroup", "create JobSet"]);
    let Action::UpdatePodGroup { uid, resource_version, spec, .. } = &smaller.actions[1] else {
        panic!("{smaller:?}")
    };
    assert_eq!((uid.as_str(), resource_version.as_str()), ("uid-of-group", "80"));
    assert_eq!(spec["minMember"], 3);
}

#[test]
fn a_gang_waits_for_its_kind_to_be_installed_and_for_the_group_of_another_to_be_gone() {
    let going = PodGroupFacts { terminating: true, ..group(3, UID) };
    for (what, scene, reason) in [
        ("not served", Scene { pod_group: Group::NotServed, ..gang() }, Some("PodGroupNotServed")),
        ("foreign", with_group(gang(), group(3, "other")), Some("PodGroupConflict")),
        ("going", with_group(gang(), going), None),
    ] {
        // There may be a snapshot of another runtime, which asks for nothing of the kind.
        assert_eq!(scene.words(CREATED), ["read snapshot"], "{what}");
        let plan = scene.having_read(Reading::Absent).plan(CREATED);
        assert_eq!(plan.waiting, Some(Waiting::PodGroup), "{what}");
        match reason {
            Some(reason) => {
                assert_eq!(written(&plan), [("Waiting".into(), "True".into(), reason.into())]);
            }
            None => assert_eq!(words(&plan), Vec::<String>::new(), "{what}"),
        }
    }
}

#[test]
fn the_group_of_a_suspended_job_follows_it() {
    let runtime = gang_runtime(3);
    let mut scene = on(built(&json!({"suspend": true})), runtime.clone());
    scene.job_set().spec = build(&scene.job, &runtime).unwrap().job_set.spec;
    set_spec(&mut scene.job, &json!({"runtimePatches": patches("new")}));
    scene.readings.snapshot = Reading::Found(snapshot::render(&scene.job, &runtime).unwrap());
    scene.read_job_set();
    for (members, expected) in
        [(2, &["update PodGroup", "update JobSet"][..]), (3, &["update JobSet"])]
    {
        let plan = with_group(scene.clone(), group(members, UID)).plan(2_000);
        let actions: Vec<_> = words(&plan).into_iter().filter(|it| it != "write status").collect();
        assert_eq!(actions, expected);
    }
}

#[test]
fn the_group_goes_with_the_end_whatever_the_end_and_only_the_job_s_own() {
    for end in ENDS {
        let scene = ended(&json!({}), end, 2_000);
        let deletes = |scene: &Scene| scene.words(2_001).contains(&"delete PodGroup".into());
        assert!(deletes(&with_group(scene.clone(), group(3, UID))), "{end:?}");
        assert!(!deletes(&with_group(scene.clone(), group(3, "other"))), "{end:?}");
        let going = PodGroupFacts { terminating: true, ..group(3, UID) };
        assert!(!deletes(&with_group(scene, going)), "{end:?}");
    }
}
