//! Traps 7 and 32: very many Pods of one TrainJob end at once, and Pods of very many kinds.
//!
//! Nobody runs these Pods: they are stored with the status that a kubelet would have written.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::accounting::{Accounting, holds, install_accounting, reason, records, status};
use e2e::apply::apply;
use e2e::cluster::Options;
use e2e::fixtures::status::now;
use e2e::fixtures::{RUNS, Tenant, World};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use invariants::accounting::Terms;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::{
    ATTEMPTS, FAILURES, MESSAGE, NAMES, PodCounts, RESOURCES, TrainJobRecordStatus,
};
use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
};
use trainjob_api::time::Timestamp;

use super::{SETTINGS, is_held, scaled};

/// How long it may take to count them.
const WITHIN: Duration = Duration::from_mins(10);
/// Requests under way.
const AT_ONCE: usize = 32;
/// For how long each Pod has run.
const SECONDS: u32 = 100;
/// The largest record that is stored in etcd without a second thought.
const MOST_BYTES: usize = 256 * 1024;

/// A Pod that is to be stored.
struct Wanted {
    number: usize,
    job: String,
    restart: usize,
    requests: Value,
    status: Value,
}

/// A box in which nobody runs Pods, with a program that counts them.
struct Bare {
    world: World,
    program: Accounting,
}

impl Bare {
    async fn start() -> Result<Self> {
        let world = Box::pin(World::without_operator(Options::bare())).await?;
        install_accounting(&world.cluster).await?;
        let program = Accounting::start(&world.cluster, SETTINGS).await?;
        program.leads().await?;
        Ok(Self { world, program })
    }

    /// A namespace in which Pods can be stored, with a TrainJob of this name.
    async fn tenant(&self, job: &str) -> Result<(Tenant<'_>, String)> {
        let tenant = self.world.tenant(job).await?;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        apply(&tenant.client, &tenant.namespace, vec![account]).await?;
        let uid = tenant.create(job, RUNS, json!({})).await?.uid().context("no UID")?;
        Ok((tenant, uid))
    }

    /// Waits until the program knows of so many Pods that are not counted.
    async fn open(&self, count: usize) -> Result<()> {
        until_ok("all Pods are known", WITHIN, || async {
            let open = self.program.metric("trainjob_accounting_open_pods").await?;
            ensure!(format!("{open:.0}") == count.to_string(), "{open}");
            Ok(())
        })
        .await
    }
}

/// Stores a Pod that runs.
async fn store(tenant: &Tenant<'_>, (job, uid): (&str, &str), wanted: &Wanted) -> Result<()> {
    let pod = json!({
        "metadata": {
            "name": format!("{job}-{}", wanted.number),
            "finalizers": [ACCOUNTING_FINALIZER],
            "labels": {
                TRAIN_JOB_NAME_LABEL: job,
                TRAIN_JOB_UID_LABEL: uid,
                "jobset.sigs.k8s.io/jobset-uid": uid,
                "jobset.sigs.k8s.io/replicatedjob-name": wanted.job,
                "jobset.sigs.k8s.io/restart-attempt": wanted.restart.to_string(),
            },
        },
        "spec": {
            "nodeName": "node",
            "restartPolicy": "Never",
            "containers": [{
                "name": "node", "image": "none",
                "resources": {"requests": wanted.requests, "limits": wanted.requests},
            }],
        },
    });
    tenant.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok(())
}

/// It ends as it has to.
async fn end(tenant: &Tenant<'_>, job: &str, wanted: &Wanted) -> Result<()> {
    let name = format!("{job}-{}", wanted.number);
    let ended = Patch::Merge(json!({"status": wanted.status}));
    tenant.pods.patch_status(&name, &PatchParams::default(), &ended).await?;
    Ok(())
}

async fn each<'a, F: Future<Output = Result<()>>>(
    all: &'a [Wanted],
    act: impl Fn(&'a Wanted) -> F,
) -> Result<()> {
    stream::iter(all).map(act).buffer_unordered(AT_ONCE).try_collect().await
}

/// The status of a Pod that has run for so long.
fn ran(exit_code: usize, message: &str) -> Value {
    let end = Timestamp(now().0 - 10);
    let bound = Timestamp(end.0 - i64::from(SECONDS));
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    json!({
        "phase": phase,
        "conditions": [{
            "type": "PodScheduled", "status": "True", "lastTransitionTime": bound.to_string(),
        }],
        "containerStatuses": [{
            "name": "node", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {
                "exitCode": exit_code, "message": message, "finishedAt": end.to_string(),
            }},
        }],
    })
}

/// Waits until no Pod is held, the TrainJob ends, and its record is final.
async fn ends(tenant: &Tenant<'_>, job: &str, kind: &str) -> Result<TrainJobRecordStatus> {
    let condition = json!({
        "type": kind, "status": "True", "reason": "Over", "message": "",
        "lastTransitionTime": now().to_string(),
    });
    let over = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    tenant.jobs.patch_status(job, &PatchParams::default(), &over).await?;
    let status = until_ok("the record is final", WITHIN, || async {
        let status = status(tenant, job).await?;
        let left = status.totals.pods.active + status.settling.len() as u64;
        ensure!(holds(&status, "Final"), "{left} are left");
        Ok(status)
    })
    .await?;
    let pods = tenant.pods.list(&kube::api::ListParams::default()).await?.items;
    ensure!(!pods.iter().any(is_held), "one is held");
    Ok(status)
}

#[tokio::test]
async fn when_all_pods_of_a_large_job_end_at_once_the_record_stays_within_its_bounds() -> Result<()>
{
    let count = scaled(1_200, 10_000);
    let bare = Box::pin(Bare::start()).await?;
    let (tenant, uid) = bare.tenant("large").await?;
    let recorder = AccountingRecorder::start(tenant.client.clone()).await?;
    let all: Vec<_> = (0..count)
        .map(|number| Wanted {
            number,
            job: "node".to_owned(),
            restart: 0,
            requests: json!({"nvidia.com/gpu": "8"}),
            status: ran(0, ""),
        })
        .collect();
    each(&all, |wanted| store(&tenant, ("large", &uid), wanted)).await?;
    bare.open(count).await?;
    each(&all, |wanted| end(&tenant, "large", wanted)).await?;
    let status = ends(&tenant, "large", "Complete").await?;
    let succeeded = PodCounts { succeeded: count as u64, ..PodCounts::default() };
    ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
    let expected = count as u64 * 8 * u64::from(SECONDS);
    ensure!(status.totals.gpu_seconds == expected, "{} GPU seconds", status.totals.gpu_seconds);
    recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
}

/// 30 replicated jobs, 200 attempts, 20 resources, 100 exit codes, and failures that have much to say in long letters.
fn kinds() -> Vec<Wanted> {
    let message = "ü🦀".repeat(400);
    let kind = |number: usize| Wanted {
        number,
        job: format!("job-{:02}", number % 30),
        restart: number % 200,
        requests: json!({
            "cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1",
            format!("e2e.trainjob.dev/resource-{:02}", number % 17): "3",
        }),
        status: ran(1 + number % 100, &message),
    };
    (0..600).map(kind).collect()
}

#[tokio::test]
async fn a_record_of_more_kinds_of_pods_than_it_has_room_for_is_stored_within_its_bounds()
-> Result<()> {
    let bare = Box::pin(Bare::start()).await?;
    let (tenant, uid) = bare.tenant("kinds").await?;
    let recorder = AccountingRecorder::start(tenant.client.clone()).await?;
    let all = kinds();
    each(&all, |wanted| store(&tenant, ("kinds", &uid), wanted)).await?;
    bare.open(all.len()).await?;
    each(&all, |wanted| end(&tenant, "kinds", wanted)).await?;
    let status = ends(&tenant, "kinds", "Failed").await?;
    let failed = PodCounts { failed: 600, ..PodCounts::default() };
    ensure!(status.totals.pods == failed && status.totals.restarts == 199, "{:#?}", status.totals);
    ensure!(status.totals.gpu_seconds == 600 * u64::from(SECONDS), "{:#?}", status.totals);
    ensure!(reason(&status, "Exact") == Some("TooManyResources"), "{:#?}", status.conditions);
    // The bounds are reached, and the API server takes such a record.
    ensure!(status.replicated_jobs.len() == NAMES + 1, "{}", status.replicated_jobs.len());
    ensure!(status.exit_codes.len() == NAMES + 1, "{:?}", status.exit_codes);
    ensure!(status.exit_codes.values().sum::<u64>() == 600, "{:?}", status.exit_codes);
    ensure!(status.first_failures.len() == FAILURES, "{}", status.first_failures.len());
    ensure!(status.totals.seconds.len() == RESOURCES, "{:?}", status.totals.seconds);
    ensure!(status.causes.len() == ATTEMPTS, "{:?}", status.causes);
    let longest = status.first_failures.iter().map(|it| it.message.chars().count()).max();
    ensure!(longest == Some(MESSAGE), "{longest:?} letters");
    let record = records(&tenant, "kinds").await?.pop().context("there is no record")?;
    let bytes = serde_json::to_vec(&record)?.len();
    ensure!(bytes < MOST_BYTES, "{bytes} bytes");
    recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
}
