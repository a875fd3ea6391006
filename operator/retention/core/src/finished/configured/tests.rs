//! Kinds that need a description, as their controllers write them.

use serde_json::json;
use trainjob_api::time::Timestamp;

use super::*;
use crate::operator::{
    Condition as Wish,
    Operator::{self, Exists, In, NotIn},
};

fn path(path: &str) -> FieldPath {
    FieldPath::parse(path).unwrap()
}

fn test(subject: Subject, operator: Operator, values: &[&str]) -> Test {
    Test { subject, condition: Wish::new(operator, values.iter().copied()).unwrap() }
}

fn condition(type_: &str, status: bool, outcome: DescribedOutcome) -> EndCondition {
    EndCondition { type_: type_.to_owned(), status, reasons: Vec::new(), outcome }
}

fn phase(at: &str, values: &[(&str, DescribedOutcome)]) -> Phase {
    let values = values.iter().map(|(value, outcome)| ((*value).to_owned(), *outcome));
    Phase::new(path(at), values, None).unwrap()
}

fn own_ttl(at: &str, outcomes: &[DescribedOutcome]) -> OwnTtlField {
    OwnTtlField { path: path(at), outcomes: outcomes.to_vec() }
}

fn read(description: &Description, object: &Value) -> Reading {
    Configured::new(description.clone()).unwrap().read(&object.to_string()).unwrap()
}

const AT: &str = "2026-11-22T06:30:00Z";

fn at(second: i64) -> Timestamp {
    Timestamp(1_795_329_000 + second)
}

#[test]
fn a_ray_job_is_told_by_two_phases() {
    use DescribedOutcome::{Failed, Other, Succeeded};
    let outcomes = [("SUCCEEDED".to_owned(), Succeeded), ("STOPPED".to_owned(), Other)];
    let deployment = Subject::Field(path("status.jobDeploymentStatus"));
    let description = Description {
        requires: vec![test(deployment, In, &["Complete", "Failed"])],
        phase: Some(Phase::new(path("status.jobStatus"), outcomes, Some(Failed)).unwrap()),
        reason: Some(path("status.reason")),
        time: Some(path("status.endTime")),
        ..Description::default()
    };
    for (deployment, status, reason, expected) in [
        ("Complete", Some("SUCCEEDED"), None, Some((Outcome::Succeeded, "SUCCEEDED"))),
        ("Complete", Some("STOPPED"), Some(""), Some((Outcome::Other, "STOPPED"))),
        ("Complete", Some("FAILED"), Some("AppFailed"), Some((Outcome::Failed, "AppFailed"))),
        ("Failed", None, Some("DeadlineExceeded"), Some((Outcome::Failed, "DeadlineExceeded"))),
        ("Failed", None, None, Some((Outcome::Failed, ""))),
        ("Running", Some("RUNNING"), None, None),
        ("Retrying", Some("FAILED"), Some("AppFailed"), None),
        ("ValidationFailed", None, None, None),
    ] {
        let status = json!({"jobDeploymentStatus": deployment, "jobStatus": status, "reason": reason,
            "endTime": AT});
        let end = read(&description, &json!({"metadata": {}, "status": status})).end;
        let expected = expected.map(|(outcome, reason)| End::new(outcome, reason, Some(at(0))));
        assert_eq!(end, expected, "{status}");
    }
    assert_eq!(read(&description, &json!({"metadata": {}, "status": "Complete"})).end, None);
}

#[test]
fn a_job_of_kubeflow_needs_its_completion_time_beside_the_condition() {
    let description = Description {
        requires: vec![test(Subject::Field(path("status.completionTime")), Exists, &[])],
        conditions: vec![
            condition("Succeeded", true, DescribedOutcome::Succeeded),
            condition("Failed", true, DescribedOutcome::Failed),
        ],
        own_ttl: vec![own_ttl("spec.runPolicy.ttlSecondsAfterFinished", &[])],
        ..Description::default()
    };
    let failed = json!({"type": "Failed", "status": "True", "reason": "PyTorchJobFailed",
        "lastUpdateTime": AT, "lastTransitionTime": AT, "message": "m"});
    let running = json!({"type": "Running", "status": "False", "reason": "PyTorchJobRunning"});
    let end = End::new(Outcome::Failed, "PyTorchJobFailed", Some(at(0)));
    for (status, expected) in [
        (
            json!({"conditions": [running, failed], "completionTime": "2026-11-22T06:30:09Z"}),
            Some(end),
        ),
        (json!({"conditions": [running, failed]}), None),
        (json!({"conditions": [running, failed], "completionTime": ""}), None),
        (json!({"conditions": [running], "completionTime": AT}), None),
        (json!({"conditions": "Failed", "completionTime": AT}), None),
        (json!({"conditions": [7, null, {"type": 1}, {}], "completionTime": AT}), None),
    ] {
        let own_ttl = expected.as_ref().and_then(|_| Seconds::new(600));
        let spec = json!({"runPolicy": {"ttlSecondsAfterFinished": 600, "cleanPodPolicy": "None"}});
        let reading = read(&description, &json!({"metadata": {}, "spec": spec, "status": status}));
        assert_eq!((reading.end, reading.own_ttl), (expected, own_ttl), "{status}");
    }
}

fn workflow() -> Description {
    use DescribedOutcome::{Failed, Succeeded};
    let outcomes = [("Succeeded", Succeeded), ("Failed", Failed), ("Error", Failed)];
    let completed = Subject::Label("workflows.argoproj.io/completed".into());
    let archiving = Subject::Label("workflows.argoproj.io/workflow-archiving-status".into());
    Description {
        requires: vec![test(completed, In, &["true"])],
        phase: Some(phase("status.phase", &outcomes)),
        time: Some(path("status.finishedAt")),
        own_ttl: vec![
            own_ttl("spec.ttlStrategy.secondsAfterSuccess", &[Succeeded]),
            own_ttl("spec.ttlStrategy.secondsAfterFailure", &[Failed]),
            own_ttl("spec.ttlStrategy.secondsAfterCompletion", &[]),
        ],
        guards: vec![Guard::new(vec![test(archiving, In, &["Pending"])]).unwrap()],
        ..Description::default()
    }
}

#[test]
fn a_workflow_is_guarded_while_it_waits_to_be_archived() {
    let (completed, archiving) =
        ("workflows.argoproj.io/completed", "workflows.argoproj.io/workflow-archiving-status");
    let error = Some(End::new(Outcome::Failed, "Error", Some(at(0))));
    for (labels, expected, guarded) in [
        (json!({completed: "true", archiving: "Pending"}), error.clone(), true),
        (json!({completed: "true", archiving: "Archived"}), error.clone(), false),
        (json!({completed: "true"}), error, false),
        (json!({completed: "false"}), None, false),
        (json!({}), None, false),
    ] {
        let object = json!({"metadata": {"labels": labels},
            "status": {"phase": "Error", "finishedAt": AT, "nodes": {"n": {"phase": "Running"}}}});
        let reading = read(&workflow(), &object);
        assert_eq!((reading.end, reading.guards.archive), (expected, guarded), "{labels}");
    }
}

#[test]
fn the_first_own_ttl_that_is_there_and_is_for_the_outcome_counts() {
    for (strategy, phase, expected) in [
        (json!({"secondsAfterSuccess": 1, "secondsAfterFailure": 2}), "Succeeded", Some(1)),
        (json!({"secondsAfterSuccess": 1, "secondsAfterFailure": 2}), "Error", Some(2)),
        (json!({"secondsAfterSuccess": 1, "secondsAfterCompletion": 3}), "Failed", Some(3)),
        (json!({"secondsAfterSuccess": 1, "secondsAfterCompletion": 3}), "Succeeded", Some(1)),
        (json!({"secondsAfterSuccess": -1}), "Succeeded", None),
        (json!({"secondsAfterSuccess": "1h"}), "Succeeded", None),
        (json!({}), "Succeeded", None),
        (json!({"secondsAfterCompletion": 3}), "Running", None),
    ] {
        let labels = json!({"workflows.argoproj.io/completed": "true"});
        let object = json!({"metadata": {"labels": labels}, "spec": {"ttlStrategy": strategy},
            "status": {"phase": phase}});
        let own_ttl = read(&workflow(), &object).own_ttl.map(Seconds::get);
        assert_eq!(own_ttl, expected, "{strategy} {phase}");
    }
}

#[test]
fn a_task_run_is_guarded_until_its_results_are_stored() {
    let any = Subject::Annotations("results.tekton.dev/".into());
    let stored = Subject::Annotation("results.tekton.dev/stored".into());
    let guard = Guard::new(vec![test(any, Exists, &[]), test(stored, NotIn, &["true"])]);
    let description = Description {
        conditions: vec![
            condition("Succeeded", true, DescribedOutcome::Succeeded),
            condition("Succeeded", false, DescribedOutcome::Failed),
        ],
        time: Some(path("status.completionTime")),
        guards: vec![guard.unwrap()],
        ..Description::default()
    };
    for (annotations, guarded) in [
        (json!({"results.tekton.dev/record": "a/results/b"}), true),
        (json!({"results.tekton.dev/stored": "false"}), true),
        (json!({"results.tekton.dev/record": "r", "results.tekton.dev/stored": "true"}), false),
        (json!({"tekton.dev/release": "v1"}), false),
        (json!(null), false),
    ] {
        let failed = json!({"type": "Succeeded", "status": "False", "reason": "TaskRunTimeout"});
        let run = json!({"metadata": {"annotations": annotations},
            "status": {"conditions": [failed], "completionTime": AT}});
        let reading = read(&description, &run);
        let end = End::new(Outcome::Failed, "TaskRunTimeout", Some(at(0)));
        assert_eq!((reading.end, reading.guards.archive), (Some(end), guarded), "{annotations}");
    }
}

#[test]
fn the_first_condition_that_holds_goes_before_the_phase() {
    let preempted = EndCondition {
        reasons: vec!["Preempted*".into(), "Evicted".into()],
        ..condition("Failed", true, DescribedOutcome::Other)
    };
    let description = Description {
        conditions: vec![preempted, condition("Failed", true, DescribedOutcome::Failed)],
        phase: Some(phase("status.state.phase", &[("Completed", DescribedOutcome::Succeeded)])),
        ..Description::default()
    };
    for (reason, phase, expected) in [
        (Some("PreemptedByScheduler"), "Completed", Some(Outcome::Other)),
        (Some("Evicted"), "Running", Some(Outcome::Other)),
        (Some("EvictedTwice"), "Completed", Some(Outcome::Failed)),
        (None, "Completed", Some(Outcome::Succeeded)),
        (None, "Running", None),
    ] {
        let failed =
            reason.map(|reason| json!({"type": "Failed", "status": "True", "reason": reason}));
        let conditions: Vec<_> = failed.into_iter().collect();
        let status = json!({"conditions": conditions, "state": {"phase": phase}});
        let end = read(&description, &json!({"metadata": {}, "status": status})).end;
        assert_eq!(end.map(|end| end.outcome), expected, "{reason:?} {phase}");
    }
}

#[test]
fn a_time_that_cannot_be_read_leaves_that_of_the_condition() {
    let description = Description {
        conditions: vec![condition("Done", true, DescribedOutcome::Succeeded)],
        time: Some(path("status.end")),
        ..Description::default()
    };
    for (end, expected) in [
        (json!("2026-11-22T06:30:05Z"), at(5)),
        (json!("0001-01-01T00:00:00Z"), at(0)),
        (json!("soon"), at(0)),
        (json!(1_795_329_005), at(0)),
        (json!({}), at(0)),
        (json!(null), at(0)),
    ] {
        let done = json!({"type": "Done", "status": "True", "lastTransitionTime": AT});
        let object = json!({"metadata": {}, "status": {"conditions": [done], "end": end}});
        assert_eq!(read(&description, &object).end.unwrap().time, Some(expected), "{end}");
    }
}

#[test]
fn a_description_that_says_nothing_or_too_much_is_none() {
    use DescribedOutcome::{Failed, Succeeded};
    let empty = Description { time: Some(path("status.end")), ..Description::default() };
    assert_eq!(Configured::new(empty), Err(DescriptionError::NoEnd));
    let of_phase = |values: &[(&str, DescribedOutcome)], otherwise| {
        let values = values.iter().map(|(value, outcome)| ((*value).to_owned(), *outcome));
        Phase::new(path("status.phase"), values, otherwise)
    };
    let ambiguous = DescriptionError::Ambiguous("Done".to_owned());
    assert_eq!(of_phase(&[("Done", Succeeded), ("Done", Failed)], None), Err(ambiguous));
    assert!(of_phase(&[("Done", Succeeded), ("Done", Succeeded)], None).is_ok());
    assert_eq!(of_phase(&[], None), Err(DescriptionError::NoPhases));
    let any = Some(of_phase(&[], Some(Failed)).unwrap());
    let everything = Description { phase: any.clone(), ..Description::default() };
    assert_eq!(Configured::new(everything), Err(DescriptionError::EverythingEnds));
    let requires = vec![test(Subject::Label("done".into()), Exists, &[])];
    assert!(
        Configured::new(Description { phase: any, requires, ..Description::default() }).is_ok()
    );
    assert_eq!(Guard::new(Vec::new()), Err(DescriptionError::EmptyGuard));
}
