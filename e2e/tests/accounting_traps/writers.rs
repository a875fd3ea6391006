//! Trap 6: others write the Pods while they are released.

use anyhow::{Result, ensure};
use e2e::accounting::{becomes_final, holds};
use e2e::fixtures::{COMPLETES, Tenant};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::{Duration, sleep};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{judged, nodes, released};

/// Writes labels and statuses of all Pods of a job that have ended, over and over.
async fn write(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    let has_ended = |pod: &Pod| {
        pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Succeeded"))
    };
    for number in 0_u64.. {
        // To who plays the kubelet, a Pod that runs and changes has just begun.
        for pod in tenant.pods_of(job).await?.into_iter().filter(has_ended) {
            let (name, params) = (pod.name_any(), PatchParams::default());
            let label =
                Patch::Merge(json!({"metadata": {"labels": {"written": number.to_string()}}}));
            let message = Patch::Merge(json!({"status": {"message": number.to_string()}}));
            // A Pod may go meanwhile.
            let _ = tenant.pods.patch(&name, &params, &label).await;
            let _ = tenant.pods.patch_status(&name, &params, &message).await;
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn pods_that_others_write_meanwhile_are_counted_once_and_released() -> Result<()> {
    judged("writers", async |tenant| {
        tenant.create("written", COMPLETES, nodes(6)).await?;
        let is_final = async {
            let status = becomes_final(tenant, "written").await?;
            released(tenant, "written").await?;
            anyhow::Ok(status)
        };
        let status = tokio::select! {
            status = is_final => status?,
            written = write(tenant, "written") => return written,
        };
        let succeeded = PodCounts { succeeded: 6, ..PodCounts::default() };
        ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}
