//! A job keeps the runtime it began with, and its JobSet takes changes only while it is suspended
//! (`docs/semantics.md`, 8).
//!
//! All tests share one box and one operator; each has a namespace and a runtime of its own.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{MPI, PATIENCE, World, consistently, runtime};
use e2e::until::until_ok;
use k8s_openapi::api::{batch::v1::Job, core::v1::Secret};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt as _};
use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainingRuntime};

/// Longer than an operator that is about to do something wrong hesitates.
const WINDOW: Duration = Duration::from_secs(3);
/// Where the Pod template of the one replicated job of a JobSet is.
const POD: &str = "/spec/replicatedJobs/0/template/spec/template";
/// The finalizer that earlier versions of Kubeflow Trainer put on runtimes.
const IN_USE: &str = "trainer.kubeflow.org/resource-in-use";

async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    World::shared().await?.test(prefix, body).await
}

/// Makes a runtime of this test's own, or changes it: its Pods are annotated with this `edition`.
async fn publish(tenant: &Tenant<'_>, edition: &str) -> Result<String> {
    let name = tenant.namespace.clone();
    let manifest = runtime(&name, &json!({"edition": edition}), 1, None);
    let runtimes: Api<ClusterTrainingRuntime> = Api::all(tenant.client.clone());
    let how = PatchParams::apply("e2e").force();
    runtimes.patch(&name, &how, &Patch::Apply(&manifest)).await?;
    Ok(name)
}

/// Patches of a TrainJob that say this of its Pods.
fn pods(metadata: &Value, spec: &Value) -> Value {
    let pod = json!({"metadata": metadata, "spec": spec});
    let job = json!({"name": "node", "template": {"spec": {"template": pod}}});
    let patch = json!({"template": {"spec": {"replicatedJobs": [job]}}});
    json!([{"manager": "e2e.trainjob.dev/test", "trainingRuntimeSpec": patch}])
}

fn in_pod<'a>(job_set: &'a DynamicObject, field: &str) -> &'a Value {
    job_set.data.pointer(&format!("{POD}/{field}")).unwrap_or(&Value::Null)
}

/// Waits until the job's JobSet is not the one of before, and there.
async fn has_another(tenant: &Tenant<'_>, before: &DynamicObject) -> Result<DynamicObject> {
    until_ok("the JobSet is made anew", PATIENCE, || async {
        let job_set = tenant.has_job_set("job").await?;
        ensure!(job_set.uid() != before.uid(), "it is still the same");
        Ok(job_set)
    })
    .await
}

async fn delete<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.delete(name, &DeleteParams::default()).await?;
    until_ok(format!("{name} is gone"), PATIENCE, || async {
        ensure!(api.get_opt(name).await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_keeps_the_runtime_it_began_with_whatever_becomes_of_it() -> Result<()> {
    test("keeps", async |tenant| {
        let runtime = publish(tenant, "first").await?;
        tenant.create("job", &runtime, json!({})).await?;
        let first = tenant.has_job_set("job").await?;
        let snapshot = tenant.config_maps.get("job-runtime-snapshot").await?;

        publish(tenant, "second").await?;
        tenant.delete_job_set("job").await?;
        let second = has_another(tenant, &first).await?;
        ensure!(in_pod(&second, "metadata/annotations/edition") == "first", "it was edited");

        let runtimes: Api<ClusterTrainingRuntime> = Api::all(tenant.client.clone());
        delete(&runtimes, &runtime).await?;
        tenant.delete_job_set("job").await?;
        let third = has_another(tenant, &second).await?;
        ensure!(in_pod(&third, "metadata/annotations/edition") == "first", "it was deleted");

        let kept = tenant.config_maps.get("job-runtime-snapshot").await?;
        ensure!(kept.resource_version() == snapshot.resource_version(), "the snapshot was changed");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_its_snapshot_a_job_takes_the_runtime_as_it_is_now() -> Result<()> {
    test("takes", async |tenant| {
        let runtime = publish(tenant, "first").await?;
        tenant.create("job", &runtime, json!({})).await?;
        let first = tenant.has_job_set("job").await?;

        publish(tenant, "second").await?;
        delete(&tenant.config_maps, "job-runtime-snapshot").await?;
        tenant.delete_job_set("job").await?;
        let second = has_another(tenant, &first).await?;
        ensure!(in_pod(&second, "metadata/annotations/edition") == "second", "it is the old one");
        let snapshot = tenant.config_maps.get("job-runtime-snapshot").await?;
        let text = snapshot.data.and_then(|data| data.get("runtime").cloned());
        ensure!(text.context("no runtime")?.contains("second"), "not what it was made from");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_its_snapshot_a_job_still_knows_its_secret() -> Result<()> {
    test("secret", async |tenant| {
        tenant.create("job", MPI, json!({"suspend": true})).await?;
        let first = tenant.has_job_set("job").await?;
        let secrets: Api<Secret> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
        let keys = secrets.get("job-mpi-ssh-auth").await?;

        delete(&tenant.config_maps, "job-runtime-snapshot").await?;
        tenant.delete_job_set("job").await?;
        has_another(tenant, &first).await?;
        tenant.config_maps.get("job-runtime-snapshot").await?;
        let kept = secrets.get("job-mpi-ssh-auth").await?;
        ensure!(kept.resource_version() == keys.resource_version(), "its keys were changed");

        // Its nodes and slots are written down anew with the JobSet, in place of the old ones.
        let second = tenant.job_sets.get("job").await?;
        let trainer = json!({"trainer": {"numNodes": 2, "numProcPerNode": 3}});
        tenant.patch("job", &json!({"spec": trainer})).await?;
        has_another(tenant, &second).await?;
        let hosts = tenant.config_maps.get("job-mpi-hostfile").await?;
        let hosts =
            hosts.data.and_then(|data| data.get("hostfile").cloned()).context("no hosts")?;
        ensure!(hosts == "job-node-0-0.job slots=3\njob-node-0-1.job slots=3\n", "{hosts}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn runtime_patches_of_a_suspended_job_reach_its_jobset() -> Result<()> {
    test("follows", async |tenant| {
        let runtime = publish(tenant, "only").await?;
        let before = pods(&json!({"labels": {"gone": "1"}}), &json!({}));
        let spec = json!({"suspend": true, "runtimePatches": before});
        tenant.create("job", &runtime, spec).await?;
        let made = tenant.has_job_set("job").await?;
        // JobSet only adds to its Jobs when it resumes them, so what is withdrawn must never have reached them.
        let jobs: Api<Job> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
        until_ok("JobSet has made its Job", PATIENCE, || async {
            jobs.get("job-node-0").await?;
            Ok(())
        })
        .await?;

        let gate = json!([{"name": "e2e.trainjob.dev/gate"}]);
        let toleration = json!([{"key": "spot", "operator": "Exists"}]);
        let spec = json!({
            "nodeSelector": {"zone": "a"}, "tolerations": toleration, "schedulingGates": gate,
        });
        let patches = pods(&json!({"labels": {"new": "1"}, "annotations": {"a": "b"}}), &spec);
        tenant.patch("job", &json!({"spec": {"runtimePatches": patches}})).await?;
        until_ok("the JobSet follows", PATIENCE, || async {
            let job_set = tenant.has_job_set("job").await?;
            ensure!(job_set.uid() == made.uid(), "it was made anew");
            ensure!(in_pod(&job_set, "metadata/labels") == &json!({"new": "1"}));
            ensure!(in_pod(&job_set, "metadata/annotations/a") == "b");
            ensure!(in_pod(&job_set, "metadata/annotations/edition") == "only");
            ensure!(in_pod(&job_set, "spec/nodeSelector") == &json!({"zone": "a"}));
            ensure!(in_pod(&job_set, "spec/tolerations/0/key") == "spot");
            ensure!(in_pod(&job_set, "spec/schedulingGates") == &gate);
            Ok(())
        })
        .await?;

        // As Kueue does it: the last change and the resume in one update.
        let patches = pods(&json!({"labels": {"last": "1"}}), &json!({}));
        let last = json!({"spec": {"suspend": false, "runtimePatches": patches}});
        tenant.patch("job", &last).await?;
        let pod = tenant.runs("job").await?;
        ensure!(pod.labels().contains_key("last"), "it runs without: {:?}", pod.labels());
        ensure!(!pod.labels().contains_key("new"), "what was withdrawn stays: {:?}", pod.labels());
        let job_set = tenant.job_sets.get("job").await?;
        ensure!(job_set.uid() == made.uid(), "it was made anew");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn runtime_patches_of_a_running_job_do_not_change_its_jobset() -> Result<()> {
    test("untouched", async |tenant| {
        let runtime = publish(tenant, "only").await?;
        tenant.create("job", &runtime, json!({})).await?;
        tenant.runs("job").await?;
        let running = tenant.job_sets.get("job").await?;
        let patches = pods(&json!({"labels": {"new": "1"}}), &json!({"nodeSelector": {"a": "b"}}));
        tenant.patch("job", &json!({"spec": {"runtimePatches": patches}})).await?;
        consistently("the JobSet is as it was", WINDOW, async || {
            let job_set = tenant.job_sets.get("job").await?;
            ensure!(job_set.uid() == running.uid(), "it was made anew");
            ensure!(job_set.data["spec"] == running.data["spec"], "{}", job_set.data["spec"]);
            Ok(())
        })
        .await
    })
    .await
}

/// D-22 of `docs/compatibility.md`.
#[tokio::test]
async fn a_change_that_jobset_does_not_take_is_made_while_nothing_has_run_and_told_afterwards()
-> Result<()> {
    test("anew", async |tenant| {
        let runtime = publish(tenant, "only").await?;
        tenant.create("job", &runtime, json!({"suspend": true})).await?;
        let first = tenant.has_job_set("job").await?;

        let preferring = |zone: &str| {
            let zone = json!({"key": "zone", "operator": "In", "values": [zone]});
            let term = json!({"weight": 1, "preference": {"matchExpressions": [zone]}});
            let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution": [term]});
            let patches = pods(&json!({}), &json!({"affinity": {"nodeAffinity": preferred}}));
            json!({"spec": {"runtimePatches": patches}})
        };
        tenant.patch("job", &preferring("a")).await?;
        let second = has_another(tenant, &first).await?;
        ensure!(in_pod(&second, "spec/affinity/nodeAffinity").is_object(), "it lacks the affinity");
        ensure!(second.data["spec"]["suspend"] == json!(true), "it runs");

        tenant.patch("job", &json!({"spec": {"suspend": false}})).await?;
        tenant.runs("job").await?;
        until_ok("JobSet knows that it runs", PATIENCE, || async {
            let job_set = tenant.job_sets.get("job").await?;
            let jobs = &job_set.data["status"]["replicatedJobsStatus"];
            ensure!(jobs[0]["active"] == json!(1), "{jobs}");
            Ok(())
        })
        .await?;
        tenant.patch("job", &json!({"spec": {"suspend": true}})).await?;
        tenant.patch("job", &preferring("b")).await?;
        let told = tenant.tells("job", "ChangeNotApplied").await?;
        ensure!(told.contains("affinity.nodeAffinity"), "{told}");

        tenant.patch("job", &json!({"spec": {"suspend": false}})).await?;
        tenant.runs("job").await?;
        let third = tenant.job_sets.get("job").await?;
        ensure!(third.uid() == second.uid(), "it was made anew");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_runtime_loses_the_finalizer_of_earlier_versions_and_only_that() -> Result<()> {
    test("finalizer", async |tenant| {
        let mut manifest = runtime(&tenant.namespace, &json!({}), 1, None);
        manifest["metadata"]["finalizers"] = json!([IN_USE, "e2e.trainjob.dev/other"]);
        let of_cluster: Api<ClusterTrainingRuntime> = Api::all(tenant.client.clone());
        let parsed = serde_json::from_value(manifest.clone())?;
        of_cluster.create(&PostParams::default(), &parsed).await?;
        manifest["kind"] = json!("TrainingRuntime");
        let of_namespace: Api<TrainingRuntime> =
            Api::namespaced(tenant.client.clone(), &tenant.namespace);
        let parsed = serde_json::from_value(manifest)?;
        of_namespace.create(&PostParams::default(), &parsed).await?;

        until_ok("the finalizer is gone", PATIENCE, || async {
            let name = &tenant.namespace;
            let (cluster, own) = (of_cluster.get(name).await?, of_namespace.get(name).await?);
            let kept = ["e2e.trainjob.dev/other"];
            ensure!(cluster.finalizers() == kept, "{:?}", cluster.finalizers());
            ensure!(own.finalizers() == kept, "{:?}", own.finalizers());
            Ok(())
        })
        .await?;
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        of_cluster.patch(&tenant.namespace, &PatchParams::default(), &none).await?;
        of_namespace.patch(&tenant.namespace, &PatchParams::default(), &none).await?;
        delete(&of_cluster, &tenant.namespace).await?;
        delete(&of_namespace, &tenant.namespace).await
    })
    .await
}
