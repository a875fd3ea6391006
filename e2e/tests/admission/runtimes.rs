//! What a runtime needs, of either kind, on creation and on update.

use anyhow::{Context, Result, ensure};
use e2e::answer::{Answer, ask};
use http::Method;
use serde_json::{Value, json};

use super::parts::{node, pod, replicated_job, runtime};
use super::place;
use super::place::Place;

const PATH: &str = "spec.template.spec.replicatedJobs";
const DRY_RUN: &str = "?dryRun=All";

/// What is special about a runtime, its spec, and why it is refused.
type Row = (&'static str, Value, Option<String>);

fn with_replicas(mut replicated_job: Value, replicas: i32) -> Value {
    replicated_job["replicas"] = json!(replicas);
    replicated_job
}

fn rows() -> Vec<Row> {
    let of = |replicated_jobs: Value| runtime(&json!({"numNodes": 1}), &replicated_jobs);
    let other = replicated_job("other", Some("evaluator"), &pod("any"));
    let label = "template.metadata.labels[trainer.kubeflow.org/trainjob-ancestor-step]";
    let gang = |policy: Value| {
        let mut runtime = of(json!([node()]));
        runtime["podGroupPolicy"] = policy;
        runtime
    };
    let mpi = |launcher_is_node: bool, names: &[&str]| {
        let replicated_jobs: Vec<_> =
            names.iter().map(|name| replicated_job(name, None, &pod("node"))).collect();
        runtime(&json!({"mpi": {"runLauncherAsNode": launcher_is_node}}), &json!(replicated_jobs))
    };
    let lacks = |name: &str, what: &str| {
        Some(format!(
            "{PATH}: Required value: spec.mlPolicy.mpi needs a replicated job named \"{name}\", {what}"
        ))
    };
    let mut rows = vec![
        ("one replica", of(json!([with_replicas(node(), 1)])), None),
        ("another replicated job", of(json!([node(), with_replicas(other, 2)])), None),
        (
            "two replicas",
            of(json!([with_replicas(node(), 2)])),
            Some(format!("{PATH}[0].replicas: Invalid value: 2: always must be 1")),
        ),
        (
            "an ancestor label twice",
            of(json!([node(), replicated_job("again", Some("trainer"), &pod("node"))])),
            Some(format!("{PATH}[1].{label}: Invalid value: \"trainer\": must be the step of one replicated job only: an earlier one has this label")),
        ),
        ("a gang", gang(json!({"coscheduling": {}})), None),
        (
            "two schedulers",
            gang(json!({"coscheduling": {}, "volcano": {}})),
            Some("spec.podGroupPolicy: Forbidden: a Pod has one scheduler: set either coscheduling or volcano".into()),
        ),
        ("MPI", mpi(false, &["launcher", "node"]), None),
        ("MPI, its launcher a node", mpi(true, &["launcher"]), None),
        ("MPI without a launcher", mpi(false, &["node"]), lacks("launcher", "which starts the processes")),
        (
            "MPI without nodes",
            mpi(false, &["launcher"]),
            lacks("node", "whose Pods train, unless spec.mlPolicy.mpi.runLauncherAsNode is true"),
        ),
    ];
    for (ancestor, container) in [
        ("trainer", "node"),
        ("dataset-initializer", "dataset-initializer"),
        ("model-initializer", "model-initializer"),
    ] {
        let with = |name: &str| {
            of(json!([replicated_job(
                "a",
                Some(ancestor),
                &json!({"containers": [{"name": name}]})
            )]))
        };
        rows.push(("its container", with(container), None));
        rows.push(("not its container", with("x"), Some(format!(
            "{PATH}[0].template.spec.template.spec.containers: Invalid value: [{{\"name\":\"x\"}}]: must contain the required container for the ancestor: {ancestor}"
        ))));
    }
    rows
}

/// The runtimes of one of the two kinds.
struct Runtimes<'a> {
    place: &'a Place,
    kind: &'static str,
    resource: &'static str,
    path: String,
}

impl Runtimes<'_> {
    fn both(place: &Place) -> [Runtimes<'_>; 2] {
        let all = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes".to_owned();
        [
            Runtimes {
                place,
                kind: "TrainingRuntime",
                resource: "trainingruntime",
                path: place.path("trainingruntimes", ""),
            },
            Runtimes {
                place,
                kind: "ClusterTrainingRuntime",
                resource: "clustertrainingruntime",
                path: all,
            },
        ]
    }

    async fn create(&self, name: &str, labels: Value, spec: &Value, how: &str) -> Result<Answer> {
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": self.kind,
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        });
        let path = format!("{}{how}", self.path);
        ask(&self.place.client, Method::POST, &path, "application/json", &runtime).await
    }

    async fn replace(&self, runtime: &Value, how: &str) -> Result<Answer> {
        let name = runtime["metadata"]["name"].as_str().context("a runtime without a name")?;
        let path = format!("{}/{name}{how}", self.path);
        ask(&self.place.client, Method::PUT, &path, "application/json", runtime).await
    }

    fn judge(&self, answer: &Answer, success: u16, why: Option<&str>) -> Result<()> {
        let Some(why) = why else {
            ensure!(answer.code == success, "{}: {}", answer.code, answer.message());
            return Ok(());
        };
        let webhook = format!("validator.{}.trainer.kubeflow.org", self.resource);
        let expected = format!("admission webhook \"{webhook}\" denied the request: {why}");
        ensure!(
            answer.message() == expected,
            "\n  it says {}\n  and not {expected}",
            answer.message()
        );
        ensure!(answer.code == 403, "{}", answer.code);
        Ok(())
    }
}

#[tokio::test]
async fn a_runtime_has_what_a_job_needs() -> Result<()> {
    let place = place("runtimes").await?;
    for kind in Runtimes::both(&place) {
        for (number, (what, spec, why)) in rows().into_iter().enumerate() {
            let name = format!("{}-{number}", place.namespace);
            for how in [DRY_RUN, ""] {
                let answer = kind.create(&name, json!({}), &spec, how).await?;
                let judged = kind.judge(&answer, 201, why.as_deref());
                judged.with_context(|| format!("{}, {what}{how}", kind.kind))?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn runtime_update_is_denied_only_for_new_errors() -> Result<()> {
    let place = place("updates").await?;
    let disabled = json!({"trainer.kubeflow.org/webhook-validation": "disabled"});
    let of = |replicated_jobs: Value| runtime(&json!({"numNodes": 1}), &replicated_jobs);
    for kind in Runtimes::both(&place) {
        for (number, (what, spec, why)) in rows().into_iter().enumerate() {
            let context = || format!("{}, {what}", kind.kind);
            // One that was good.
            let good = kind
                .create(
                    &format!("{}-good-{number}", place.namespace),
                    json!({}),
                    &of(json!([node()])),
                    "",
                )
                .await?;
            ensure!(good.code == 201, "{good:?}");
            let mut changed = good.object;
            changed["spec"] = spec.clone();
            for how in [DRY_RUN, ""] {
                let answer = kind.replace(&changed, how).await?;
                kind.judge(&answer, 200, why.as_deref()).with_context(context)?;
            }
            // One that nobody has looked at stays changeable.
            let name = format!("{}-bad-{number}", place.namespace);
            let stored = kind.create(&name, disabled.clone(), &spec, "").await?;
            ensure!(stored.code == 201, "{}: {stored:?}", context());
            let mut stored = stored.object;
            stored["metadata"]["labels"] = json!({});
            let stored = kind.replace(&stored, "").await?;
            ensure!(stored.code == 200, "looked at again, {}: {stored:?}", context());
            let mut stored = stored.object;
            stored["spec"]["template"]["metadata"] = json!({"labels": {"a": "b"}});
            let stored = kind.replace(&stored, "").await?;
            ensure!(stored.code == 200, "changed, {}: {stored:?}", context());
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_deprecated_runtime_is_warned_of_where_it_is_for_all() -> Result<()> {
    let place = place("support").await?;
    for kind in Runtimes::both(&place) {
        let name = format!("{}-old", place.namespace);
        let labels = json!({"trainer.kubeflow.org/support": "deprecated"});
        let spec = runtime(&json!({"numNodes": 1}), &json!([node()]));
        let answer = kind.create(&name, labels, &spec, DRY_RUN).await?;
        let expected = format!(
            "ClusterTrainingRuntime \"{name}\" is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime deprecation policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
        );
        let expected: Vec<_> =
            (kind.resource == "clustertrainingruntime").then_some(expected).into_iter().collect();
        ensure!(answer.code == 201 && answer.warnings == expected, "{answer:?}");
    }
    Ok(())
}

/// In upstream's words, an API server of 1.31 does not take the definition. In ours it does, and enforces the rule.
#[tokio::test]
async fn volume_claim_with_a_namespace_is_refused_by_the_definition() -> Result<()> {
    let place = place("volumes").await?;
    let with = |metadata: Value| {
        let mut runtime = runtime(&json!({"numNodes": 1}), &json!([node()]));
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        runtime["template"]["spec"]["volumeClaimPolicies"] =
            json!([{"templates": [{"metadata": metadata, "spec": spec}]}]);
        runtime
    };
    for kind in Runtimes::both(&place) {
        for (metadata, code) in
            [(json!({"name": "data"}), 201), (json!({"name": "data", "namespace": "other"}), 422)]
        {
            let answer = kind.create(&place.namespace, json!({}), &with(metadata), DRY_RUN).await?;
            let said = (answer.code, answer.message());
            ensure!(answer.code == code, "{}: {said:?}", kind.kind);
            let why = "namespace cannot be set for VolumeClaimPolicies templates";
            ensure!(code == 201 || answer.message().contains(why), "{}: {said:?}", kind.kind);
        }
    }
    Ok(())
}
