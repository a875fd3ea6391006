//! Trap 20: a namespace with jobs in it is deleted.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::fixtures::RUNS;
use e2e::until::until_ok;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams};

use super::{counted, nodes, run_held};

/// How long a namespace may take to go.
const GONE_WITHIN: Duration = Duration::from_mins(3);

#[tokio::test]
async fn a_namespace_of_twenty_jobs_goes() -> Result<()> {
    let counted = counted().await?;
    let tenant = counted.world.tenant("ends").await?;
    let names: Vec<_> = (0..20).map(|number| format!("job-{number}")).collect();
    for name in &names {
        tenant.create(name, RUNS, nodes(1)).await?;
    }
    for name in &names {
        run_held(&tenant, name, 1).await?;
    }
    let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
    namespaces.delete(&tenant.namespace, &DeleteParams::default()).await?;
    until_ok("the namespace is gone", GONE_WITHIN, || async {
        let found = namespaces.get_opt(&tenant.namespace).await?;
        ensure!(found.is_none(), "{:#?}", found.and_then(|it| it.status));
        Ok(())
    })
    .await?;
    until_ok("nothing is left to do", GONE_WITHIN, || async {
        for metric in ["held_pods", "unwritable_records"] {
            let left = counted.program.metric(&format!("trainjob_accounting_{metric}")).await?;
            ensure!(left < 0.5, "{metric}: {left}");
        }
        Ok(())
    })
    .await
}
