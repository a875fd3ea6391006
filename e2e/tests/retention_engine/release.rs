//! TrainJobs that their deadline failed (R13).

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::fixtures::{PATIENCE, consistently};
use e2e::until::until_ok;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::place::Place;
use super::{WINDOW, condition, status};

fn train_jobs(client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = ApiResource {
        group: "trainer.kubeflow.org".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "trainer.kubeflow.org/v1alpha1".to_owned(),
        kind: "TrainJob".to_owned(),
        plural: "trainjobs".to_owned(),
    };
    Api::namespaced_with(client, namespace, &kind)
}

#[tokio::test]
async fn a_train_job_whose_pods_still_run_is_kept_until_they_are_gone() -> Result<()> {
    let place = Place::with_train_jobs("release").await?;
    let namespace = place.namespace().to_owned();
    let jobs = train_jobs(place.client(), &namespace);
    let mut manifests = Vec::new();
    for name in ["released", "runs"] {
        manifests.push(json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"runtimeRef": {"name": "none"}},
        }));
    }
    apply(&place.client(), &namespace, manifests).await?;
    let labels = json!({"jobset.sigs.k8s.io/jobset-name": "runs",
        "jobset.sigs.k8s.io/jobset-uid": "gone"});
    place.labelled_pod("pod", &labels, "Running", &json!({})).await?;
    for name in ["released", "runs"] {
        let failed = json!({"type": "Failed", "status": "True", "reason": "DeadlineExceeded",
            "message": "", "lastTransitionTime": "2026-11-22T06:30:00Z"});
        let status = json!({"status": {"conditions": [failed]}});
        jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    }
    let policy = json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1",
        "kind": "RetentionPolicy",
        "metadata": {"name": "jobs"},
        "spec": {
            "target": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob"},
            "mode": "Enforce",
            "propagation": "Background",
            "rules": [{"name": "all", "action": {"ttlSecondsAfterFinished": 0}}],
        },
    });
    place.apply(policy).await?;
    status(&place, |status| condition(status, "Enforcing").0 == "True").await?;

    let names = async || {
        let found = jobs.list(&kube::api::ListParams::default()).await?;
        anyhow::Ok(found.items.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>())
    };
    until_ok("the released one is gone", PATIENCE, || async {
        let names = names().await?;
        ensure!(names == ["runs"], "{names:?}");
        Ok(())
    })
    .await?;
    consistently("the other is kept", WINDOW, async || {
        let names = names().await?;
        ensure!(names == ["runs"], "{names:?}");
        Ok(())
    })
    .await?;

    let pods: Api<Pod> = Api::namespaced(place.client(), &namespace);
    pods.delete("pod", &DeleteParams::default().grace_period(0)).await?;
    // It is asked again after a minute.
    until_ok("it is deleted once its Pod is gone", 2 * PATIENCE, || async {
        let names = names().await?;
        ensure!(names.is_empty(), "{names:?}");
        Ok(())
    })
    .await
}
