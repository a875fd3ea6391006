//! Kinds that need a description, as their controllers write them.

use serde_json::json;
use trainjob_api::time::Timestamp;

use super::*;

fn path(path: &str) -> FieldPath {
    FieldPath::parse(path).unwrap()
}

fn condition(type_: &str, status: bool, outcome: DescribedOutcome) -> EndCondition {
    EndCondition { type_: type_.to_owned(), status, reasons: Vec::new(), outcome }
}

fn phase(at: &str, values: &[(&str, DescribedOutcome)]) -> Phase {
    let values = values.iter().map(|(value, outcome)| ((*value).to_owned(), *outcome));
    Phase::new(path(at), values).unwrap()
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
    let description = Description {
        phase: Some(phase(
            "status.jobStatus",
            &[("SUCCEEDED", Succeeded), ("STOPPED", Other), ("FAILED", Failed)],
        )),
        reason: Some(path("status.reason")),
        time: Some(path("status.endTime")),
        required: vec![Required::Field(path("status.endTime"))],
        ..Description::default()
    };
    for (status, expected) in [
        (json!({"jobStatus": "SUCCEEDED", "endTime": AT}), Some((Outcome::Succeeded, "SUCCEEDED"))),
        (json!({"jobStatus": "STOPPED", "endTime": AT}), Some((Outcome::Other, "STOPPED"))),
        (
            json!({"jobStatus": "FAILED", "reason": "AppFailed", "endTime": AT}),
            Some((Outcome::Failed, "AppFailed")),
        ),
        (json!({"jobStatus": "RUNNING"}), None),
        (json!({"jobStatus": "FAILED"}), None),
        (json!({"jobStatus": "FAILED", "endTime": ""}), None),
        (json!({"jobStatus": "FAILED", "endTime": null}), None),
        (json!({"jobStatus": 7, "endTime": AT}), None),
        (json!("SUCCEEDED"), None),
    ] {
        let end = read(&description, &json!({"metadata": {}, "status": status})).end;
        let expected = expected.map(|(outcome, reason)| End::new(outcome, reason, Some(at(0))));
        assert_eq!(end, expected, "{status}");
    }
}

#[test]
fn a_job_of_kubeflow_needs_its_completion_time_beside_the_condition() {
    let description = Description {
        conditions: vec![
            condition("Succeeded", true, DescribedOutcome::Succeeded),
            condition("Failed", true, DescribedOutcome::Failed),
        ],
        required: vec![Required::Field(path("status.completionTime"))],
        own_ttl: Some(path("spec.runPolicy.ttlSecondsAfterFinished")),
        ..Description::default()
    };
    let failed = json!({"type": "Failed", "status": "True", "reason": "PyTorchJobFailed",
        "lastUpdateTime": AT, "lastTransitionTime": AT, "message": "m"});
    let running = json!({"type": "Running", "status": "False", "reason": "PyTorchJobRunning"});
    for (status, expected) in [
        (
            json!({"conditions": [running, failed], "completionTime": "2026-11-22T06:30:09Z"}),
            Some(End::new(Outcome::Failed, "PyTorchJobFailed", Some(at(0)))),
        ),
        (json!({"conditions": [running, failed]}), None),
        (json!({"conditions": [running], "completionTime": AT}), None),
        (json!({"conditions": "Failed", "completionTime": AT}), None),
        (json!({"conditions": [7, null, {"type": 1}, {}], "completionTime": AT}), None),
    ] {
        let spec = json!({"runPolicy": {"ttlSecondsAfterFinished": 600, "cleanPodPolicy": "None"}});
        let reading = read(&description, &json!({"metadata": {}, "spec": spec, "status": status}));
        assert_eq!((reading.end, reading.own_ttl), (expected, Seconds::new(600)), "{status}");
    }
}

#[test]
fn a_workflow_is_guarded_while_it_waits_to_be_archived() {
    use DescribedOutcome::{Failed, Succeeded};
    let (completed, archiving) =
        ("workflows.argoproj.io/completed", "workflows.argoproj.io/workflow-archiving-status");
    let description = Description {
        phase: Some(phase(
            "status.phase",
            &[("Succeeded", Succeeded), ("Failed", Failed), ("Error", Failed)],
        )),
        time: Some(path("status.finishedAt")),
        required: vec![Required::Label(completed.into(), "true".into())],
        archive: Some(ArchiveGuard::Label(archiving.into(), "Pending".into())),
        ..Description::default()
    };
    let error = Some(End::new(Outcome::Failed, "Error", Some(at(0))));
    for (labels, expected, guarded) in [
        (json!({completed: "true", archiving: "Pending"}), error.clone(), true),
        (json!({completed: "true", archiving: "Archived"}), error.clone(), false),
        (json!({completed: "true"}), error, false),
        (json!({completed: "false"}), None, false),
        (json!({}), None, false),
    ] {
        let workflow = json!({"metadata": {"labels": labels},
            "status": {"phase": "Error", "finishedAt": AT, "nodes": {"n": {"phase": "Running"}}}});
        let reading = read(&description, &workflow);
        assert_eq!((reading.end, reading.guards.archive), (expected, guarded), "{labels}");
    }
}

#[test]
fn a_task_run_is_guarded_until_its_results_are_stored() {
    let description = Description {
        conditions: vec![
            condition("Succeeded", true, DescribedOutcome::Succeeded),
            condition("Succeeded", false, DescribedOutcome::Failed),
        ],
        time: Some(path("status.completionTime")),
        archive: Some(ArchiveGuard::Annotation {
            prefix: "results.tekton.dev/".into(),
            done: "results.tekton.dev/stored".into(),
            value: "true".into(),
        }),
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
        assert_eq!(reading.end, Some(End::new(Outcome::Failed, "TaskRunTimeout", Some(at(0)))));
        assert_eq!(reading.guards.archive, guarded, "{annotations}");
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
        let object = json!({"metadata": {}, "status": {"conditions": conditions, "state": {"phase": phase}}});
        let outcome = read(&description, &object).end.map(|end| end.outcome);
        assert_eq!(outcome, expected, "{reason:?} {phase}");
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
        (json!("2026-11-22T06:30:05Z"), Some(at(5))),
        (json!("0001-01-01T00:00:00Z"), Some(at(0))),
        (json!("soon"), Some(at(0))),
        (json!(1_795_329_005), Some(at(0))),
        (json!({}), Some(at(0))),
        (json!(null), Some(at(0))),
    ] {
        let done = json!({"type": "Done", "status": "True", "lastTransitionTime": AT});
        let object = json!({"metadata": {}, "status": {"conditions": [done], "end": end}});
        assert_eq!(read(&description, &object).end.unwrap().time, expected, "{end}");
    }
}

#[test]
fn a_description_without_an_end_is_none() {
    let empty = Description { time: Some(path("status.end")), ..Description::default() };
    assert_eq!(Configured::new(empty), Err(DescriptionError::NoEnd));
    let twice = ["Done", "Done"].map(str::to_owned);
    let outcomes = [DescribedOutcome::Succeeded, DescribedOutcome::Failed];
    let phase = Phase::new(path("status.phase"), twice.clone().into_iter().zip(outcomes));
    assert_eq!(phase, Err(DescriptionError::Ambiguous("Done".to_owned())));
    let same = Phase::new(path("status.phase"), twice.map(|value| (value, outcomes[0])));
    assert!(same.is_ok());
    assert_eq!(Phase::new(path("status.phase"), []), Err(DescriptionError::NoPhases));
}
