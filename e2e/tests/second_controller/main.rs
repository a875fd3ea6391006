//! The engine knows nothing of TrainJobs: a controller of another kind runs on it (`docs/ARCHITECTURE.md`).

mod controller;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::now;
use e2e::fixtures::{PATIENCE, Tenant, World, consistently};
use e2e::until::until_ok;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::watch;
use trainjob_api::time::Timestamp;
use trainjob_process::client::connect;
use trainjob_process::metrics::Requests;
use trainjob_process::server_time::ServerTime;

use controller::Cleaner;

/// A day, in seconds.
const DAY: i64 = 86_400;

async fn finished(tenant: &Tenant<'_>, name: &str, at: Timestamp, ttl: i64) -> Result<()> {
    let annotations = json!({
        "e2e.trainjob.dev/finished-at": at.to_string(),
        "e2e.trainjob.dev/ttl-seconds": ttl.to_string(),
    });
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}}))?;
    tenant.config_maps.create(&PostParams::default(), &map).await?;
    Ok(())
}

async fn names(tenant: &Tenant<'_>) -> Result<Vec<String>> {
    let maps = tenant.config_maps.list(&ListParams::default()).await?;
    let names = maps.items.into_iter().filter_map(|map| map.metadata.name);
    Ok(names.filter(|name| name != "kube-root-ca.crt").collect())
}

async fn left(tenant: &Tenant<'_>, expected: &[&str]) -> Result<()> {
    until_ok(format!("{expected:?} are left"), PATIENCE, || async {
        let names = names(tenant).await?;
        ensure!(names == expected, "{names:?} are there");
        Ok(())
    })
    .await
}

/// Runs the controller while a test does this.
async fn beside_controller(
    tenant: &Tenant<'_>,
    body: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let (requests, time) = (Requests::new("toy", &[])?, ServerTime::new(Duration::ZERO));
    let clients = connect(Some(&tenant.world.cluster.kubeconfig()), requests, time).await?;
    let (stop, stopping) = watch::channel(false);
    let running = tokio::spawn(Cleaner::run(clients, stopping));
    let done = body().await;
    stop.send_replace(true);
    running.await.context("the controller panicked")??;
    done
}

#[tokio::test]
async fn another_controller_on_the_engine_removes_finished_config_maps_when_due() -> Result<()> {
    World::shared()
        .await?
        .test("engine", async |tenant| {
            finished(tenant, "overdue", Timestamp(now().0 - DAY), 60).await?;
            finished(tenant, "kept", Timestamp(now().0 - DAY), 10 * DAY).await?;
            beside_controller(tenant, async || {
                left(tenant, &["kept"]).await?;
                // What comes while it runs: one due soon, one due at once.
                let due = Timestamp(now().0 + 10);
                finished(tenant, "soon", due, 0).await?;
                finished(tenant, "at-once", now(), 0).await?;
                left(tenant, &["kept", "soon"]).await?;
                left(tenant, &["kept"]).await?;
                ensure!(now() >= due, "before it was due");
                // An edit makes another due, and one that is edited in time stays.
                let ttl =
                    json!({"metadata": {"annotations": {"e2e.trainjob.dev/ttl-seconds": "1"}}});
                tenant
                    .config_maps
                    .patch("kept", &PatchParams::default(), &Patch::Merge(&ttl))
                    .await?;
                left(tenant, &[]).await?;
                finished(tenant, "held", Timestamp(now().0 + 6), 0).await?;
                let ttl =
                    json!({"metadata": {"annotations": {"e2e.trainjob.dev/ttl-seconds": null}}});
                tenant
                    .config_maps
                    .patch("held", &PatchParams::default(), &Patch::Merge(&ttl))
                    .await?;
                consistently("it stays", Duration::from_secs(8), async || {
                    ensure!(names(tenant).await? == ["held"]);
                    Ok(())
                })
                .await
            })
            .await
        })
        .await
}
