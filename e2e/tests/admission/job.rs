//! What every TrainJob needs, whatever it runs on: a runtime, a name, its initializers; and what its
//! author is warned of.

use anyhow::{Result, ensure};
use e2e::answer::ask;
use e2e::until::until_ok;
use http::Method;
use serde_json::{Value, json};

use super::parts::{node, plain, pod, replicated_job, runtime, torch};
use super::place::{Request, Way, manifest};
use super::row::Row;
use super::{check, place};

#[tokio::test]
async fn a_job_names_a_runtime_that_exists() -> Result<()> {
    check("runtime", references()).await
}

fn references() -> Vec<Row> {
    let job = |reference: Value| json!({"runtimeRef": reference});
    let none = |what| Row::new(what, Value::Null, json!({}));
    let of = |what, reference| Row::new(what, Value::Null, job(reference));
    vec![
        Row::new("it is there", plain(), json!({})),
        none("there is no TrainingRuntime").denied(
            r#"spec.runtimeRef: Invalid value: {ref}: TrainingRuntime.trainer.kubeflow.org "{runtime}" not found: specified trainingRuntime must be created before the TrainJob is created"#,
        ),
        of("there is no ClusterTrainingRuntime", json!({"name": "gone"})).denied(
            r#"spec.RuntimeRef: Invalid value: {"name":"gone","apiGroup":"trainer.kubeflow.org","kind":"ClusterTrainingRuntime"}: ClusterTrainingRuntime.trainer.kubeflow.org "gone" not found: specified clusterTrainingRuntime must be created before the TrainJob is created"#,
        ),
        of("a kind that is none", json!({"name": "a", "kind": "Pod"}))
            .denied("unsupported runtime: Pod.trainer.kubeflow.org"),
        of("a group that is none", json!({"name": "a", "apiGroup": "example.com"}))
            .denied("unsupported runtime: ClusterTrainingRuntime.example.com"),
    ]
}

#[tokio::test]
async fn a_job_without_a_spec_names_no_runtime() -> Result<()> {
    let place = place("nothing").await?;
    let mut job = manifest("nothing", &Value::Null);
    job.as_object_mut().map(|job| job.remove("spec"));
    let answer = place.send(&Request::create(Way::Replace, job), false).await?;
    ensure!(answer.code == 403, "{answer:?}");
    ensure!(
        answer.message().ends_with(" denied the request: unsupported runtime: ."),
        "{answer:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_deprecated_cluster_runtime_is_warned_of() -> Result<()> {
    let place = place("deprecated").await?;
    let name = format!("{}-old", place.namespace);
    let about = format!(
        "ClusterTrainingRuntime \"{name}\" is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime deprecation policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
    );
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/support": "deprecated"}},
        "spec": torch(),
    });
    let path = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes";
    let made = ask(&place.client, Method::POST, path, "application/json", &runtime).await?;
    ensure!(made.code == 201 && made.warnings == [about.clone()], "{made:?}");
    let mut changed = made.object;
    changed["spec"]["mlPolicy"]["numNodes"] = json!(2);
    let path = format!("{path}/{name}");
    let changed = ask(&place.client, Method::PUT, &path, "application/json", &changed).await?;
    ensure!(changed.code == 200 && changed.warnings.is_empty(), "{changed:?}");

    let referenced = [format!("Referenced {about}")];
    let spec = json!({"runtimeRef": {"name": name}});
    let create = Request::create(Way::Replace, manifest("job", &spec));
    until_ok("the webhook knows the runtime", std::time::Duration::from_secs(30), || async {
        let answer = place.send(&create, true).await?;
        ensure!(answer.code == 201 && answer.warnings == referenced, "{answer:?}");
        Ok(())
    })
    .await?;
    let job = place.create(Way::Replace, "job", &spec).await?;
    let suspended = json!({"runtimeRef": {"name": name}, "suspend": true});
    let answer = place.change(Way::Replace, &job, &suspended).await?;
    ensure!(answer.code == 200 && answer.warnings == referenced, "{answer:?}");
    // With a refusal, too.
    let wrong = json!({"runtimeRef": {"name": name}, "trainer": {"env": [{"name": "PET_NNODES"}]}});
    let answer = place.send(&Request::create(Way::Replace, manifest("no", &wrong)), false).await?;
    ensure!(answer.code == 403 && answer.warnings == referenced, "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn train_job_name_leaves_room_for_pod_names() -> Result<()> {
    let place = place("name").await?;
    place.make_runtime("r", &plain()).await?;
    let spec = json!({"runtimeRef": {"name": "r", "kind": "TrainingRuntime"}});
    for (length, code) in [(48, 201), (49, 403), (63, 403), (64, 422)] {
        let name = "x".repeat(length);
        for way in [Way::Replace, Way::ServerSideApply] {
            let answer = place.send(&Request::create(way, manifest(&name, &spec)), true).await?;
            ensure!(answer.code == code, "{length}: {answer:?}");
            let start = format!(
                "admission webhook \"validator.trainjob.trainer.kubeflow.org\" denied the request: metadata.name: Invalid value: \"{name}\": too long: JobSet would have to make"
            );
            let says = answer.message();
            ensure!(code != 403 || says.starts_with(&start), "{length}: {says}");
            ensure!(code != 403 || says.contains("at most 48 characters"), "{length}: {says}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn initializer_needs_its_replicated_job_container_and_volume() -> Result<()> {
    check("initializer", initializers()).await
}

fn initializers() -> Vec<Row> {
    let mut rows = Vec::new();
    for (field, name) in [("dataset", "dataset-initializer"), ("model", "model-initializer")] {
        let with = |replicated_job: Value| {
            runtime(&json!({"numNodes": 1}), &json!([replicated_job, node()]))
        };
        let containers = |container: &str, mounts: &Value| {
            let mut pod = pod(container);
            pod["volumes"] = json!([{"name": "initializer", "emptyDir": {}}]);
            pod["containers"][0]["volumeMounts"] = mounts.clone();
            pod
        };
        let mounts = json!([{"name": "initializer", "mountPath": "/workspace"}]);
        let row = |what, replicated_job| {
            Row::new(
                what,
                with(replicated_job),
                json!({"initializer": {field: {"storageUri": "hf://a/b"}}}),
            )
        };
        let denied = |row: Row, why: &str| {
            row.denied(&format!("spec.runtimeRef: Invalid value: {{ref}}: {why}"))
        };
        rows.extend([
            row("all is there", replicated_job(name, Some(name), &containers(name, &mounts))),
            row("it is known by its label", replicated_job("fetch", Some(name), &containers(name, &mounts))),
            denied(
                row("no job", replicated_job("fetch", None, &containers(name, &mounts))),
                &format!("must have {name} job when trainJob is configured with input {field}Config"),
            ),
            denied(
                row("no container", replicated_job(name, None, &containers("main", &mounts))),
                &format!("must have container with name - {name} in the {name} job"),
            ),
            denied(
                row("no mount", replicated_job(name, Some(name), &containers(name, &json!([])))),
                &format!("must have volumeMount with name - initializer in container {name} of the {name} job"),
            ),
        ]);
    }
    rows
}

#[tokio::test]
async fn short_ttl_and_queued_deadline_give_warnings() -> Result<()> {
    check("lifecycle", warnings()).await
}

fn warnings() -> Vec<Row> {
    let row = |what, spec| Row::new(what, plain(), spec);
    let soon = |ttl| {
        format!(
            "spec.ttlSecondsAfterFinished is {ttl}: the TrainJob may be gone before anyone looks at it; use 60 or more to read its status"
        )
    };
    let counts = "spec.activeDeadlineSeconds is 9 and counts from the creation of the TrainJob, which is suspended: the time until it starts counts, too";
    vec![
        row("a TTL of a minute", json!({"ttlSecondsAfterFinished": 60})),
        row("a TTL of less", json!({"ttlSecondsAfterFinished": 59})).warned(&soon(59)),
        row("a TTL of nothing", json!({"ttlSecondsAfterFinished": 0})).warned(&soon(0)),
        row("a deadline", json!({"activeDeadlineSeconds": 9})),
        row("a deadline while suspended", json!({"activeDeadlineSeconds": 9, "suspend": true}))
            .warned(counts),
        row(
            "both",
            json!({"activeDeadlineSeconds": 9, "suspend": true, "ttlSecondsAfterFinished": 0}),
        )
        .warned(&soon(0))
        .warned(counts),
        row("only on creation", json!({"activeDeadlineSeconds": 9, "suspend": true}))
            .then(json!({"activeDeadlineSeconds": 9, "suspend": false})),
    ]
}

#[tokio::test]
async fn deadline_of_a_queued_job_gives_a_warning() -> Result<()> {
    let place = place("queue").await?;
    place.make_runtime("r", &plain()).await?;
    let reference = json!({"name": "r", "kind": "TrainingRuntime"});
    let mut job = manifest("queued", &json!({"runtimeRef": reference, "activeDeadlineSeconds": 9}));
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "team"});
    let answer = place.send(&Request::create(Way::Replace, job), false).await?;
    let expected = "spec.activeDeadlineSeconds is 9 and counts from the creation of the TrainJob, which waits in a queue: the time until it starts counts, too";
    ensure!(answer.code == 201 && answer.warnings == [expected], "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn all_errors_of_a_request_are_told_at_once_in_one_order() -> Result<()> {
    check("all", together()).await
}

fn together() -> Vec<Row> {
    let spec = json!({
        "initializer": {"dataset": {}},
        "trainer": {"env": [{"name": "PET_NNODES", "value": "1"}]},
        "runtimePatches": [{"manager": "me"}],
    });
    let text = concat!(
        r#"[spec.runtimePatches[0].manager: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo"), "#,
        "spec.runtimeRef: Invalid value: {ref}: must have dataset-initializer job when trainJob is configured with input datasetConfig, ",
        r#"spec.trainer.env: Invalid value: [{"name":"PET_NNODES","value":"1"}]: must not have reserved envs, invalid envs configured: [PET_NNODES]]"#,
    );
    vec![Row::new("everything is wrong", torch(), spec).denied(text)]
}
