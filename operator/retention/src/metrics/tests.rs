use prometheus::TextEncoder;
use trainjob_retention_core::{
    plan::Due,
    policy::{PolicyReference, Propagation},
    uid::Uid,
};

use super::*;

fn deletion(policy: &str, due: i64) -> Deletion {
    Deletion {
        uid: Uid::from("u"),
        resource_version: "7".into(),
        propagation: Propagation::Background,
        owner: None,
        policy: PolicyReference { namespace: None, name: policy.into() },
        rule: "all".into(),
        due: Due { at: Timestamp(due), source: Source::OwnTtl, delay: None },
        outcome: Outcome::Failed,
    }
}

fn lines(metrics: &Metrics) -> Vec<String> {
    let page = TextEncoder::new().encode_to_string(&metrics.registry().gather()).unwrap();
    page.lines().filter(|line| line.starts_with(PREFIX)).map(str::to_owned).collect()
}

#[test]
fn deletion_is_counted_by_policy_kind_outcome_and_source_and_by_how_late_it_was() {
    let metrics = Metrics::new().unwrap();
    for due in [1_000, 938, 100] {
        metrics.deleted("Job", &deletion("p", due), Timestamp(1_000).into());
    }
    metrics.failed("Job", &RequestError::Unbuildable("no version".into()));
    metrics.failed("Job", &RequestError::NotLeading);
    let lines = lines(&metrics);
    for expected in [
        r#"trainjob_retention_deletions_total{kind="Job",outcome="failed",policy="p",source="own_ttl"} 3"#,
        r#"trainjob_retention_deletion_failures_total{kind="Job",reason="other"} 1"#,
        r#"trainjob_retention_deletion_latency_seconds_count{priority="scheduled"} 1"#,
        r#"trainjob_retention_deletion_latency_seconds_count{priority="backlog"} 2"#,
        r#"trainjob_retention_deletion_latency_seconds_bucket{priority="backlog",le="60"} 0"#,
        r#"trainjob_retention_deletion_latency_seconds_bucket{priority="backlog",le="600"} 1"#,
    ] {
        assert!(lines.iter().any(|line| line == expected), "no {expected} in {lines:#?}");
    }
}

#[test]
fn no_deletion_begins_a_series_of_a_policy_that_was_seen_at_zero() {
    let metrics = Metrics::new().unwrap();
    metrics.begin_policy("p", "Job");
    metrics.begin_kind("Job");
    let names = || {
        let lines = lines(&metrics).into_iter();
        lines.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect::<Vec<_>>()
    };
    let begun = names();
    for at in [Source::Policy, Source::Count, Source::Annotation, Source::OwnTtl, Source::Maximum] {
        for outcome in Outcome::ALL {
            let mut deletion = Deletion { outcome, ..deletion("p", 1_000) };
            deletion.due.source = at;
            metrics.deleted("Job", &deletion, Timestamp(1_000).into());
            metrics.pod_deleted("Job", &deletion, Timestamp(1_000).into());
        }
    }
    metrics.failed("Job", &RequestError::Unbuildable("no version".into()));
    assert_eq!(names(), begun);
}

#[test]
fn series_of_a_thousand_policies_and_kinds_are_bounded() {
    let metrics = Metrics::new().unwrap();
    for number in 0..1_000 {
        let policy = deletion(&format!("p{number}"), 1_000);
        metrics.deleted("Job", &policy, Timestamp(1_000).into());
        let error = RequestError::Unbuildable("no version".into());
        metrics.failed(&format!("Kind{number}"), &error);
    }
    let of = |name: &str| lines(&metrics).into_iter().filter(|line| line.contains(name)).count();
    assert_eq!(of("deletions_total{"), MOST_POLICIES + 1);
    // The kind of the deletions is one of them.
    assert_eq!(of("deletion_failures_total{"), MOST_KINDS);
}
