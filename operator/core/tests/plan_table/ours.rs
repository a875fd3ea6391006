//! Jobs that somebody else manages (§1, T1).

use serde_json::json;
use trainjob_core::{Plan, observed::Settings};

use crate::{
    common::{condition, set_spec},
    scene::{CREATED, ENDS, Scene, built, deletion, ended, new},
};

const ELSEWHERE: &str = "kueue.x-k8s.io/multikueue";

fn elsewhere(mut scene: Scene) -> Scene {
    set_spec(&mut scene.job, &json!({"managedBy": ELSEWHERE}));
    scene
}

fn with_ttl(mut scene: Scene) -> Scene {
    scene.settings = Settings { ttl_for_managed_elsewhere: true, ..scene.settings };
    scene
}

#[test]
fn a_job_that_somebody_else_manages_is_left_alone() {
    let eager = json!({"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0});
    let unknown = json!({"runtimeRef": {"name": "plain", "kind": "Unknown"}});
    for (what, scene) in [
        ("new", new(&json!({}))),
        ("suspended", new(&json!({"suspend": true}))),
        ("past its deadline", built(&eager)),
        ("past its deadline and terminating", built(&eager).terminating()),
        ("on an unknown kind of runtime", new(&unknown)),
        ("out of range", new(&json!({"ttlSecondsAfterFinished": -1}))),
        ("to be resumed", built(&json!({})).with_job_set_suspended(true)),
        ("with news of its JobSet", built(&json!({})).with_active(1)),
        ("complete and past its TTL", ended(&eager, ENDS[0], 2_000)),
        ("failed by a deadline", ended(&eager, ENDS[3], 2_000)),
        (
            "with the end of its JobSet",
            built(&json!({})).with_job_set_condition(condition("Completed", "True", "r", 2_000)),
        ),
        ("with a late JobSet", ended(&json!({}), ENDS[0], 2_000).with_job_set_created(3_000)),
    ] {
        assert_eq!(elsewhere(scene).plan(9_999), Plan::default(), "{what}");
    }
}

#[test]
fn its_ttl_counts_where_the_settings_say_so_and_nothing_else_of_it() {
    let eager = json!({"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 60});
    for end in ENDS {
        let scene = with_ttl(elsewhere(ended(&eager, end, 2_000)));
        let early = scene.plan(2_059);
        assert_eq!((early.actions, early.next.unwrap().0), (vec![], 2_060), "{end:?}");
        assert_eq!(deletion(&scene.plan(2_060)).due.0, 2_060, "{end:?}");
    }
    for (what, scene) in [
        ("unfinished", built(&eager)),
        ("without a TTL", ended(&json!({}), ENDS[0], 2_000)),
        ("terminating", ended(&eager, ENDS[0], 2_000).terminating()),
        (
            "a remote copy",
            ended(&eager, ENDS[0], 2_000).labelled("kueue.x-k8s.io/multikueue-origin"),
        ),
        ("out of range", ended(&json!({"ttlSecondsAfterFinished": -1}), ENDS[0], 2_000)),
    ] {
        assert_eq!(with_ttl(elsewhere(scene)).plan(9_999), Plan::default(), "{what}");
    }
}

#[test]
fn the_name_of_this_controller_means_the_same_as_no_name() {
    let name = json!({"managedBy": "trainer.kubeflow.org/trainjob-controller"});
    assert_eq!(new(&name).words(CREATED), new(&json!({})).words(CREATED));
    assert_eq!(new(&name).words(CREATED), ["create snapshot", "create JobSet"]);
}
