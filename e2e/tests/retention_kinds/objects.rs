//! The objects that end in all ways that the controllers here can bring about.

use anyhow::{Context, Result};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES, COMPLETES_AFTER, FAILS, RUNS, train_job};
use e2e::kueue::{Ask, Case, GPU};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// Makes it fail.
const OUTCOME: &str = "e2e.trainjob.dev/outcome";
/// The label of a job whose Workload Kueue deactivates after so many seconds of running.
const MAX_EXEC_TIME: &str = "kueue.x-k8s.io/max-exec-time-seconds";
/// The label of a job that names the Workload it is to have.
const PREBUILT: &str = "kueue.x-k8s.io/prebuilt-workload-name";
/// A TTL that does not end here.
const TTL: u32 = 3600;

/// Creates all of them.
pub(crate) async fn create(case: &Case<'_>) -> Result<()> {
    queued(case).await?;
    let manifests = [jobs(), pods(), job_sets(), train_jobs()].concat();
    apply(&case.tenant.client, &case.tenant.namespace, manifests).await?;
    // As the kubelet refuses a Pod for which its node has no room: without a word of its containers.
    let evicted = json!({"status": {
        "phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: memory.",
    }});
    let how = PatchParams { field_manager: Some("kubelet".to_owned()), ..PatchParams::default() };
    case.tenant.pods.patch_status("evicted", &how, &Patch::Merge(evicted)).await?;
    Ok(())
}

fn pod_spec() -> Value {
    json!({
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "example.com/train:1"}],
    })
}

/// A Pod that completes, fails, or runs if nothing is said.
fn template(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}, "spec": pod_spec()})
}

fn completes() -> Value {
    template(&json!({COMPLETES_AFTER: "100ms"}))
}

fn fails() -> Value {
    template(&json!({OUTCOME: "fail"}))
}

fn runs() -> Value {
    template(&json!({}))
}

fn job(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
}

fn jobs() -> Vec<Value> {
    let on_exit_code =
        json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}});
    [
        ("completes", json!({"template": completes(), "ttlSecondsAfterFinished": TTL})),
        (
            "by-policy",
            json!({
                "template": completes(), "completionMode": "Indexed", "completions": 2, "parallelism": 1,
                "successPolicy": {"rules": [{"succeededCount": 1}]},
            }),
        ),
        ("fails", json!({"template": fails(), "backoffLimit": 0})),
        (
            "fails-by-policy",
            json!({
                "template": fails(), "backoffLimit": 3, "ttlSecondsAfterFinished": TTL,
                "podFailurePolicy": {"rules": [on_exit_code]},
            }),
        ),
        ("overdue", json!({"template": runs(), "activeDeadlineSeconds": 1})),
        ("waits", json!({"template": runs(), "suspend": true, "ttlSecondsAfterFinished": 0})),
    ]
    .map(|(name, spec)| job(name, &spec))
    .into()
}

fn pods() -> Vec<Value> {
    let pod = |(name, annotations): (&str, Value)| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations}, "spec": pod_spec(),
        })
    };
    let mut pods = [
        ("completes", json!({COMPLETES_AFTER: "100ms"})),
        ("fails", json!({OUTCOME: "fail"})),
        ("out-of-memory", json!({OUTCOME: "oom"})),
        ("runs", json!({})),
        ("evicted", json!({})),
    ]
    .map(pod);
    if let Some(evicted) = pods.last_mut() {
        // So that it never gets to a node.
        evicted["spec"]["schedulerName"] = json!("nobody");
    }
    pods.into()
}

fn job_sets() -> Vec<Value> {
    let job_set = |(name, template, more): (&str, Value, Value)| {
        let job = json!({"spec": {"backoffLimit": 0, "template": template}});
        let mut spec = json!({"replicatedJobs": [{"name": "node", "template": job}]});
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name}, "spec": spec,
        })
    };
    [
        ("completes", completes(), json!({"ttlSecondsAfterFinished": TTL})),
        ("fails", fails(), json!({})),
        ("fails-again", fails(), json!({"failurePolicy": {"maxRestarts": 1}})),
        ("waits", runs(), json!({"suspend": true})),
    ]
    .map(job_set)
    .into()
}

fn train_jobs() -> Vec<Value> {
    vec![
        train_job("trains", COMPLETES, &json!({"ttlSecondsAfterFinished": TTL})),
        train_job("breaks", FAILS, &json!({})),
        train_job(
            "too-long",
            RUNS,
            &json!({"activeDeadlineSeconds": 2, "ttlSecondsAfterFinished": TTL}),
        ),
        train_job("paused", RUNS, &json!({"suspend": true})),
    ]
}

/// Jobs of the queue, for the sake of their Workloads.
async fn queued(case: &Case<'_>) -> Result<()> {
    let ask = Ask::low(1);
    case.submit("stopped", RUNS, ask, json!({})).await?;
    case.submit("stays", RUNS, ask, json!({})).await?;
    case.submit("queued", COMPLETES, ask, json!({})).await?;
    case.submit("queued-fails", FAILS, ask, json!({})).await?;
    let mut limited = case.queue.labels(ask.priority);
    limited[MAX_EXEC_TIME] = json!("2");
    case.submit_labelled("given-up", RUNS, &limited, ask, json!({})).await?;
    out_of_sync(case).await?;
    // By a user, which is no end.
    let stopped = case.workload_is("stopped", "admitted", |it| it.is("Admitted")).await?;
    let name = stopped.0.metadata.name.context("it has a name")?;
    let patch = Patch::Merge(json!({"spec": {"active": false}}));
    case.workloads.patch(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A Job and the Workload that it names, of which it does not have as many Pods.
async fn out_of_sync(case: &Case<'_>) -> Result<()> {
    let mut template = completes();
    let resources = json!({"requests": {"cpu": "1", GPU: "1"}, "limits": {"cpu": "1", GPU: "1"}});
    template["spec"]["containers"][0]["resources"] = resources;
    let pod_sets = json!([{"name": "main", "count": 3, "template": template}]);
    let mut labels = case.queue.labels("low");
    labels[PREBUILT] = json!("prebuilt");
    let workload = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "prebuilt"},
        "spec": {"queueName": labels[e2e::kueue::QUEUE_LABEL], "podSets": pod_sets},
    });
    let mut job = job("out-of-sync", &json!({"template": template, "suspend": true}));
    job["metadata"]["labels"] = labels;
    apply(&case.tenant.client, &case.tenant.namespace, vec![workload, job]).await?;
    Ok(())
}
