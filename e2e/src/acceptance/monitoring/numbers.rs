//! The numbers of the alerts, which are values of the chart.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::ALERTS;
use crate::testenv::chart::CHART;
use crate::testenv::release::{NAMESPACE, Release};
use crate::testenv::{workspace, yaml};

/// Where the values have them.
const ALERTS_OF_VALUES: &str = "/metrics/prometheusRule/alerts";
/// With all programs, and so with all alerts.
const ALL: &str = "metrics.prometheusRule.enabled=true,retention.enabled=true,accounting.program=true,\
                   retention.targets[0].apiGroup=batch,retention.targets[0].kind=Job,\
                   retention.targets[0].resource=jobs";
/// Another bound of the buckets than those of the objectives.
const OTHER_OBJECTIVE: u32 = 120;
/// Others than any default has.
const FIRST_OTHER: u32 = 1_001;

/// Sees that the chart's rules are those of its files by default, and that each value changes a number of its own alert. Returns
/// how many values there are.
pub(super) async fn check(release: &Release, promtool: &Path, folder: &Path) -> Result<usize> {
    let mut by_default = rules(release, &json!({})).await?;
    let mut of_files = Vec::new();
    for file in ALERTS {
        let document = yaml::documents(&workspace::read(file)?)?.pop().context("no rules")?;
        of_files.extend(rules_of(&document));
    }
    for rules in [&mut by_default, &mut of_files] {
        rules.sort_by_key(name);
    }
    ensure!(by_default == of_files, "the chart changes rules by default");

    let values = workspace::read(&format!("{CHART}/values.yaml"))?;
    let values = yaml::documents(&values)?.pop().context("no values")?;
    let numbers = values.pointer(ALERTS_OF_VALUES).and_then(Value::as_object);
    let numbers = numbers.context("no numbers of alerts")?;
    let (others, count) = others(numbers)?;
    let changed = rules(release, &others).await?;
    for rule in &changed {
        let alert = name(rule);
        let others = others.get(&alert).with_context(|| format!("{alert} has no numbers"))?;
        for (number, value) in others.as_object().into_iter().flatten() {
            let place = if number == "for" { rule.get("for") } else { rule.get("expr") };
            let place = place.and_then(Value::as_str).unwrap_or_default();
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            ensure!(place.contains(&value), "{alert}: {number} is not {value} in {place}");
        }
    }
    ensure!(changed.len() == numbers.len(), "{} alerts, {}", changed.len(), numbers.len());

    let file = folder.join("other-numbers.yaml");
    fs::write(&file, json!({"groups": [{"name": "all", "rules": changed}]}).to_string())?;
    let arguments = [PathBuf::from("check"), PathBuf::from("rules"), file.clone()];
    release.tools.program(promtool, &arguments).await?;
    // What is in the folder is drawn.
    fs::remove_file(file)?;
    Ok(count)
}

/// The same values with a number of its own each, and how many these are.
fn others(numbers: &Map<String, Value>) -> Result<(Value, usize)> {
    let (mut others, mut next) = (Map::new(), FIRST_OTHER);
    for (alert, of_alert) in numbers {
        let of_alert = of_alert.as_object().with_context(|| format!("{alert}: no numbers"))?;
        let other = of_alert.keys().map(|number| {
            next += 1;
            let value = match number.as_str() {
                "objective" => OTHER_OBJECTIVE.into(),
                "window" | "for" => format!("{next}m").into(),
                _ => next.into(),
            };
            (number.clone(), value)
        });
        let other: Map<String, Value> = other.collect();
        others.insert(alert.clone(), other.into());
    }
    Ok((others.into(), usize::try_from(next - FIRST_OTHER)?))
}

/// The alerts of the chart with these numbers.
async fn rules(release: &Release, numbers: &Value) -> Result<Vec<Value>> {
    let chart = workspace::path(CHART).display().to_string();
    let numbers = format!("metrics.prometheusRule.alerts={numbers}");
    let arguments = ["template", "release", &chart, "--namespace", NAMESPACE];
    let values = ["--set", ALL, "--set-json", &numbers];
    let only = ["--show-only", "templates/monitoring.yaml"];
    let text = release.tools.helm_offline(&[&arguments[..], &values, &only].concat()).await?;
    let specs = yaml::documents(&text)?.into_iter().filter_map(|it| it.get("spec").cloned());
    Ok(specs.flat_map(|spec| rules_of(&spec)).collect())
}

fn rules_of(document: &Value) -> Vec<Value> {
    let groups = document.get("groups").and_then(Value::as_array).into_iter().flatten();
    let rules = groups.filter_map(|group| group.get("rules").and_then(Value::as_array));
    rules.flatten().cloned().collect()
}

fn name(rule: &Value) -> String {
    rule.get("alert").and_then(Value::as_str).unwrap_or_default().to_owned()
}
