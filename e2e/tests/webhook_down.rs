//! The webhook is down and its webhook configurations say that nothing passes without it: whatever need not pass
//! it goes on.

use anyhow::{Context, Result, bail, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::{self, COMPLETES, PATIENCE, POOL, RUNS, Tenant};
use e2e::until::until_ok;
use e2e::webhook::{Webhook, WebhookOptions};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::json;
use trainjob_api::TrainingRuntime;
use trainjob_api::v1alpha1::TRAINING_RUNTIME_KIND;

/// Jobs in the namespace that is deleted.
const MANY: usize = 100;

/// A box with an operator and with the webhook configurations of a webhook that was there and is not any more.
/// What `before` makes is admitted by it.
async fn test(
    prefix: &str,
    before: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>,
    after: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>,
) -> Result<()> {
    let world = POOL.take().await?.alone();
    world.start_operator().await?;
    let client = world.cluster.client().await?;
    let webhook = Webhook::start(&world.cluster, WebhookOptions::default()).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&client).await?;
    world
        .test(prefix, async |tenant| {
            before(tenant).await?;
            webhook.kill9();
            until_ok("the webhook is down", PATIENCE, || async {
                let Err(error) = tenant.create("probe", RUNS, json!({"suspend": true})).await
                else {
                    tenant.delete("probe").await?;
                    bail!("a job was admitted");
                };
                ensure!(is_jammed(&error), "{error:#}");
                Ok(())
            })
            .await?;
            after(tenant).await
        })
        .await
}

fn runtimes(tenant: &Tenant<'_>) -> Api<TrainingRuntime> {
    Api::namespaced(tenant.client.clone(), &tenant.namespace)
}

/// Whether the API server refused something because it could not ask the webhook.
fn is_jammed(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("failed calling webhook")
}

// Trap 19.

#[tokio::test(flavor = "multi_thread")]
async fn jobs_go_on_to_their_end_and_only_a_change_of_the_spec_is_refused() -> Result<()> {
    let before = async |tenant: &Tenant<'_>| {
        tenant.create("finishes", COMPLETES, json!({"ttlSecondsAfterFinished": 600})).await?;
        tenant.create("leaves", COMPLETES, json!({"ttlSecondsAfterFinished": 1})).await?;
        tenant.create("is-stopped", RUNS, json!({"activeDeadlineSeconds": 15})).await?;
        tenant.create("is-deleted", RUNS, json!({})).await?;
        tenant.create("is-held", RUNS, json!({})).await?;
        hold(&tenant.jobs, "is-held").await?;
        tenant.has_job_set("is-deleted").await?;
        let mut runtime = fixtures::runtime("is-held", &json!({}), 3, None);
        let fields = runtime.as_object_mut().context("a runtime is a map")?;
        fields.insert("kind".to_owned(), json!(TRAINING_RUNTIME_KIND));
        let runtime: TrainingRuntime = serde_json::from_value(runtime)?;
        runtimes(tenant).create(&PostParams::default(), &runtime).await?;
        hold(&runtimes(tenant), "is-held").await?;
        Ok(())
    };
    let after = async |tenant: &Tenant<'_>| {
        tenant.completes("finishes").await?;
        tenant.gone("leaves").await?;
        tenant.fails_by_deadline("is-stopped").await?;
        tenant.released("is-stopped").await?;

        let foreground = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        tenant.jobs.delete("is-deleted", &foreground).await?;
        tenant.gone("is-deleted").await?;

        tenant.patch("is-held", &json!({"metadata": {"labels": {"a": "b"}}})).await?;
        tenant.delete("is-held").await?;
        let_go(&tenant.jobs, "is-held").await?;
        tenant.gone("is-held").await?;

        let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        runtimes(tenant).patch("is-held", &PatchParams::default(), &label).await?;
        runtimes(tenant).delete("is-held", &DeleteParams::default()).await?;
        let_go(&runtimes(tenant), "is-held").await?;
        until_ok("the runtime is gone", PATIENCE, || async {
            ensure!(runtimes(tenant).get_opt("is-held").await?.is_none(), "it is still there");
            Ok(())
        })
        .await?;

        let change = tenant.patch("finishes", &json!({"spec": {"suspend": true}})).await;
        let refused = change.err().context("a change of the spec was let through")?;
        ensure!(is_jammed(&refused), "{refused:#}");
        Ok(())
    };
    Box::pin(test("down", before, after)).await
}

// Trap 12.

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_full_of_jobs_can_be_deleted() -> Result<()> {
    let before =
        async |tenant: &Tenant<'_>| {
            let names: Vec<_> = (0..MANY).map(|number| format!("job-{number}")).collect();
            // Most of them suspended: what is to be deleted is the jobs, not a hundred Pods.
            try_join_all(names.iter().enumerate().map(|(number, name)| {
                tenant.create(name, RUNS, json!({"suspend": number % 10 != 0}))
            }))
            .await?;
            let last = names.last().context("no jobs")?;
            tenant.has_job_set(last).await?;
            Ok(())
        };
    let after = async |tenant: &Tenant<'_>| {
        let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
        ensure!(tenant.jobs.list(&ListParams::default()).await?.items.len() == MANY);
        namespaces.delete(&tenant.namespace, &DeleteParams::default()).await?;
        until_ok("the namespace is gone", PATIENCE, || async {
            ensure!(namespaces.get_opt(&tenant.namespace).await?.is_none(), "it is still there");
            Ok(())
        })
        .await
    };
    Box::pin(test("full", before, after)).await
}
