//! Groups of Pods under the real Kueue, which makes one Workload for each (R25).

use std::sync::Arc;

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE};
use e2e::kueue::{Clock, QUEUE_LABEL, QueueOptions, Setting, Workload};
use e2e::until::until_ok;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::WINDOW;
use super::workloads::{test, workloads};

/// The label of a Pod of a group, which is also the name of its Workload.
const GROUP: &str = "kueue.x-k8s.io/pod-group-name";
/// How many Pods a group has.
const TOTAL: &str = "kueue.x-k8s.io/pod-group-total-count";

/// A Pod of the group of two, which completes as soon as it runs.
fn pod(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "100m"}});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {QUEUE_LABEL: "queue", GROUP: "group"},
            "annotations": {TOTAL: "2", COMPLETES_AFTER: "100ms"},
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none", "resources": resources}],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_of_a_group_of_pods_that_has_finished_goes_and_kueue_makes_no_other() -> Result<()>
{
    let frameworks = json!(["pod", "trainer.kubeflow.org/trainjob"]);
    let config = json!({"integrations": {"frameworks": frameworks}});
    let setting = Arc::new(Setting::start(Clock::Creation, config).await?);
    test(&setting, "group", QueueOptions::default(), async |case, place| {
        let (client, namespace) = (&case.tenant.client, &case.tenant.namespace);
        apply(client, namespace, vec![pod("first"), pod("second")]).await?;
        let finished = until_ok("the group has finished", PATIENCE, || async {
            let workload = Workload(case.workloads.get("group").await?);
            ensure!(workload.is("Finished"), "{}", workload.brief());
            Ok(workload)
        })
        .await?;
        // So nothing is asked of an owner.
        let owners = finished.0.owner_references();
        ensure!(owners.len() == 2, "owners: {owners:?}");
        ensure!(owners.iter().all(|it| it.controller != Some(true)), "owners: {owners:?}");

        place.apply(workloads(true)).await?;
        place.launch().await?;
        until_ok("the Workload is gone", PATIENCE, || async {
            let there = case.workloads.get_opt("group").await?;
            ensure!(there.is_none(), "{:?}", there.map(|it| Workload(it).brief()));
            Ok(())
        })
        .await?;
        place.asks_for_nothing_more(WINDOW).await?;
        let deleted = place.deleted();
        // A version that Kueue has replaced meanwhile is refused, and it is asked for again.
        let is_once = matches!(deleted.get("group"), Some((1..=3, 1)));
        ensure!(is_once && deleted.len() == 1, "{deleted:?}");
        let made = case.workloads.list(&ListParams::default()).await?.items.len();
        ensure!(made == 0, "Kueue has made {made} Workloads");
        let pods = case.tenant.pods.list(&ListParams::default()).await?.items.len();
        ensure!(pods == 2, "{pods} Pods are there");
        Ok(())
    })
    .await
}
