//! A webhook of somebody else, which the API server asks after ours.

use anyhow::Result;
use e2e::apply::apply;
use e2e::fixtures::Reviews;
use k8s_openapi::ByteString;
use serde_json::json;

use super::Site;
use super::place::Place;

/// Has it asked about one operation on the TrainJobs of a namespace. `policy` is whether it is asked again after others.
pub(super) async fn register(
    site: &Site,
    place: &Place,
    reviews: &Reviews,
    (name, operation, policy): (&str, &str, &str),
) -> Result<()> {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        // They are asked in the order of their names.
        "metadata": {"name": format!("{name}-{}", place.namespace)},
        "webhooks": [{
            "name": format!("{name}.e2e.trainjob.dev"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "reinvocationPolicy": policy,
            "clientConfig": {
                "url": format!("https://{}/", reviews.address()),
                "caBundle": ByteString(site.cluster.authority().into()),
            },
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            "rules": [{
                "apiGroups": ["trainer.kubeflow.org"],
                "apiVersions": ["*"],
                "operations": [operation],
                "resources": ["trainjobs"],
            }],
        }],
    });
    apply(&place.client, &place.namespace, vec![configuration]).await?;
    Ok(())
}
