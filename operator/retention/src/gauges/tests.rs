use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use prometheus::{
    Registry, TextEncoder,
    proto::{Metric, MetricType},
};
use trainjob_api::time::Timestamp;
use trainjob_engine::error::{FailureReason, RequestError};
use trainjob_retention_core::{
    outcome::Outcome,
    plan::{Due, Source, State},
    policy::{Mode, PolicyReference, Propagation},
    uid::Uid,
};

use super::*;
use crate::{cluster_state::Deletion, metrics::PREFIX};

/// How many values the labels of deletions have.
const OUTCOMES: usize = 4;
const SOURCES: usize = 7;
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

fn line(policy: &str, mode: Option<Mode>) -> PolicyLine {
    PolicyLine {
        policy: policy.into(),
        kind: mode.map(|_| "Job".to_owned()),
        mode,
        is_ready: mode.is_some(),
        is_forbidden: false,
        is_tripped: true,
        unexpected: 7,
        would_delete: 2,
    }
}

fn kind(kind: &str, due: u64, due_longest: i64) -> KindLine {
    let mut numbers = Numbers::default();
    numbers.states.insert(State::Due, due);
    (numbers.due_longest, numbers.held_longest) = (due_longest, 3);
    KindLine { kind: kind.to_owned(), numbers }
}

/// What the page says when this is known.
fn page(kinds: &[KindLine], policies: &[PolicyLine]) -> (Arc<Metrics>, Vec<String>) {
    let (metrics, mut sampled) = (Metrics::new().unwrap(), Sampled::default());
    let (work, findings) = (Work::new(&mut sampled).unwrap(), Findings::new(&mut sampled).unwrap());
    sampled.register(metrics.registry(), || ()).unwrap();
    work.set_time(Time { is_good: true, offset: Some(-2.5) });
    findings.set_kinds(kinds, &metrics.kinds);
    findings.set_policies(policies, &metrics.policies);
    begin(&metrics, kinds, policies);
    let text = TextEncoder::new().encode_to_string(&metrics.registry().gather()).unwrap();
    (metrics, text.lines().map(str::to_owned).collect())
}

fn says(lines: &[String], expected: &[&str]) {
    for expected in expected {
        let expected = format!("{PREFIX}_{expected}");
        assert!(lines.contains(&expected), "no {expected} in {lines:#?}");
    }
}

#[test]
fn kinds_and_policies_of_one_name_are_added_up() {
    let kinds = [kind("Job", 2, 5), kind("Job", 3, 9), kind("Pod", 0, 0)];
    let policies =
        [line("p", Some(Mode::Enforce)), line("p", Some(Mode::Enforce)), line("q", None)];
    let (_, lines) = page(&kinds, &policies);
    says(
        &lines,
        &[
            r#"objects{kind="Job",state="due"} 5"#,
            r#"objects{kind="Pod",state="held"} 0"#,
            r#"due_longest_seconds{kind="Job"} 9"#,
            "held_longest_seconds 3",
            r#"policies{mode="enforce",ready="true"} 2"#,
            r#"policies{mode="enforce",ready="false"} 0"#,
            r#"policies{mode="not_understood",ready="false"} 1"#,
            r#"would_delete{policy="p"} 4"#,
            r#"unexpected{policy="q"} 7"#,
            r#"tripped{policy="p"} 2"#,
            r#"forbidden{policy="p"} 0"#,
            "clock_offset_seconds -2.5",
            "clock_good 1",
        ],
    );
}

#[test]
fn counters_of_kinds_and_policies_begin_at_zero_before_anything_is_deleted() {
    let policies = [line("p", Some(Mode::Audit)), line("q", None)];
    let (_, lines) = page(&[kind("Job", 0, 0)], &policies);
    says(
        &lines,
        &[
            r#"deletions_total{kind="Job",outcome="failed",policy="p",source="pods"} 0"#,
            r#"deletions_total{kind="Job",outcome="deactivated",policy="p",source="count"} 0"#,
            r#"deletion_failures_total{kind="Job",reason="denied"} 0"#,
        ],
    );
    let of = |name: &str| lines.iter().filter(|line| line.contains(name)).count();
    // What is not understood deletes nothing.
    assert_eq!(of("deletions_total{"), OUTCOMES * SOURCES);
    assert_eq!(of("deletion_failures_total{"), FailureReason::ALL.len());
}

#[test]
fn policy_that_is_gone_is_not_shown_any_more() {
    let (registry, mut sampled) = (Registry::new(), Sampled::default());
    let findings = Findings::new(&mut sampled).unwrap();
    sampled.register(&registry, || ()).unwrap();
    let metrics = Metrics::new().unwrap();
    let shown = &metrics.policies;
    let has = |name: &str| {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.contains(&format!("tripped{{policy=\"{name}\"}}"))
    };
    findings.set_policies(&[line("p", Some(Mode::Audit)), line("q", Some(Mode::Audit))], shown);
    assert!(has("p") && has("q"));
    findings.set_policies(&[line("q", Some(Mode::Audit))], shown);
    assert!(!has("p") && has("q"));
}

#[test]
fn thousand_policies_and_kinds_leave_the_page_bounded() {
    let kinds: Vec<_> = (0..1_000).map(|number| kind(&format!("K{number}"), 1, 1)).collect();
    let policies = (0..1_000).map(|number| line(&format!("p{number}"), Some(Mode::Enforce)));
    let policies: Vec<_> = policies.collect();
    let (_, lines) = page(&kinds, &policies);
    says(&lines, &[r#"due_longest_seconds{kind="other"} 1"#, r#"tripped{policy="other"} 800"#]);
    let of = |name: &str| lines.iter().filter(|line| line.contains(name)).count();
    assert_eq!(of("retention_due_longest_seconds{"), 51);
    assert_eq!(of("retention_tripped{"), 201);
}

#[test]
fn clock_behind_is_ahead_by_less_than_nothing() {
    let at = |seconds| SystemTime::from(Timestamp(seconds));
    for (clock, other, expected) in [(100, 100, 0.0), (107, 100, 7.0), (100, 3_700, -3_600.0)] {
        let found = ahead(at(clock), at(other));
        assert!((found - expected).abs() < f64::EPSILON, "{found} for {clock} and {other}");
    }
}

// The table in the documentation.

/// A type, and labels.
type Shape = (String, BTreeSet<String>);

/// The metrics of the program, without their prefix, with all that can have series having one.
fn shown() -> BTreeMap<String, Shape> {
    let (metrics, _) = page(&[kind("Job", 1, 1)], &[line("p", Some(Mode::Enforce))]);
    let deletion = Deletion {
        uid: Uid::from("u"),
        resource_version: "7".into(),
        propagation: Propagation::Background,
        owner: None,
        policy: PolicyReference { namespace: None, name: "p".into() },
        rule: "all".into(),
        due: Due { at: Timestamp(0), source: Source::Policy, delay: None },
        outcome: Outcome::Succeeded,
    };
    metrics.deleted("Job", &deletion, SystemTime::UNIX_EPOCH);
    metrics.failed("Job", &RequestError::Unbuildable("no version".into()));
    let families = metrics.registry().gather().into_iter();
    let shapes = families.filter_map(|family| {
        let name = family.name().strip_prefix(PREFIX)?.strip_prefix('_')?.to_owned();
        let kind = match family.get_field_type() {
            MetricType::COUNTER => "counter",
            MetricType::HISTOGRAM => "histogram",
            _ => "gauge",
        };
        let labels = family.get_metric().iter().flat_map(Metric::get_label);
        let labels = labels.map(|label| label.name().to_owned()).collect();
        Some((name, (kind.to_owned(), labels)))
    });
    shapes.collect()
}

/// The metrics of a table in a page of the documentation whose names begin so: the cells of a row are name, type and
/// labels, of which each is followed by its values, if it has any, and by a semicolon.
fn documented(page: &str, prefix: &str) -> BTreeMap<String, Shape> {
    let text = fs::read_to_string(format!("{DOCS}/{page}")).unwrap();
    let rows = text.lines().filter_map(|row| {
        let cells: Vec<_> = row.strip_prefix("| `")?.split('|').map(str::trim).collect();
        let [name, kind @ ("counter" | "gauge" | "histogram"), labels, ..] = cells[..] else {
            return None;
        };
        let name = name.trim_end_matches('`').strip_prefix(prefix)?.to_owned();
        let labels = labels.split(';').filter_map(|label| label.split('`').nth(1));
        Some((name, (kind.to_owned(), labels.map(str::to_owned).collect())))
    });
    rows.collect()
}

#[test]
fn the_page_has_the_metrics_of_the_program_and_the_program_those_of_the_page() {
    let (shown, page) = (shown(), documented("retention.md", ""));
    let alike = documented("metrics.md", "trainjob_operator_");
    assert!(page.len() > 10 && alike.len() > 10, "{page:#?} {alike:#?}");
    for (name, shape) in &shown {
        // What is not on the page is as in the operator.
        let said = page.get(name).or_else(|| alike.get(name));
        assert_eq!(said, Some(shape), "{name}");
    }
    for name in page.keys() {
        assert!(shown.contains_key(name), "{name} is not shown");
    }
}
