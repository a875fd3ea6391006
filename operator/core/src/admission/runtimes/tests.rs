//! One row for each rule about runtimes.

use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainingRuntime};

use super::*;
use crate::admission::testing::{self, node, replicated_job, texts};

fn found(spec: &Value) -> Vec<String> {
    texts(&create(&testing::runtime(spec)).errors)
}

fn of(replicated_jobs: &Value) -> Value {
    json!({"template": {"spec": {"replicatedJobs": replicated_jobs}}})
}

fn with_replicas(mut replicated_job: Value, replicas: i32) -> Value {
    replicated_job["replicas"] = replicas.into();
    replicated_job
}

#[test]
fn ancestor_replicated_job_has_one_replica() {
    let other = replicated_job("other", Some("evaluator"), &json!({"containers": []}));
    for (replicated_job, replicas) in [
        (node(), None),
        (with_replicas(node(), 1), None),
        (with_replicas(node(), 2), Some(2)),
        (with_replicas(node(), 0), Some(0)),
        (with_replicas(other, 2), None),
    ] {
        let expected = replicas.map(|replicas| {
            format!("spec.template.spec.replicatedJobs[0].replicas: Invalid value: {replicas}: always must be 1")
        });
        assert_eq!(
            found(&of(&json!([replicated_job]))),
            expected.into_iter().collect::<Vec<_>>(),
            "{replicated_job}"
        );
    }
}

#[test]
fn ancestor_replicated_job_has_its_container() {
    for (ancestor, container) in [
        ("trainer", "node"),
        ("dataset-initializer", "dataset-initializer"),
        ("model-initializer", "model-initializer"),
    ] {
        let pod = |name: &str| json!({"containers": [{"name": name}]});
        assert_eq!(
            found(&of(&json!([replicated_job("a", Some(ancestor), &pod(container))]))),
            [""; 0]
        );
        let lacking = replicated_job("b", Some(ancestor), &pod("x"));
        let expected = format!(
            "spec.template.spec.replicatedJobs[1].template.spec.template.spec.containers: Invalid value: [{{\"name\":\"x\"}}]: must contain the required container for the ancestor: {ancestor}"
        );
        assert_eq!(found(&of(&json!([replicated_job("a", None, &pod("x")), lacking]))), [expected]);
        let init = json!({"containers": [], "initContainers": [{"name": container}]});
        assert_eq!(found(&of(&json!([replicated_job("a", Some(ancestor), &init)]))).len(), 1);
    }
}

#[test]
fn ancestor_label_is_there_once() {
    let expected = "spec.template.spec.replicatedJobs[1].template.metadata.labels[trainer.kubeflow.org/trainjob-ancestor-step]: Invalid value: \"trainer\": must be the step of one replicated job only: an earlier one has this label";
    assert_eq!(found(&of(&json!([node(), node()]))), [expected]);
    let other = replicated_job("other", Some("evaluator"), &json!({"containers": []}));
    assert_eq!(found(&of(&json!([other, other]))), [""; 0]);
}

#[test]
fn a_pod_has_one_scheduler() {
    let expected = "spec.podGroupPolicy: Forbidden: a Pod has one scheduler: set either coscheduling or volcano";
    for (policy, expected) in [
        (json!({"coscheduling": {}, "volcano": {}}), vec![expected]),
        (json!({"coscheduling": {}}), vec![]),
        (json!({"volcano": {}}), vec![]),
        (json!({}), vec![]),
    ] {
        let mut spec = of(&json!([node()]));
        spec["podGroupPolicy"] = policy;
        assert_eq!(found(&spec), expected);
    }
}

#[test]
fn mpi_has_a_launcher_and_nodes() {
    let path = "spec.template.spec.replicatedJobs: Required value: spec.mlPolicy.mpi needs a replicated job named";
    let launcher = format!("{path} \"launcher\", which starts the processes");
    let nodes = format!(
        "{path} \"node\", whose Pods train, unless spec.mlPolicy.mpi.runLauncherAsNode is true"
    );
    for (names, launcher_is_node, expected) in [
        (&["launcher", "node"][..], false, vec![]),
        (&["launcher", "node"], true, vec![]),
        (&["launcher"], true, vec![]),
        (&["launcher"], false, vec![&nodes]),
        (&["node"], true, vec![&launcher]),
        (&["other"], false, vec![&launcher, &nodes]),
    ] {
        let replicated_jobs: Vec<_> =
            names.iter().map(|name| replicated_job(name, None, &json!({}))).collect();
        let mut spec = of(&json!(replicated_jobs));
        spec["mlPolicy"] = json!({"mpi": {"runLauncherAsNode": launcher_is_node}});
        let expected: Vec<_> = expected.into_iter().cloned().collect();
        assert_eq!(found(&spec), expected, "{names:?}");
    }
}

fn labelled(replicas: i32, support: &str) -> Value {
    json!({
        "metadata": {"name": "rt", "namespace": "ns", "labels": {"trainer.kubeflow.org/support": support}},
        "spec": of(&json!([with_replicas(node(), replicas)])),
    })
}

fn cluster(replicas: i32, support: &str) -> Runtime {
    let runtime = serde_json::from_value(labelled(replicas, support)).unwrap();
    ClusterTrainingRuntime::into(runtime)
}

fn namespaced(replicas: i32, support: &str) -> Runtime {
    TrainingRuntime::into(serde_json::from_value(labelled(replicas, support)).unwrap())
}

#[test]
fn a_deprecated_cluster_runtime_is_warned_of_when_it_is_created() {
    let text = "ClusterTrainingRuntime \"rt\" is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime deprecation policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy";
    assert_eq!(create(&cluster(1, "deprecated")).warnings, [text]);
    assert_eq!(create(&cluster(2, "deprecated")).warnings, [text]);
    assert_eq!(create(&cluster(1, "full")).warnings, [""; 0]);
    assert_eq!(create(&namespaced(1, "deprecated")).warnings, [""; 0]);
    let (old, new) = (cluster(2, "deprecated"), cluster(1, "deprecated"));
    assert_eq!(update(&old, &new), Verdict::default());
}

#[test]
fn an_update_is_judged_if_it_changes_the_spec() {
    for runtime in [cluster, namespaced] {
        assert_eq!(create(&runtime(2, "")).errors.len(), 1);
        assert_eq!(update(&runtime(1, ""), &runtime(2, "")).errors.len(), 1);
        assert_eq!(update(&runtime(2, ""), &runtime(1, "")), Verdict::default());
        assert_eq!(update(&runtime(2, ""), &runtime(2, "x")), Verdict::default());
        let mut going = runtime(2, "");
        going.metadata.deletion_timestamp = Some(trainjob_api::time::Timestamp(1).into());
        assert_eq!(update(&runtime(1, ""), &going), Verdict::default());
    }
}

#[test]
fn an_update_is_refused_for_what_it_brings_in_only() {
    // Stored before there were rules: two replicas, no container of its name, no launcher.
    let pod = |name: &str, image: &str| json!({"containers": [{"name": name, "image": image}]});
    let replicated_job = |replicas, container, image| {
        with_replicas(replicated_job("node", Some("trainer"), &pod(container, image)), replicas)
    };
    let runtime = |replicated_jobs: Value| testing::with(&json!({"mpi": {}}), &replicated_jobs);
    let old = runtime(json!([replicated_job(2, "main", "i:1")]));
    assert_eq!(create(&old).errors.len(), 3, "{:?}", texts(&create(&old).errors));
    let init = testing::replicated_job("init", None, &json!({"containers": []}));
    for (what, new, expected) in [
        ("another image", json!([replicated_job(2, "main", "i:2")]), 0),
        ("a job before it", json!([init, replicated_job(2, "main", "i:1")]), 0),
        ("mended in part", json!([replicated_job(1, "main", "i:1")]), 0),
        ("other replicas, no better", json!([replicated_job(3, "main", "i:1")]), 1),
        // Replicas, container, and the label a second time.
        (
            "another such job",
            json!([replicated_job(2, "main", "i:1"), replicated_job(2, "main", "i:1")]),
            3,
        ),
    ] {
        let found = update(&old, &runtime(new)).errors;
        assert_eq!(found.len(), expected, "{what}: {:?}", texts(&found));
    }
}
