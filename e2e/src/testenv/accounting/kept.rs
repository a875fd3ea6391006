//! Boxes with accounting, for tests that end or disturb who counts: each serves one test after the other.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use trainjob_api::TrainJob;
use trainjob_api::lifecycle::v1alpha1::ACCOUNTING_FINALIZER;
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecord;

use super::install::install_accounting;
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::finalizer::remove_finalizer;
use crate::testenv::fixtures::{PATIENCE, World};
use crate::testenv::kinds;
use crate::testenv::until::until_ok;

/// Those that nobody uses.
static UNUSED: Mutex<Vec<Arc<World>>> = Mutex::new(Vec::new());

/// A box in which accounting is installed. One that was [taken](Kept::take) is kept for the next test when it is dropped.
#[derive(Debug)]
pub struct Kept {
    world: Arc<World>,
    is_kept: bool,
}

impl Kept {
    /// One that earlier tests have used and in which nothing of them is left, or a new one. Neither an operator nor a
    /// program runs in it.
    pub async fn take() -> Result<Self> {
        loop {
            let unused = unused().pop();
            let Some(world) = unused else {
                return Ok(Self { world: start(Options::default()).await?, is_kept: true });
            };
            // One in which it fails goes.
            if empty(&world).await.is_ok() {
                return Ok(Self { world, is_kept: true });
            }
        }
    }

    /// A new one as these options say, which goes when it is dropped.
    pub async fn alone(options: Options) -> Result<Self> {
        Ok(Self { world: start(options).await?, is_kept: false })
    }
}

impl Deref for Kept {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.is_kept && !std::thread::panicking() {
            unused().push(Arc::clone(&self.world));
        }
    }
}

async fn start(options: Options) -> Result<Arc<World>> {
    let world = Box::pin(World::without_operator(options)).await?;
    install_accounting(&world.cluster).await?;
    Ok(Arc::new(world))
}

fn unused() -> MutexGuard<'static, Vec<Arc<World>>> {
    UNUSED.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Where there are TrainJobs or what they leave.
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

/// Begins to remove them from a namespace.
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
