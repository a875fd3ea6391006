//! `validator`'s verdict on a value is the CRD's: every limit is read from the shipped CRD and tried.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod common;

use std::iter;

use serde_json::{Value, json};
use trainjob_api::{TrainJob, TrainingRuntime};
use validator::{Validate, ValidationErrors, ValidationErrorsKind};

use common::{Facts, flattened};

/// A TrainJob in which every field of ours that has a limit is set.
fn train_job() -> Value {
    let container = json!({"name": "node", "env": [{"name": "A"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "mnist"},
        "spec": {
            "runtimeRef": {"name": "torch", "apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime"},
            "initializer": {
                "dataset": {"storageUri": "s3://bucket/data", "env": [{"name": "A"}]},
                "model": {"storageUri": "hf://org/model", "env": [{"name": "A"}]},
            },
            "trainer": {
                "image": "image", "command": ["sh"], "args": ["-c"], "env": [{"name": "A"}],
                "numNodes": 2, "numProcPerNode": 8,
            },
            "runtimePatches": [{
                "manager": "kueue.x-k8s.io/manager",
                "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{
                    "name": "node",
                    "template": {"spec": {"template": {"spec": {
                        "serviceAccountName": "default",
                        "volumes": [{"name": "v"}],
                        "initContainers": [container],
                        "containers": [container],
                        "imagePullSecrets": [{"name": "s"}],
                        "terminationGracePeriodSeconds": 30,
                        "tolerations": [{"operator": "Exists"}],
                        "schedulingGates": [{"name": "g"}],
                    }}}},
                }]}}},
            }],
            "activeDeadlineSeconds": 3600,
            "ttlSecondsAfterFinished": 3600,
            "managedBy": "kueue.x-k8s.io/multikueue",
        },
        "status": {
            "conditions": [{
                "type": "Complete", "status": "True", "reason": "AllJobsCompleted", "message": "",
                "lastTransitionTime": "2026-01-04T10:00:00Z",
            }],
            "jobsStatus": [{
                "name": "node", "ready": 1, "succeeded": 1, "failed": 1, "active": 1, "suspended": 1,
            }],
            "trainerStatus": {
                "progressPercentage": 50,
                "estimatedRemainingSeconds": 60,
                "metrics": [{"name": "loss", "value": "0.1"}],
                "lastUpdatedTime": "2026-01-04T10:00:00Z",
            },
        },
    })
}

/// A runtime in which every field of ours that has a limit is set.
fn runtime() -> Value {
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {
            "mlPolicy": {"torch": {"envInjection": {"targets": [
                {"jobName": "node", "containerNames": ["sidecar"]},
            ]}}},
            "template": {"spec": {
                "replicatedJobs": [{
                    "name": "node",
                    "dependsOn": [{"name": "model-initializer", "status": "Complete"}],
                    "template": {},
                }],
                "ttlSecondsAfterFinished": 60,
                "volumeClaimPolicies": [{"templates": [{"spec": {}}]}],
            }},
        },
    })
}

/// A runtime for MPI, since a runtime has one framework.
fn mpi_runtime() -> Value {
    let mut runtime = runtime();
    runtime["spec"]["mlPolicy"] = json!({"mpi": {"numProcPerNode": 1, "sshAuthMountPath": "/ssh"}});
    runtime
}

/// A runtime for Flux.
fn flux_runtime() -> Value {
    let mut runtime = runtime();
    runtime["spec"]["mlPolicy"] = json!({"flux": {"numProcPerNode": 1}});
    runtime
}

fn verdict(object: &Value) -> Result<(), ValidationErrors> {
    if object["kind"] == "TrainJob" {
        let job: TrainJob = serde_json::from_value(object.clone()).unwrap();
        return job.validate_with_name();
    }
    let runtime: TrainingRuntime = serde_json::from_value(object.clone()).unwrap();
    runtime.spec.validate()
}

/// The messages of all violations.
fn messages(errors: &ValidationErrors) -> Vec<String> {
    let of_kind = |kind: &ValidationErrorsKind| match kind {
        ValidationErrorsKind::Struct(errors) => messages(errors),
        ValidationErrorsKind::List(items) => items.values().flat_map(|e| messages(e)).collect(),
        ValidationErrorsKind::Field(errors) => {
            errors.iter().filter_map(|error| error.message.as_deref().map(Into::into)).collect()
        }
    };
    errors.errors().values().flat_map(of_kind).collect()
}

/// The place in `object` that a flattened path names, in the first item of every list.
fn pointer(path: &str) -> String {
    path.replace("[]", "/0").replace('.', "/")
}

fn at<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    object.pointer_mut(&pointer(path))
}

/// `sample` made `size` large: a number of that value, a string or a list of that length.
fn resized(sample: &Value, size: i64) -> Value {
    let length = || usize::try_from(size).unwrap();
    match sample {
        Value::Number(_) => size.into(),
        Value::String(text) => {
            let padded = text.chars().chain(iter::repeat('a'));
            padded.take(length()).collect::<String>().into()
        }
        Value::Array(items) => (0..length())
            .map(|at| match &items[0] {
                Value::String(text) => format!("{text}{at}").into(),
                item => item.clone(),
            })
            .collect(),
        other => panic!("{other} has no size"),
    }
}

/// The sizes on either side of each limit among `facts`: the last admitted, the first refused.
fn limits(facts: &Facts) -> Vec<(i64, i64)> {
    let of =
        |word: &str, step: i64| Some(facts.get(word)?.as_i64()?).map(|last| (last, last + step));
    let lower = ["minimum", "minLength", "minItems"].into_iter().filter_map(|word| of(word, -1));
    let upper = ["maximum", "maxLength", "maxItems"].into_iter().filter_map(|word| of(word, 1));
    lower.chain(upper).collect()
}

/// Conditions are Kubernetes' type, which does not validate itself.
fn is_ours(path: &str) -> bool {
    !path.starts_with(".status.conditions[]")
}

#[test]
fn every_limit_of_the_crds_is_validated() {
    let mut tried = 0;
    for (plural, samples) in [
        ("trainjobs", vec![train_job()]),
        ("trainingruntimes", vec![runtime(), mpi_runtime(), flux_runtime()]),
    ] {
        for (path, facts) in flattened(plural).iter().filter(|(path, _)| is_ours(path)) {
            for (last, beyond) in limits(facts) {
                let mut found = false;
                for mut object in samples.clone() {
                    let Some(place) = at(&mut object, path) else { continue };
                    let sample = place.clone();
                    found = true;
                    *place = resized(&sample, beyond);
                    assert!(verdict(&object).is_err(), "{path}: {beyond} is admitted");
                    // A name that long is never one of the two that `managedBy` may have.
                    if path != ".spec.managedBy" {
                        *at(&mut object, path).unwrap() = resized(&sample, last);
                        assert_eq!(verdict(&object), Ok(()), "{path}: {last} is refused");
                    }
                }
                assert!(found, "no sample sets {path}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 60, "only {tried} limits were found in the CRDs");
}

#[test]
fn rules_on_one_value_are_validated_in_the_crd_s_words() {
    let job = train_job;
    for (object, path, admitted, refused) in [
        (
            job(),
            ".spec.initializer.model.storageUri",
            json!(["", "s3://x", "hf://org/model", "A+b.-9://x://y"]),
            json!(["s3://", "://x", "x", "1s://x", "s_3://x", " s3://x", "s3:/x", "s3://\nx"]),
        ),
        (
            job(),
            ".spec.managedBy",
            json!(["trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"]),
            json!(["", "example.com/other", "Kueue.x-k8s.io/multikueue"]),
        ),
        (job(), ".spec.trainer.numProcPerNode", json!([1, i32::MAX]), json!([0, -1, i32::MIN])),
        (mpi_runtime(), ".spec.mlPolicy.mpi.numProcPerNode", json!([1]), json!([0])),
        (flux_runtime(), ".spec.mlPolicy.flux.numProcPerNode", json!([1]), json!([0])),
        (
            runtime(),
            ".spec.mlPolicy.torch.envInjection.targets[].containerNames",
            json!([["a", "b"], ["Node"]]),
            json!([["node"], ["a", "node"]]),
        ),
        (
            runtime(),
            ".spec.mlPolicy",
            json!([{}, {"jax": {}}, {"numNodes": -3, "xgboost": {}}]),
            json!([{"torch": {}, "mpi": {}}, {"flux": {}, "jax": {}, "xgboost": {}}]),
        ),
        (
            job(),
            ".status.trainerStatus",
            json!([{"lastUpdatedTime": "2026-01-04T10:00:00Z"}]),
            json!([{}, {"progressPercentage": 1}]),
        ),
    ] {
        assert_rule(object, path, path, &admitted, &refused);
    }
}

#[test]
fn a_train_job_s_name_is_an_rfc_1035_label() {
    let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
    let admitted = json!(["a", "a1", "a-b", "a--b", longest]);
    let refused = json!(["", "1a", "A", "a_b", "a.b", "-a", "a-", "ä", "a\n", too_long]);
    assert_rule(train_job(), ".metadata.name", "", &admitted, &refused);
}

/// The rules are those the CRD has at `rules_at`; of values for `path` it admits and refuses these.
#[track_caller]
fn assert_rule(mut object: Value, path: &str, rules_at: &str, admitted: &Value, refused: &Value) {
    let plural = if object["kind"] == "TrainJob" { "trainjobs" } else { "trainingruntimes" };
    let lines = flattened(plural);
    let rules = lines[rules_at]["cel"].as_array().unwrap();
    for value in admitted.as_array().unwrap() {
        *at(&mut object, path).unwrap() = value.clone();
        assert_eq!(verdict(&object), Ok(()), "{path}: {value}");
    }
    for value in refused.as_array().unwrap() {
        *at(&mut object, path).unwrap() = value.clone();
        let errors = verdict(&object).expect_err(&format!("{path}: {value} is admitted"));
        for message in messages(&errors) {
            assert!(
                rules.iter().any(|rule| rule[1] == *message),
                "{path}: {value} is refused with {message:?}, which the CRD does not say"
            );
        }
        assert!(!messages(&errors).is_empty(), "{path}: {value} is refused without a message");
    }
}
