//! Traps 22 and 23: something refuses the release of Pods, or records.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use e2e::accounting::{
    Counted, NAMESPACE, SERVICE_ACCOUNT, USER, becomes_final, holds, records, status,
};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES, PATIENCE, RUNS, Tenant};
use e2e::until::until_ok;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::Mutex;
use trainjob_api::lifecycle::v1alpha1::record::{
    PodCounts, RecordedJob, TrainJobRecord, TrainJobRecordSpec,
};

use super::{counted, is_held, no_pods, nodes, released, run_held};

/// What the API server says.
const DENIED: &str = "denied by a test";
/// The name of a quota.
const QUOTA: &str = "no-records";
/// What it limits.
const RECORDS: &str = "count/trainjobrecords.lifecycle.trainjob.dev";

/// Something that is refused to the program in one namespace, until it is lifted.
struct Denial<'a> {
    tenant: &'a Tenant<'a>,
    name: String,
}

impl<'a> Denial<'a> {
    async fn of(
        tenant: &'a Tenant<'a>,
        group: &str,
        resource: &str,
        operation: &str,
    ) -> Result<Self> {
        let name = format!("{}-{resource}", tenant.namespace);
        let namespace = json!({"matchLabels": {"kubernetes.io/metadata.name": tenant.namespace}});
        let rule = json!({
            "apiGroups": [group], "apiVersions": ["*"], "resources": [resource],
            "operations": [operation],
        });
        let is_it = format!("request.userInfo.username == '{USER}'");
        let api = "admissionregistration.k8s.io/v1";
        let policy = json!({
            "apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule], "namespaceSelector": namespace},
                "matchConditions": [{"name": "the-program", "expression": is_it}],
                "validations": [{"expression": "false", "message": DENIED}],
            },
        });
        let binding = json!({
            "apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        apply(&tenant.client, "default", vec![policy, binding]).await?;
        Ok(Self { tenant, name })
    }

    /// Waits until it holds: what `attempt` asks as the program is refused.
    async fn holds(&self, attempt: impl AsyncFn() -> kube::Result<()>) -> Result<()> {
        until_ok("it is refused", PATIENCE, || async {
            match attempt().await {
                Err(kube::Error::Api(refusal)) if refusal.message.contains(DENIED) => Ok(()),
                Err(error) => bail!(error),
                Ok(()) => bail!("it is still allowed"),
            }
        })
        .await
    }

    async fn lift(self) -> Result<()> {
        let all: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.tenant.client.clone());
        all.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

/// A quota that has no room for records, in effect.
///
/// The controller of quotas learns of new kinds twice a minute. One of a kind that it does not know yet stays without a
/// count for minutes, and the API server then refuses whatever it is about, with other words. So such a one is made anew.
async fn no_room(tenant: &Tenant<'_>, probe: impl AsyncFn() -> kube::Result<()>) -> Result<()> {
    let none = json!({RECORDS: "0"});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": QUOTA},
        "spec": {"hard": none},
    });
    let quotas: Api<ResourceQuota> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
    until_ok("it is refused", PATIENCE, || async {
        apply(&tenant.client, &tenant.namespace, vec![quota.clone()]).await?;
        let status = quotas.get(QUOTA).await?.status.unwrap_or_default();
        let has = |amounts: Option<BTreeMap<String, Quantity>>| {
            amounts.is_some_and(|amounts| amounts.contains_key(RECORDS))
        };
        match (has(status.hard), has(status.used)) {
            (true, true) => {}
            (true, false) => {
                quotas.delete(QUOTA, &DeleteParams::default()).await?;
                bail!("records are not known to the controller of quotas");
            }
            (false, _) => bail!("the quota is not looked at yet"),
        }
        match probe().await {
            Err(kube::Error::Api(refusal)) if refusal.message.contains("exceeded quota") => Ok(()),
            Err(error) => bail!(error),
            Ok(()) => bail!("it is still allowed"),
        }
    })
    .await
}

/// Tries to create a record as the program, and creates none.
async fn create_record(
    counted: &Counted,
    tenant: &Tenant<'_>,
) -> Result<impl AsyncFn() -> kube::Result<()>> {
    let of: Api<TrainJobRecord> = Api::namespaced(as_program(counted).await?, &tenant.namespace);
    let probe = TrainJobRecordSpec {
        train_job: RecordedJob { name: "p".into(), uid: "p".into(), created_at: None },
        runtime_ref: None,
        queue: None,
    };
    let probe = TrainJobRecord::new("probe", probe);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    Ok(async move || of.create(&dry_run, &probe).await.map(|_| ()))
}

/// What the program may do, in a namespace.
async fn as_program(counted: &Counted) -> Result<kube::Client> {
    counted.world.cluster.service_account_client(NAMESPACE, SERVICE_ACCOUNT).await
}

#[tokio::test]
async fn ah5_a_pod_whose_release_is_refused_is_counted_once_and_released_later() -> Result<()> {
    let counted = counted().await?;
    counted
        .test("spoilt", async |tenant| {
            tenant.create("runs", RUNS, nodes(1)).await?;
            let probe = run_held(tenant, "runs", 1).await?.remove(0);
            let denial = Denial::of(tenant, "", "pods", "UPDATE").await?;
            let pods: Api<Pod> = Api::namespaced(as_program(&counted).await?, &tenant.namespace);
            let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
            let nothing = Patch::Merge(json!({"metadata": {"annotations": {"probe": "1"}}}));
            denial
                .holds(async || pods.patch(&probe.name_any(), &dry_run, &nothing).await.map(|_| ()))
                .await?;

            tenant.create("spoilt", COMPLETES, nodes(2)).await?;
            let succeeded = PodCounts { succeeded: 2, ..PodCounts::default() };
            let told = until_ok("its Pods are counted, and the record tells", PATIENCE, || async {
                let status = status(tenant, "spoilt").await?;
                ensure!(status.totals.pods == succeeded, "{status:#?}");
                ensure!(status.settling.len() == 2 && !holds(&status, "Final"), "{status:#?}");
                let name = records(tenant, "spoilt").await?.remove(0).name_any();
                tenant.tells(&name, "ReleaseRefused").await
            })
            .await?;
            ensure!(told.contains(DENIED), "{told}");
            ensure!(tenant.pods_of("spoilt").await?.iter().all(is_held), "one is not held");
            until_ok("the metric tells", PATIENCE, || async {
                let refused = counted.program.metric("trainjob_accounting_refused_pods").await?;
                ensure!(refused >= 2.0, "{refused}");
                Ok(())
            })
            .await?;

            denial.lift().await?;
            released(tenant, "spoilt").await?;
            let status = becomes_final(tenant, "spoilt").await?;
            ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
            Ok(())
        })
        .await
}

/// Two Pods of a job whose record cannot be created are let go. Then the hindrance, which says this, is lifted, and is
/// gone when `probe` succeeds.
async fn lets_go(
    tenant: &Tenant<'_>,
    says: &str,
    lift: impl AsyncFnOnce() -> Result<()>,
    probe: impl AsyncFn() -> kube::Result<()>,
) -> Result<()> {
    tenant.create("unwritable", RUNS, nodes(2)).await?;
    run_held(tenant, "unwritable", 2).await?;
    let told = tenant.tells("unwritable", "RecordUnwritable").await?;
    ensure!(told.contains(says), "{told}");
    tenant.delete("unwritable").await?;
    // Each is held for ten seconds after its own end, so the first may be let go before the second has ended.
    let seen = Mutex::new(BTreeSet::new());
    until_ok("both its Pods were seen ended and held", PATIENCE, || async {
        let pods = tenant.pods_of("unwritable").await?;
        let ended = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Failed") && is_held(pod)
        };
        let mut seen = seen.lock().await;
        seen.extend(pods.iter().filter(ended).map(ResourceExt::name_any));
        ensure!(seen.len() == 2, "only {seen:?}");
        Ok(())
    })
    .await?;
    no_pods(tenant, "unwritable").await?;
    lift().await?;
    // An API server that has looked a quota up keeps to it for half a minute.
    until_ok("a record is no longer refused", PATIENCE, || async { Ok(probe().await?) }).await?;
    let status = becomes_final(tenant, "unwritable").await?;
    ensure!(status.lost.get("RecordUnwritable") == Some(&2), "{status:#?}");
    ensure!(status.totals.pods == PodCounts::default(), "{status:#?}");
    ensure!(!holds(&status, "Exact"), "{status:#?}");
    Ok(())
}

#[tokio::test]
async fn ah2_without_room_for_records_pods_are_let_go_and_told_of_when_there_is() -> Result<()> {
    let counted = counted().await?;
    counted
        .test("quota", async |tenant| {
            let probe = create_record(&counted, tenant).await?;
            no_room(tenant, &probe).await?;
            let quotas: Api<ResourceQuota> =
                Api::namespaced(tenant.client.clone(), &tenant.namespace);
            let lift = async || {
                quotas.delete(QUOTA, &DeleteParams::default()).await?;
                Ok(())
            };
            lets_go(tenant, "exceeded quota", lift, probe).await
        })
        .await
}

#[tokio::test]
async fn ah2_pods_whose_record_cannot_be_written_are_let_go_after_the_limit() -> Result<()> {
    let counted = counted().await?;
    counted
        .test("valve", async |tenant| {
            let denial =
                Denial::of(tenant, "lifecycle.trainjob.dev", "trainjobrecords", "CREATE").await?;
            let probe = create_record(&counted, tenant).await?;
            denial.holds(&probe).await?;
            lets_go(tenant, DENIED, async || denial.lift().await, probe).await?;
            let log = counted.program.log()?;
            let lines = log.lines().filter(|line| {
                line.contains("a Pod is not counted") && line.contains(&tenant.namespace)
            });
            ensure!(lines.count() == 2, "the log has not both receipts");
            Ok(())
        })
        .await
}
