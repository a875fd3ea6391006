//! The alerts in a hurry: which of them fire in a scenario, and which have no reason to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::prometheus::{Prometheus, Series};
use crate::testenv::chart::file_of_chart;
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// Files of alerts, and what a scenario makes of them.
pub(super) struct Suite {
    /// The files in the chart.
    files: &'static [&'static str],
    /// The alerts that the faults of the scenario set off, while programs run.
    pub(super) by_faults: &'static [&'static str],
    /// Those that fire when a program is not there.
    pub(super) by_absence: &'static [&'static str],
    /// Those that do not fire, and why. That they can is what `e2e/promtool` shows.
    silent: &'static [(&'static str, &'static str)],
    /// What would take minutes even so.
    sooner: &'static [(&'static str, &'static str, &'static str)],
}

/// The alerts about operator and webhook.
pub(super) const OPERATOR: Suite = Suite {
    files: &["alerts.yaml"],
    by_faults: &[
        "TrainJobUnreleased",
        "TrainJobReleaseFailing",
        "TrainJobReleaseBlocked",
        "TrainJobDeadlineOverdue",
        "TrainJobDeadlineLate",
        "TrainJobCleanupOverdue",
        "TrainJobCleanupLate",
        "TrainJobCleanupForbidden",
        "TrainJobCleanupFailing",
        "TrainJobOperatorNoLeader",
        "TrainJobOperatorReconcileErrors",
        "TrainJobWatchFailing",
        "TrainJobWebhookFailing",
    ],
    by_absence: &["TrainJobOperatorAbsent", "TrainJobWebhookAbsent"],
    silent: &[
        ("TrainJobOperatorQueueStalled", "the API server answers quickly, so nothing waits"),
        ("TrainJobTimePaused", "nobody sets the clock of the API server"),
        ("TrainJobTimeUncertain", "there is one API server"),
        (MISSING, "nothing is dropped on the way"),
        ("TrainJobWebhookUnavailable", "the webhook may read namespaces"),
        ("TrainJobWebhookSlow", "what the webhook looks up is in its cache"),
        ("TrainJobWebhookCertificateExpiring", "the webhook has just made its certificate"),
    ],
    // A job is unreleased for five minutes before anybody is woken.
    sooner: &[("TrainJobUnreleased", "> 300", "> 5")],
};

/// Those about the accounting program and the retention engine.
pub(super) const COMPANIONS: Suite = Suite {
    files: &["accounting-alerts.yaml", "retention-alerts.yaml"],
    by_faults: &[
        "TrainJobAccountingHolding",
        "TrainJobAccountingRefused",
        "TrainJobAccountingUnwritable",
        "TrainJobAccountingLosing",
        "TrainJobAccountingSkipping",
        "RetentionTripped",
        "RetentionForbidden",
        "RetentionPolicyNotReady",
        "RetentionFailing",
        "RetentionRecreateLoop",
    ],
    by_absence: &["TrainJobAccountingAbsent", "RetentionAbsent"],
    silent: &[
        ("RetentionNoLeader", "the only replica leads at once"),
        ("RetentionLate", "nothing is due for ten minutes"),
        ("RetentionClockSuspect", "nobody sets the clock of the API server"),
        ("RetentionGuarded", "no guard is waited for"),
        ("RetentionHeldLong", "the hold has just begun"),
        ("RetentionStuckTerminating", "nothing is terminating for ten minutes"),
    ],
    // A Pod is held for a minute before anybody is woken.
    sooner: &[("TrainJobAccountingHolding", "> 60", "> 5")],
};

/// Longer than any alert waits here, after the faults that it waits for.
const ALERTED: Duration = Duration::from_mins(3);
/// It is about metrics that are not there.
const MISSING: &str = "TrainJobMetricsMissing";
/// How an expression that compares is made one that says what it found: 0 or 1.
const COMPARISONS: [(&str, &str); 3] =
    [("> ", "> bool "), ("< ", "< bool "), ("== 0", "== bool 0")];
/// What follows is a condition, which may hold, of what is compared before.
const CONDITION: &str = "unless on (cluster, namespace) (";

impl Suite {
    /// The rules of the chart, with a second for each minute that an alert waits before it fires. The times that their
    /// expressions look back over are the real ones.
    pub(super) fn hurried(&self) -> Result<String> {
        let mut rules = self.rules()?;
        let mut sooner = 0;
        for rule in alerting_mut(&mut rules) {
            let name = text(rule, "alert")?.to_owned();
            for (field, value) in rule.as_object_mut().into_iter().flatten() {
                let Some(given) = value.as_str() else { continue };
                if field == "for" {
                    let minutes = minutes(given);
                    let minutes = minutes.with_context(|| format!("{name}: for: {given}"))?;
                    *value = format!("{minutes}s").into();
                } else if let Some((_, from, to)) =
                    self.sooner.iter().find(|(of, from, _)| *of == name && given.contains(from))
                {
                    *value = given.replace(from, to).into();
                    sooner += 1;
                }
            }
        }
        ensure!(sooner == self.sooner.len(), "an alert of {:?} is not what it was", self.sooner);
        Ok(yaml::stream(&[rules]))
    }

    /// The alerts of the chart by name, each with its expression.
    fn expressions(&self) -> Result<BTreeMap<String, String>> {
        let mut rules = self.rules()?;
        let rules = alerting_mut(&mut rules);
        rules.map(|rule| Ok((text(rule, "alert")?.into(), text(rule, "expr")?.into()))).collect()
    }

    /// All groups of the files, as one file.
    fn rules(&self) -> Result<Value> {
        let mut groups = Vec::new();
        for file in self.files {
            let rules = file_of_chart(file)?.pop().context("no rules")?;
            let of_file = rules.get("groups").and_then(Value::as_array);
            groups.extend(of_file.context("no groups")?.iter().cloned());
        }
        Ok(json!({"groups": groups}))
    }

    /// Sees that every expression can be evaluated, and has something to compare while the programs run, whether or
    /// not its alert fires.
    pub(super) async fn have_something_to_compare(&self, prometheus: &Prometheus) -> Result<usize> {
        for rule in prometheus.rules().await? {
            ensure!(rule.health == "ok", "{}: {} {}", rule.name, rule.health, rule.last_error);
        }
        let expressions = self.expressions()?;
        for (name, expression) in &expressions {
            let compared = expression.split(CONDITION).next().unwrap_or_default().to_owned();
            let told = COMPARISONS.iter().fold(compared, |text, (from, to)| text.replace(from, to));
            let found = prometheus.at(&told, None).await.with_context(|| name.clone())?;
            // What is about something that is not there finds nothing while it is there.
            let about_absence = self.by_absence.contains(&name.as_str()) || name == MISSING;
            let has_data = found.iter().any(Series::has_data);
            ensure!(has_data != about_absence, "{name} compares {found:?}: {told}");
        }
        Ok(expressions.len())
    }

    /// Sees that those have fired that were to, and no others.
    pub(super) async fn no_others_fired(&self, prometheus: &Prometheus) -> Result<()> {
        let all: BTreeSet<String> = self.expressions()?.into_keys().collect();
        let expected: BTreeSet<String> =
            self.by_faults.iter().chain(self.by_absence).map(|name| (*name).to_owned()).collect();
        let silent: BTreeSet<String> =
            self.silent.iter().map(|(name, _)| (*name).to_owned()).collect();
        let known: BTreeSet<String> = expected.union(&silent).cloned().collect();
        ensure!(
            all == known,
            "alerts of which nothing is said: {:?}",
            all.symmetric_difference(&known)
        );
        let fired = fired(prometheus).await?;
        for (name, reason) in self.silent {
            ensure!(!fired.contains(*name), "{name} has fired, but {reason}");
        }
        ensure!(fired == expected, "fired: {fired:?}");
        Ok(())
    }
}

/// How many minutes an alert waits.
fn minutes(given: &str) -> Option<u32> {
    match given.strip_suffix('d') {
        Some(days) => Some(days.parse::<u32>().ok()? * 24 * 60),
        None => given.strip_suffix('m')?.parse().ok(),
    }
}

fn alerting_mut(rules: &mut Value) -> impl Iterator<Item = &mut Value> {
    let groups = rules.get_mut("groups").and_then(Value::as_array_mut);
    groups.into_iter().flatten().filter_map(rules_of).flatten()
}

fn rules_of(group: &mut Value) -> Option<&mut Vec<Value>> {
    group.get_mut("rules").and_then(Value::as_array_mut)
}

fn text<'a>(rule: &'a Value, field: &str) -> Result<&'a str> {
    rule.get(field).and_then(Value::as_str).with_context(|| format!("no {field} in {rule}"))
}

/// The names of all alerts that have fired until now.
pub(super) async fn fired(prometheus: &Prometheus) -> Result<BTreeSet<String>> {
    let query = "count by (alertname) (max_over_time(ALERTS{alertstate=\"firing\"}[1h]))";
    let found = prometheus.at(query, None).await?;
    Ok(found.into_iter().filter_map(|mut series| series.labels.remove("alertname")).collect())
}

/// Waits until all of these have fired.
pub(super) async fn alerted(prometheus: &Prometheus, expected: &[&str]) -> Result<()> {
    let what = format!("alerts fire: {}", expected.join(", "));
    until_ok(what, ALERTED, || fire(prometheus, expected)).await
}

/// Sees that all of these have fired, and that what they say now has no gaps.
async fn fire(prometheus: &Prometheus, expected: &[&str]) -> Result<()> {
    for alert in prometheus.alerts().await?.iter().filter(|alert| alert.state == "firing") {
        for (name, said) in &alert.annotations {
            let gap = ["<no value>", "<error", "{{"].iter().find(|gap| said.contains(**gap));
            ensure!(gap.is_none(), "{:?}: {name}: {said}", alert.labels);
        }
    }
    let fired = fired(prometheus).await?;
    let missing: Vec<_> = expected.iter().filter(|name| !fired.contains(**name)).collect();
    ensure!(missing.is_empty(), "not yet: {missing:?}");
    Ok(())
}
