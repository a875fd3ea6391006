//! Trap 24: a record is deleted at each step of its life.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::accounting::{Accounting, becomes_final, holds, reason, records};
use e2e::fixtures::{COMPLETES, PATIENCE, Tenant, consistently};
use e2e::proxy::{Call, Fault, Proxy};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use invariants::accounting::Terms;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecord;

use super::{nodes, own_box::OwnBox, released};

/// How long nobody may make a record again that is not needed.
const QUIET: Duration = Duration::from_secs(5);

/// A step of the program, at which the record is deleted.
struct Step {
    name: &'static str,
    /// Which call of it waits until the record is gone.
    waits: fn(&Call) -> bool,
    /// Whether that has been carried out already.
    is_done: bool,
    /// How many of two Pods the next record counts.
    counts: fn(u64) -> bool,
}

fn is_store(call: &Call) -> bool {
    (call.verb, call.resource.as_str()) == ("update", "trainjobrecords")
}

fn settling(call: &Call) -> usize {
    call.json().pointer("/status/settling").and_then(Value::as_array).map_or(0, Vec::len)
}

fn succeeded(call: &Call) -> u64 {
    let counted = call.json().pointer("/status/totals/pods/succeeded").and_then(Value::as_u64);
    counted.unwrap_or_default()
}

/// In the order in which they come.
const STEPS: [Step; 6] = [
    Step {
        name: "created",
        waits: |call| (call.verb, call.resource.as_str()) == ("create", "trainjobrecords"),
        is_done: true,
        counts: |pods| pods == 2,
    },
    Step { name: "first", waits: is_store, is_done: false, counts: |pods| pods == 2 },
    Step {
        name: "counting",
        waits: |call| is_store(call) && settling(call) > 0,
        is_done: false,
        counts: |pods| pods == 2,
    },
    Step {
        name: "counted",
        waits: |call| is_store(call) && settling(call) > 0,
        is_done: true,
        counts: |pods| pods <= 2,
    },
    Step {
        name: "releasing",
        waits: |call| (call.verb, call.resource.as_str()) == ("patch", "pods"),
        is_done: false,
        counts: |pods| pods <= 2,
    },
    Step {
        name: "clearing",
        waits: |call| is_store(call) && settling(call) == 0 && succeeded(call) == 2,
        is_done: false,
        counts: |pods| pods == 0,
    },
];

#[tokio::test]
async fn ag12_a_record_that_is_deleted_at_any_step_is_made_anew_and_no_pod_is_held() -> Result<()> {
    let OwnBox { program, proxy, world, .. } = OwnBox::proxied("Exact").await?;
    for step in STEPS {
        let lived = async |tenant: &Tenant<'_>| {
            let recorder = AccountingRecorder::start(tenant.client.clone()).await?;
            at_step(&proxy, &step, tenant).await?;
            recorder.judge(&[&tenant.namespace], &[], &terms()).await
        };
        world.test(step.name, lived).await.with_context(|| step.name)?;
    }
    world
        .test("final", async |tenant| {
            let recorder = AccountingRecorder::start(tenant.client.clone()).await?;
            after_the_end(&program, tenant).await?;
            recorder.judge(&[&tenant.namespace], &[], &terms()).await
        })
        .await
}

/// Records are deleted. Of those that are made anew A6 is judged together with those before.
fn terms() -> Terms {
    Terms { records_go: true, ..Terms::default() }
}

async fn at_step(proxy: &Proxy, step: &Step, tenant: &Tenant<'_>) -> Result<()> {
    let (namespace, waits) = (tenant.namespace.clone(), step.waits);
    let here = move |call: &Call| call.namespace == namespace && waits(call);
    let fault = if step.is_done { Fault::HoldReply } else { Fault::HoldRequest };
    let held = proxy.inject(here, 1..=1, fault);
    tenant.create("job", COMPLETES, nodes(2)).await?;
    held.reached().await?;
    let first = delete_record(tenant).await?;
    held.remove();
    tenant.becomes("job", "Complete").await?;
    released(tenant, "job").await?;
    let status = becomes_final(tenant, "job").await?;
    let record = records(tenant, "job").await?.pop().context("there is no record")?;
    ensure!(record.uid() != first, "it is the first one");
    ensure!((step.counts)(status.totals.pods.succeeded), "{status:#?}");
    ensure!(status.totals.pods.failed + status.totals.pods.deleted == 0, "{status:#?}");
    ensure!(reason(&status, "Exact") == Some("Recreated"), "{status:#?}");
    ensure!(status.lost.is_empty(), "{status:#?}");
    Ok(())
}

/// Deletes the record, and returns its UID.
async fn delete_record(tenant: &Tenant<'_>) -> Result<Option<String>> {
    let record = records(tenant, "job").await?.pop().context("there is no record")?;
    let api: Api<TrainJobRecord> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
    api.delete(&record.name_any(), &DeleteParams::default()).await?;
    Ok(record.uid())
}

/// Whoever deletes a record that is final wants it to be gone.
async fn after_the_end(program: &Accounting, tenant: &Tenant<'_>) -> Result<()> {
    tenant.create("job", COMPLETES, nodes(2)).await?;
    let status = becomes_final(tenant, "job").await?;
    ensure!(status.totals.pods.succeeded == 2 && holds(&status, "Exact"), "{status:#?}");
    released(tenant, "job").await?;
    // Before it knows that its last store was carried out, it takes a record that goes for one that is needed.
    until_ok("the program has seen it", PATIENCE, || async {
        let known = "trainjob_accounting_records";
        let open = program.labelled_metric(known, r#"state="open""#).await?;
        ensure!(open < 0.5, "to it {open} records are not final");
        Ok(())
    })
    .await?;
    delete_record(tenant).await?;
    let seen = Patch::Merge(json!({"metadata": {"labels": {"e2e.trainjob.dev/seen": "1"}}}));
    for pod in tenant.pods_of("job").await? {
        tenant.pods.patch(&pod.name_any(), &PatchParams::default(), &seen).await?;
    }
    consistently("there is no record", QUIET, async || {
        let records = records(tenant, "job").await?.len();
        ensure!(records == 0, "there is one");
        Ok(())
    })
    .await
}
