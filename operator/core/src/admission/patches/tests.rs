//! One row for each rule about patches.

use serde_json::{Value, json};

use super::*;
use crate::admission::testing::{self, texts};

fn entry(manager: &str, replicated_jobs: &Value) -> Value {
    json!({
        "manager": manager,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": replicated_jobs}}},
    })
}

fn patched(replicated_jobs: &Value) -> TrainJob {
    testing::job(
        &json!({"runtimePatches": [entry("a.io/b", &json!([])), entry("a.io/c", replicated_jobs)]}),
    )
}

fn pod_of(replicated_job: &str, pod: &Value) -> Value {
    json!([{"name": replicated_job, "template": {"spec": {"template": {"spec": pod}}}}])
}

fn found(job: &TrainJob) -> Vec<String> {
    let pod = json!({
        "initContainers": [{"name": "prepare"}],
        "containers": [{"name": "node"}, {"name": "sidecar"}],
    });
    let template: Vec<ReplicatedJob> =
        serde_json::from_value(json!([testing::replicated_job("node", None, &pod)])).unwrap();
    texts(&content(job, Some(&template)))
}

#[test]
fn a_patch_names_only_what_the_runtime_has() {
    let job = "must not have replicated job that doesn't exist in the runtime job template";
    let init = "must not have initContainer that doesn't exist in the runtime job node";
    let container = "must not have container that doesn't exist in the runtime job node";
    for (replicated_jobs, expected) in [
        (pod_of("node", &json!({"containers": [{"name": "sidecar"}]})), None),
        (pod_of("node", &json!({"initContainers": [{"name": "prepare"}]})), None),
        (json!([{"name": "other"}]), Some(("other", job))),
        (pod_of("other", &json!({"containers": [{"name": "x"}]})), Some(("other", job))),
        (pod_of("node", &json!({"initContainers": [{"name": "x"}]})), Some(("x", init))),
        (
            pod_of("node", &json!({"initContainers": [{"name": "sidecar"}]})),
            Some(("sidecar", init)),
        ),
        (pod_of("node", &json!({"containers": [{"name": "x"}]})), Some(("x", container))),
        (
            pod_of("node", &json!({"containers": [{"name": "prepare"}]})),
            Some(("prepare", container)),
        ),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, detail)| {
                format!("spec.runtimePatches[1]: Invalid value: \"{name}\": {detail}")
            })
            .collect();
        assert_eq!(found(&patched(&replicated_jobs)), expected, "{replicated_jobs}");
    }
}

#[test]
fn environment_variables_of_ancestor_replicated_jobs_are_set_by_job_fields() {
    let detail =
        "must not have envs for the dataset-initializer, model-initializer, node containers";
    for name in ["dataset-initializer", "model-initializer", "node"] {
        for list in ["containers", "initContainers"] {
            let with = |env: Value| pod_of("node", &json!({list: [{"name": name, "env": env}]}));
            let errors = texts(&content(&patched(&with(json!([{"name": "A"}]))), None));
            let expected = format!("spec.runtimePatches[1]: Invalid value: \"{name}\": {detail}");
            assert_eq!(errors, [expected], "{list}");
            assert_eq!(content(&patched(&with(json!([]))), None), [], "{list}");
        }
    }
    let sidecar =
        pod_of("node", &json!({"containers": [{"name": "sidecar", "env": [{"name": "A"}]}]}));
    assert_eq!(found(&patched(&sidecar)), [""; 0]);
}

#[test]
fn a_manager_has_a_domain() {
    let job = testing::job(&json!({"runtimePatches": [entry("me", &json!([]))]}));
    let expected = r#"spec.runtimePatches[0].manager: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")"#;
    assert_eq!(found(&job), [expected]);
}

#[test]
fn a_patch_that_does_not_fit_is_an_error_about_its_entry() {
    let problem = BuildError::Patch { manager: "a.io/c".into(), problem: "oh".into() };
    assert_eq!(
        unfit(&patched(&json!([])), &problem).to_string(),
        "spec.runtimePatches[1]: Invalid value: \"a.io/c\": does not fit the runtime's template: oh"
    );
}

#[test]
fn patches_change_only_while_nothing_runs() {
    const RUNNING: &str = "spec.runtimePatches: Forbidden: RuntimePatches can only be modified when the TrainJob is suspended before or after the update";
    const UNKNOWN: &str = "spec.runtimePatches: Internal error: timeout";
    let active = ["node".to_owned(), "launcher".to_owned()];
    let still = ["node", "launcher"].map(|name| {
        format!("spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's ReplicatedJob {name} is still active")
    });
    let job = |suspend: bool, manager: &str| {
        testing::job(&json!({"suspend": suspend, "runtimePatches": [{"manager": manager}]}))
    };
    let (nothing, active) = (Ok(&[][..]), Ok(&active[..]));
    for (old, new, answer, expected) in [
        (job(false, "a/a"), job(false, "a/a"), active, vec![]),
        (job(false, "a/a"), job(false, "b/b"), nothing, vec![RUNNING]),
        (job(true, "a/a"), job(false, "b/b"), nothing, vec![]),
        (job(false, "a/a"), job(true, "b/b"), nothing, vec![]),
        (job(true, "a/a"), job(true, "b/b"), nothing, vec![]),
        (job(true, "a/a"), job(true, "b/b"), active, vec![still[0].as_str(), &still[1]]),
        (job(false, "a/a"), job(true, "b/b"), Err("timeout"), vec![UNKNOWN]),
        (job(false, "a/a"), job(true, "a/a"), Err("timeout"), vec![]),
    ] {
        assert_eq!(texts(&change(&old, &new, None, answer)), expected);
        let depends = change(&old, &new, None, nothing) != change(&old, &new, None, Err("timeout"));
        assert_eq!(asks_what_runs(&old, &new), depends);
    }
}

#[test]
fn an_empty_list_of_patches_is_no_list() {
    let (none, empty) = (testing::job(&json!({})), testing::job(&json!({"runtimePatches": []})));
    assert_eq!(change(&none, &empty, None, Err("not asked")), []);
}

#[test]
fn entries_may_change_places_where_that_changes_nothing() {
    let metadata = |labels: Value| json!([{"name": "node", "template": {"spec": {"template": {"metadata": {"labels": labels}}}}}]);
    let runtime = testing::with(&json!({}), &json!([testing::node()]));
    let job =
        |first: &Value, second: &Value| testing::job(&json!({"runtimePatches": [first, second]}));
    let (a, b) = (
        entry("a.io/a", &metadata(json!({"a": "1"}))),
        entry("a.io/b", &metadata(json!({"b": "1"}))),
    );
    let same_field = entry("a.io/b", &metadata(json!({"a": "2"})));
    for (what, old, new, runtime, allowed) in [
        ("they go together", job(&a, &b), job(&b, &a), Some(&runtime), true),
        ("the last one wins", job(&a, &same_field), job(&same_field, &a), Some(&runtime), false),
        ("another one", job(&a, &b), job(&same_field, &a), Some(&runtime), false),
        ("nobody knows", job(&a, &b), job(&b, &a), None, false),
    ] {
        assert_eq!(change(&old, &new, runtime, Ok(&[])).is_empty(), allowed, "{what}");
        assert!(asks_what_runs(&old, &{
            let mut new = new;
            new.spec.suspend = Some(true);
            new
        }));
    }
}

#[test]
fn of_metadata_labels_and_annotations_are_heard() {
    let job_set = |metadata: Value| json!({"template": {"metadata": metadata}});
    let of_job = |metadata: Value| json!({"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"metadata": metadata}}]}}});
    let of_pod = |metadata: Value| {
        json!({"template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": {"metadata": metadata}}}},
        ]}}})
    };
    let heard = json!({"labels": {"a": "b"}, "annotations": {"a": "b"}, "creationTimestamp": null});
    for place in [job_set, of_job, of_pod] {
        for (metadata, warned) in [
            (heard.clone(), false),
            (json!({}), false),
            (json!({"name": "x"}), true),
            (json!({"namespace": "x"}), true),
            (json!({"finalizers": ["a.io/b"]}), true),
        ] {
            let spec = place(metadata);
            let job = testing::job(&json!({"runtimePatches": [
                {"manager": "a.io/a"}, {"manager": "a.io/b", "trainingRuntimeSpec": spec},
            ]}));
            let expected = "spec.runtimePatches[1]: labels and annotations are all that has an effect of metadata";
            let expected: Vec<_> = warned.then_some(expected).into_iter().collect();
            assert_eq!(warnings(&job), expected, "{spec}");
        }
    }
}

#[test]
fn as_many_names_as_fit_into_a_request_are_looked_up() {
    // One by one that would be thousands of millions of comparisons.
    let names = |prefix: &str| -> Vec<Value> {
        (0..50_000).map(|item| json!({"name": format!("{prefix}{item}")})).collect()
    };
    let template: Vec<ReplicatedJob> = serde_json::from_value(json!([testing::replicated_job(
        "node",
        None,
        &json!({"containers": names("known")}),
    )]))
    .unwrap();
    let job = patched(&pod_of("node", &json!({"containers": names("other")})));
    assert_eq!(content(&job, Some(&template)).len(), 50_000);
}
