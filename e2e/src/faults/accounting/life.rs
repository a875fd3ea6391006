//! The lives of TrainJobs whose Pods are counted that faults are put into.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use invariants::History;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};
use trainjob_api::conditions;
use trainjob_api::lifecycle::v1alpha1::ACCOUNTING_FINALIZER;

use super::ground::{Ground, RESTARTS};
use super::judge::{Judgement, Lived};
use super::slot::{PATIENCE, Slot};
use crate::faults::case::Case;
use crate::faults::disturb::{disturbed, made};
use crate::faults::left;
use crate::faults::life::{Life, Player};
use crate::faults::proxy::{Proxy, Scope};
use crate::faults::scenario::Scenario;
use crate::testenv::accounting::{become_older, holds, records};
use crate::testenv::fixtures::{COMPLETES, RUNS, Tenant};
use crate::testenv::until::until_ok;

/// The TrainJob.
const JOB: &str = "job";
/// Seconds of a deadline that Pods reach running on a busy machine.
const DEADLINE: u32 = 30;
/// Who tells events.
const REPORTER: &str = "trainjob-accounting";

/// Lives one life, in a namespace and behind a proxy of its own.
pub(in crate::faults) async fn live(
    ground: &Ground,
    scenario: Scenario,
    case: Option<&Case>,
) -> Result<Life> {
    let observes = scenario == Scenario::ObservedDelete;
    let testbed = ground.testbed(if observes { "Observe" } else { "Exact" }).await?;
    let tenant = testbed.world.tenant(scenario.name()).await?;
    let scope = Scope::Namespace(tenant.namespace.clone());
    let proxy = Proxy::start(&testbed.world.cluster, scope).await?;
    let slot = Slot::new(testbed, &proxy)?;
    let is_killed = case.is_some_and(|case| case.blows().any(|blow| blow.fault.kills()));
    // Of Pods without a finalizer that go while no program runs, nobody knows.
    let needs_record = !(observes && is_killed);
    let player = Playing { scenario, tenant: &tenant, slot: &slot, needs_record };
    let (end, struck) = disturbed(&player, &proxy, case).await;
    let (calls, requests) = (proxy.calls(), proxy.requests());
    let counted = testbed.recorder.history(&[&tenant.namespace], &calls).await?;
    let lived = Lived { history: &counted, case, observes, needs_record };
    let Judgement { broken, receipt } = lived.judge();
    let is_lost = receipt.is_none();
    let pods: BTreeSet<_> = counted.pods.iter().map(|pod| &pod.uid).collect();
    let receipt = receipt.filter(|_| most_pods(scenario).is_none_or(|most| pods.len() <= most));
    let life = Life {
        calls: made(&calls, &requests),
        history: History { requests, ..History::default() },
        left: left::objects(&tenant).await?.iter().map(|it| without_chance(it)).collect(),
        told: told(&tenant, is_lost).await?,
        receipt,
        broken,
        struck,
        trouble: end.err().map(|error| format!("{error:#}")),
    };
    let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
    namespaces.delete(&tenant.namespace, &DeleteParams::background()).await?;
    Ok(life)
}

/// More Pods than these make it another life, whose record says something else. Who deletes a TrainJob that runs deletes its Jobs
/// before their Pods; a Job controller that is told of the Pods first makes others, which go, too.
const fn most_pods(scenario: Scenario) -> Option<usize> {
    match scenario {
        Scenario::CountedDelete | Scenario::ObservedDelete => Some(2),
        Scenario::CountedSuspend => Some(4),
        _ => None,
    }
}

/// The name of a Pod, less what chance adds to it.
fn without_chance(object: &str) -> String {
    match (object.starts_with("pod "), object.rsplit_once('-')) {
        (true, Some((name, _))) => name.to_owned(),
        _ => object.to_owned(),
    }
}

/// The reasons of the program's events. That Pods are lost is what was meant to happen where some are.
async fn told(tenant: &Tenant<'_>, is_lost: bool) -> Result<BTreeSet<String>> {
    let events = tenant.events.list(&ListParams::default()).await?.items;
    let own = events.into_iter().filter(|it| it.reporting_controller.as_deref() == Some(REPORTER));
    let reasons = own.filter_map(|event| event.reason);
    Ok(reasons.filter(|reason| !(is_lost && reason == "PodsLost")).collect())
}

/// A life that is being played.
struct Playing<'a> {
    scenario: Scenario,
    tenant: &'a Tenant<'a>,
    slot: &'a Slot<'a>,
    needs_record: bool,
}

impl Playing<'_> {
    async fn create(&self, runtime: &str, count: u32, more: &Value) -> Result<()> {
        let gpus = json!({"limits": {"nvidia.com/gpu": "1"}});
        let mut spec = json!({"trainer": {"numNodes": count, "resourcesPerNode": gpus}});
        let fields = spec.as_object_mut().context("a spec is a map")?;
        fields.extend(more.as_object().cloned().unwrap_or_default());
        self.tenant.create(JOB, runtime, spec).await?;
        Ok(())
    }

    async fn runs(&self) -> Result<Vec<Pod>> {
        until_ok("its Pods run", PATIENCE, || async {
            let pods = self.tenant.pods_of(JOB).await?;
            let runs = |pod: &Pod| pod.status.as_ref()?.phase.clone().filter(|it| it == "Running");
            let running: Vec<_> = pods.into_iter().filter(|pod| runs(pod).is_some()).collect();
            ensure!(running.len() == 2, "{} do", running.len());
            Ok(running)
        })
        .await
    }

    /// Suspends it, lets its Pods go, and resumes it.
    async fn suspend_and_resume(&self) -> Result<()> {
        become_older(&self.runs().await?).await?;
        self.tenant.patch(JOB, &json!({"spec": {"suspend": true}})).await?;
        self.becomes(conditions::SUSPENDED).await?;
        // A program that starts when the TrainJob has gone cannot know that it was suspended.
        until_ok("its Pods are gone", PATIENCE, || async {
            let pods = self.tenant.pods_of(JOB).await?.len();
            ensure!(pods == 0, "{pods} are there");
            Ok(())
        })
        .await?;
        self.tenant.patch(JOB, &json!({"spec": {"suspend": false}})).await?;
        self.runs().await?;
        Ok(())
    }

    async fn becomes(&self, kind: &str) -> Result<()> {
        until_ok(format!("it is {kind}"), PATIENCE, || async {
            let job = self.tenant.jobs.get(JOB).await?;
            let status = job.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            ensure!(conditions::find_true(&conditions, kind).is_some(), "{conditions:?}");
            Ok(())
        })
        .await
    }

    async fn gone(&self) -> Result<()> {
        until_ok("it is gone", PATIENCE, || async {
            ensure!(self.tenant.jobs.get_opt(JOB).await?.is_none(), "it is there");
            Ok(())
        })
        .await
    }

    /// Sees that what goes with its Pods has gone, which takes the garbage collector a moment longer.
    async fn leaves_what_stays(&self) -> Result<()> {
        let left = left::objects(self.tenant).await?;
        let job_set = left.iter().find(|it| it.starts_with("jobset "));
        ensure!(!self.goes() || job_set.is_none(), "its JobSet is there");
        let is_gone = self.tenant.jobs.get_opt(JOB).await?.is_none();
        ensure!(!is_gone || left.is_empty(), "{left:?} are there");
        Ok(())
    }

    /// Whether its Pods go in the end.
    fn goes(&self) -> bool {
        let stays = [Scenario::CountedComplete, Scenario::CountedRestart];
        !stays.contains(&self.scenario)
    }
}

impl Player for Playing<'_> {
    async fn begin(&self) -> Result<()> {
        Ok(())
    }

    async fn launch(&self) -> Result<()> {
        self.slot.launch().await
    }

    async fn launch_second(&self) -> Result<()> {
        self.slot.launch_second().await
    }

    fn kill(&self) {
        self.slot.kill();
    }

    async fn ready(&self) -> Result<()> {
        self.slot.ready().await
    }

    async fn play(&self) -> Result<()> {
        self.ready().await?;
        match self.scenario {
            Scenario::CountedComplete => {
                self.create(COMPLETES, 2, &json!({})).await?;
                self.becomes(conditions::COMPLETE).await
            }
            Scenario::CountedRestart => {
                self.create(RESTARTS, 1, &json!({})).await?;
                self.becomes(conditions::FAILED).await
            }
            Scenario::CountedTtl => {
                self.create(COMPLETES, 2, &json!({"ttlSecondsAfterFinished": 1})).await?;
                self.gone().await
            }
            Scenario::CountedSuspend => {
                self.create(RUNS, 2, &json!({})).await?;
                self.suspend_and_resume().await?;
                self.tenant.delete(JOB).await?;
                self.gone().await
            }
            Scenario::CountedDeadline => {
                self.create(RUNS, 2, &json!({"activeDeadlineSeconds": DEADLINE})).await?;
                self.runs().await?;
                self.becomes(conditions::FAILED).await
            }
            Scenario::CountedDelete | Scenario::ObservedDelete => {
                self.create(RUNS, 2, &json!({})).await?;
                self.runs().await?;
                self.tenant.delete(JOB).await?;
                self.gone().await
            }
            other => bail!("{other} is not a life of the accounting program"),
        }
    }

    async fn ended(&self) -> Result<()> {
        until_ok("all are counted and nothing is held", PATIENCE, || async {
            let pods = self.tenant.pods_of(JOB).await?;
            let is_held = |it: &String| it == ACCOUNTING_FINALIZER;
            let held = pods.iter().filter(|pod| pod.finalizers().iter().any(is_held)).count();
            ensure!(held == 0, "{held} Pods are held");
            ensure!(!self.goes() || pods.is_empty(), "{} Pods are there", pods.len());
            self.leaves_what_stays().await?;
            let records = records(self.tenant, JOB).await?;
            ensure!(!self.needs_record || !records.is_empty(), "there is no record");
            for record in records {
                let status = record.status.unwrap_or_default();
                ensure!(holds(&status, "Final"), "{status:?}");
            }
            Ok(())
        })
        .await
    }

    fn still_runs(&self) -> Result<()> {
        self.slot.still_runs()
    }
}
