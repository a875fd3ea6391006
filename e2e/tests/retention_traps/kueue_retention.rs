//! Workloads that the real Kueue deletes, too, by its own retention; and those that it makes when an elastic job grows.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::faults::retention::Place;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE, consistently};
use e2e::kueue::{
    Case, Clock, Kueue, KueueOptions, NAMESPACE, QUEUE_LABEL, QueueOptions, SERVICE_ACCOUNT,
    Setting, Workload,
};
use e2e::until::until_ok;
use e2e::yaml;
use futures::future::try_join_all;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::workloads::{submit_limited, test, workloads};
use super::{WINDOW, named, scaled};

/// The annotation of a Job that may grow while it runs.
const ELASTIC: &str = "kueue.x-k8s.io/elastic-job";
/// The finalizer of Kueue.
const IN_USE: &str = "kueue.x-k8s.io/resource-in-use";
/// Jobs that are created at the same time.
const AT_A_TIME: usize = 20;

/// A Job of the queue of its namespace, which Kueue starts.
fn job(name: &str, pods: &Value, annotations: &Value) -> Result<Job> {
    let requests = json!({"requests": {"cpu": "100m"}});
    let container = json!({"name": "main", "image": "none", "resources": requests});
    Ok(serde_json::from_value(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": {QUEUE_LABEL: "queue"}, "annotations": annotations},
        "spec": {
            "suspend": true, "parallelism": 1, "completions": null,
            "template": {
                "metadata": {"annotations": pods},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }))?)
}

fn jobs(case: &Case<'_>) -> Api<Job> {
    Api::namespaced(case.tenant.client.clone(), &case.tenant.namespace)
}

fn completes(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|it| it.completion_time.is_some())
}

/// With Kueue's retention off, and then on, in a box whose Kueue lets jobs grow.
#[tokio::test(flavor = "multi_thread")]
async fn workloads_of_kueue_go_once_whoever_deletes_them_and_nobody_tries_for_ever() -> Result<()> {
    let gates = json!({"featureGates": {"ElasticJobsViaWorkloadSlices": true}});
    let mut setting = Arc::new(Setting::start(Clock::Creation, gates).await?);
    let queue = QueueOptions::default;
    test(&setting, "grows", queue(), slices).await.context("without Kueue's retention")?;

    let own = Arc::get_mut(&mut setting).context("the box is in use")?;
    own.kueue.stop().await?;
    let config = json!({"objectRetentionPolicies": {"workloads": {
        "afterFinished": "1s", "afterDeactivatedByKueue": "1s",
    }}});
    own.kueue = Kueue::start(&own.world.cluster, KueueOptions { config }).await?;
    may_delete_train_jobs(&setting).await?;
    let kueue = Arc::clone(&setting);
    test(&setting, "both", queue(), async |case, place| both(&kueue, case, place).await)
        .await
        .context("with Kueue's retention")
}

/// The Workload that a grown job had before stays as long as its job, and then until Kueue gives it up.
async fn slices(case: &Case<'_>, place: &Place) -> Result<()> {
    let jobs = jobs(case);
    let elastic = job("grows", &json!({}), &json!({ELASTIC: "true"}))?;
    jobs.create(&PostParams::default(), &elastic).await?;
    case.workload_is("grows", "admitted", |it| it.is("Admitted")).await?;
    let grown = Patch::Merge(json!({"spec": {"parallelism": 2}}));
    jobs.patch("grows", &PatchParams::default(), &grown).await?;
    let replaced = until_ok("a slice is replaced", PATIENCE, || async {
        let all = case.workloads.list(&ListParams::default()).await?.items;
        let said: Vec<_> = all.iter().map(|it| Workload(it.clone()).brief()).collect();
        let finished = all.into_iter().map(Workload).find(|it| it.is("Finished"));
        finished.with_context(|| format!("none is: {said:#?}"))
    })
    .await?;
    let reason = replaced.reason("Finished").unwrap_or_default();
    ensure!(!["Succeeded", "Failed"].contains(&reason), "{}", replaced.brief());
    place.apply(workloads(true)).await?;
    place.launch().await?;
    place.status("workloads", |it| it["counts"]["owned"] == 1).await?;
    place.asks_for_nothing_more(WINDOW).await?;
    ensure!(place.deletions() == 0, "a slice of a job that runs was to be deleted");
    let ends = Patch::Merge(json!({"metadata": {"annotations": {COMPLETES_AFTER: "100ms"}}}));
    for pod in case.tenant.pods.list(&ListParams::default()).await?.items {
        let name = pod.metadata.name.unwrap_or_default();
        case.tenant.pods.patch(&name, &PatchParams::default(), &ends).await?;
    }
    until_ok("the Job has ended", PATIENCE, || async {
        ensure!(completes(&jobs.get("grows").await?), "it has not");
        Ok(())
    })
    .await?;
    // One that starts asks at once whether the Job has ended.
    place.kill();
    place.launch().await?;
    let name = replaced.0.name_any();
    until_ok("the deletions of both Workloads are accepted", PATIENCE, || async {
        let there = case.workloads.list(&ListParams::default()).await?.items;
        let stays = there.iter().find(|it| it.metadata.deletion_timestamp.is_none());
        ensure!(stays.is_none(), "{:?}", stays.map(ResourceExt::name_any));
        Ok(())
    })
    .await?;
    let slice = case.workloads.get(&name).await?;
    // Kueue removes its finalizer from a replaced slice only when it deletes that itself.
    ensure!(slice.finalizers() == [IN_USE], "{:?}", slice.finalizers());
    place.asks_for_nothing_more(WINDOW).await?;
    let deleted = place.deleted();
    // A version that Kueue has replaced meanwhile is refused, and it is asked for again.
    ensure!(matches!(deleted.get(&name), Some((1..=3, 1))), "{deleted:?}");
    Ok(())
}

async fn both(setting: &Setting, case: &Case<'_>, place: &Place) -> Result<()> {
    place.apply(workloads(true)).await?;
    place.launch().await?;
    let (jobs, count) = (jobs(case), scaled(20, 1_000));
    let names: Vec<_> = named("job", count).collect();
    for some in names.chunks(AT_A_TIME) {
        let jobs = &jobs;
        let created = some.iter().map(|name| async move {
            let job = job(name, &json!({COMPLETES_AFTER: "100ms"}), &json!({}))?;
            anyhow::Ok(jobs.create(&PostParams::default(), &job).await?)
        });
        try_join_all(created).await?;
    }
    submit_limited(case, "given-up").await?;
    case.tenant.gone("given-up").await?;
    until_ok("no Workload is left of the Jobs, which are", scaled(1, 20) * PATIENCE, || async {
        let ended = jobs.list(&ListParams::default()).await?.items;
        let ended = ended.iter().filter(|job| completes(job)).count();
        ensure!(ended == count, "{ended} of {count} Jobs have ended");
        let left = case.workloads.list(&ListParams::default()).await?.items.len();
        ensure!(left == 0, "{left} are");
        Ok(())
    })
    .await?;
    let errors = || -> Result<usize> {
        let log = setting.kueue.log()?;
        let is_error = |line: &&str| {
            line.contains(r#""level":"error""#) && line.contains(&case.tenant.namespace)
        };
        Ok(log.lines().filter(is_error).count())
    };
    place.asks_for_nothing_more(WINDOW).await?;
    // What it has begun before all was gone, it may still have to give up.
    until_ok("Kueue complains no more", PATIENCE, || async {
        let before = errors()?;
        consistently("of nothing", WINDOW, async || {
            let now = errors()?;
            ensure!(now == before, "{} errors more", now - before);
            Ok(())
        })
        .await
    })
    .await?;
    for (name, (asked, accepted)) in place.deleted() {
        ensure!(asked <= 3 && accepted <= 1, "{name}: {asked} deletions, {accepted} accepted");
    }
    Ok(())
}

/// Gives Kueue the right that its role lacks (docs/kueue.md).
async fn may_delete_train_jobs(setting: &Setting) -> Result<()> {
    let (group, name) = ("rbac.authorization.k8s.io", "kueue-deletes-trainjobs");
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{
            "apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["delete"],
        }],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}],
    });
    setting.world.cluster.apply_yaml("default", &yaml::stream(&[role, binding])).await?;
    Ok(())
}
