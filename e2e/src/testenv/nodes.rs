//! Fake nodes with GPUs.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;

use crate::testenv::until::until_ok;

/// How many are created at a time.
const AT_ONCE: usize = 32;

/// Creates `count` nodes, beside those there are.
pub(crate) async fn add(client: &Client, count: usize) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let first = api.list_metadata(&ListParams::default()).await?.items.len();
    stream::iter(first..first + count)
        .map(|number| create(&api, number))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

async fn create(api: &Api<Node>, number: usize) -> Result<()> {
    let name = format!("gpu-{number}");
    let resources = json!({
        "cpu": "128",
        "memory": "1Ti",
        "ephemeral-storage": "1Ti",
        "nvidia.com/gpu": "8",
        "pods": "250",
    });
    let node = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "type": "kwok",
            },
        },
        "status": {"capacity": resources, "allocatable": resources},
    }))?;
    api.create(&PostParams::default(), &node).await.with_context(|| format!("node {name}"))?;
    Ok(())
}

/// Waits until every node is ready and, where a controller does it, freed of the taint that every
/// node is born with.
pub(crate) async fn ready(client: &Client, controllers: bool) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    until_ok("all nodes are ready", Duration::from_mins(2), || async {
        for node in api.list(&ListParams::default()).await? {
            if !is_ready(&node) || (controllers && is_tainted(&node)) {
                bail!("node {} is not ready", node.metadata.name.unwrap_or_default());
            }
        }
        Ok(())
    })
    .await
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_tainted(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == "node.kubernetes.io/not-ready")
}
