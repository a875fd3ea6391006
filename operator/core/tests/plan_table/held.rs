//! What is done while the time is not known (§5).

use serde_json::json;
use trainjob_api::time::Timestamp;
use trainjob_core::{Action, action::Waiting, observed::Reading};

use crate::{
    common::condition,
    scene::{ENDS, built, ended, new, status_write, words, written},
};

#[test]
fn no_deadline_fires_and_the_job_is_looked_at_again_when_it_is_due() {
    let plan = built(&json!({"activeDeadlineSeconds": 60})).plan_held(9_999);
    assert!(words(&plan).is_empty(), "{plan:?}");
    assert_eq!(plan.next, Some(Timestamp(1_060)));
}

#[test]
fn no_ttl_deletes_a_job_and_it_is_looked_at_again_when_it_is_due() {
    for end in ENDS {
        let mut scene =
            ended(&json!({"ttlSecondsAfterFinished": 60}), end, 2_000).without_job_set();
        scene.readings.pods = Reading::Absent;
        let plan = scene.plan_held(9_999);
        assert!(words(&plan).is_empty(), "{end:?}: {plan:?}");
        assert_eq!(plan.next, Some(Timestamp(2_060)), "{end:?}");
    }
}

#[test]
fn a_job_whose_deadline_is_due_is_created_and_mirrored_all_the_same() {
    let late = json!({"activeDeadlineSeconds": 1, "suspend": true});
    let plan = new(&late).plan_held(9_999);
    assert_eq!(words(&plan), ["write status", "create snapshot", "create JobSet"]);
    let [suspended] = &status_write(&plan).conditions.clone().unwrap()[..] else { panic!() };
    assert_eq!(Timestamp::from(&suspended.last_transition_time), Timestamp(9_999));

    let completed = condition("Completed", "True", "AllJobsCompleted", 2_000);
    let plan = built(&late).with_job_set_condition(completed).plan_held(9_999);
    assert!(written(&plan).iter().any(|(kind, ..)| kind == "Complete"), "{plan:?}");
}

#[test]
fn what_a_deadline_has_failed_is_released_all_the_same() {
    let failed = |pods| {
        let mut scene = ended(&json!({}), ("Failed", "DeadlineExceeded"), 2_000);
        scene.readings.pods = pods;
        scene
    };
    assert_eq!(words(&failed(Reading::NotRead).plan_held(9_999)), ["delete JobSet"]);
    let gone = failed(Reading::NotRead).without_job_set();
    assert_eq!(words(&gone.plan_held(9_999)), ["check Pods"]);
    let released = failed(Reading::Absent).without_job_set().plan_held(9_999);
    assert_eq!((released.actions, released.waiting), (Vec::<Action>::new(), None::<Waiting>));
}

#[test]
fn a_finalizer_that_may_keep_a_jobset_is_told_of_only_when_the_time_is_known() {
    let kept = built(&json!({})).with_job_set_terminating(2_000);
    let plan = kept.plan_held(9_999);
    assert!(words(&plan).is_empty(), "{plan:?}");
    assert_eq!(plan.waiting, Some(Waiting::JobSet));
    assert_eq!(plan.next, Some(Timestamp(2_060)));
}
