//! The receipts of the jobs: what the accounting program has counted, beside what the demo has seen of their Pods.
//!
//! The jobs and their Pods are gone by now; their records have stayed. The demo adds up for itself, from the Pods that its
//! watch has delivered, and reads the records as JSON: nothing here knows how the program counts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use invariants::accounting::Terms;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::demo::model::Model;
use crate::demo::scenario::{Outcome, Scenario};
use crate::demo::setup::Setup;
use crate::testenv::until::until_ok;

/// The finalizer that holds a Pod until it is counted.
const FINALIZER: &str = "lifecycle.trainjob.dev/accounting";
/// How long the program may take for the last record on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is said of the receipts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipts {
    /// Their lines.
    pub lines: Vec<String>,
    /// Whether all are as the demo has seen it, no Pod is held, and the invariants of accounting hold.
    pub met: bool,
}

/// What one job used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Used {
    outcome: String,
    pods: i64,
    gpu_seconds: i64,
}

/// Waits until the record of every job is final, and compares it with what was seen.
pub async fn compare(setup: &Setup, model: &Model) -> Result<Receipts> {
    let Setup { client, namespace, release, .. } = setup;
    let seen: Vec<_> =
        model.scenarios().map(|(it, scenario)| (it.job, measured(scenario))).collect();
    let records = until_ok("every record is final", PATIENCE, || async {
        let records = records(client, namespace).await?;
        let is_final =
            |job: &str| records.iter().any(|it| name_of(it) == job && holds(it, "Final"));
        let open: Vec<_> = seen.iter().map(|(job, _)| *job).filter(|job| !is_final(job)).collect();
        ensure!(open.is_empty(), "not that of {}", open.join(", "));
        Ok(records)
    })
    .await?;
    let table = release.tools.kubectl(&["get", "tjr", "--namespace", namespace], None).await?;
    let mut lines = vec![
        String::new(),
        "Receipts: the jobs are gone, their records stay".to_owned(),
        "  $ kubectl get tjr".to_owned(),
    ];
    lines.extend(table.lines().map(|line| format!("  {line}")));
    lines.push(
        "Compared, to the second, with what the demo measured from the Pods that it saw".to_owned(),
    );
    let mut met = true;
    for (job, seen) in &seen {
        let of_job: Vec<_> = records.iter().filter(|record| name_of(record) == *job).collect();
        let (line, agrees) = line(job, &of_job, seen);
        lines.push(line);
        met &= agrees;
    }
    let held = held(client).await?;
    let names = if held.is_empty() { "none".to_owned() } else { held.join(", ") };
    lines.push(format!("Pods that still wait to be counted: {names}."));
    met &= held.is_empty();
    let judged = setup.accounting_recorder.judge(&[namespace], &[], &Terms::default()).await;
    lines.push(match &judged {
        Ok(()) => "The invariants of accounting hold (docs/accounting.md, 10).".to_owned(),
        Err(broken) => format!("The invariants of accounting do NOT hold: {broken:#}"),
    });
    Ok(Receipts { lines, met: met && judged.is_ok() })
}

/// What was seen of a job; an error says why it cannot be told.
fn measured(scenario: &Scenario) -> Result<Used, String> {
    let finish = scenario.finished.as_ref().ok_or("its end was not seen")?;
    let outcome = match &finish.outcome {
        Outcome::Complete => "Complete",
        Outcome::DeadlineExceeded => "DeadlineExceeded",
        Outcome::Failed(_) => "Failed",
    };
    let mut gpu_seconds = 0;
    for (name, pod) in &scenario.all_pods {
        let of_pod = pod.gpu_seconds().ok_or_else(|| format!("the end of {name} was not seen"))?;
        gpu_seconds += of_pod;
    }
    let pods = i64::try_from(scenario.all_pods.len()).unwrap_or(i64::MAX);
    Ok(Used { outcome: outcome.to_owned(), pods, gpu_seconds })
}

/// What a record says.
fn counted(record: &Value) -> Option<Used> {
    let number = |name: &str| record.pointer(&format!("/status/totals/{name}"))?.as_i64();
    let ended = ["succeeded", "failed", "deleted"].map(|class| number(&format!("pods/{class}")));
    Some(Used {
        outcome: record.pointer("/status/outcome")?.as_str()?.to_owned(),
        pods: ended.into_iter().sum::<Option<i64>>()?,
        gpu_seconds: number("gpuSeconds")?,
    })
}

/// The line about a job that has these records, and whether they are as they should be.
fn line(job: &str, records: &[&Value], seen: &Result<Used, String>) -> (String, bool) {
    let counted = match records {
        [record] if !holds(record, "Exact") => Err("its record is not exact".to_owned()),
        [record] => counted(record).ok_or_else(|| "its record has no totals".to_owned()),
        records => Err(format!("it has {} records", records.len())),
    };
    let told = |used: &Used| {
        format!("{}, Pods {}, GPU-seconds {}", used.outcome, used.pods, used.gpu_seconds)
    };
    let text = match (&counted, seen) {
        (Ok(counted), Ok(seen)) if counted == seen => {
            return (format!("  met      {job:<12}  {}", told(counted)), true);
        }
        (Ok(counted), Ok(seen)) => format!("counted: {}; measured: {}", told(counted), told(seen)),
        (Err(why), _) | (_, Err(why)) => why.clone(),
    };
    (format!("  NOT MET  {job:<12}  {text}"), false)
}

async fn records(client: &Client, namespace: &str) -> Result<Vec<Value>> {
    let kind = GroupVersionKind::gvk("lifecycle.trainjob.dev", "v1alpha1", "TrainJobRecord");
    let resource = ApiResource::from_gvk_with_plural(&kind, "trainjobrecords");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let records = api.list(&ListParams::default()).await?;
    Ok(records.items.into_iter().map(|record| record.data).collect())
}

/// The Pods of all namespaces that have the finalizer.
async fn held(client: &Client) -> Result<Vec<String>> {
    let api: Api<Pod> = Api::all(client.clone());
    let pods = api.list_metadata(&ListParams::default()).await.context("cannot list Pods")?;
    let is_held = |pod: &&_| ResourceExt::finalizers(*pod).iter().any(|it| it == FINALIZER);
    Ok(pods.items.iter().filter(is_held).map(ResourceExt::name_any).collect())
}

fn name_of(record: &Value) -> &str {
    record.pointer("/spec/trainJob/name").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a condition of a record is true.
fn holds(record: &Value, kind: &str) -> bool {
    let conditions = record.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| it["type"] == kind && it["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::demo::seen::{Change, PodPhase, PodState};
    use crate::demo::testing::{at, job};

    fn pod(scenario: &mut Scenario, name: &str, ended_at: Option<f64>) {
        let phase = PodPhase::Ended;
        let (bound_at, ended_at) = (Some(at(1.9)), ended_at.map(at));
        let state = PodState { phase, gpus: 4, bound_at, ended_at };
        scenario.see(at(20.0), &Change::Pod(name.to_owned(), state));
        scenario.see(at(20.0), &Change::PodGone(name.to_owned()));
    }

    fn record(exact: &str, gpu_seconds: i64) -> Value {
        json!({"status": {
            "outcome": "DeadlineExceeded",
            "totals": {"gpuSeconds": gpu_seconds, "pods": {"active": 0, "succeeded": 0, "failed": 1, "deleted": 1}},
            "conditions": [{"type": "Exact", "status": exact}],
        }})
    }

    #[test]
    fn a_record_is_met_only_if_it_is_exact_and_says_what_was_measured() {
        let mut scenario = Scenario::default();
        scenario.see(at(10.0), &job(|job| job.finish("Failed", "DeadlineExceeded", 10)));
        pod(&mut scenario, "a", Some(11.1));
        pod(&mut scenario, "b", Some(12.1));
        let seen = measured(&scenario);
        let (good, inexact, wrong) = (record("True", 84), record("False", 84), record("True", 83));
        let used = "DeadlineExceeded, Pods 2, GPU-seconds";
        for (records, expected) in [
            (vec![&good], format!("  met      deadline      {used} 84")),
            (vec![], "  NOT MET  deadline      it has 0 records".to_owned()),
            (vec![&good, &good], "  NOT MET  deadline      it has 2 records".to_owned()),
            (vec![&inexact], "  NOT MET  deadline      its record is not exact".to_owned()),
            (
                vec![&wrong],
                format!("  NOT MET  deadline      counted: {used} 83; measured: {used} 84"),
            ),
        ] {
            let met = expected.starts_with("  met");
            assert_eq!(line("deadline", &records, &seen), (expected, met));
        }
    }

    #[test]
    fn a_pod_whose_end_was_not_seen_is_told_of_and_not_met() {
        let mut scenario = Scenario::default();
        scenario.see(at(10.0), &job(|job| job.finish("Failed", "DeadlineExceeded", 10)));
        pod(&mut scenario, "a", None);
        let expected = "  NOT MET  deadline      the end of a was not seen".to_owned();
        assert_eq!(
            line("deadline", &[&record("True", 84)], &measured(&scenario)),
            (expected, false)
        );
    }
}
