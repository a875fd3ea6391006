//! While other objects may still have to be listed: a TTL that is due deletes its job, and nothing else is done.

use serde_json::json;
use trainjob_api::time::Timestamp;

use crate::{
    common::condition,
    scene::{ENDS, built, ended, new},
};

#[test]
fn ttl_deletes_every_finished_job_but_those_that_their_deadline_failed() {
    for end in ENDS {
        let scene = ended(&json!({"ttlSecondsAfterFinished": 60}), end, 2_000);
        for (what, scene) in [
            ("its JobSet is known", scene.clone()),
            ("its JobSet is not known yet", scene.without_job_set()),
        ] {
            let expected: &[&str] = match end {
                (_, "DeadlineExceeded") => &[],
                _ => &["delete TrainJob", "tell TTLExpired"],
            };
            assert_eq!(scene.words_before_all_is_listed(2_060), expected, "{end:?}, {what}");
            assert!(scene.words_before_all_is_listed(2_059).is_empty(), "{end:?}, {what}");
        }
    }
}

#[test]
fn nothing_is_done_for_an_unfinished_job() {
    let deadline = json!({"activeDeadlineSeconds": 10});
    let waiting = condition("Waiting", "True", "RuntimeNotFound", 1_000);
    for (what, scene) in [
        ("it is new", new(&json!({}))),
        ("its deadline is due", built(&deadline)),
        ("its JobSet is not known yet", new(&deadline)),
        ("it says that it waits", built(&json!({})).with_conditions(&[waiting])),
    ] {
        assert!(scene.words_before_all_is_listed(9_000).is_empty(), "{what}");
    }
}

#[test]
fn job_is_looked_at_when_its_ttl_or_its_deadline_comes_due() {
    let kept = ended(&json!({"ttlSecondsAfterFinished": 60}), ENDS[0], 2_000);
    let limited = built(&json!({"activeDeadlineSeconds": 10}));
    for (what, scene, due) in [("TTL", kept, 2_060), ("deadline", limited, 1_010)] {
        let next = |now| scene.plan_before_all_is_listed(now).next;
        assert_eq!(next(due - 1), Some(Timestamp(due)), "{what}");
        assert_eq!(next(due), None, "{what}");
    }
}
