//! One namespace whose requests hang delays no other.
//!
//! Behind the requests of a namespace there may be a webhook that accepts connections and never answers. Whoever can
//! register one for a namespace of theirs must not stop the operator for everybody else. And requests of the same namespace
//! that had to wait for those are sent once they are answered.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::{COMPLETES, PATIENCE, POOL, RUNS, Tenant};
use e2e::proxy::Fault;
use e2e::until::until_ok;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::ListParams;
use serde_json::{Value, json};
use trainjob_api::TrainJob;
use trainjob_api::conditions::{self, FAILED};

/// More than there are places for requests, also if each of them were given up and made anew meanwhile.
const MANY: usize = 150;

/// Sees that a neighbour is served while all requests of this kind hang in another namespace, where jobs with `spec` cause
/// them. So many jobs of that namespace were served quickly before.
async fn delays_nobody(
    verb: &'static str,
    (resource, subresource): (&'static str, &'static str),
    spec: Value,
    quick: usize,
) -> Result<()> {
    POOL.test_behind_proxy("hostile", async |hostile, proxy| {
        let serve = |number: usize| async move {
            let name = format!("quick-{number}");
            hostile.create(&name, RUNS, json!({"suspend": true})).await?;
            hostile.has_job_set(&name).await
        };
        stream::iter((0..quick).map(serve)).buffer_unordered(16).try_collect::<Vec<_>>().await?;
        let namespace = hostile.namespace.clone();
        let hangs = proxy.inject(
            move |call| {
                call.namespace == namespace
                    && call.verb == verb
                    && (&*call.resource, &*call.subresource) == (resource, subresource)
            },
            1..=usize::MAX,
            Fault::HoldRequest,
        );
        let create = |number: usize| {
            let spec = spec.clone();
            async move { hostile.create(&format!("job-{number}"), RUNS, spec).await }
        };
        stream::iter((0..MANY).map(create)).buffer_unordered(16).try_collect::<Vec<_>>().await?;
        hangs.reached().await?;

        let neighbour = hostile.world.tenant("neighbour").await?;
        let served = served(&neighbour).await;
        ensure!(hangs.befallen() > 1, "only {} requests hung", hangs.befallen());
        hangs.remove();
        served
    })
    .await
}

/// Sees that a new job, a deadline, its release and a TTL are served.
async fn served(neighbour: &Tenant<'_>) -> Result<()> {
    neighbour
        .explained(async {
            neighbour.create("new", RUNS, json!({})).await?;
            neighbour.create("due", RUNS, json!({"activeDeadlineSeconds": 1})).await?;
            neighbour.create("leaves", COMPLETES, json!({"ttlSecondsAfterFinished": 0})).await?;
            neighbour.has_job_set("new").await?;
            neighbour.fails_by_deadline("due").await?;
            neighbour.released("due").await?;
            neighbour.gone("leaves").await
        })
        .await?;
    neighbour.clear().await?;
    Ok(())
}

/// Jobs whose deadline comes at once, without a Pod.
fn due() -> Value {
    json!({"suspend": true, "activeDeadlineSeconds": 1})
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_of_jobsets_that_hang_delay_no_other_namespace() -> Result<()> {
    delays_nobody("delete", ("jobsets", ""), due(), 0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn status_writes_that_hang_delay_no_other_namespace() -> Result<()> {
    delays_nobody("patch", ("trainjobs", "status"), due(), 0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn creations_of_jobsets_that_hang_delay_no_other_namespace() -> Result<()> {
    delays_nobody("create", ("jobsets", ""), json!({"suspend": true}), 0).await
}

/// Of a flow that was quick, many requests are under way at once: more than the namespace's share (`docs/semantics.md`, O2).
#[tokio::test(flavor = "multi_thread")]
async fn creations_that_were_quick_and_begin_to_hang_delay_no_other_namespace() -> Result<()> {
    delays_nobody("create", ("jobsets", ""), json!({"suspend": true}), MANY).await
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_pods_that_hang_delay_no_other_namespace() -> Result<()> {
    delays_nobody("list", ("pods", ""), due(), 0).await
}

/// A check for Pods that is lost is made anew after a minute, so one that was only put off has come long before.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_pods_that_had_to_wait_for_others_are_sent_once_these_are_answered() -> Result<()>
{
    const SOON: Duration = Duration::from_secs(30);
    POOL.test_behind_proxy("turns", async |tenant, proxy| {
        let namespace = tenant.namespace.clone();
        let lists = proxy.inject(
            move |call| {
                call.namespace == namespace && call.verb == "list" && call.resource == "pods"
            },
            1..=usize::MAX,
            Fault::HoldReply,
        );
        let spec =
            json!({"suspend": true, "activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0});
        let create = |number: usize| {
            let spec = spec.clone();
            async move { tenant.create(&format!("job-{number}"), RUNS, spec).await }
        };
        stream::iter((0..MANY).map(create)).buffer_unordered(16).try_collect::<Vec<_>>().await?;
        lists.reached().await?;
        let all = ListParams::default();
        until_ok("all have failed, and their JobSets are gone", PATIENCE, || async {
            let job_sets = tenant.job_sets.list(&all).await?.items.len();
            let jobs = tenant.jobs.list(&all).await?.items;
            let has_failed =
                |job: &&TrainJob| conditions::find_true(conditions_of(job), FAILED).is_some();
            let failed = jobs.iter().filter(has_failed).count();
            ensure!((failed, job_sets) == (MANY, 0), "{failed} have, {job_sets} JobSets are left");
            Ok(())
        })
        .await?;
        lists.remove();
        until_ok("all are released, so their TTLs delete them", SOON, || async {
            let left = tenant.jobs.list(&all).await?.items.len();
            ensure!(left == 0, "{left} are left");
            Ok(())
        })
        .await
    })
    .await
}
