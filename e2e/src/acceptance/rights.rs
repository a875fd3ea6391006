//! What the chart lets somebody do, as the API server says.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::testenv::cluster::Cluster;
use crate::testenv::tools::Tools;

/// What every program asks the API server about those who read its metrics.
const OF_METRICS: [(&str, &str, &str); 2] = [
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
];

/// Sees that the `ClusterRole` of a program allows this, and what metrics need, and no more: group, resource, and verbs with
/// spaces between.
pub(super) async fn are(tools: &Tools, role: &str, expected: &[(&str, &str, &str)]) -> Result<()> {
    let role = tools.kubectl(&["get", "clusterrole", role, "-o", "json"], None).await?;
    let role: Value = serde_json::from_str(&role)?;
    let mut found = BTreeSet::new();
    for rule in role.get("rules").and_then(Value::as_array).context("no rules")? {
        found.extend(every(rule)?);
    }
    let expected: BTreeSet<_> = expected
        .iter()
        .chain(&OF_METRICS)
        .flat_map(|(group, resource, verbs)| {
            verbs.split(' ').map(move |verb| [*group, *resource, verb].map(str::to_owned))
        })
        .collect();
    ensure!(found == expected, "other rights: {:?}", found.symmetric_difference(&expected));
    Ok(())
}

/// What a rule allows, one by one: group, resource and verb.
fn every(rule: &Value) -> Result<Vec<[String; 3]>> {
    let list = |field: &str| {
        let texts = rule.get(field).and_then(Value::as_array).context(field.to_owned())?;
        Ok::<_, anyhow::Error>(
            texts.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>(),
        )
    };
    let (resources, verbs) = (list("resources")?, list("verbs")?);
    let mut all = Vec::new();
    for group in list("apiGroups")? {
        for resource in &resources {
            all.extend(verbs.iter().map(|verb| [group.clone(), resource.clone(), verb.clone()]));
        }
    }
    Ok(all)
}

/// Whether somebody may do something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    /// Who.
    pub(super) user: &'a str,
    /// The verb.
    pub(super) verb: &'a str,
    /// The API group.
    pub(super) group: &'a str,
    /// The plural, with a slash and the subresource where there is one.
    pub(super) resource: &'a str,
    /// The object; `""`: any.
    pub(super) name: &'a str,
}

/// What the API server says to it in a namespace.
pub(super) async fn may(cluster: &Cluster, namespace: &str, it: Question<'_>) -> Result<bool> {
    let (resource, subresource) = it.resource.split_once('/').unwrap_or((it.resource, ""));
    let review = json!({"spec": {
        "user": it.user,
        "groups": ["system:authenticated"],
        "resourceAttributes": {
            "group": it.group, "resource": resource, "subresource": subresource, "name": it.name,
            "verb": it.verb, "namespace": namespace,
        },
    }});
    let reviews = Api::<SubjectAccessReview>::all(cluster.client().await?);
    let review = reviews.create(&PostParams::default(), &serde_json::from_value(review)?).await?;
    Ok(review.status.is_some_and(|status| status.allowed))
}
