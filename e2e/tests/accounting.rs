//! What the operator does so that the Pods of a TrainJob are counted (`docs/accounting.md`, 2).
//!
//! Nothing here counts. Whoever would is played: somebody holds its Lease.

use anyhow::{Context, Result, ensure};
use e2e::accounting::marked::Mark;
use e2e::fixtures::finalizer::remove_finalizer;
use e2e::fixtures::{PATIENCE, POOL, RUNS, SYSTEM, Tenant, World};
use e2e::operator::SERVICE_ACCOUNT;
use e2e::until::until_ok;
use kube::ResourceExt;
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::{ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL};

const LEASE: &str = "trainjob-accounting";

/// A Lease that somebody holds, and the right to watch it.
async fn somebody_counts(world: &World) -> Result<()> {
    let metadata = json!({"name": LEASE});
    let rule = json!({
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": [LEASE],
        "verbs": ["get", "list", "watch"],
    });
    let rbac = "rbac.authorization.k8s.io";
    for object in [
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
            "spec": {"holderIdentity": "somebody"},
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [rule],
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": LEASE},
            "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": SYSTEM}],
        }),
    ] {
        world.cluster.apply_yaml(SYSTEM, &object.to_string()).await?;
    }
    Ok(())
}

/// Starts an operator with this section, and waits until it knows whether somebody counts.
async fn operator(world: &World, accounting: &str, alive: bool) -> Result<()> {
    let section = format!("{{leaseNamespace: {SYSTEM}, {accounting}}}");
    world.start_operator_with(&format!("accounting: {section}\n")).await?;
    let expected = format!("trainjob_operator_accounting_alive {}", u8::from(alive));
    until_ok("the operator knows whether somebody counts", PATIENCE, || async {
        ensure!(world.metrics().await?.lines().any(|line| line == expected), "not {expected}");
        Ok(())
    })
    .await
}

/// What the template of a job's JobSet has of ours: the label with the UID, and whether it has the finalizer.
async fn mark(tenant: &Tenant<'_>, job: &str) -> Result<(Option<String>, bool)> {
    let Mark { uid, is_held, .. } = Mark::of(&tenant.has_job_set(job).await?);
    Ok((uid, is_held))
}

/// Removes our finalizer from the Pods of a job, as who counts would.
async fn release(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    for pod in tenant.pods_of(job).await? {
        let name = pod.name_any();
        Box::pin(remove_finalizer(&tenant.pods, &name, ACCOUNTING_FINALIZER)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn new_jobs_are_marked_as_the_mode_says_and_stored_ones_stay_as_they_are() -> Result<()> {
    POOL.test("marks", async |tenant| {
        let world = tenant.world;
        somebody_counts(world).await?;
        operator(world, "mode: Exact", true).await?;
        let exact = tenant.create("exact", RUNS, json!({})).await?;
        let queued = tenant.create("queued", RUNS, json!({"suspend": true})).await?;
        let uid_of = |job: &trainjob_api::TrainJob| job.metadata.uid.clone();
        ensure!(mark(tenant, "exact").await? == (uid_of(&exact), true));
        ensure!(mark(tenant, "queued").await? == (uid_of(&queued), true));
        let pod = tenant.runs("exact").await?;
        ensure!(pod.finalizers().contains(&ACCOUNTING_FINALIZER.to_owned()), "{pod:?}");
        ensure!(pod.labels().get(TRAIN_JOB_NAME_LABEL).is_some_and(|name| name == "exact"));

        operator(world, "mode: Observe", true).await?;
        let observed = tenant.create("observed", RUNS, json!({})).await?;
        ensure!(mark(tenant, "observed").await? == (uid_of(&observed), false));
        tenant.runs("observed").await?;
        // It was made with the finalizer, which nobody may take out of a template.
        tenant.patch("queued", &json!({"spec": {"suspend": false}})).await?;
        tenant.runs("queued").await?;
        ensure!(mark(tenant, "queued").await? == (uid_of(&queued), true));
        ensure!(tenant.told("queued", "ChangeNotApplied").await?.is_empty());

        operator(world, "mode: Exact, leaseName: nobody", false).await?;
        tenant.create("skipped", RUNS, json!({})).await?;
        let told = tenant.tells("skipped", "AccountingSkipped").await?;
        ensure!(told.contains("trainjob-accounting"), "{told}");
        ensure!(mark(tenant, "skipped").await? == (None, false));

        operator(world, "mode: \"Off\"", true).await?;
        tenant.create("off", RUNS, json!({})).await?;
        ensure!(mark(tenant, "off").await? == (None, false));
        tenant.runs("off").await?;
        ensure!(tenant.told("off", "AccountingSkipped").await?.is_empty());
        for job in ["exact", "queued"] {
            release(tenant, job).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_held_job_that_never_ran_is_made_anew_when_accounting_is_switched_off() -> Result<()> {
    POOL.test("unmark", async |tenant| {
        let world = tenant.world;
        somebody_counts(world).await?;
        operator(world, "mode: Exact", true).await?;
        tenant.create("queued", RUNS, json!({"suspend": true})).await?;
        let marked = tenant.has_job_set("queued").await?;
        ensure!(mark(tenant, "queued").await?.1, "it is not held");
        operator(world, "mode: \"Off\"", true).await?;
        until_ok("the JobSet is made anew", PATIENCE, || async {
            let found = tenant.job_sets.get_opt("queued").await?.context("no JobSet")?;
            ensure!(found.uid() != marked.uid(), "it is the same");
            Ok(())
        })
        .await?;
        ensure!(mark(tenant, "queued").await? == (None, false));
        Ok(())
    })
    .await
}

/// The UIDs of a job's JobSet and of its Pods.
async fn uids(tenant: &Tenant<'_>, job: &str) -> Result<Vec<Option<String>>> {
    let job_set = tenant.has_job_set(job).await?;
    let mut uids: Vec<_> = tenant.pods_of(job).await?.iter().map(ResourceExt::uid).collect();
    uids.push(job_set.uid());
    uids.sort();
    Ok(uids)
}

/// Creates a job that runs until it is suspended.
async fn paused(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    tenant.create(job, RUNS, json!({})).await?;
    tenant.runs(job).await?;
    tenant.patch(job, &json!({"spec": {"suspend": true}})).await?;
    until_ok("its Pods are gone", PATIENCE, || async {
        release(tenant, job).await?;
        let pods = tenant.pods_of(job).await?;
        ensure!(pods.is_empty(), "{} are there", pods.len());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn jobs_that_run_or_have_run_are_not_remade_when_the_mode_changes() -> Result<()> {
    POOL.test("modes", async |tenant| {
        let world = tenant.world;
        somebody_counts(world).await?;
        let mut jobs = Vec::new();
        let modes = ["Off", "Observe", "Exact", "Observe", "Off", "Exact", "Off"];
        for (turn, mode) in modes.into_iter().enumerate() {
            operator(world, &format!("mode: \"{mode}\""), true).await?;
            let (running, resumed) = (format!("running-{turn}"), format!("resumed-{turn}"));
            tenant.create(&running, RUNS, json!({})).await?;
            tenant.runs(&running).await?;
            paused(tenant, &resumed).await?;
            let before = (uids(tenant, &running).await?, uids(tenant, &resumed).await?);
            jobs.push((mode, running, resumed, before));
        }
        for (mode, running, resumed, (ran, waited)) in &jobs {
            tenant.patch(resumed, &json!({"spec": {"suspend": false}})).await?;
            tenant.runs(resumed).await?;
            let now = uids(tenant, resumed).await?;
            ensure!(waited.iter().all(|it| now.contains(it)), "{mode}, {resumed}: another JobSet");
            ensure!(uids(tenant, running).await? == *ran, "{mode}, {running}: remade");
            for job in [running, resumed] {
                ensure!(mark(tenant, job).await?.1 == (*mode == "Exact"), "{mode}, {job}");
                ensure!(tenant.told(job, "ChangeNotApplied").await?.is_empty(), "{mode}, {job}");
                release(tenant, job).await?;
            }
        }
        Ok(())
    })
    .await
}
