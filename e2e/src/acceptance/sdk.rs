//! The Kubeflow Python SDK, as its users have it: `e2e/python/sdk.py` is one of them, and `e2e/python/limits.py` one in a
//! namespace with defaults and maxima. And a client that only knows Kubeflow Trainer's API, from the SDK's generated
//! models: `e2e/python/trainer_client`. It writes runtimes too, which takes the role `admin`.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::testenv::fixtures::train_job;
use crate::testenv::release::{PATIENCE, Release};
use crate::testenv::until::until_ok;

const RUNTIME: &str = "torch-distributed";
const SDK: &str = "sdk.py";
const CLIENT: &str = "trainer_client";
const LIMITS: &str = "limits.py";
/// What the namespace of [`LIMITS`] sets.
const ANNOTATIONS: [&str; 4] = [
    "lifecycle.trainjob.dev/default-ttl-seconds-after-finished=2",
    "lifecycle.trainjob.dev/maximum-ttl-seconds-after-finished=60",
    "lifecycle.trainjob.dev/default-active-deadline-seconds=600",
    "lifecycle.trainjob.dev/maximum-active-deadline-seconds=3600",
];

/// Runs all as somebody with a role in a namespace; `tell` hears what they have seen.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let values = [
        // With the defaults a TTL cannot be added to a job,
        "manager.config.lifecycle.fieldUpdates=Mutable",
        // a deadline counts from the creation of a job and not, as with Kubeflow Trainer, from its resumption,
        "manager.config.lifecycle.deadlineClock=LastResume",
        // and who may edit in a namespace may not list the runtimes of the cluster, as the SDK does.
        "rbac.clusterRuntimesForAll=true",
    ];
    let release = Release::with_runtimes(&values).await?;
    let _programs = release.start().await?;
    for (script, role) in [(SDK, "edit"), (CLIENT, "admin")] {
        let (user, namespace) = release.user_with(role, "sdk").await?;
        tell(&format!("the release is there, and somebody with {script} has the role {role}"));
        brittle_runtime(&release, &namespace).await?;
        let seen = user.python(script, &[&namespace]).await?;
        seen.lines().for_each(tell);
    }
    limited(&release, tell).await
}

/// The administrator gives the namespace a runtime that is like [`RUNTIME`], but does not try again a Pod that fails.
async fn brittle_runtime(release: &Release, namespace: &str) -> Result<()> {
    let get = ["get", "clustertrainingruntime", RUNTIME, "-o", "json"];
    let mut runtime: Value = serde_json::from_str(&release.tools.kubectl(&get, None).await?)?;
    let node = "/spec/template/spec/replicatedJobs/0/template/spec";
    let node =
        runtime.pointer_mut(node).and_then(Value::as_object_mut).context("no replicated Job")?;
    node.insert("backoffLimit".to_owned(), json!(0));
    let labels = runtime.pointer("/metadata/labels");
    let brittle = json!({
        "apiVersion": runtime.get("apiVersion"),
        "kind": "TrainingRuntime",
        "metadata": {"name": "brittle", "labels": labels},
        "spec": runtime.get("spec"),
    });
    release.cluster.apply_yaml(namespace, &brittle.to_string()).await?;
    Ok(())
}

async fn limited(release: &Release, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let (user, namespace) = release.user("limits").await?;
    let annotate = ["annotate", "namespace", &namespace];
    release.tools.kubectl(&[&annotate[..], &ANNOTATIONS].concat(), None).await?;
    let probe = train_job("probe", RUNTIME, &json!({}));
    let create = ["create", "--dry-run=server", "--namespace", &namespace, "-o", "json", "-f", "-"];
    until_ok("the webhook has heard of the annotations", PATIENCE, || async {
        let made = user.kubectl(&create, Some(probe.to_string())).await?;
        let made: Value = serde_json::from_str(&made)?;
        let ttl = made.pointer("/spec/ttlSecondsAfterFinished");
        ensure!(ttl == Some(&json!(2)), "{made}");
        Ok(())
    })
    .await?;
    tell("a namespace has defaults and maxima, and somebody with limits.py may edit there");
    user.python(LIMITS, &[&namespace]).await?.lines().for_each(tell);
    Ok(())
}
