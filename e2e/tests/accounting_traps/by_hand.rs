//! Trap 21: people change finalizers and labels of Pods.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{Accounting, Counted, becomes_final, holds, reason, status};
use e2e::fixtures::{COMPLETES, PATIENCE, RUNS, STUBBORN, Tenant};
use e2e::until::until_ok;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::{PodCounts, TrainJobRecordStatus};
use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
};

use super::{SETTINGS, counted, is_held, judged, no_pods, nodes, released, run_held};

/// Changes a Pod by hand.
async fn change(tenant: &Tenant<'_>, pod: &Pod, metadata: Value) -> Result<Pod> {
    let patch = Patch::Merge(json!({"metadata": metadata}));
    Ok(tenant.pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await?)
}

/// Takes both of our labels.
fn without_labels() -> Value {
    json!({"labels": {TRAIN_JOB_NAME_LABEL: null, TRAIN_JOB_UID_LABEL: null}})
}

/// Takes that with the name of the TrainJob, so that the Pod is watched and nobody knows whose it is.
fn without_name() -> Value {
    json!({"labels": {TRAIN_JOB_NAME_LABEL: null}})
}

/// All but our finalizer.
fn others(pod: &Pod) -> Vec<&String> {
    pod.finalizers().iter().filter(|finalizer| *finalizer != ACCOUNTING_FINALIZER).collect()
}

async fn the_pod(tenant: &Tenant<'_>, job: &str) -> Result<Pod> {
    run_held(tenant, job, 1).await?.pop().context("no Pod")
}

/// One Pod counts, as one whose end we could not wait for.
fn is_unprotected(status: &TrainJobRecordStatus) -> Result<()> {
    let deleted = PodCounts { deleted: 1, ..PodCounts::default() };
    ensure!(status.totals.pods == deleted, "{status:#?}");
    ensure!(reason(status, "Exact") == Some("Unprotected"), "{status:#?}");
    Ok(())
}

#[tokio::test]
async fn ag10_a_pod_whose_finalizer_is_emptied_counts_once_as_unprotected() -> Result<()> {
    let counted = counted().await?;
    counted
        .test("emptied", async |tenant| {
            tenant.create("emptied", RUNS, nodes(1)).await?;
            let pod = the_pod(tenant, "emptied").await?;
            change(tenant, &pod, json!({"finalizers": others(&pod)})).await?;
            until_ok("it is annotated", PATIENCE, || async {
                let pod = tenant.pods.get(&pod.name_any()).await?;
                let annotated = pod.annotations().get(ACCOUNTED_ANNOTATION);
                ensure!(annotated == pod.uid().as_ref(), "it is not");
                Ok(())
            })
            .await?;
            tenant.delete("emptied").await?;
            is_unprotected(&becomes_final(tenant, "emptied").await?)
        })
        .await
}

#[tokio::test]
async fn ag4_a_finalizer_that_is_put_back_is_removed_and_the_pod_counts_once() -> Result<()> {
    judged("back", async |tenant| {
        tenant.create("back", COMPLETES, nodes(1)).await?;
        tenant.becomes("back", "Complete").await?;
        becomes_final(tenant, "back").await?;
        released(tenant, "back").await?;
        let pod = tenant.pods_of("back").await?.pop().context("no Pod")?;
        change(tenant, &pod, json!({"finalizers": [ACCOUNTING_FINALIZER]})).await?;
        released(tenant, "back").await?;
        let status = becomes_final(tenant, "back").await?;
        let succeeded = PodCounts { succeeded: 1, ..PodCounts::default() };
        ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn ag10_a_pod_that_loses_our_labels_is_counted_and_not_held() -> Result<()> {
    let counted = counted().await?;
    counted
        .test("labels", async |tenant| {
            for (job, labels) in [("running", without_labels()), ("unnamed", without_name())] {
                tenant.create(job, RUNS, nodes(1)).await?;
                let pod = the_pod(tenant, job).await?;
                change(tenant, &pod, labels).await?;
                released(tenant, job).await?;
                let found = tenant.pods.get(&pod.name_any()).await?;
                ensure!(found.uid() == pod.uid(), "{job} was remade");
                tenant.delete(job).await?;
                is_unprotected(&becomes_final(tenant, job).await?)?;
            }

            // Here it is being deleted already, which takes it eight seconds.
            tenant.create("terminating", STUBBORN, nodes(1)).await?;
            let pod = the_pod(tenant, "terminating").await?;
            tenant.pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
            change(tenant, &pod, without_labels()).await?;
            until_ok("it is not held", PATIENCE, || async {
                let found = tenant.pods.get_opt(&pod.name_any()).await?;
                ensure!(!found.is_some_and(|it| it.uid() == pod.uid() && is_held(&it)), "it is");
                Ok(())
            })
            .await?;
            tenant.delete("terminating").await?;
            is_unprotected(&becomes_final(tenant, "terminating").await?)
        })
        .await
}

/// A Pod that somebody makes with our finalizer, and with labels that name what no TrainJob can be called.
async fn misnamed(tenant: &Tenant<'_>, name: &str) -> Result<Pod> {
    let pod = json!({
        "metadata": {
            "name": name,
            "finalizers": [ACCOUNTING_FINALIZER],
            "labels": {TRAIN_JOB_NAME_LABEL: "No_Job", TRAIN_JOB_UID_LABEL: "0"},
        },
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    });
    Ok(tenant.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?)
}

#[tokio::test]
async fn ag11_what_people_change_while_nobody_watches_holds_nothing_and_is_told_of() -> Result<()> {
    const JOBS: [&str; 4] = ["emptied", "gone", "unlabelled", "unnamed"];
    let mut counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let tenant = counted.world.tenant("unwatched").await?;
    for job in JOBS {
        tenant.create(job, RUNS, nodes(1)).await?;
    }
    let [emptied, gone, unlabelled, unnamed] = [
        the_pod(&tenant, "emptied").await?,
        the_pod(&tenant, "gone").await?,
        the_pod(&tenant, "unlabelled").await?,
        the_pod(&tenant, "unnamed").await?,
    ];
    for job in JOBS {
        until_ok("the record tells of its Pod", PATIENCE, || async {
            let status = status(&tenant, job).await?;
            ensure!(status.totals.pods.active == 1, "{status:#?}");
            Ok(())
        })
        .await?;
    }
    let misnamed_before = misnamed(&tenant, "misnamed-before").await?;
    counted.program.kill9();
    change(&tenant, &emptied, json!({"finalizers": others(&emptied)})).await?;
    change(&tenant, &gone, json!({"finalizers": others(&gone)})).await?;
    tenant.delete("gone").await?;
    no_pods(&tenant, "gone").await?;
    change(&tenant, &unlabelled, without_labels()).await?;
    change(&tenant, &unnamed, without_name()).await?;

    counted.program = Accounting::start(&counted.world.cluster, SETTINGS).await?;
    let misnamed_after = misnamed(&tenant, "misnamed-after").await?;
    for left in [unlabelled, unnamed, misnamed_before, misnamed_after] {
        until_ok("a Pod whose labels name no job is not held", PATIENCE, || async {
            let pod = tenant.pods.get(&left.name_any()).await?;
            ensure!(pod.uid() == left.uid() && !is_held(&pod), "{pod:#?}");
            Ok(())
        })
        .await?;
    }
    for job in ["emptied", "unlabelled", "unnamed"] {
        tenant.delete(job).await?;
    }
    for (job, deleted, lost) in [
        ("emptied", 1, None),
        ("gone", 0, Some(&1)),
        ("unlabelled", 0, Some(&1)),
        ("unnamed", 0, Some(&1)),
    ] {
        let status = becomes_final(&tenant, job).await?;
        let expected = PodCounts { deleted, ..PodCounts::default() };
        ensure!(status.totals.pods == expected, "{job}: {status:#?}");
        ensure!(status.lost.get("Unwatched") == lost, "{job}: {status:#?}");
        ensure!(!holds(&status, "Exact"), "{job}: {status:#?}");
    }
    Ok(())
}
