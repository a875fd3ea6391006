//! The examples that users copy.

use std::{fs, path::Path};

use serde_json::{Value, json};
use trainjob_retention_core::{
    finished::Definition,
    policy::{Mode, Owned, Scope},
    stored::{PolicyKind, StoredPolicy},
};

use crate::scene::read_one;

/// The policies in a folder of examples, as the API server would give them back but for what it fills in.
fn examples(folder: &str) -> Vec<StoredPolicy> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/retention").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort();
    let read = |path: &Path| {
        let mut policy: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        policy["metadata"]["uid"] = json!("u");
        let kind = match policy["kind"].as_str().unwrap() {
            "ClusterRetentionPolicy" => PolicyKind::Cluster,
            "RetentionPolicy" => PolicyKind::Namespaced,
            other => panic!("{other}"),
        };
        if kind == PolicyKind::Namespaced {
            policy["metadata"]["namespace"] = json!("a");
        }
        let file = path.display();
        read_one(kind, &policy).unwrap_or_else(|unread| panic!("{file}: {}", unread.error))
    };
    files.iter().map(|path| read(path)).collect()
}

#[test]
fn the_examples_say_what_their_comments_say() {
    let all = examples("");
    let read = all.iter().map(|StoredPolicy { target, policy, .. }| {
        let of_cluster = matches!(policy.scope, Scope::Cluster { .. });
        let rules: Vec<_> = policy.rules.iter().map(|rule| &*rule.name).collect();
        (&*policy.name, target.to_string(), of_cluster, policy.mode, policy.owned, rules)
    });
    let expected = [
        ("experiments", "TrainJob.trainer.kubeflow.org", false, Owned::Skip, vec!["last"]),
        ("jobs", "Job.batch", true, Owned::Skip, vec!["all"]),
        ("jobsets", "JobSet.jobset.x-k8s.io", false, Owned::Skip, vec!["failed", "rest"]),
        ("rayjobs", "RayJob.ray.io", true, Owned::Skip, vec!["app", "rest"]),
        (
            "trainjobrecords",
            "TrainJobRecord.lifecycle.trainjob.dev",
            true,
            Owned::Skip,
            vec!["all"],
        ),
        (
            "workloads",
            "Workload.kueue.x-k8s.io",
            true,
            Owned::AfterOwner,
            vec!["deactivated", "finished"],
        ),
    ];
    let expected = expected.map(|(name, target, of_cluster, owned, rules)| {
        (name, target.to_owned(), of_cluster, Mode::Enforce, owned, rules)
    });
    assert_eq!(read.collect::<Vec<_>>(), expected);
}

#[test]
fn the_recipes_for_other_kinds_describe_an_end_and_audit() {
    let all = examples("kinds");
    let described = |stored: &&StoredPolicy| {
        let is_described = matches!(*stored.policy.definition, Definition::Configured(_));
        is_described && stored.policy.mode == Mode::Audit && stored.target.built_in().is_none()
    };
    assert_eq!(all.iter().filter(described).count(), 11, "{all:?}");
    assert_eq!(all.len(), 11);
}
