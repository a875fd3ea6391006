//! Which TrainJob an object belongs to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use trainjob_api::v1alpha1::{GROUP, TRAIN_JOB_KIND};

/// The owner reference of the TrainJob that controls an object.
#[must_use]
pub fn controlling_train_job(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owner = metadata.owner_references.iter().flatten().find(|o| o.controller == Some(true))?;
    let group = owner.api_version.split('/').next();
    (owner.kind == TRAIN_JOB_KIND && group == Some(GROUP)).then_some(owner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_the_controller_counts_as_owner() {
        let train_job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "tj",
            "uid": "U", "controller": true,
        });
        let with = |field: &str, value: Value| {
            let mut owner = train_job.clone();
            owner[field] = value;
            owner
        };
        for (owners, expected) in [
            (json!([]), None),
            (json!([train_job.clone()]), Some("U")),
            (json!([with("apiVersion", json!("trainer.kubeflow.org/v2"))]), Some("U")),
            (json!([with("apiVersion", json!("example.com/v1"))]), None),
            (json!([with("kind", json!("OptimizationJob"))]), None),
            (json!([with("controller", json!(false))]), None),
            (json!([with("controller", json!(null)), with("uid", json!("V"))]), Some("V")),
        ] {
            let metadata: ObjectMeta =
                serde_json::from_value(json!({"ownerReferences": owners})).unwrap();
            let owner = controlling_train_job(&metadata).map(|owner| &*owner.uid);
            assert_eq!(owner, expected, "{owners}");
        }
    }
}
