//! MultiKueue: a job of one cluster is trained in another.

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::finished_at;
use e2e::fixtures::{COMPLETES, PATIENCE, RUNS};
use e2e::kueue::{
    Ask, Clock, NAMESPACE, Queue, QueueOptions, Setting, job, protect_origin, workloads,
};
use e2e::until::until_ok;
use e2e::yaml;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::TrainJob;
use trainjob_api::conditions::{COMPLETE, FAILED, find_true};

use super::{DEADLINE, TTL};

/// What jobs of the manager cluster are managed by.
const MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";
const API_VERSION: &str = "kueue.x-k8s.io/v1beta2";
/// The label of a copy.
const ORIGIN: &str = "kueue.x-k8s.io/multikueue-origin";

#[tokio::test(flavor = "multi_thread")]
async fn copy_is_stopped_by_its_deadline_and_left_by_the_ttl_until_its_end_is_mirrored()
-> Result<()> {
    // The manager's clock has no say: what MultiKueue manages is not ours there.
    let manager = Setting::shared(Clock::LastResume).await?;
    let worker = Setting::shared(Clock::Creation).await?;
    connect(&manager, &worker).await?;
    manager
        .test("multi", dispatched(), async |case| {
            let namespace = &case.tenant.namespace;
            let there = worker.world.cluster.client().await?;
            let space =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            worker.world.cluster.apply_yaml("default", &yaml::stream(&[space])).await?;
            Queue::create(&there, namespace, &QueueOptions::default()).await?;
            let copies: Api<TrainJob> = Api::namespaced(there.clone(), namespace);

            for (name, runtime, more) in [
                ("completes", COMPLETES, json!({TTL: 2})),
                ("overdue", RUNS, json!({DEADLINE: 10, TTL: 2})),
            ] {
                let job = job(name, runtime, &case.queue.labels("low"), Ask::low(4), &more)?;
                let created = case.tenant.jobs.create(&PostParams::default(), &job).await?;
                ensure!(
                    created.spec.managed_by.as_deref() == Some(MULTIKUEUE),
                    "{:?}",
                    created.spec
                );
            }
            let copy = until_ok("there is a copy", PATIENCE, || async {
                copies.get_opt("overdue").await?.context("there is none")
            })
            .await?;
            let labels = copy.metadata.labels.clone().unwrap_or_default();
            ensure!(labels.contains_key(ORIGIN), "{labels:?}");
            // Its types do not know the field.
            println!(
                "copy: deadline {:?}, ttl {:?}",
                copy.spec.active_deadline_seconds, copy.spec.ttl_seconds_after_finished
            );

            let done = case.tenant.becomes("completes", COMPLETE).await?;
            finished_at(&done)?;
            let failed = case.tenant.becomes("overdue", FAILED).await?;
            let reason = failed.status.as_ref().and_then(|it| it.conditions.as_deref());
            let reason = find_true(reason.unwrap_or_default(), FAILED).map(|it| it.reason.clone());
            ensure!(reason.as_deref() == Some("DeadlineExceeded"), "{reason:?}");
            for name in ["completes", "overdue"] {
                until_ok(format!("the copy of {name} is gone"), PATIENCE, || async {
                    ensure!(copies.get_opt(name).await?.is_none(), "it is there");
                    Ok(())
                })
                .await?;
                let original = case.tenant.jobs.get(name).await?;
                ensure!(original.spec.ttl_seconds_after_finished == Some(2), "the TTL was lost");
            }
            let workloads = workloads(there, namespace);
            until_ok("the Workloads of the copies are gone", PATIENCE, || async {
                let left = workloads.list_metadata(&ListParams::default()).await?.items;
                ensure!(left.is_empty(), "{} are left", left.len());
                Ok(())
            })
            .await
        })
        .await
}

/// A queue whose workloads go to the worker.
fn dispatched() -> QueueOptions {
    QueueOptions { admission_checks: vec!["multikueue".to_owned()], ..QueueOptions::default() }
}

/// Makes `worker` a worker of `manager`, with the permissions that a worker's account has to have.
async fn connect(manager: &Setting, worker: &Setting) -> Result<()> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "multikueue", "namespace": NAMESPACE},
    });
    let group = "rbac.authorization.k8s.io";
    let all = ["create", "delete", "get", "list", "watch", "update", "patch"];
    let grant = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": all});
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "multikueue"},
        "rules": [
            grant("kueue.x-k8s.io", &["workloads", "workloads/status"]),
            grant("trainer.kubeflow.org", &["trainjobs", "trainjobs/status"]),
            grant("jobset.x-k8s.io", &["jobsets", "jobsets/status"]),
            grant("batch", &["jobs", "jobs/status"]),
        ],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "multikueue"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "multikueue"},
        "subjects": [{"kind": "ServiceAccount", "name": "multikueue", "namespace": NAMESPACE}],
    });
    let there = &worker.world.cluster;
    there.apply_yaml(NAMESPACE, &yaml::stream(&[account, role, binding])).await?;
    // Kueue sets the label of its copies where nobody else may.
    let user = format!("system:serviceaccount:{NAMESPACE}:multikueue");
    protect_origin(there, &[&user]).await?;
    let kubeconfig = there.service_account_kubeconfig(NAMESPACE, "multikueue").await?;

    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "worker", "namespace": NAMESPACE},
        "stringData": {"kubeconfig": std::fs::read_to_string(kubeconfig)?},
    });
    let kind = |kind: &str, name: &str, spec: Value| json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let place = json!({"kubeConfig": {"location": "worker", "locationType": "Secret"}});
    let parameters =
        json!({"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "workers"});
    let objects = [
        secret,
        kind("MultiKueueCluster", "worker", json!({"clusterSource": place})),
        kind("MultiKueueConfig", "workers", json!({"clusters": ["worker"]})),
        kind(
            "AdmissionCheck",
            "multikueue",
            json!({"controllerName": MULTIKUEUE, "parameters": parameters}),
        ),
    ];
    manager.world.cluster.apply_yaml(NAMESPACE, &yaml::stream(&objects)).await?;
    let here = manager.world.cluster.client().await?;
    active(&here, "MultiKueueCluster", "worker").await?;
    active(&here, "AdmissionCheck", "multikueue").await
}

/// Waits until an object of Kueue has a true condition `Active`.
async fn active(client: &Client, kind: &str, name: &str) -> Result<()> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta2", kind));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    until_ok(format!("{kind} {name} is active"), PATIENCE, || async {
        let object = api.get(name).await?;
        let conditions = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
        let is_active = |it: &Value| it["type"] == "Active" && it["status"] == "True";
        ensure!(conditions.as_array().into_iter().flatten().any(is_active), "{conditions}");
        Ok(())
    })
    .await
}
