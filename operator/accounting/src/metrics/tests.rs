use std::collections::BTreeSet;

use prometheus::TextEncoder;
use trainjob_api::lifecycle::v1alpha1::record::{
    Attempt, PodCounts, PodSums, RecordedReplicatedJob, Totals,
};

use super::*;
use crate::book::Numbers;

fn lines(metrics: &Metrics) -> Vec<String> {
    let page = TextEncoder::new().encode_to_string(&metrics.registry().gather()).unwrap();
    page.lines().filter(|line| line.starts_with(PREFIX)).map(str::to_owned).collect()
}

fn status(succeeded: u64, failed: u64, gpu_seconds: u64) -> TrainJobRecordStatus {
    let sums = PodSums { reasons: [("OOMKilled".to_owned(), failed)].into(), ..PodSums::default() };
    let attempts = vec![Attempt { sums, ..Attempt::default() }];
    let seconds = [("nvidia.com/gpu", gpu_seconds), ("cpu", 7), ("other", 9)];
    TrainJobRecordStatus {
        totals: Totals {
            pods: PodCounts { succeeded, failed, ..PodCounts::default() },
            seconds: seconds.map(|(name, it)| (name.to_owned(), it)).into(),
            ..Totals::default()
        },
        replicated_jobs: vec![RecordedReplicatedJob { attempts, ..Default::default() }],
        ..TrainJobRecordStatus::default()
    }
}

#[test]
fn what_a_store_adds_is_counted_by_namespace_queue_class_and_reason() {
    let metrics = Metrics::new(Some(1_000)).unwrap();
    let (first, second) = (status(3, 0, 100), status(5, 1, 160));
    for (before, after) in [(status(0, 0, 0), first.clone()), (first, second)] {
        let change = Change { before, after };
        metrics.stored(("team-a", "gpu"), &change, &Settings::default());
    }
    metrics.lost(LostReason::Swept);
    metrics.released(true, Duration::from_millis(300));
    let lines = lines(&metrics);
    for expected in [
        r#"trainjob_accounting_pods_total{class="succeeded",job_namespace="team-a"} 5"#,
        r#"trainjob_accounting_pods_total{class="failed",job_namespace="team-a"} 1"#,
        r#"trainjob_accounting_pod_failures_total{job_namespace="team-a",reason="OOMKilled"} 1"#,
        r#"trainjob_accounting_resource_seconds_total{job_namespace="team-a",queue="gpu",resource="gpu"} 160"#,
        r#"trainjob_accounting_lost_pods_total{reason="Swept"} 1"#,
        r#"trainjob_accounting_lost_pods_total{reason="Unlabelled"} 0"#,
        r#"trainjob_accounting_release_latency_seconds_bucket{waited="deleted",le="0.5"} 1"#,
        r"trainjob_accounting_batch_pods_sum 6",
    ] {
        assert!(lines.iter().any(|line| line == expected), "no {expected} in {lines:#?}");
    }
}

#[test]
fn counters_of_an_open_record_begin_at_zero_before_anything_is_counted() {
    let metrics = Metrics::new(Some(10)).unwrap();
    let sources = [("team-a".into(), "gpu".to_owned()), ("team-a".into(), String::new())];
    gauges::show_numbers(&metrics, Numbers { sources: sources.into(), ..Numbers::default() });
    // What the page begins is on the next page at the latest.
    lines(&metrics);
    let begun: BTreeSet<_> = lines(&metrics).into_iter().collect();
    for expected in [
        r#"pods_total{class="deleted",job_namespace="team-a"} 0"#,
        r#"pod_failures_total{job_namespace="team-a",reason="OOMKilled"} 0"#,
        r#"resource_seconds_total{job_namespace="team-a",queue="gpu",resource="gpu"} 0"#,
        r#"resource_seconds_total{job_namespace="team-a",queue="",resource="memory_mib"} 0"#,
        r#"wasted_gpu_seconds_total{job_namespace="team-a",reason="Suspended"} 0"#,
    ] {
        let expected = format!("{PREFIX}_{expected}");
        assert!(begun.contains(&expected), "no {expected} in {begun:#?}");
    }
    let mut done = status(5, 1, 160);
    let condition = serde_json::json!({
        "type": "Final", "status": "True", "reason": "AllCounted", "message": "",
        "lastTransitionTime": "2026-11-22T06:00:00Z",
    });
    done.conditions.push(serde_json::from_value(condition).unwrap());
    done.totals.wasted_by_cause.insert("OOMKilled".into(), 40);
    let change = Change { before: TrainJobRecordStatus::default(), after: done };
    metrics.stored(("team-a", "gpu"), &change, &Settings::default());
    let names = |lines: &BTreeSet<String>| -> BTreeSet<String> {
        lines.iter().filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
    };
    // No step begins a series that nobody has seen at zero.
    assert_eq!(names(&begun), names(&lines(&metrics).into_iter().collect()));
}

#[test]
fn two_thousand_namespaces_have_a_thousand_names_and_one() {
    let metrics = Metrics::new(Some(1_000)).unwrap();
    let apart = Metrics::new(None).unwrap();
    for number in 0..2_000 {
        let change = Change { before: status(0, 0, 0), after: status(1, 0, 1) };
        let namespace = format!("n{number}");
        metrics.stored((&namespace, "q"), &change, &Settings::default());
        apart.stored((&namespace, "q"), &change, &Settings::default());
    }
    let of = |metrics: &Metrics, name: &str| {
        lines(metrics).into_iter().filter(|line| line.contains(name)).collect::<Vec<_>>()
    };
    assert_eq!(of(&metrics, "pods_total{class=").len(), 1_001);
    // The namespaces beyond have one queue together.
    assert_eq!(of(&metrics, "resource_seconds_total{").len(), 1_001);
    assert_eq!(
        of(&apart, "pods_total{class="),
        [r#"trainjob_accounting_pods_total{class="succeeded",job_namespace="_all"} 2000"#]
    );
}

#[test]
fn waste_is_told_when_a_record_becomes_final_for_the_first_time() {
    let metrics = Metrics::new(Some(10)).unwrap();
    let with = |status: &str, reason: &str| {
        let mut record = self::status(1, 0, 1);
        record.totals.wasted_by_cause.insert("OOMKilled".into(), 40);
        let condition = serde_json::json!({
            "type": "Final", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-11-22T06:00:00Z",
        });
        record.conditions.push(serde_json::from_value(condition).unwrap());
        record
    };
    let line =
        r#"trainjob_accounting_wasted_gpu_seconds_total{job_namespace="a",reason="OOMKilled"} 40"#;
    let (open, done) = (with("False", "Open"), with("True", "AllCounted"));
    let reopened = with("False", "Reopened");
    for (before, after, is_told) in [
        (&open, &open, false),
        (&open, &done, true),
        (&done, &reopened, true),
        (&reopened, &done, true),
    ] {
        let change = Change { before: before.clone(), after: after.clone() };
        metrics.stored(("a", ""), &change, &Settings::default());
        assert_eq!(lines(&metrics).iter().any(|it| it == line), is_told);
    }
}

/// What every program has, under the prefix of its own.
const ALIKE: [&str; 6] = [
    "api_request_duration_seconds",
    "api_requests_total",
    "build_info",
    "events_dropped_total",
    "leader",
    "watch_restarts_total",
];

#[test]
fn every_metric_is_documented_and_nothing_else() {
    let metrics = Metrics::new(Some(10)).unwrap();
    let mut done = status(1, 1, 1);
    done.totals.wasted_by_cause.insert("Error".into(), 1);
    let condition = serde_json::json!({
        "type": "Final", "status": "True", "reason": "AllCounted", "message": "",
        "lastTransitionTime": "2026-11-22T06:00:00Z",
    });
    done.conditions.push(serde_json::from_value(condition).unwrap());
    let change = Change { before: TrainJobRecordStatus::default(), after: done };
    metrics.stored(("a", "q"), &change, &Settings::default());
    let gpus = [(("a".into(), "q".to_owned()), 1)].into();
    gauges::show_numbers(&metrics, Numbers { gpus, ..Numbers::default() });
    let families = metrics.registry().gather();
    let own = families.iter().filter_map(|family| {
        let name = family.name().strip_prefix(PREFIX)?.strip_prefix('_')?;
        (!ALIKE.contains(&name)).then(|| name.to_owned())
    });
    let own: BTreeSet<_> = own.collect();
    let page = include_str!("../../../../docs/accounting.md");
    let section = page.split("\n### ").find(|part| part.starts_with("Metrics\n")).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: BTreeSet<_> = rows.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(own, documented);
    for name in ALIKE {
        assert!(section.contains(&format!("`{name}`")), "{name}");
    }
}
