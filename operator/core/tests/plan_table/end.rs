//! How a job ends, and that it ends once (§1, §3.5).

use serde_json::json;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Action,
    action::{StatusWrite, Urgency},
    event::Event,
    facts::Outcome,
    observed::Reading,
};

use crate::{
    common::condition,
    scene::{
        CREATED, ENDS, JOB_SET_UID, UID, VERSION, built, deletion, ended, new, status_write, words,
        written,
    },
};

#[test]
fn a_job_ends_as_its_jobset_does_and_in_its_words() {
    for (of_job_set, of_job) in [("Completed", "Complete"), ("Failed", "Failed")] {
        let mut said = condition(of_job_set, "True", "SaidByJobSet", 2_000);
        said.observed_generation = Some(3);
        let plan = built(&json!({})).with_job_set_condition(said.clone()).plan(2_005);
        said.type_ = of_job.into();
        let expected = StatusWrite {
            uid: UID.into(),
            resource_version: VERSION.into(),
            conditions: Some(vec![said]),
            jobs_status: None,
            urgency: Urgency::AtOnce,
            deadline_due: None,
        };
        let mut actions = vec![Action::WriteStatus(expected)];
        if of_job == "Failed" {
            actions.push(Action::RecordOutOfMemory { job_set: JOB_SET_UID.into() });
        }
        assert_eq!(plan.actions, actions, "{of_job_set}");
    }
}

#[test]
fn only_a_condition_that_holds_ends_a_job() {
    for (kind, status) in [
        ("Completed", "False"),
        ("Failed", "Unknown"),
        ("Suspended", "True"),
        ("StartupPolicyCompleted", "True"),
    ] {
        let said = condition(kind, status, "SaidByJobSet", 2_000);
        assert_eq!(built(&json!({})).with_job_set_condition(said).words(2_005), [""; 0], "{kind}");
    }
}

#[test]
fn of_two_ends_of_a_jobset_the_first_counts_and_success_if_they_are_one() {
    for (completed, failed, expected) in
        [(2_000, 2_001, "Complete"), (2_001, 2_000, "Failed"), (2_000, 2_000, "Complete")]
    {
        let plan = built(&json!({}))
            .with_job_set_condition(condition("Failed", "True", "r", failed))
            .with_job_set_condition(condition("Completed", "True", "r", completed))
            .plan(2_005);
        let [(kind, ..)] = &written(&plan)[..] else { panic!("{plan:?}") };
        assert_eq!(kind, expected, "completed at {completed}, failed at {failed}");
    }
}

#[test]
fn the_end_of_a_jobset_in_the_same_pass_as_the_deadline_wins() {
    let late = json!({"activeDeadlineSeconds": 60});
    for (of_job_set, of_job) in [("Completed", "Complete"), ("Failed", "Failed")] {
        // Even where the JobSet ended after the deadline was due: it is what happened.
        for at in [1_030, 1_060, 5_000] {
            let said = condition(of_job_set, "True", "SaidByJobSet", at);
            let plan = built(&late).with_job_set_condition(said).plan(9_999);
            let told = (of_job == "Failed").then_some("tell if out of memory");
            let expected: Vec<_> = ["write status"].into_iter().chain(told).collect();
            assert_eq!(words(&plan), expected);
            assert_eq!(
                written(&plan),
                [(of_job.into(), "True".into(), "SaidByJobSet".into())],
                "at {at}"
            );
            assert_eq!(status_write(&plan).deadline_due, None);
        }
    }
}

#[test]
fn a_job_whose_jobset_was_seen_to_end_and_is_gone_ends_as_it_did_and_gets_no_other() {
    let late = json!({"activeDeadlineSeconds": 60});
    for (of_job_set, of_job) in [("Completed", "Complete"), ("Failed", "Failed")] {
        let said = condition(of_job_set, "True", "SaidByJobSet", 1_030);
        let scene = built(&late).with_job_set_condition(said).with_job_set_seen_to_go();
        for now in [1_030, 9_999] {
            let plan = scene.plan(now);
            assert_eq!(words(&plan), ["write status"], "{of_job_set} {now}");
            let expected = (of_job.into(), "True".into(), "SaidByJobSet".into());
            assert_eq!(written(&plan), [expected], "{now}");
        }
    }
}

#[test]
fn the_first_end_of_a_job_is_final_whatever_its_jobset_its_deadline_or_its_runtime_say_later() {
    let fields = json!({
        "activeDeadlineSeconds": 1,
        "runtimeRef": {"name": "plain", "kind": "Unknown"},
        "suspend": true,
    });
    for end in ENDS {
        for later in ["Completed", "Failed"] {
            let scene = ended(&fields, end, 2_000)
                .with_job_set_condition(condition(later, "True", "SaidByJobSet", 2_001))
                .with_active(1);
            for action in scene.plan(9_999).actions {
                if let Action::WriteStatus(write) = action {
                    assert_eq!(write.conditions, None, "{end:?}, then {later}");
                }
            }
        }
    }
}

#[test]
fn of_two_stored_ends_the_first_counts() {
    use Outcome::{Complete, Failed};
    for (complete, failed, outcome) in
        [(2_000, 2_001, Complete), (2_001, 2_000, Failed), (2_000, 2_000, Complete)]
    {
        let scene = new(&json!({"ttlSecondsAfterFinished": 60})).with_conditions(&[
            condition("Complete", "True", "AllJobsCompleted", complete),
            condition("Failed", "True", "FailedJobs", failed),
        ]);
        let plan = scene.plan(9_999);
        assert_eq!(
            (deletion(&plan).due, deletion(&plan).outcome),
            (Timestamp(2_060), outcome),
            "complete at {complete}, failed at {failed}"
        );
    }
}

#[test]
fn a_terminal_condition_that_does_not_hold_is_no_end() {
    for (kind, status) in [("Complete", "False"), ("Failed", "Unknown")] {
        let scene = new(&json!({})).with_conditions(&[condition(kind, status, "r", 2_000)]);
        assert_eq!(scene.words(9_999), ["create snapshot", "create JobSet"], "{kind} {status}");
    }
}

#[test]
fn a_runtime_of_a_kind_nobody_knows_fails_a_job() {
    for (reference, kind) in [
        (json!({"name": "r", "kind": "Unknown"}), "Unknown.trainer.kubeflow.org"),
        (
            json!({"name": "r", "apiGroup": "example.com", "kind": "TrainingRuntime"}),
            "TrainingRuntime.example.com",
        ),
    ] {
        let plan = new(&json!({"runtimeRef": reference})).plan(2_000);
        assert_eq!(words(&plan), ["write status", "tell TrainJobResourcesCreationFailed"]);
        let [failed] = &status_write(&plan).conditions.clone().unwrap()[..] else { panic!() };
        assert_eq!((&*failed.type_, &*failed.status), ("Failed", "True"));
        assert_eq!(failed.reason, "TrainingRuntimeNotSupported");
        assert_eq!(failed.message, format!("unsupported runtime: {kind}"));
        assert_eq!(
            plan.actions[1],
            Action::RecordEvent(Event::CreationFailed(failed.message.clone()))
        );
    }
}

#[test]
fn a_job_that_waited_stops_waiting_when_it_ends() {
    let waits = [condition("Waiting", "True", "BuildFailed", 1_500)];
    let late = json!({"activeDeadlineSeconds": 60});
    let unknown = json!({"runtimeRef": {"name": "r", "kind": "Unknown"}});
    let done = condition("Completed", "True", "AllJobsCompleted", 2_000);
    for (end, scene) in [
        ("AllJobsCompleted", built(&json!({})).with_job_set_condition(done)),
        ("DeadlineExceeded", new(&late)),
        ("TrainingRuntimeNotSupported", new(&unknown)),
    ] {
        let plan = scene.with_conditions(&waits).plan(2_005);
        let [(kind, _, reason)] = &written(&plan)[..] else { panic!("{plan:?}") };
        assert!(kind != "Waiting" && reason == end, "{plan:?}");
    }
}

#[test]
fn nothing_is_made_or_changed_for_a_job_that_has_ended() {
    for end in ENDS {
        for (suspend, snapshot) in [(false, true), (false, false), (true, true), (true, false)] {
            let mut scene = ended(&json!({"suspend": suspend}), end, 2_000).without_job_set();
            scene.readings.pods = Reading::Absent;
            if snapshot {
                scene.readings.snapshot = Reading::Found(scene.snapshot("then"));
            }
            for now in [CREATED, 2_000, 9_999] {
                assert_eq!(scene.words(now), [""; 0], "{end:?} at {now}");
            }
        }
    }
}
