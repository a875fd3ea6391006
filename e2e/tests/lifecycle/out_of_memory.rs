//! Why a job failed, where its Pods know it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::{FAILS, runtime};
use k8s_openapi::jiff;
use kube::ResourceExt as _;
use serde_json::json;
use trainjob_api::conditions::FAILED;

use super::test;

#[tokio::test]
async fn a_failed_job_tells_which_container_was_out_of_memory_and_asks_for_its_pods_once()
-> Result<()> {
    test("oom", async |tenant| {
        let name = format!("{}-oom", tenant.namespace);
        let annotations = json!({"e2e.trainjob.dev/outcome": "oom"});
        let runtime = runtime(&name, &annotations, 3, None);
        tenant.world.cluster.apply_yaml(&tenant.namespace, &runtime.to_string()).await?;
        for (job, runtime) in [("fails", FAILS), ("greedy", name.as_str())] {
            let since = jiff::Timestamp::now();
            tenant.create(job, runtime, json!({})).await?;
            tenant.becomes(job, FAILED).await?;
            let asked =
                e2e::until::until_ok("the Pods are asked for", Duration::from_secs(10), || async {
                    let mut requests = tenant.requests_since(since)?;
                    requests.retain(|request| request.object.resource == "pods");
                    ensure!(requests.len() == 1, "{requests:?}");
                    requests.pop().context("none")
                });
            asked.await?;
        }
        let pod = tenant.pods_of("greedy").await?.pop().context("it has no Pod")?.name_any();
        let told = tenant.tells("greedy", "PodOOMKilled").await?;
        ensure!(told.contains(&pod) && told.contains("exit code 137"), "{told}");
        // Events are sent one after the other: that of the other job would be there.
        ensure!(tenant.told("fails", "PodOOMKilled").await?.is_empty(), "nobody was out of memory");
        Ok(())
    })
    .await
}
