//! The series that there are: those of the metrics in `docs/metrics.md`, `docs/retention.md` and `docs/accounting.md`, and a
//! few of Prometheus itself.

use std::collections::BTreeMap;

use e2e::metrics_page::{self, Documented};

use super::promql::Selector;

/// Labels that Prometheus gives to every series of a target, or that somebody gives to a whole Prometheus.
pub(crate) const OF_TARGETS: [&str; 5] = ["job", "instance", "namespace", "pod", "cluster"];

/// What Prometheus has of its own, and with which labels.
const OF_PROMETHEUS: [(&str, &[&str]); 2] = [("up", &[]), ("ALERTS", &["alertname", "alertstate"])];

/// All metrics, by name.
pub(crate) fn metrics() -> BTreeMap<String, Documented> {
    let mut metrics = metrics_page::read().unwrap();
    let retention = metrics_page::of_retention(&metrics).unwrap();
    let accounting = metrics_page::of_accounting(&metrics).unwrap();
    metrics.extend(retention.into_iter().chain(accounting));
    metrics
}

/// What is wrong with a selector: a metric or a label that does not exist, or a value that none has.
pub(crate) fn complaint(
    selector: &Selector,
    metrics: &BTreeMap<String, Documented>,
) -> Option<String> {
    let name = &selector.metric;
    let (metric, is_bucket) = match find(name, metrics) {
        Found::Metric { metric, is_bucket } => (metric, is_bucket),
        Found::Foreign(labels) => {
            let known = |label: &str| labels.contains(&label) || OF_TARGETS.contains(&label);
            let unknown = selector.matchers.iter().find(|matcher| !known(&matcher.label))?;
            return Some(format!("{name} has no label {}", unknown.label));
        }
        Found::Nothing => return Some(format!("no metric {name}")),
    };
    for matcher in &selector.matchers {
        let label = matcher.label.as_str();
        if label == "le" && is_bucket {
            if matcher.is_literal && is_whole(&matcher.value) {
                return Some(format!("le of {name} is not {} to every Prometheus", matcher.value));
            }
            continue;
        }
        if OF_TARGETS.contains(&label) {
            continue;
        }
        let Some(values) = metric.labels.get(label) else {
            return Some(format!("{name} has no label {label}"));
        };
        // No values are listed where the page says what bounds them.
        if matcher.is_literal && !values.is_empty() && !values.contains(&matcher.value) {
            return Some(format!("{label} of {name} is never {}", matcher.value));
        }
    }
    None
}

/// Whether Prometheus 3 writes this bound of a bucket as 5.0, and an earlier one as 5.
fn is_whole(bound: &str) -> bool {
    let digits = bound.strip_suffix(".0").unwrap_or(bound);
    digits.chars().all(|digit| digit.is_ascii_digit())
}

enum Found<'a> {
    Metric { metric: &'a Documented, is_bucket: bool },
    Foreign(&'static [&'static str]),
    Nothing,
}

fn find<'a>(series: &str, metrics: &'a BTreeMap<String, Documented>) -> Found<'a> {
    if let Some((_, labels)) = OF_PROMETHEUS.into_iter().find(|(name, _)| *name == series) {
        return Found::Foreign(labels);
    }
    // A histogram has no series of its own name.
    let plain = metrics.get(series).filter(|metric| metric.kind != "histogram");
    let part = || {
        let suffixes = ["_bucket", "_sum", "_count"].into_iter();
        let mut parts = suffixes.filter_map(|suffix| {
            Some((metrics.get(series.strip_suffix(suffix)?)?, suffix == "_bucket"))
        });
        parts.find(|(metric, _)| metric.kind == "histogram")
    };
    match plain.map(|metric| (metric, false)).or_else(part) {
        Some((metric, is_bucket)) => Found::Metric { metric, is_bucket },
        None => Found::Nothing,
    }
}

#[test]
fn every_metric_has_a_prefix_a_type_and_a_help_text() {
    let metrics = metrics();
    assert!(metrics.len() > 50, "only {} metrics were found", metrics.len());
    for (name, metric) in metrics {
        let prefixes = ["trainjob_", "process_"];
        assert!(prefixes.iter().any(|prefix| name.starts_with(prefix)), "{name}: whose is it?");
        assert_eq!(name.ends_with("_total"), metric.kind == "counter", "{name}: {}", metric.kind);
        assert!(["counter", "gauge", "histogram"].contains(&metric.kind.as_str()), "{name}");
        assert!(metric.help.ends_with('.'), "{name}: {}", metric.help);
    }
}

/// Prometheus would rename such a label to `exported_…`, or not, depending on the target.
#[test]
fn no_metric_has_a_label_of_targets() {
    for (name, metric) in metrics() {
        let taken = metric.labels.keys().find(|label| OF_TARGETS.contains(&label.as_str()));
        assert_eq!(taken, None, "{name}");
    }
}

#[test]
fn a_metric_a_label_and_a_value_that_do_not_exist_are_found() {
    let metrics = metrics();
    for (query, expected) in [
        ("trainjob_unreleased", None),
        ("up{job=\"trainjob-operator\"}", None),
        ("trainjob_ttl_deletion_latency_seconds_bucket{le=~\"30([.]0)?\"}", None),
        ("trainjob_ttl_deletion_latency_seconds_bucket{le=\"2.5\"}", None),
        ("trainjob_ttl_deletion_latency_seconds_bucket{le=\"+Inf\"}", None),
        (
            "trainjob_ttl_deletion_latency_seconds_bucket{le=\"30\"}",
            Some(
                "le of trainjob_ttl_deletion_latency_seconds_bucket is not 30 to every Prometheus",
            ),
        ),
        (
            "trainjob_ttl_deletion_latency_seconds_bucket{le=\"30.0\"}",
            Some(
                "le of trainjob_ttl_deletion_latency_seconds_bucket is not 30.0 to every Prometheus",
            ),
        ),
        ("trainjob_unreleased_total", Some("no metric trainjob_unreleased_total")),
        (
            "trainjob_ttl_deletion_latency_seconds",
            Some("no metric trainjob_ttl_deletion_latency_seconds"),
        ),
        ("trainjob_jobs_count", Some("no metric trainjob_jobs_count")),
        ("trainjob_jobs{lane=\"stop\"}", Some("trainjob_jobs has no label lane")),
        ("trainjob_jobs{state=\"happy\"}", Some("state of trainjob_jobs is never happy")),
        ("up{lane=\"stop\"}", Some("up has no label lane")),
    ] {
        let selectors = super::promql::selectors(query);
        assert_eq!(complaint(&selectors[0], &metrics).as_deref(), expected, "{query}");
    }
}
