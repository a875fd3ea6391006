//! Objects of very many parts: what is more than the operator reads is seen all the same, metadata do not count, and what it
//! does read it reads one at a time.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::{PATIENCE, POOL, RUNS, Tenant, runtime};
use e2e::until::until_ok;
use futures::future::try_join_all;
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

/// Where a Pod template is in the spec of a JobSet.
const POD: &str = "/replicatedJobs/0/template/spec/template";
/// So many that what the jobs become would take more than the limit as values, and no more, because the API server takes long
/// to compare them.
const VOLUMES: usize = 6_000;
/// Jobs that there are when the operator starts.
const JOBS: usize = 3;
/// The chart's limit, in bytes.
const LIMIT: usize = 256 * 1024 * 1024;

/// First when they are made, then when they change and are resumed.
#[tokio::test]
async fn jobs_on_a_runtime_of_very_many_parts_are_planned_one_at_a_time() -> Result<()> {
    let world = POOL.take().await?.alone();
    let body = async |tenant: &Tenant<'_>| {
        let mut large = runtime("large", &json!({}), 3, None);
        let pod = large.pointer_mut(&format!("/spec/template/spec{POD}/spec"));
        let pod = pod.context("a runtime has a Pod")?;
        pod["volumes"] = (0..VOLUMES).map(|number| json!({"name": format!("v{number}")})).collect();
        apply(&tenant.client, &tenant.namespace, vec![large]).await?;
        let names: Vec<_> = (0..JOBS).map(|number| format!("job-{number}")).collect();
        let suspended = json!({"suspend": true});
        try_join_all(names.iter().map(|name| tenant.create(name, "large", suspended.clone())))
            .await?;

        let operator = world.start_operator().await?;
        try_join_all(names.iter().map(|name| tenant.has_job_set(name))).await?;
        let gate = json!({"metadata": {"labels": {"moved": "yes"}}});
        let pod = json!({"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": gate}}}]}});
        let patches = json!([{"manager": "e2e.trainjob.dev/moved", "trainingRuntimeSpec": {"template": pod}}]);
        let resumed = json!({"spec": {"suspend": false, "runtimePatches": patches}});
        try_join_all(names.iter().map(|name| tenant.patch(name, &resumed))).await?;
        try_join_all(names.iter().map(async |name| {
            until_ok(format!("{name} is resumed"), 3 * PATIENCE, || async {
                let spec = tenant.job_sets.get(name).await?.data["spec"].take();
                ensure!(spec["suspend"] == json!(false), "it is not");
                let labels = spec.pointer(&format!("{POD}/metadata/labels"));
                ensure!(labels.is_some_and(|labels| labels["moved"] == "yes"), "it is as it was");
                Ok(())
            })
            .await
        }))
        .await?;
        let peak = operator.process().peak_memory()?;
        ensure!(peak < LIMIT, "{peak} bytes at most, expected less than {LIMIT}");
        Ok(())
    };
    world.test("parts", body).await
}
