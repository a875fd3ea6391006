//! Kueue places the nodes of a job near each other.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::{PATIENCE, RUNS, runtime};
use e2e::kueue::{Ask, BLOCK, Clock, Setting, topology_nodes};
use e2e::until::until_ok;
use e2e::yaml;
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use serde_json::{Value, json};

use super::{DEADLINE, KEPT, LONG, TTL};

/// The annotation that asks for nodes of one domain.
const REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";
/// The gate by which Kueue holds Pods until it has placed them.
const GATE: &str = "kueue.x-k8s.io/topology";

#[tokio::test(flavor = "multi_thread")]
async fn job_that_requires_a_block_is_placed_in_one_and_meets_its_deadline() -> Result<()> {
    let setting = Setting::shared(Clock::LastResume).await?;
    let levels = json!([{"nodeLabel": BLOCK}, {"nodeLabel": "kubernetes.io/hostname"}]);
    let topology = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": "blocks"},
        "spec": {"levels": levels},
    });
    let near = runtime("near", &json!({REQUIRED: BLOCK}), 3, None);
    let cluster = &setting.world.cluster;
    cluster.apply_yaml("default", &yaml::stream(&[topology, near])).await?;
    setting
        .test("topology", topology_nodes("blocks"), async |case| {
            case.submit("one", RUNS, Ask::low(8), json!({})).await?;
            case.runs("one").await?;
            let taken = blocks(case, "one").await?;

            let ask = Ask { priority: "low", nodes: 2, gpus: 8 };
            case.submit("two", "near", ask, json!({DEADLINE: LONG, TTL: KEPT})).await?;
            let job_set = case.tenant.has_job_set("two").await?;
            case.runs("two").await?;
            let gates = "/spec/replicatedJobs/0/template/spec/template/spec/schedulingGates";
            let job_set =
                case.tenant.job_sets.get(&job_set.metadata.name.unwrap_or_default()).await?;
            let gates = job_set.data.pointer(gates).cloned().unwrap_or(Value::Null);
            ensure!(gates == json!([{"name": GATE}]), "its Pods have the gates {gates}");
            let block = until_ok("both Pods have a node", PATIENCE, || async {
                ensure!(case.tenant.pods_of("two").await?.len() == 2, "it has not two Pods");
                blocks(case, "two").await
            })
            .await?;
            ensure!(block.len() == 1 && block.is_disjoint(&taken), "{block:?}, {taken:?} is taken");

            case.tenant.becomes("two", "Failed").await?;
            case.both_gone("two").await
        })
        .await
}

/// The blocks that the Pods of a job are in.
async fn blocks(case: &e2e::kueue::Case<'_>, job: &str) -> Result<BTreeSet<String>> {
    let nodes: Api<Node> = Api::all(case.tenant.client.clone());
    let mut blocks = BTreeSet::new();
    for pod in case.tenant.pods_of(job).await? {
        let node = pod.spec.and_then(|spec| spec.node_name).context("a Pod has no node")?;
        let labels = nodes.get(&node).await?.metadata.labels.unwrap_or_default();
        blocks.insert(labels.get(BLOCK).cloned().context("a node has no block")?);
    }
    Ok(blocks)
}
