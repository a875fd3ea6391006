//! What keeps a job from its release: which Pods count, and what the job says meanwhile.

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{conditions_of, now};
use e2e::fixtures::{PATIENCE, RUNS, stubborn};
use e2e::until::until_ok;
use e2e::yaml;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::json;
use trainjob_api::conditions::{self, WAITING};

use super::{orphan, test};

/// A runtime whose Pods take longer to end than a release may without being told of.
const SLOW: &str = "slow-to-end";
const SLOW_SECONDS: i64 = 20;

// Trap 23: a Pod that no JobSet made.

#[tokio::test]
async fn a_hand_made_pod_with_the_label_of_a_jobset_is_told_of_once_and_holds_up_no_ttl()
-> Result<()> {
    test("stray", async |tenant| {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "by-hand", "labels": {"jobset.sigs.k8s.io/jobset-name": "job"}},
            "spec": {"containers": [{"name": "node", "image": "example.com/train:1"}]},
        }))?;
        tenant.pods.create(&PostParams::default(), &pod).await?;
        let spec = json!({"activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 8});
        tenant.create("job", RUNS, spec).await?;
        tenant.fails_by_deadline("job").await?;
        let note = tenant.tells("job", "StrayPod").await?;
        ensure!(note.contains("Pod by-hand has the label"), "it does not name the Pod: {note}");
        tenant.gone("job").await?;
        ensure!(tenant.pods.get_opt("by-hand").await?.is_some(), "the Pod was deleted");
        let told = tenant.told("job", "StrayPod").await?.len();
        ensure!(told == 1, "told {told} times");
        Ok(())
    })
    .await
}

// Trap 24: a job that is not released.

#[tokio::test]
async fn a_job_that_is_not_released_says_which_pod_runs_where_since_when_and_why() -> Result<()> {
    test("slow", async |tenant| {
        let slow = stubborn(SLOW, SLOW_SECONDS);
        tenant.world.cluster.apply_yaml("default", &yaml::stream(&[slow])).await?;
        tenant.create("job", SLOW, json!({"activeDeadlineSeconds": 10})).await?;
        let pod = tenant.runs("job").await?;
        let name = pod.metadata.name.context("a Pod without a name")?;
        let node = pod.spec.and_then(|spec| spec.node_name).context("a Pod without a node")?;
        tenant.fails_by_deadline("job").await?;
        orphan(tenant, "job").await?;

        let said = tenant.tells("job", "ReleaseDelayed").await?;
        let expected = format!("Pod {name} on node {node} since 2");
        ensure!(said.contains(&expected) && said.contains("grace period"), "it says: {said}");
        let waiting = tenant.waits_because("job", "PodsRunning").await?;
        ensure!(waiting.message.contains(&expected), "it says: {}", waiting.message);
        let job = tenant.jobs.get("job").await?;
        let last = conditions_of(&job).last().map(|condition| &*condition.type_);
        ensure!(last == Some(conditions::FAILED), "the last condition is {last:?}");

        until_ok("it says no more that it waits", PATIENCE, || async {
            let job = tenant.jobs.get("job").await?;
            let waits = conditions::find(conditions_of(&job), WAITING).is_some();
            ensure!(!waits, "it still does at {}", now());
            Ok(())
        })
        .await?;
        ensure!(tenant.running_pods_of("job").await? == 0, "its Pod still runs");
        let writes = tenant.requests("patch", "trainjobs", "job")?;
        ensure!(writes.len() <= 10, "{} status writes", writes.len());
        Ok(())
    })
    .await
}
