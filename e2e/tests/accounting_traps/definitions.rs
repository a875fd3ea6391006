//! Trap 23: the definition of records is deleted, and comes back.

use anyhow::{Result, ensure};
use e2e::accounting::{Counted, becomes_final, holds, install_accounting, status};
use e2e::fixtures::{PATIENCE, RUNS};
use e2e::until::until_ok;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, no_pods, nodes, run_held};

const DEFINITION: &str = "trainjobrecords.lifecycle.trainjob.dev";

#[tokio::test]
async fn ah2_without_the_kind_pods_are_let_go_and_told_of_when_it_is_back() -> Result<()> {
    let counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let cluster = &counted.world.cluster;
    counted
        .test("undefined", async |tenant| {
            tenant.create("undefined", RUNS, nodes(2)).await?;
            run_held(tenant, "undefined", 2).await?;
            until_ok("there is a record", PATIENCE, || async {
                let status = status(tenant, "undefined").await?;
                ensure!(status.totals.pods.active > 0, "{status:#?}");
                Ok(())
            })
            .await?;
            let definitions: Api<CustomResourceDefinition> = Api::all(tenant.client.clone());
            definitions.delete(DEFINITION, &DeleteParams::default()).await?;
            until_ok("the kind is gone", PATIENCE, || async {
                let found = definitions.get_opt(DEFINITION).await?;
                ensure!(found.is_none(), "{:#?}", found.and_then(|it| it.status));
                Ok(())
            })
            .await?;
            tenant.delete("undefined").await?;
            no_pods(tenant, "undefined").await?;
            install_accounting(cluster).await?;
            let status = becomes_final(tenant, "undefined").await?;
            ensure!(status.lost.get("RecordUnwritable") == Some(&2), "{status:#?}");
            ensure!(status.totals.pods == PodCounts::default(), "{status:#?}");
            ensure!(status.outcome == "Deleted" && !holds(&status, "Exact"), "{status:#?}");
            Ok(())
        })
        .await
}
