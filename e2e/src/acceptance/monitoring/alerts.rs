//! The alerts in a hurry: which of them fire in the scenario, and which have no reason to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::prometheus::{Prometheus, Series};
use crate::testenv::chart::file_of_chart;
use crate::testenv::yaml;

const FILE: &str = "alerts.yaml";

/// The alerts that the faults of the scenario set off, while programs run.
pub(super) const BY_FAULTS: [&str; 13] = [
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
];
/// Those that fire when all programs have gone.
pub(super) const BY_ABSENCE: [&str; 2] = ["TrainJobOperatorAbsent", "TrainJobWebhookAbsent"];
/// Those that do not fire, and why. That they can is what `e2e/promtool` shows.
const SILENT: [(&str, &str); 6] = [
    ("TrainJobOperatorQueueStalled", "the API server answers quickly, so nothing waits"),
    ("TrainJobTimePaused", "nobody sets the clock of the API server"),
    ("TrainJobTimeUncertain", "there is one API server"),
    ("TrainJobMetricsMissing", "nothing is dropped on the way"),
    ("TrainJobWebhookSlow", "what the webhook looks up is in its cache"),
    ("TrainJobWebhookCertificateExpiring", "the webhook has just made its certificate"),
];
/// What would take minutes even so: a job is unreleased for five minutes before anybody is woken.
const SOONER: [(&str, &str, &str); 1] = [("TrainJobUnreleased", "> 300", "> 5")];
/// How an expression that compares is made one that says what it found: 0 or 1.
const COMPARISONS: [(&str, &str); 3] =
    [("> ", "> bool "), ("< ", "< bool "), ("== 0", "== bool 0")];

/// The rules of the chart, with a second for each minute that an alert waits before it fires. The times that their
/// expressions look back over are the real ones.
pub(super) fn hurried() -> Result<String> {
    let mut rules = file_of_chart(FILE)?.pop().context("no rules")?;
    let mut sooner = 0;
    for rule in alerting_mut(&mut rules) {
        let name = text(rule, "alert")?.to_owned();
        for (field, value) in rule.as_object_mut().into_iter().flatten() {
            let Some(given) = value.as_str() else { continue };
            if field == "for" {
                let minutes = given.strip_suffix('m');
                let minutes = minutes.with_context(|| format!("{name}: for: {given}"))?;
                *value = format!("{minutes}s").into();
            } else if let Some((_, from, to)) =
                SOONER.iter().find(|(of, from, _)| *of == name && given.contains(from))
            {
                *value = given.replace(from, to).into();
                sooner += 1;
            }
        }
    }
    ensure!(sooner == SOONER.len(), "an alert of {SOONER:?} is not what it was");
    Ok(yaml::stream(&[rules]))
}

/// The alerts of the chart by name, each with its expression.
fn expressions() -> Result<BTreeMap<String, String>> {
    let mut rules = file_of_chart(FILE)?.pop().context("no rules")?;
    let rules = alerting_mut(&mut rules);
    rules.map(|rule| Ok((text(rule, "alert")?.into(), text(rule, "expr")?.into()))).collect()
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

/// Sees that all of these have fired, and that what they say now has no gaps.
pub(super) async fn fire(prometheus: &Prometheus, expected: &[&str]) -> Result<()> {
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

/// Sees that every expression can be evaluated, and has something to compare while the programs run, whether or
/// not its alert fires.
pub(super) async fn have_something_to_compare(prometheus: &Prometheus) -> Result<usize> {
    for rule in prometheus.rules().await? {
        ensure!(rule.health == "ok", "{}: {} {}", rule.name, rule.health, rule.last_error);
    }
    let expressions = expressions()?;
    for (name, expression) in &expressions {
        let told =
            COMPARISONS.iter().fold(expression.clone(), |text, (from, to)| text.replace(from, to));
        let found = prometheus.at(&told, None).await.with_context(|| name.clone())?;
        // What is about something that is not there finds nothing while it is there.
        let about_absence = BY_ABSENCE.contains(&name.as_str()) || name == "TrainJobMetricsMissing";
        let has_data = found.iter().any(Series::has_data);
        ensure!(has_data != about_absence, "{name} compares {found:?}: {told}");
    }
    Ok(expressions.len())
}

/// Sees that those have fired that were to, and no others.
pub(super) async fn no_others_fired(prometheus: &Prometheus) -> Result<()> {
    let all: BTreeSet<String> = expressions()?.into_keys().collect();
    let expected: BTreeSet<String> =
        BY_FAULTS.iter().chain(&BY_ABSENCE).map(|name| (*name).to_owned()).collect();
    let silent: BTreeSet<String> = SILENT.iter().map(|(name, _)| (*name).to_owned()).collect();
    let known: BTreeSet<String> = expected.union(&silent).cloned().collect();
    ensure!(
        all == known,
        "alerts of which nothing is said: {:?}",
        all.symmetric_difference(&known)
    );
    let fired = fired(prometheus).await?;
    for (name, reason) in SILENT {
        ensure!(!fired.contains(name), "{name} has fired, but {reason}");
    }
    ensure!(fired == expected, "fired: {fired:?}");
    Ok(())
}
