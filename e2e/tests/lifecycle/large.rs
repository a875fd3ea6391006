//! Objects of more parts than the operator reads: a JobSet is seen all the same, and metadata do not count.

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::{PATIENCE, POOL, RUNS, Tenant};
use e2e::until::until_ok;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use trainjob_api::conditions::{self, WAITING};

use super::test;

/// More than the operator reads of any object.
const PARTS: usize = 20_100;

#[tokio::test]
async fn a_jobset_of_very_many_parts_is_seen_and_deleted_at_the_deadline() -> Result<()> {
    test("large", async |tenant| {
        let tolerations = vec![json!({"operator": "Exists"}); PARTS];
        let pod = json!({"spec": {
            "restartPolicy": "Never",
            "tolerations": tolerations,
            "containers": [{"name": "node", "image": "example.com/train:1"}],
        }});
        let job = json!({"spec": {"template": pod}});
        let large = json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "job"},
            "spec": {"suspend": true, "replicatedJobs": [{"name": "node", "template": job}]},
        });
        let large = serde_json::from_value(large)?;
        tenant.job_sets.create(&PostParams::default(), &large).await?;

        let job = tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 10})).await?;
        until_ok("it waits for the JobSet to go", PATIENCE, || async {
            let job = tenant.jobs.get("job").await?;
            let waiting = conditions::find_true(conditions_of(&job), WAITING);
            let reason = waiting.context("it has no such condition")?.reason.clone();
            ensure!(reason == "JobSetConflict", "its reason is {reason}");
            Ok(())
        })
        .await?;

        let owner = json!([{
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job",
            "uid": job.uid(), "controller": true, "blockOwnerDeletion": true,
        }]);
        let adopt = Patch::Merge(json!({"metadata": {"ownerReferences": owner}}));
        tenant.job_sets.patch("job", &PatchParams::default(), &adopt).await?;
        tenant.fails_by_deadline("job").await?;
        tenant.released("job").await
    })
    .await
}

/// They are no part of what admission judges, and may come at any time. They keep the garbage collector busy for long, so the
/// box is used by no other test.
#[tokio::test]
async fn deadline_holds_for_a_job_of_very_many_owner_references() -> Result<()> {
    let world = POOL.take().await?.alone();
    world.start_operator().await?;
    let body = async |tenant: &Tenant<'_>| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 10})).await?;
        tenant.has_job_set("job").await?;
        // Of no kind that is served, so that the garbage collector leaves them as they are.
        let owner = |number: usize| json!({"apiVersion": "a/v1", "kind": "A", "name": "a", "uid": number.to_string()});
        let owners: Vec<_> = (0..PARTS).map(owner).collect();
        tenant.patch("job", &json!({"metadata": {"ownerReferences": owners}})).await?;
        tenant.fails_by_deadline("job").await?;
        // How long its foreground deletion takes is the garbage collector's affair.
        until_ok("its JobSet is being deleted, or gone", PATIENCE, || async {
            let job_set = tenant.job_sets.get_opt("job").await?;
            let stays = job_set.is_some_and(|it| it.metadata.deletion_timestamp.is_none());
            ensure!(!stays, "it is not");
            Ok(())
        })
        .await
    };
    world.test("owned", body).await
}
