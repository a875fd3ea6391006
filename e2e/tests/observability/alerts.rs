//! Alerts: what they say, what they rest on, and whether somebody has tried them.

use std::collections::{BTreeMap, BTreeSet};

use e2e::{workspace, yaml};
use serde_json::Value;

use super::series::{OF_TARGETS, complaint, metrics};
use super::{files, promql};

/// Those that are always installed, and those of the programs that are not.
const ALERTS: [&str; 3] = [
    "charts/trainjob-operator/files/alerts.yaml",
    "charts/trainjob-operator/files/retention-alerts.yaml",
    "charts/trainjob-operator/files/accounting-alerts.yaml",
];
const RUNBOOKS: &str = "docs/runbooks";
const TESTS: &str = "e2e/promtool";

fn document(file: &str) -> Value {
    yaml::documents(&workspace::read(file).unwrap()).unwrap().pop().unwrap()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The alerts, by name.
fn alerts() -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for file in ALERTS.map(document) {
        for rule in list(&file, "groups").iter().flat_map(|group| list(group, "rules")) {
            let name = text(rule, "alert").to_owned();
            assert!(all.insert(name, rule.clone()).is_none(), "twice: {rule}");
        }
    }
    assert!(all.len() >= 30, "only {} alerts were found", all.len());
    all
}

#[test]
fn an_alert_asks_for_metrics_that_exist() {
    let metrics = metrics();
    for (name, rule) in alerts() {
        let query = text(&rule, "expr");
        let selectors = promql::selectors(query);
        assert!(!selectors.is_empty(), "{name}: {query}");
        for selector in &selectors {
            assert_eq!(complaint(selector, &metrics), None, "{name}: {query}");
        }
        let labels: BTreeSet<&str> =
            metrics.values().flat_map(|metric| metric.labels.keys().map(String::as_str)).collect();
        for label in promql::grouped_by(query) {
            let known = OF_TARGETS.contains(&label.as_str()) || labels.contains(label.as_str());
            assert!(known || label == "le", "{name}: nothing has the label {label}");
        }
    }
}

#[test]
fn an_alert_says_what_it_means_and_what_to_do() {
    for (name, rule) in alerts() {
        assert!(["critical", "warning"].contains(&text(&rule["labels"], "severity")), "{name}");
        for part in ["summary", "impact", "action"] {
            assert!(text(&rule["annotations"], part).ends_with('.'), "{name} has no {part}");
        }
        let url = text(&rule["annotations"], "runbook_url");
        assert!(url.ends_with(&format!("/{RUNBOOKS}/{name}.md")), "{name}: {url}");
    }
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let alerts = alerts();
    let index = workspace::read(&format!("{RUNBOOKS}/README.md")).unwrap();
    let pages: BTreeSet<String> = files(RUNBOOKS)
        .into_iter()
        .filter_map(|file| Some(file.strip_suffix(".md")?.to_owned()))
        .filter(|page| page != "README")
        .collect();
    assert_eq!(pages, alerts.keys().cloned().collect());
    for (name, rule) in alerts {
        let page = workspace::read(&format!("{RUNBOOKS}/{name}.md")).unwrap();
        assert!(page.starts_with(&format!("# {name}\n")), "{name}: another title");
        let severity = text(&rule["labels"], "severity");
        assert!(page.to_lowercase().contains(&format!("**{severity}.**")), "{name}: severity");
        for section in ["Impact", "Diagnosis", "Mitigation"] {
            assert!(page.contains(&format!("\n## {section}\n")), "{name}: no {section}");
        }
        assert!(index.contains(&format!("({name}.md)")), "{name} is not in the list of runbooks");
    }
}

#[test]
fn the_queries_of_runbooks_ask_for_metrics_that_exist() {
    let metrics = metrics();
    for file in files(RUNBOOKS) {
        let page = workspace::read(&format!("{RUNBOOKS}/{file}")).unwrap();
        // Queries stand in blocks without a language. Fences come in pairs.
        let blocks = page.split("\n```").skip(1).step_by(2);
        let queries = blocks.filter_map(|block| block.strip_prefix('\n')).flat_map(str::lines);
        for query in queries.filter(|query| !query.contains("__name__")) {
            for selector in promql::selectors(query) {
                assert_eq!(complaint(&selector, &metrics), None, "{file}: {query}");
            }
        }
    }
}

#[test]
fn the_page_on_monitoring_lists_every_alert() {
    let page = workspace::read("docs/monitoring.md").unwrap();
    for (name, rule) in alerts() {
        let row = format!("\n| {name} | {} | ", text(&rule["labels"], "severity"));
        assert!(page.contains(&row), "docs/monitoring.md: no row {row}");
    }
}

#[test]
fn every_alert_was_seen_firing_and_not_firing() {
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for file in files(TESTS) {
        let file = format!("{TESTS}/{file}");
        for test in list(&document(&file), "tests") {
            let mut fires: BTreeMap<&str, bool> = BTreeMap::new();
            for expected in list(test, "alert_rule_test") {
                let is_expected = !list(expected, "exp_alerts").is_empty();
                *fires.entry(text(expected, "alertname")).or_default() |= is_expected;
            }
            for (alert, is_expected) in fires {
                let seen = if is_expected { &mut firing } else { &mut silent };
                seen.insert(alert.to_owned());
            }
        }
    }
    let alerts: BTreeSet<String> = alerts().into_keys().collect();
    assert_eq!(firing, alerts, "alerts that fire in a test");
    assert_eq!(silent, alerts, "alerts that do not fire in a test");
}
