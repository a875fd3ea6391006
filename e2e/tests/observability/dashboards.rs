//! Dashboards: what somebody sees who opens one.

use std::collections::{BTreeMap, BTreeSet};

use e2e::metrics_page::Documented;
use e2e::workspace;
use serde_json::Value;

use super::series::{complaint, metrics};
use super::{files, promql};

/// Those that are always installed, and those of the programs that are not.
const FOLDERS: [&str; 3] = [
    "charts/trainjob-operator/files/dashboards",
    "charts/trainjob-operator/files/retention-dashboards",
    "charts/trainjob-operator/files/accounting-dashboards",
];
/// How long a dashboard may be: all of them are in the Secret of the release, which may not be longer than 1 MiB.
const LONGEST: usize = 60_000;
/// The label of metrics about jobs, and the variable that chooses a value of it.
const JOB_NAMESPACE: &str = "job_namespace";
/// Those that have this variable.
const ABOUT_JOBS: [&str; 3] = ["cleanup.json", "gpu-hours.json", "lifecycle.json"];
/// Columns of Grafana's grid.
const COLUMNS: u64 = 24;

/// The dashboards, by the names of their files.
fn dashboards() -> Vec<(String, Value)> {
    let in_folder = |folder| files(folder).into_iter().map(move |file| (file, folder));
    let mut files: Vec<_> = FOLDERS.into_iter().flat_map(in_folder).collect();
    files.sort();
    let names: Vec<_> = files.iter().map(|(file, _)| file.as_str()).collect();
    let expected =
        ["cleanup.json", "gpu-hours.json", "lifecycle.json", "operator.json", "retention.json"];
    assert_eq!(names, expected);
    let read = |(file, folder): (String, &str)| {
        let text = workspace::read(&format!("{folder}/{file}")).unwrap();
        assert!(text.len() < LONGEST, "{file} is {} bytes long", text.len());
        (file, serde_json::from_str(&text).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn panels(dashboard: &Value) -> &[Value] {
    dashboard["panels"].as_array().unwrap()
}

fn is_row(panel: &Value) -> bool {
    panel["type"] == "row"
}

fn queries(panel: &Value) -> Vec<&str> {
    let targets = panel["targets"].as_array().unwrap();
    targets.iter().map(|target| target["expr"].as_str().unwrap()).collect()
}

#[test]
fn every_panel_says_what_it_shows_in_which_unit() {
    for (file, dashboard) in dashboards() {
        for panel in panels(&dashboard).iter().filter(|panel| !is_row(panel)) {
            let title = panel["title"].as_str().unwrap();
            let what = format!("{file}: {title}");
            let description = panel["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "{what} has no description");
            let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or_default();
            assert!(!unit.is_empty(), "{what} has no unit");
            assert!(!queries(panel).is_empty(), "{what} has no query");
        }
    }
}

#[test]
fn every_query_asks_for_metrics_that_exist_of_the_chosen_namespace() {
    let metrics = metrics();
    for (file, dashboard) in dashboards() {
        for panel in panels(&dashboard).iter().filter(|panel| !is_row(panel)) {
            for query in queries(panel) {
                check_query(&file, query, &metrics);
            }
        }
    }
}

/// Whether every selector of a query is one of metrics that exist, of the namespace that was chosen.
fn check_query(file: &str, query: &str, metrics: &BTreeMap<String, Documented>) {
    let selectors = promql::selectors(query);
    assert!(!selectors.is_empty(), "{file}: {query}");
    for selector in selectors {
        assert_eq!(complaint(&selector, metrics), None, "{file}: {query}");
        let namespace = |matcher: &promql::Matcher| {
            matcher.label == "namespace" && matcher.value == "$namespace"
        };
        let chosen = selector.matchers.iter().any(namespace);
        assert!(chosen || selector.metric == "ALERTS", "{file}: {query}");
    }
}

#[test]
fn deadlines_and_deletions_are_marked() {
    let metrics = metrics();
    for (file, dashboard) in dashboards() {
        let annotations = dashboard["annotations"]["list"].as_array().unwrap();
        let names: Vec<_> = annotations.iter().map(|it| it["name"].as_str().unwrap()).collect();
        let expected: &[&str] = match file.as_str() {
            "gpu-hours.json" => &[],
            "retention.json" => &["Deletions"],
            _ => &["Deadlines", "Deletions"],
        };
        assert_eq!(names, expected, "{file}");
        for annotation in annotations {
            assert_eq!(annotation["datasource"]["uid"], "${datasource}", "{file}");
            check_query(&file, annotation["expr"].as_str().unwrap(), &metrics);
        }
    }
}

/// Without it, jobs would be counted once for each namespace of the release, or the largest namespace would pass for all.
#[test]
fn jobs_are_added_up_over_namespaces_where_the_label_may_be() {
    let metrics = metrics();
    for (file, dashboard) in dashboards() {
        for panel in panels(&dashboard).iter().filter(|panel| !is_row(panel)) {
            for query in queries(panel) {
                let labelled = promql::selectors(query).into_iter().filter(|selector| {
                    let metric = metrics.get(&selector.metric);
                    metric.is_some_and(|it| {
                        it.kind == "gauge" && it.labels.contains_key(JOB_NAMESPACE)
                    })
                });
                for selector in labelled {
                    let chosen = selector.matchers.iter().any(|it| it.value == "$job_namespace");
                    assert!(chosen, "{file}: {query}");
                    let is_added_up =
                        query.starts_with("sum") && query.contains("max by (job_namespace");
                    let is_extreme =
                        query.starts_with("max(") && selector.metric.contains("longest");
                    let is_of_jobs = query.contains("max by (job_namespace, name)");
                    assert!(is_added_up || is_extreme || is_of_jobs, "{file}: {query}");
                }
            }
        }
    }
}

#[test]
fn what_is_about_jobs_is_of_the_namespaces_that_were_chosen() {
    let metrics = metrics();
    let about_jobs = |(file, _): &(String, Value)| ABOUT_JOBS.contains(&file.as_str());
    for (file, dashboard) in dashboards().into_iter().filter(about_jobs) {
        let mut asked = 0;
        for query in panels(&dashboard).iter().filter(|panel| !is_row(panel)).flat_map(queries) {
            for selector in promql::selectors(query) {
                let metric = metrics.get(selector.metric.trim_end_matches("_bucket"));
                if metric.is_some_and(|it| it.labels.contains_key(JOB_NAMESPACE)) {
                    let chosen = selector
                        .matchers
                        .iter()
                        .any(|it| it.label == JOB_NAMESPACE && it.value == "$job_namespace");
                    assert!(chosen, "{file}: {query}");
                    asked += 1;
                }
            }
        }
        assert!(asked > 5, "{file}: only {asked}");
    }
}

#[test]
fn the_data_source_and_the_namespace_are_chosen_on_top() {
    for (file, dashboard) in dashboards() {
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let names: Vec<_> = variables.iter().map(|variable| &variable["name"]).collect();
        let about_jobs = ABOUT_JOBS.contains(&file.as_str());
        let of_jobs = about_jobs.then_some(JOB_NAMESPACE);
        let expected: Vec<_> = ["datasource", "namespace"].into_iter().chain(of_jobs).collect();
        assert_eq!(names, expected, "{file}");
        for panel in panels(&dashboard).iter().filter(|panel| !is_row(panel)) {
            let targets = panel["targets"].as_array().unwrap();
            for of in targets.iter().chain([panel]) {
                assert_eq!(of["datasource"]["uid"], "${datasource}", "{file}: {}", panel["title"]);
            }
        }
    }
}

#[test]
fn dashboards_and_panels_are_known_by_ids_of_their_own() {
    let mut dashboard_ids = BTreeSet::new();
    for (file, dashboard) in dashboards() {
        // The number is Grafana's to give; the text is ours.
        assert_eq!(dashboard.get("id"), None, "{file}");
        assert!(dashboard_ids.insert(dashboard["uid"].as_str().unwrap().to_owned()), "{file}");
        assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39, "{file}");
        let mut ids = BTreeSet::new();
        for panel in panels(&dashboard) {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{file}: {} twice", panel["id"]);
        }
    }
}

#[test]
fn panels_are_within_the_grid_and_not_on_top_of_each_other() {
    for (file, dashboard) in dashboards() {
        let mut taken = BTreeSet::new();
        for panel in panels(&dashboard) {
            let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
            assert!(at("w") > 0 && at("h") > 0, "{file}: {} cannot be seen", panel["title"]);
            assert!(at("x") + at("w") <= COLUMNS, "{file}: {} is too wide", panel["title"]);
            for cell in (at("x")..at("x") + at("w"))
                .flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
            {
                assert!(taken.insert(cell), "{file}: {} hides another", panel["title"]);
            }
        }
    }
}
