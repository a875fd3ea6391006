//! What is in a namespace.

use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PartialObjectMeta};
use kube::core::GroupVersionKind;

use crate::testenv::fixtures::PATIENCE;
use crate::testenv::fixtures::tenant::Tenant;
use crate::testenv::until::until_ok;

/// Everything that the life of a TrainJob can leave.
const KINDS: [(&str, &str, &str); 7] = [
    ("trainer.kubeflow.org", "v1alpha1", "TrainJob"),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    ("batch", "v1", "Job"),
    ("", "v1", "Pod"),
    ("", "v1", "Service"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
];

/// In every namespace.
const EVERYWHERE: &str = "configmap kube-root-ca.crt";

/// Waits until nothing is there but this, and what is in every namespace.
pub(super) async fn nothing_but(tenant: &Tenant<'_>, expected: &[&str]) -> Result<()> {
    until_ok(format!("there is nothing but {expected:?}"), PATIENCE, || async {
        let there = objects(tenant).await?;
        ensure!(there == expected, "there are {there:?}");
        Ok(())
    })
    .await
}

/// Kind and name of what is there besides what is in every namespace, in order.
pub(super) async fn objects(tenant: &Tenant<'_>) -> Result<Vec<String>> {
    let lists = KINDS.map(|(group, version, kind)| async move {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> =
            Api::namespaced_with(tenant.client.clone(), &tenant.namespace, &resource);
        let objects = api.list_metadata(&ListParams::default()).await?.items;
        let kind = kind.to_lowercase();
        let named =
            |object: &PartialObjectMeta<DynamicObject>| format!("{kind} {}", object.name_any());
        anyhow::Ok(objects.iter().map(named).collect::<Vec<_>>())
    });
    let mut all = futures::future::try_join_all(lists).await?.concat();
    all.retain(|object| object != EVERYWHERE);
    all.sort();
    Ok(all)
}
