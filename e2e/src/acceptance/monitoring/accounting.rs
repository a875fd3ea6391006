//! Jobs with GPUs, of two teams: they complete, fail, run out of memory, are suspended and run on. Pods of others cannot be
//! released or counted.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::alerts;
use super::dashboards::{self, GPU_HOURS};
use super::prometheus::{Series, Span};
use super::site::{Site, with};
use crate::testenv::fixtures::{COMPLETES, COMPLETES_AFTER, FAILS, RUNS, runtime, train_job};
use crate::testenv::release::PATIENCE;
use crate::testenv::until::until_ok;

/// A runtime whose Pods run out of memory, and are started once more.
const GREEDY: &str = "greedy";
/// How long a Pod runs that ends by itself.
const LENGTH: &str = "8s";
/// The label by which metrics tell the namespaces of jobs apart.
const JOB_NAMESPACE: &str = "job_namespace";
/// The label by which Kueue knows the queue of a job.
const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// How many records become final: of seven jobs of the teams, and of one that a policy audits. That of a job whose Pod cannot
/// be released stays open.
const FINISHING: usize = 8;
/// The job that is suspended.
const SUSPENDED: &str = "stopped";
/// The jobs without records, by when their Pods are deleted.
const UNWRITABLE: [&str; 2] = ["first", "second"];
/// By how much an increase over a time may be more or less than what a counter has gained, of all of it: Prometheus draws
/// the line on to both ends of the time.
const EXTRAPOLATED: f64 = 0.1;

/// Counters of GPU seconds.
const USED: &str = "trainjob_accounting_resource_seconds_total{resource=\"gpu\"}";
const WASTED: &str = "trainjob_accounting_wasted_gpu_seconds_total";

/// What a record or a counter says, by a label.
type Seconds = BTreeMap<String, f64>;

/// The namespaces.
pub(super) struct Accounting<'a> {
    site: Site<'a>,
    teams: [String; 2],
    /// Where no Pod can be released, and where no record can be created.
    spoilt: [String; 2],
}

impl<'a> Accounting<'a> {
    pub(super) async fn new(site: Site<'a>) -> Result<Self> {
        let namespace = |prefix| site.release.cluster.namespace(prefix);
        let teams = [namespace("vision").await?, namespace("language").await?];
        let spoilt = [namespace("no-releases").await?, namespace("no-records").await?];
        let ends =
            |outcome: &str| json!({COMPLETES_AFTER: LENGTH, "e2e.trainjob.dev/outcome": outcome});
        let restarts = json!({"failurePolicy": {"maxRestarts": 1}});
        let greedy = runtime(GREEDY, &ends("oom"), 1, None);
        let greedy = with(greedy, "/spec/template/spec", &restarts)?;
        let runtimes = [
            runtime(RUNS, &json!({}), 1, None),
            runtime(COMPLETES, &json!({COMPLETES_AFTER: LENGTH}), 1, None),
            runtime(FAILS, &ends("fail"), 1, None),
            greedy,
        ];
        until_ok("runtimes are admitted", PATIENCE, || site.apply("default", &runtimes)).await?;
        Ok(Self { site, teams, spoilt })
    }

    /// Where no Pod can be released, and where no record can be created.
    pub(super) fn spoilt(&self) -> [&str; 2] {
        self.spoilt.each_ref().map(String::as_str)
    }

    /// A job is created while the accounting program does not run.
    pub(super) async fn nobody_counts(&self) -> Result<()> {
        let [team, _] = &self.teams;
        let job = [train_job("uncounted", COMPLETES, &json!({}))];
        until_ok("jobs are admitted", PATIENCE, || self.site.create(team, &job)).await?;
        let expected = ["TrainJobAccountingAbsent", "TrainJobAccountingSkipping"];
        alerts::alerted(self.site.prometheus, &expected).await
    }

    /// All the others, until they have ended.
    pub(super) async fn play(&self, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        let [vision, language] = &self.teams;
        let [no_releases, no_records] = &self.spoilt;
        let queued = [
            gpus("llm-0", COMPLETES, 2),
            gpus("llm-1", COMPLETES, 2),
            gpus("llm-2", COMPLETES, 2),
            gpus("broken", FAILS, 2),
            gpus("greedy", GREEDY, 2),
            gpus("runs", RUNS, 4),
            gpus(SUSPENDED, RUNS, 4),
        ]
        .map(|job| with(job, "/metadata", &json!({"labels": {QUEUE: "gpu"}})));
        let queued = queued.into_iter().collect::<Result<Vec<_>>>()?;
        self.site.create(vision, &queued).await?;
        let small = [0, 1].map(|it| gpus(&format!("small-{it}"), COMPLETES, 1));
        self.site.create(language, &small).await?;
        self.site.create(no_releases, &[gpus("unreleased", COMPLETES, 1)]).await?;
        self.site.create(no_records, &UNWRITABLE.map(|name| gpus(name, RUNS, 1))).await?;
        let [first, second] = UNWRITABLE;
        for (namespace, job) in [(vision, SUSPENDED), (no_records, first), (no_records, second)] {
            self.runs(namespace, job).await?;
        }
        self.site.finds("sum(trainjob_accounting_active_gpus) >= 10").await?;
        let suspend = ["patch", "trainjob", SUSPENDED, "--type=merge", "--patch"];
        let suspend = [&suspend[..], &[r#"{"spec": {"suspend": true}}"#]].concat();
        self.site.kubectl(vision, &suspend).await?;
        self.delete(first).await?;
        tell("jobs with GPUs complete, fail, run out of memory, are suspended and run on");
        Ok(())
    }

    /// Waits until a job has a Pod that runs.
    async fn runs(&self, namespace: &str, job: &str) -> Result<()> {
        let label = format!("lifecycle.trainjob.dev/trainjob-name={job}");
        let phase = "jsonpath={.items[*].status.phase}";
        until_ok(format!("{job} runs"), PATIENCE, || async {
            let phase =
                self.site.kubectl(namespace, &["get", "pods", "-l", &label, "-o", phase]).await?;
            ensure!(phase == "Running", "its Pods: {phase:?}");
            Ok(())
        })
        .await
    }

    /// Deletes a job that has no record: its Pod is held.
    async fn delete(&self, job: &str) -> Result<()> {
        let [_, no_records] = &self.spoilt;
        self.site.kubectl(no_records, &["delete", "trainjob", job, "--wait=false"]).await?;
        Ok(())
    }

    /// Holds another Pod, which is seen for as long as the limit is.
    pub(super) async fn holds_another(&self) -> Result<()> {
        let [_, second] = UNWRITABLE;
        self.delete(second).await?;
        // The one before it was held for longer.
        self.site.finds("max(trainjob_accounting_held_longest_seconds) > 2 < 10").await
    }

    /// Waits until all is counted that ends, and sees that counters say exactly what records do.
    pub(super) async fn settles(&self) -> Result<()> {
        until_ok("counters say what records do", PATIENCE, || async {
            let records = self.records().await?;
            let finals = records.iter().filter(|it| is_final(it)).count();
            ensure!(finals == FINISHING, "{finals} records are final");
            let (used, in_records) =
                (self.counted(JOB_NAMESPACE, USED).await?, used_by_namespace(&records));
            ensure!(used == in_records, "used: {used:?}, in records: {in_records:?}");
            let (wasted, in_records) = (self.counted("reason", WASTED).await?, wasted(&records));
            ensure!(wasted == in_records, "wasted: {wasted:?}, in records: {in_records:?}");
            let expected = ["Error", "OOMKilled"];
            ensure!(wasted.keys().eq(expected), "wasted by {:?}", wasted.keys());
            Ok(())
        })
        .await
    }

    /// What counters say that are not zero, by a label.
    async fn counted(&self, label: &str, counters: &str) -> Result<Seconds> {
        let query = format!("sum by ({label}) ({counters}) > 0");
        Ok(by(label, self.site.prometheus.at(&query, None).await?))
    }

    async fn records(&self) -> Result<Vec<Value>> {
        let get = ["get", "tjr", "--all-namespaces", "-o", "json"];
        let mut list: Value =
            serde_json::from_str(&self.site.release.tools.kubectl(&get, None).await?)?;
        let items = list.get_mut("items").context("no list")?;
        Ok(serde_json::from_value(items.take())?)
    }

    /// Sees that panels agree with the records at the end of a time, but for what increases are off by.
    pub(super) async fn panels_agree(&self, span: Span) -> Result<Vec<String>> {
        let records = self.records().await?;
        let mut lines = Vec::new();
        for (title, label, seconds) in [
            ("By namespace", JOB_NAMESPACE, used_by_namespace(&records)),
            ("Wasted, by reason", "reason", wasted(&records)),
        ] {
            let shown = dashboards::of_panel(self.site.prometheus, (GPU_HOURS, title), span);
            let mut shown = by(label, shown.await?);
            shown.retain(|_, hours| *hours > 0.0);
            for (value, seconds) in &seconds {
                let hours = shown.remove(value).with_context(|| format!("{title}: no {value}"))?;
                let off = hours * 3_600.0 / seconds - 1.0;
                ensure!(off.abs() < EXTRAPOLATED, "{title}: {value}: {hours} h, {seconds} s");
                lines.push(format!(
                    "{title}: {value}: {:.1} GPU seconds, of {seconds} in records ({:+.1} %)",
                    hours * 3_600.0,
                    off * 100.0
                ));
            }
            ensure!(shown.is_empty(), "{title}: in no record: {shown:?}");
        }
        Ok(lines)
    }
}

/// A job of one Pod with so many GPUs.
fn gpus(name: &str, runtime: &str, count: u32) -> Value {
    let limits = json!({"limits": {"nvidia.com/gpu": count}});
    train_job(name, runtime, &json!({"trainer": {"resourcesPerNode": limits}}))
}

fn is_final(record: &Value) -> bool {
    let conditions = record.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .is_some_and(|all| all.iter().any(|it| it["type"] == "Final" && it["status"] == "True"))
}

/// GPU seconds in records, by namespace.
fn used_by_namespace(records: &[Value]) -> Seconds {
    let mut sum = Seconds::new();
    for record in records {
        let seconds = record.pointer("/status/totals/gpuSeconds").and_then(Value::as_f64);
        let namespace = record.pointer("/metadata/namespace").and_then(Value::as_str);
        *sum.entry(namespace.unwrap_or_default().to_owned()).or_default() +=
            seconds.unwrap_or_default();
    }
    sum.retain(|_, seconds| *seconds > 0.0);
    sum
}

/// GPU seconds that were wasted in records that are final, by cause.
fn wasted(records: &[Value]) -> Seconds {
    let mut sum = Seconds::new();
    for record in records.iter().filter(|it| is_final(it)) {
        let causes = record.pointer("/status/totals/wastedByCause").and_then(Value::as_object);
        for (cause, seconds) in causes.into_iter().flatten() {
            *sum.entry(cause.clone()).or_default() += seconds.as_f64().unwrap_or_default();
        }
    }
    sum.retain(|_, seconds| *seconds > 0.0);
    sum
}

/// The last values, by a label.
fn by(label: &str, found: Vec<Series>) -> Seconds {
    let last = |mut series: Series| {
        Some((series.labels.remove(label).unwrap_or_default(), series.points.last()?.1))
    };
    found.into_iter().filter_map(last).collect()
}
