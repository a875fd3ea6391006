//! Boxes with accounting, for tests that stop or disturb the accounting program, and a pool of them.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use tokio::time::timeout;
use trainjob_api::TrainJob;
use trainjob_api::lifecycle::v1alpha1::ACCOUNTING_FINALIZER;
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecord;

use super::install::install_accounting;
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::finalizer::remove_finalizer;
use crate::testenv::fixtures::unused::Unused;
use crate::testenv::fixtures::{PATIENCE, World};
use crate::testenv::kinds;
use crate::testenv::until::until_ok;

/// How long it may take to remove what earlier tests have left. A box whose API server is paused is given up then.
const EMPTY_WITHIN: Duration = Duration::from_mins(2);

/// The boxes of the pool that no test uses at present.
static UNUSED: Unused<Arc<World>> = Unused::new();

/// A box in which accounting is installed and neither an operator nor the accounting program runs at first.
#[derive(Debug)]
pub struct AccountingBox {
    world: Arc<World>,
    is_pooled: bool,
}

impl AccountingBox {
    /// A box of the pool, with default options: one that earlier tests have used, without what they left, or a new one.
    /// Dropped, it goes back to the pool, unless the test panics.
    pub async fn pooled() -> Result<Self> {
        loop {
            let Some(world) = UNUSED.take() else {
                return Ok(Self { world: start(Options::default()).await?, is_pooled: true });
            };
            // A box that cannot be emptied is stopped, and another one is tried.
            if let Ok(Ok(())) = timeout(EMPTY_WITHIN, empty(&world)).await {
                return Ok(Self { world, is_pooled: true });
            }
        }
    }

    /// A new box with these options, for one test. Dropped, it is stopped.
    pub async fn alone(options: Options) -> Result<Self> {
        Ok(Self { world: start(options).await?, is_pooled: false })
    }
}

impl Deref for AccountingBox {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Drop for AccountingBox {
    fn drop(&mut self) {
        if self.is_pooled && !std::thread::panicking() {
            UNUSED.put(Arc::clone(&self.world));
        }
    }
}

async fn start(options: Options) -> Result<Arc<World>> {
    let world = Box::pin(World::without_operator(options)).await?;
    install_accounting(&world.cluster).await?;
    Ok(Arc::new(world))
}

/// Removes what earlier tests have left, and gives the program its rights again.
async fn empty(world: &World) -> Result<()> {
    world.stop_operator().await?;
    install_accounting(&world.cluster).await?;
    let client = world.cluster.client().await?;
    until_ok("nothing of earlier tests is left", PATIENCE, || async {
        let left = namespaces_in_use(&client).await?;
        for namespace in &left {
            // On the heap: what removes a finalizer is a large future.
            Box::pin(clear(&client, namespace)).await?;
        }
        ensure!(left.is_empty(), "there is something in {left:?}");
        Ok(())
    })
    .await
}

/// The namespaces in which there are TrainJobs, JobSets, records or Pods.
async fn namespaces_in_use(client: &Client) -> Result<BTreeSet<String>> {
    let all = ListParams::default();
    let mut kinds = [kinds::train_jobs(), kinds::job_sets()].to_vec();
    kinds.push(ApiResource::erase::<TrainJobRecord>(&()));
    kinds.push(ApiResource::erase::<Pod>(&()));
    let mut namespaces = BTreeSet::new();
    for kind in kinds {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let found = api.list_metadata(&all).await?;
        namespaces.extend(found.items.iter().filter_map(ResourceExt::namespace));
    }
    Ok(namespaces)
}

/// Begins to remove all of these from a namespace.
async fn clear(client: &Client, namespace: &str) -> Result<()> {
    let (background, all) = (DeleteParams::background(), ListParams::default());
    let jobs: Api<TrainJob> = Api::namespaced(client.clone(), namespace);
    jobs.delete_collection(&background, &all).await?;
    let job_sets: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &kinds::job_sets());
    job_sets.delete_collection(&background, &all).await?;
    let records: Api<TrainJobRecord> = Api::namespaced(client.clone(), namespace);
    records.delete_collection(&background, &all).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for pod in pods.list_metadata(&all).await? {
        Box::pin(remove_finalizer(&pods, &pod.name_any(), ACCOUNTING_FINALIZER)).await?;
    }
    Ok(())
}
