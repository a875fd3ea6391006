//! The dashboards, with the data that Grafana would show in them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::prometheus::{INTERVAL, Prometheus, Series, Span};
use crate::testenv::chart::CHART;
use crate::testenv::release::NAMESPACE;
use crate::testenv::workspace;

/// The files in the chart about operator and webhook, without their ending.
pub(super) const OPERATOR: [&str; 3] =
    ["dashboards/operator", "dashboards/lifecycle", "dashboards/cleanup"];
/// That about accounting, and that about retention.
pub(super) const GPU_HOURS: &str = "accounting-dashboards/gpu-hours";
pub(super) const RETENTION: &str = "retention-dashboards/retention";
/// How many points a line has.
const POINTS: u64 = 240;
/// How far apart marks are, in seconds, as in the dashboards.
const MARKS: u64 = 60;
/// The queries that find nothing in the scenario, by dashboard and panel, and why that is right.
const WITHOUT_DATA: [(&str, &str, &str); 0] = [];

#[derive(Deserialize)]
struct Dashboard {
    title: String,
    panels: Vec<Panel>,
    templating: Templating,
    annotations: Annotations,
}

#[derive(Deserialize)]
struct Annotations {
    list: Vec<Annotation>,
}

#[derive(Deserialize)]
struct Annotation {
    name: String,
    #[serde(rename = "iconColor")]
    color: String,
    expr: String,
}

#[derive(Deserialize)]
struct Templating {
    list: Vec<Variable>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    #[serde(default)]
    query: serde_json::Value,
}

#[derive(Deserialize)]
struct Panel {
    title: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "gridPos")]
    place: Place,
    #[serde(default)]
    targets: Vec<Query>,
    #[serde(default, rename = "fieldConfig")]
    fields: Fields,
}

/// In cells of Grafana's grid.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Place {
    x: u32,
    y: u32,
    w: u32,
    h: u32,
}

#[derive(Default, Deserialize)]
struct Fields {
    #[serde(default)]
    defaults: Defaults,
}

#[derive(Default, Deserialize)]
struct Defaults {
    #[serde(default)]
    unit: String,
}

#[derive(Clone, Deserialize)]
struct Query {
    expr: String,
    #[serde(default)]
    instant: bool,
    #[serde(default, rename = "legendFormat")]
    legend: String,
}

/// What `e2e/python/panels.py` draws.
#[derive(Serialize)]
struct Drawing {
    title: String,
    marks: Vec<Marks>,
    panels: Vec<Filled>,
}

/// What an annotation marks.
#[derive(Serialize)]
struct Marks {
    name: String,
    color: String,
    /// In seconds since the epoch.
    instants: Vec<f64>,
}

#[derive(Serialize)]
struct Filled {
    title: String,
    kind: String,
    unit: String,
    place: Place,
    series: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    legend: String,
    #[serde(flatten)]
    series: Series,
}

/// How many queries there are, and how many of them have data.
#[derive(Default)]
pub(super) struct Count {
    pub(super) queries: usize,
    pub(super) with_data: usize,
}

/// All of them.
pub(super) fn files() -> Vec<PathBuf> {
    let names = OPERATOR.into_iter().chain([GPU_HOURS, RETENTION]);
    names.map(|name| workspace::path(&format!("{CHART}/files/{name}.json"))).collect()
}

/// Evaluates every query of a dashboard over a time, sees that it has data where the scenario has some, and
/// writes what is to be drawn to `NAME.json` in `folder`.
pub(super) async fn fill(
    prometheus: &Prometheus,
    file: &str,
    span: Span,
    folder: &Path,
) -> Result<Count> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let dashboard = read(file)?;
    can_be_chosen(prometheus, &dashboard.templating.list).await?;
    let (mut panels, mut count) = (Vec::new(), Count::default());
    for panel in dashboard.panels {
        let what = format!("{name}: {}", panel.title);
        let mut series = Vec::new();
        for query in &panel.targets {
            let found = ask(prometheus, query, span).await.with_context(|| what.clone())?;
            let has_data = found.iter().any(Series::has_data);
            let excuse =
                WITHOUT_DATA.iter().find(|it| (it.0, it.1) == (name, panel.title.as_str()));
            match excuse {
                Some((_, _, reason)) => ensure!(!has_data, "{what} has data, but {reason}"),
                None => ensure!(has_data, "{what} has no data: {}: {found:?}", query.expr),
            }
            count.queries += 1;
            count.with_data += usize::from(has_data);
            let named = |series: Series| Named { legend: legend(&query.legend, &series), series };
            series.extend(found.into_iter().map(named));
        }
        let (unit, place) = (panel.fields.defaults.unit, panel.place);
        panels.push(Filled { title: panel.title, kind: panel.kind, unit, place, series });
    }
    let marks = marks(prometheus, dashboard.annotations.list, span).await?;
    count.queries += marks.len();
    count.with_data += marks.len();
    let drawing = Drawing { title: dashboard.title, marks, panels };
    fs::write(folder.join(format!("{name}.json")), serde_json::to_string(&drawing)?)?;
    Ok(count)
}

/// What the annotations of a dashboard mark. Each marks something in the scenario.
async fn marks(
    prometheus: &Prometheus,
    annotations: Vec<Annotation>,
    span: Span,
) -> Result<Vec<Marks>> {
    let mut all = Vec::new();
    for Annotation { name, color, expr } in annotations {
        let query = Query { expr, instant: false, legend: String::new() };
        let found = ask(prometheus, &query, Span { step: MARKS, ..span }).await?;
        let points = found.iter().flat_map(|series| &series.points);
        let instants: Vec<f64> = points.map(|(at, _)| *at).collect();
        ensure!(!instants.is_empty(), "{name} marks nothing: {}", query.expr);
        all.push(Marks { name, color, instants });
    }
    Ok(all)
}

/// What the first query of a panel gives at the end of a time.
pub(super) async fn of_panel(
    prometheus: &Prometheus,
    (file, title): (&str, &str),
    span: Span,
) -> Result<Vec<Series>> {
    let mut panels = read(file)?.panels.into_iter();
    let panel = panels.find(|panel| panel.title == title && !panel.targets.is_empty());
    let panel = panel.with_context(|| format!("{file} has no panel {title}"))?;
    let query = panel.targets.first().context("no query")?;
    ask(prometheus, &Query { instant: true, ..query.clone() }, span).await
}

fn read(file: &str) -> Result<Dashboard> {
    Ok(serde_json::from_str(&workspace::read(&format!("{CHART}/files/{file}.json"))?)?)
}

/// Sees that the variable on top of the dashboard offers the namespace of the release.
async fn can_be_chosen(prometheus: &Prometheus, variables: &[Variable]) -> Result<()> {
    let variable = variables.iter().find(|variable| variable.name == "namespace");
    let query = &variable.context("no variable for the namespace")?.query;
    let query = query.get("query").unwrap_or(query).as_str().unwrap_or_default();
    let call = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
    let (selector, label) = call.and_then(|call| call.split_once(", ")).context("no query")?;
    let values = prometheus.label_values(label, selector).await?;
    ensure!(values == [NAMESPACE], "{query} offers {values:?}");
    Ok(())
}

async fn ask(prometheus: &Prometheus, query: &Query, span: Span) -> Result<Vec<Series>> {
    let expression = substituted(&query.expr, span);
    if query.instant {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are few")]
        let end = span.end as f64;
        prometheus.at(&expression, Some(end)).await
    } else {
        prometheus.over(&expression, span).await
    }
}

/// Puts in what Grafana would.
fn substituted(expression: &str, span: Span) -> String {
    // Four scrapes, or one more than a step has.
    let rate = (4 * INTERVAL.as_secs()).max(span.step + INTERVAL.as_secs());
    expression
        .replace("$namespace", NAMESPACE)
        // All of them.
        .replace("$job_namespace", ".*")
        .replace("$__rate_interval", &format!("{rate}s"))
        .replace("$__range", &format!("{}s", span.end - span.start))
}

/// A time from then until now, in steps that make a line.
pub(super) const fn span(start: u64, end: u64) -> Span {
    let step = (end - start) / POINTS;
    Span { start, end, step: if step == 0 { 1 } else { step } }
}

/// What Grafana would write at a line; without a format, the labels.
fn legend(format: &str, series: &Series) -> String {
    if format.is_empty() {
        return series.labels.values().map(String::as_str).collect::<Vec<_>>().join(" ");
    }
    let mut text = String::new();
    for part in format.split("{{") {
        match part.split_once("}}") {
            Some((label, rest)) => {
                text.push_str(series.labels.get(label.trim()).map_or("", String::as_str));
                text.push_str(rest);
            }
            None => text.push_str(part),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_legend_has_the_values_of_the_labels_that_it_names() {
        let labels = [("verb", "get"), ("code", "404")];
        let labels: BTreeMap<String, String> =
            labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into();
        let series = Series { labels, points: Vec::new() };
        for (format, expected) in [
            ("{{verb}} -> {{ code }}!", "get -> 404!"),
            ("{{kind}} p99", " p99"),
            ("all", "all"),
            ("", "404 get"),
        ] {
            assert_eq!(legend(format, &series), expected, "{format}");
        }
    }
}
