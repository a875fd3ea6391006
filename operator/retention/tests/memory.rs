//! How much room a finished object takes (`docs/retention.md`, R60).

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{collections::BTreeSet, fs, time::Duration};

use serde_json::{Value, json};
use trainjob_api::time::Timestamp;
use trainjob_core::Now;
use trainjob_retention::{
    cluster_state::{ClusterState, PolicyKey, Source},
    config::Target,
    key::TargetId,
};
use trainjob_retention_core::{
    finished::Definitions,
    metadata::Metadata,
    stored::{self, PolicyKind},
};

/// When all Jobs finish.
const END: Timestamp = Timestamp(1_795_329_000);
const JOBS: TargetId = TargetId(0);
const OBJECTS: usize = 50_000;
const NAMESPACES: usize = 20;
/// The most that one may take, in bytes.
const MOST: usize = 370;

#[test]
fn a_finished_object_takes_at_most_370_bytes() {
    let mut state = known();
    let now = Now::at(END.plus(60));
    let before = memory();
    state.list_begins(Source::Target(JOBS));
    for number in 0..OBJECTS {
        state.object(JOBS, &job(number), None, now);
    }
    state.list_ends(Source::Target(JOBS), Duration::ZERO);
    while state.evaluate(1_000, now).is_some() {}
    let each = (memory() - before) / OBJECTS;
    assert_eq!(state.keys().len(), OBJECTS);
    assert!(each <= MOST, "{each} bytes");
}

/// A state that knows a policy for all Jobs, and their namespaces.
fn known() -> ClusterState {
    let [api_group, kind, resource] = ["batch", "Job", "jobs"].map(str::to_owned);
    let jobs = Target { api_group, kind, resource, pods: false, owner_delete: false };
    let mut state = ClusterState::new(&[jobs], BTreeSet::new(), None);
    let policy = json!({
        "metadata": {
            "name": "p", "uid": "p", "generation": 1, "creationTimestamp": "2026-11-22T06:00:00Z",
        },
        "spec": {
            "target": {"apiGroup": "batch", "kind": "Job"},
            "mode": "Enforce",
            "rules": [
                {"name": "failed", "match": {"labels": {"matchLabels": {"team": "vision"}}, "outcomes": ["Failed"]}, "action": {"defer": true}},
                {"name": "all", "action": {"ttlSecondsAfterFinished": 604_800}},
            ],
        },
    });
    let policy =
        stored::read(PolicyKind::Cluster, &policy.to_string(), &mut Definitions::default());
    let key = PolicyKey { kind: PolicyKind::Cluster, namespace: "".into(), name: "p".into() };
    state.policy(key, Ok(policy.unwrap()), None, Duration::ZERO);
    for kind in [PolicyKind::Namespaced, PolicyKind::Cluster] {
        state.list_ends(Source::Policies(kind), Duration::ZERO);
    }
    for number in 0..NAMESPACES {
        let metadata: Value = json!({"name": format!("namespace-{number}")});
        state.namespace(serde_json::from_value::<Metadata>(metadata).unwrap());
    }
    state.list_ends(Source::Namespaces, Duration::ZERO);
    state
}

/// The text of a Job that has finished.
fn job(number: usize) -> String {
    let namespace = number * NAMESPACES / OBJECTS;
    json!({
        "metadata": {
            "name": format!("object-{number:06}"), "namespace": format!("namespace-{namespace}"),
            "uid": format!("3f2a9c1e-0b7d-4c55-9a51-7e0d{number:08x}"),
            "resourceVersion": (1_000 + number).to_string(),
            "creationTimestamp": "2026-11-22T06:00:00Z",
            "labels": {"team": "vision", "experiment": "resnet"},
        },
        "status": {"conditions": [
            {"type": "Complete", "status": "True", "reason": "CompletionsReached", "lastTransitionTime": END.to_string()},
        ]},
    })
    .to_string()
}

/// The memory of this process, in bytes.
fn memory() -> usize {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    1_024 * pss.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
}
