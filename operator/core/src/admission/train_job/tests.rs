//! One row for each rule of the common part, and each runtime policy asked once.

use serde_json::{Value, json};
use trainjob_api::TrainingRuntime;

use super::*;
use crate::admission::testing::{self, node, replicated_job, texts};

static NO_CLASSES: BTreeMap<String, String> = BTreeMap::new();

fn request<'a>(
    operation: Operation<'a>,
    job: &'a TrainJob,
    runtime: Result<&'a Runtime, &'a str>,
) -> Request<'a> {
    Request {
        operation,
        job,
        runtime,
        snapshot: None,
        active: Ok(&[]),
        missing_priority_classes: &NO_CLASSES,
        field_updates: FieldUpdates::Immutable,
        deadline_clock: Clock::Creation,
        limits: Limits::default(),
    }
}

fn created(job: &TrainJob, runtime: Result<&Runtime, &str>) -> Verdict {
    validate(&request(Operation::Create, job, runtime))
}

fn updated(old: &TrainJob, job: &TrainJob, runtime: Result<&Runtime, &str>) -> Verdict {
    validate(&request(Operation::Update(old), job, runtime))
}

fn torch() -> Runtime {
    testing::with(&json!({"torch": {}}), &json!([node()]))
}

/// A job whose trainer has a variable that PyTorch's launcher sets.
fn wrong(suspend: bool) -> TrainJob {
    testing::job(&json!({"suspend": suspend, "trainer": {"env": [{"name": "PET_NNODES"}]}}))
}

#[test]
fn an_update_asks_for_a_runtime_only_if_it_changes_what_has_to_do_with_one() {
    let job = |more: Value| {
        let mut spec = json!({"trainer": {"numNodes": 1}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        testing::job(&spec)
    };
    let old = job(json!({"suspend": true}));
    for (change, asks) in [
        (json!({"suspend": true}), false),
        (json!({"suspend": false}), false),
        (json!({"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 6}), false),
        (json!({"trainer": {"numNodes": 1, "env": []}}), false),
        (json!({"trainer": {"numNodes": 2}}), true),
        (json!({"suspend": false, "runtimePatches": [{"manager": "a.b/c"}]}), true),
    ] {
        assert_eq!(asks_for_runtime(&old, &job(change.clone())), asks, "{change}");
    }
}

#[test]
fn a_job_names_a_runtime_that_exists() {
    const CLUSTER: &str = r#"spec.RuntimeRef: Invalid value: {"name":"rt"}: gone: specified clusterTrainingRuntime must be created before the TrainJob is created"#;
    const NAMESPACED: &str = r#"spec.runtimeRef: Invalid value: {"name":"rt","kind":"TrainingRuntime"}: gone: specified trainingRuntime must be created before the TrainJob is created"#;
    for (reference, expected) in [
        (json!({"name": "rt"}), CLUSTER),
        (json!({"name": "rt", "kind": "TrainingRuntime"}), NAMESPACED),
        (json!({"kind": "Pod"}), "unsupported runtime: Pod.trainer.kubeflow.org"),
        (json!({"apiGroup": "a.io"}), "unsupported runtime: ClusterTrainingRuntime.a.io"),
    ] {
        let job = testing::job(&json!({"runtimeRef": reference}));
        assert_eq!(created(&job, Err("gone")).denial().as_deref(), Some(expected));
        // On update it is too late to ask for one.
        let resumed = testing::job(&json!({"runtimeRef": reference, "suspend": false}));
        assert_eq!(updated(&job, &resumed, Err("gone")), Verdict::default(), "{reference}");
    }
}

#[test]
fn a_deprecated_cluster_runtime_is_warned_of() {
    let text = "Referenced ClusterTrainingRuntime \"torch-distributed\" is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime deprecation policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy";
    let mut deprecated = torch();
    let label = ("trainer.kubeflow.org/support".to_owned(), "deprecated".to_owned());
    deprecated.metadata.labels = Some([label].into());
    let job = testing::job(&json!({}));
    let suspended = testing::job(&json!({"suspend": true}));
    assert_eq!(created(&job, Ok(&deprecated)).warnings, [text]);
    assert_eq!(updated(&job, &suspended, Ok(&deprecated)).warnings, [text]);
    assert_eq!(created(&wrong(false), Ok(&deprecated)).warnings, [text]);
    let namespaced: Runtime =
        TrainingRuntime { metadata: deprecated.metadata.clone(), spec: deprecated.spec.clone() }
            .into();
    assert_eq!(created(&job, Ok(&namespaced)), Verdict::default());
}

#[test]
fn each_policy_has_its_rules() {
    let plain = json!([node()]);
    let installer = json!({"containers": [], "initContainers": [{"name": "flux-installer"}]});
    let with_installer = json!([replicated_job("node", None, &installer)]);
    for (policy, replicated_jobs, variable, path) in [
        ("torch", &plain, "PET_NNODES", Some("spec.trainer.env: ")),
        ("mpi", &plain, "OMPI_MCA_plm_rsh_args", Some("spec.trainer.env: ")),
        ("xgboost", &plain, "DMLC_TASK_ID", Some("spec.trainer.env[0]: ")),
        ("flux", &with_installer, "A", Some("spec.trainer.initContainers: ")),
        ("jax", &with_installer, "PET_NNODES", None),
    ] {
        let job = testing::job(&json!({"trainer": {"env": [{"name": variable}]}}));
        let runtime = testing::with(&json!({policy: {}}), replicated_jobs);
        let denial = created(&job, Ok(&runtime)).denial();
        assert_eq!(denial.is_some(), path.is_some(), "{policy}: {denial:?}");
        assert!(denial.unwrap_or_default().starts_with(path.unwrap_or_default()), "{policy}");
    }
}

#[test]
fn priorities_are_asked_for_with_volcano_only() {
    let pod = json!({"containers": [{"name": "node"}], "priorityClassName": "gone"});
    let missing = [("gone".to_owned(), "not found".to_owned())].into();
    let job = testing::job(&json!({}));
    for (policy, denied) in [(json!({"volcano": {}}), true), (json!({"coscheduling": {}}), false)] {
        let runtime = testing::runtime(&json!({"podGroupPolicy": policy, "template": {"spec": {
            "replicatedJobs": [replicated_job("node", None, &pod)],
        }}}));
        let request = request(Operation::Create, &job, Ok(&runtime));
        let request = Request { missing_priority_classes: &missing, ..request };
        assert_eq!(validate(&request).denial().is_some(), denied);
    }
}

#[test]
fn the_errors_of_all_rules_are_told_together() {
    let job = testing::job(&json!({
        "initializer": {"dataset": {}},
        "trainer": {"env": [{"name": "PET_NNODES"}]},
        "runtimePatches": [{"manager": "me"}],
    }));
    let denial = created(&job, Ok(&torch())).denial().unwrap();
    for part in ["[spec.runtimePatches[0].manager: ", ", spec.runtimeRef: ", ", spec.trainer.env: "]
    {
        assert!(denial.contains(part), "{denial}");
    }
    assert!(denial.ends_with(']'), "{denial}");
}

#[test]
fn a_name_that_job_set_would_refuse_is_refused_on_create() {
    let named = |length: usize, fields: &Value| {
        let mut job = testing::job(fields);
        job.metadata.name = Some("x".repeat(length));
        job
    };
    assert_eq!(created(&named(48, &json!({})), Ok(&torch())), Verdict::default());
    let long = named(49, &json!({}));
    let denial = created(&long, Ok(&torch())).denial().unwrap();
    let name = "x".repeat(49);
    let start =
        format!("metadata.name: Invalid value: \"{name}\": too long: JobSet would have to make");
    assert!(denial.starts_with(&start), "{denial}");
    assert!(denial.contains("use a name of at most 48 characters"), "{denial}");
    let resumed = named(49, &json!({"suspend": true}));
    assert_eq!(updated(&long, &resumed, Ok(&torch())), Verdict::default());
}

#[test]
fn a_job_that_cannot_be_built_yet_is_warned_of() {
    let runtime = testing::with(&json!({"mpi": {"mpiImplementation": "Intel"}}), &json!([node()]));
    let verdict = created(&testing::job(&json!({})), Ok(&runtime));
    assert_eq!(verdict.errors, []);
    let [warning] = verdict.warnings.as_slice() else { panic!("{verdict:?}") };
    assert!(warning.starts_with("the TrainJob cannot start as it is: mlPolicy.mpi."), "{warning}");
}

#[test]
fn update_without_spec_change_is_admitted() {
    let stored = wrong(false);
    let mut labelled = stored.clone();
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    assert_eq!(updated(&stored, &labelled, Ok(&torch())), Verdict::default());

    let mut going = testing::job(&json!({"runtimePatches": [{"manager": "me"}]}));
    going.metadata.deletion_timestamp = Some(trainjob_api::time::Timestamp(1).into());
    assert_eq!(updated(&stored, &going, Ok(&torch())), Verdict::default());
}

#[test]
fn an_update_is_refused_for_what_it_brings_in_only() {
    let (right, runtime) = (testing::job(&json!({})), torch());
    assert_eq!(updated(&right, &wrong(false), Ok(&runtime)).errors.len(), 1);
    assert_eq!(updated(&wrong(false), &wrong(true), Ok(&runtime)), Verdict::default());
}

#[test]
fn an_update_is_judged_by_the_snapshot() {
    let (old, new) = (testing::job(&json!({})), wrong(false));
    let (torch, jax) = (torch(), testing::with(&json!({"jax": {}}), &json!([node()])));
    for (runtime, snapshot, denied) in [
        (Ok(&torch), Some(&jax), false),
        (Ok(&jax), Some(&torch), true),
        (Err("gone"), Some(&torch), true),
        (Ok(&torch), None, true),
        (Err("gone"), None, false),
    ] {
        let request = request(Operation::Update(&old), &new, runtime);
        let verdict = validate(&Request { snapshot, ..request });
        assert_eq!(verdict.denial().is_some(), denied);
    }
}

#[test]
fn an_update_of_patches_of_a_suspended_job_is_let_through() {
    let patched = |zone: &str| {
        let term =
            json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        let required = json!({"nodeSelectorTerms": [term]});
        let affinity =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        testing::job(
            &json!({"suspend": true, "runtimePatches": [{"manager": "a/b", "trainingRuntimeSpec": {
                "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {
                    "spec": {"affinity": affinity},
                }}}}]}},
            }}]}),
        )
    };
    assert_eq!(updated(&patched("a"), &patched("b"), Ok(&torch())), Verdict::default());
}

#[test]
fn changes_of_patches_and_of_the_lifecycle_are_judged_without_a_runtime() {
    let old = testing::job(&json!({}));
    let new =
        testing::job(&json!({"ttlSecondsAfterFinished": 5, "runtimePatches": [{"manager": "me"}]}));
    let verdict = updated(&old, &new, Err("gone"));
    let paths: Vec<_> = verdict.errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(
        paths,
        ["spec.runtimePatches[0].manager", "spec.runtimePatches", "spec.ttlSecondsAfterFinished"],
        "{:?}",
        texts(&verdict.errors)
    );
}

#[test]
fn a_new_job_is_warned_of_its_lifecycle() {
    let job = testing::job(&json!({"ttlSecondsAfterFinished": 5}));
    assert_eq!(created(&job, Ok(&torch())).warnings.len(), 1);
    let suspended = testing::job(&json!({"ttlSecondsAfterFinished": 5, "suspend": true}));
    assert_eq!(updated(&job, &suspended, Ok(&torch())), Verdict::default());
}

#[test]
fn a_job_without_a_spec_names_no_runtime() {
    let nothing = testing::job(&json!({"runtimeRef": {}}));
    let text = "unsupported runtime: .";
    assert_eq!(created(&nothing, Ok(&torch())).denial().as_deref(), Some(text));
    // One that is given a spec later is as good as new.
    let job = testing::job(&json!({}));
    assert!(updated(&nothing, &job, Err("gone")).denial().unwrap().ends_with("is created"));
    assert_eq!(updated(&nothing, &job, Ok(&torch())), Verdict::default());
}

#[test]
fn a_name_that_is_too_long_is_told_with_the_other_errors() {
    let mut job = wrong(false);
    job.metadata.name = Some("x".repeat(49));
    let denial = created(&job, Ok(&torch())).denial().unwrap();
    assert!(denial.starts_with("[spec.trainer.env: "), "{denial}");
    assert!(denial.contains(", metadata.name: Invalid value: "), "{denial}");
}

#[test]
fn a_queueing_system_starts_and_stops_a_job_that_has_become_invalid() {
    // Admitted before there were rules; the entry of the queueing system is behind the user's.
    let bad = json!({"manager": "me", "trainingRuntimeSpec": {"template": {"spec": {
        "replicatedJobs": [{"name": "gone"}],
    }}}});
    let kueue = |jobs: Value| json!({"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": jobs}}});
    let selector = json!({"nodeSelector": {"zone": "a"}});
    let admitted = kueue(json!({"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"metadata": {}, "spec": selector}}}},
    ]}));
    let job = |suspend: bool, entries: Value| {
        testing::job(&json!({
            "suspend": suspend, "runtimePatches": entries, "activeDeadlineSeconds": 60,
            "trainer": {"env": [{"name": "PET_NNODES"}]},
        }))
    };
    let waiting = job(true, json!([bad, kueue(json!({}))]));
    let runs = job(false, json!([bad, admitted]));
    let stopped = job(true, json!([bad, admitted]));
    for (what, old, new) in [
        ("patched and resumed in one request", &waiting, &runs),
        ("patched, still suspended", &waiting, &stopped),
        ("resumed", &stopped, &runs),
        ("suspended", &runs, &stopped),
        ("restored", &stopped, &waiting),
        ("in another order", &waiting, &job(true, json!([kueue(json!({})), bad]))),
    ] {
        assert_eq!(updated(old, new, Ok(&torch())), Verdict::default(), "{what}");
    }
    let more = job(true, json!([bad, kueue(json!({})), {"manager": "you"}]));
    let [error] = &updated(&waiting, &more, Ok(&torch())).errors[..] else { panic!() };
    assert_eq!(error.path, "spec.runtimePatches[2].manager");
}

#[test]
fn a_patch_that_would_give_two_sources_is_refused() {
    let patch = json!({"manager": "a/b", "trainingRuntimeSpec": {"template": {"spec": {
        "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
            "volumes": [{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}],
        }}}}}],
    }}}});
    let job = testing::job(&json!({"runtimePatches": [patch]}));
    let denial = created(&job, Ok(&torch())).denial().unwrap();
    assert!(denial.contains("would have configMap and emptyDir"), "{denial}");
}
