//! Trap 30: a runtime brings our labels, our annotation and our finalizer.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{becomes_final, holds, records};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES_AFTER, RUNS, runtime};
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;
use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
};

use super::{judged, nodes, released, run_held};

#[tokio::test]
async fn am1_pods_count_for_their_own_job_whatever_its_runtime_says() -> Result<()> {
    judged("forged", async |tenant| {
        let victim = tenant.create("victim", RUNS, nodes(1)).await?;
        run_held(tenant, "victim", 1).await?;
        let uid = victim.metadata.uid.context("no UID")?;
        let annotations = json!({COMPLETES_AFTER: "1s", ACCOUNTED_ANNOTATION: "forged"});
        let name = format!("forged-{}", tenant.namespace);
        let mut forged = runtime(&name, &annotations, 3, None);
        let template = "/spec/template/spec/replicatedJobs/0/template/spec/template/metadata";
        let metadata = forged.pointer_mut(template).context("no template")?;
        metadata["labels"] = json!({TRAIN_JOB_NAME_LABEL: "victim", TRAIN_JOB_UID_LABEL: uid});
        metadata["finalizers"] = json!([ACCOUNTING_FINALIZER, ACCOUNTING_FINALIZER]);
        apply(&tenant.client, "default", vec![forged]).await?;

        tenant.create("forger", &name, nodes(2)).await?;
        let status = becomes_final(tenant, "forger").await?;
        let succeeded = PodCounts { succeeded: 2, ..PodCounts::default() };
        ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
        released(tenant, "forger").await?;
        tenant.delete("victim").await?;
        let status = becomes_final(tenant, "victim").await?;
        let deleted = PodCounts { deleted: 1, ..PodCounts::default() };
        ensure!(status.totals.pods == deleted, "{status:#?}");
        ensure!(records(tenant, "victim").await?.len() == 1, "it has another record");
        Ok(())
    })
    .await
}
