//! A box in which Kueue queues TrainJobs: the operator, its webhook and Kueue, each with its release's RBAC.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::case::Case;
use super::controller::{Kueue, KueueOptions};
use super::queues::{Queue, QueueOptions};
use super::workload::workloads;
use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::shared::Shared;
use crate::testenv::fixtures::{POOL, PooledBox};
use crate::testenv::webhook::{Webhook, WebhookOptions};

/// The label of the fake nodes that tells what they are for.
const TYPE: &str = "type";
/// The label of the nodes of [`topology_nodes`] that tells their block.
pub const BLOCK: &str = "e2e.trainjob.dev/block";
/// How many nodes a box has beyond those of the pool.
const MORE_NODES: usize = 8;

/// Which clock the deadlines of a box run by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// From the creation of the job.
    Creation,
    /// From its last resume.
    LastResume,
}

/// A box in which Kueue queues TrainJobs.
#[derive(Debug)]
pub struct Setting {
    /// The box with its operator.
    pub world: PooledBox,
    /// Its Kueue.
    pub kueue: Kueue,
    _webhook: Webhook,
}

impl Setting {
    /// The box that all tests of a clock share. Its Kueue keeps Workloads as long as their jobs, as by default.
    pub async fn shared(clock: Clock) -> Result<Arc<Self>> {
        static CREATION: Shared<Setting> = Shared::new();
        static LAST_RESUME: Shared<Setting> = Shared::new();
        let shared = match clock {
            Clock::Creation => &CREATION,
            Clock::LastResume => &LAST_RESUME,
        };
        shared.get(async || Self::start(clock, json!({})).await).await
    }

    /// Starts a box of its own, whose Kueue has `kueue` in its configuration.
    pub async fn start(clock: Clock, kueue: Value) -> Result<Self> {
        let world = POOL.take().await?.alone();
        world.cluster.add_nodes(MORE_NODES).await?;
        let client = world.cluster.client().await?;
        dedicate_nodes(&client).await?;
        let lifecycle = json!({"lifecycle": {"deadlineClock": format!("{clock:?}")}}).to_string();
        world.start_operator_with(&lifecycle).await?;
        let options = WebhookOptions { config_yaml: lifecycle, ..WebhookOptions::default() };
        let webhook = Webhook::start(&world.cluster, options).await?;
        webhook.wait_ready().await?;
        webhook.wait_asked(&client).await?;
        let kueue = Kueue::start(&world.cluster, KueueOptions { config: kueue }).await?;
        Ok(Self { world, kueue, _webhook: webhook })
    }

    /// Runs a test in a namespace with a queue of its own. At its end no request of Kueue about this namespace may
    /// have been refused by a webhook. The namespace is deleted then.
    pub async fn test(
        &self,
        prefix: &str,
        options: QueueOptions,
        body: impl AsyncFnOnce(&Case<'_>) -> Result<()>,
    ) -> Result<()> {
        self.world
            .test(prefix, async |tenant| {
                let queue = Queue::create(&tenant.client, &tenant.namespace, &options).await?;
                let workloads = workloads(tenant.client.clone(), &tenant.namespace);
                let case = Case { tenant, queue, workloads };
                // On the heap: the future of a long test is large.
                let outcome = Box::pin(body(&case)).await;
                if let Err(error) = outcome {
                    return Err(anyhow!("{error:#}\n{}", case.describe().await?));
                }
                let refusals = self.kueue.refusals(&tenant.namespace)?;
                ensure!(refusals.is_empty(), "Kueue was refused: {refusals:#?}");
                // What runs would keep GPUs from other tests.
                let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
                namespaces.delete(&tenant.namespace, &DeleteParams::background()).await?;
                Ok(())
            })
            .await
    }
}

impl AsRef<Cluster> for Setting {
    fn as_ref(&self) -> &Cluster {
        &self.world.cluster
    }
}

/// A queue of 8 GPUs on the one node of a box that nothing else uses.
#[must_use]
pub fn single_node() -> QueueOptions {
    QueueOptions { node_labels: json!({TYPE: "single"}), ..QueueOptions::default() }
}

/// A queue of this Topology on the four nodes of a box that are two blocks.
#[must_use]
pub fn topology_nodes(topology: &str) -> QueueOptions {
    QueueOptions {
        gpus: 32,
        node_labels: json!({TYPE: "topology"}),
        topology: Some(topology.to_owned()),
        ..QueueOptions::default()
    }
}

/// Takes some nodes out of those that every queue uses.
async fn dedicate_nodes(client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let uses = [
        (0, json!({TYPE: "single"})),
        (1, json!({TYPE: "topology", BLOCK: "a"})),
        (2, json!({TYPE: "topology", BLOCK: "a"})),
        (3, json!({TYPE: "topology", BLOCK: "b"})),
        (4, json!({TYPE: "topology", BLOCK: "b"})),
    ];
    for (number, labels) in uses {
        let name = format!("gpu-{number}");
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let patched = nodes.patch(&name, &PatchParams::default(), &patch).await;
        patched.with_context(|| format!("node {name}"))?;
    }
    Ok(())
}
