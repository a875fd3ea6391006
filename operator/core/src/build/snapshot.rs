//! The snapshot: a TrainJob's runtime as it was when the job started.
//!
//! The runtime is written once, into the ConfigMap `<job>-runtime-snapshot`, and read from there ever
//! after. So editing or deleting a runtime never changes a job that has started. The ConfigMap's name,
//! its key and its YAML are those of Kubeflow Trainer, so that either operator reads what the other
//! wrote. It differs in two ways: it is immutable (else whoever may edit ConfigMaps could change what
//! runs), and it leaves out the metadata that only the API server needs.

use std::{collections::BTreeMap, fmt::Display};

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use trainjob_api::{
    TrainJob,
    constants::{SNAPSHOT_KEY, SNAPSHOT_SUFFIX},
    v1alpha1::runtime::TrainingRuntimeSpec,
    v1alpha1::{API_VERSION, CLUSTER_TRAINING_RUNTIME_KIND, TRAINING_RUNTIME_KIND},
};

use super::{
    error::BuildError,
    owner::owner_reference,
    resolve::{Runtime, RuntimeKey},
    size::{MAX_OBJECTS, is_too_large},
};

/// Annotation in which `kubectl apply` keeps a second copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Why a snapshot cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// The ConfigMap belongs to somebody else, perhaps to a predecessor of the same name.
    #[error("invalid runtime snapshot: a snapshot configmap exists but is owned by another object")]
    Foreign,
    /// It has no runtime in it.
    #[error("invalid runtime snapshot: snapshot ConfigMap missing \"runtime\" data key")]
    Empty,
    /// It cannot be read.
    #[error("invalid runtime snapshot: unable to unmarshal the snapshot: {0}")]
    Unreadable(String),
    /// It holds another runtime than the job names.
    #[error(
        "invalid runtime snapshot: the snapshot refers to the wrong runtime: \
         expecting a runtime with name, api group and kind of {expected} \
         but found runtime with name, api group and kind of {found}"
    )]
    WrongRuntime {
        /// The runtime the job names: name, group and kind, each in quotes.
        expected: String,
        /// The runtime of the snapshot, likewise.
        found: String,
    },
}

/// A runtime as it stands in the ConfigMap.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    spec: TrainingRuntimeSpec,
}

/// The name of the snapshot ConfigMap of the TrainJob `job_name`.
#[must_use]
pub fn name(job_name: &str) -> String {
    format!("{job_name}{SNAPSHOT_SUFFIX}")
}

/// The snapshot of `runtime` for `job`.
///
/// # Errors
///
/// When the runtime cannot be written as YAML.
pub fn render(job: &TrainJob, runtime: &Runtime) -> Result<ConfigMap, BuildError> {
    let document = Document {
        api_version: API_VERSION.into(),
        kind: runtime.key.kind().into(),
        metadata: essential(&runtime.metadata),
        spec: runtime.spec.clone(),
    };
    // Quoted strings only: YAML readers, Go's among them, disagree about tabs in block scalars.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    // By way of a tree: a YAML writer and reader for each type of a Pod template would be a fifth of the program.
    let yaml = serde_json::to_value(&document)
        .map_err(|error| error.to_string())
        .and_then(|tree| {
            serde_saphyr::to_string_with_options(&tree, options).map_err(|error| error.to_string())
        })
        .map_err(BuildError::Snapshot)?;
    Ok(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name(job.metadata.name.as_deref().unwrap_or_default())),
            namespace: job.metadata.namespace.clone(),
            owner_references: Some(vec![owner_reference(job)]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(SNAPSHOT_KEY.into(), yaml)])),
        immutable: Some(true),
        ..ConfigMap::default()
    })
}

/// The runtime in a snapshot, ours or Kubeflow Trainer's.
///
/// # Errors
///
/// When the ConfigMap is not this job's, is empty or unreadable, or holds another runtime.
pub fn read(job: &TrainJob, config_map: &ConfigMap) -> Result<Runtime, SnapshotError> {
    if !owned_by(job, &config_map.metadata) {
        return Err(SnapshotError::Foreign);
    }
    let yaml = config_map
        .data
        .as_ref()
        .and_then(|data| data.get(SNAPSHOT_KEY))
        .ok_or(SnapshotError::Empty)?;
    // Without a snippet of the source: the message ends up in a condition.
    let options = serde_saphyr::options! { with_snippet: false };
    let unreadable = |error: &dyn Display| SnapshotError::Unreadable(error.to_string());
    // An object: a type of Kubernetes would take a list, too.
    let tree: Map<String, Value> =
        serde_saphyr::from_str_with_options(yaml, options).map_err(|error| unreadable(&error))?;
    // Anybody may have written it, and the types take many times the memory of the tree.
    if tree.values().any(is_too_large) {
        return Err(unreadable(&format!("more than {MAX_OBJECTS} parts, expected fewer")));
    }
    let document =
        Document::deserialize(Value::Object(tree)).map_err(|error| unreadable(&error))?;
    named_by(job, document)
}

/// Metadata that says something about the runtime, rather than about its storage.
fn essential(metadata: &ObjectMeta) -> ObjectMeta {
    let annotations = metadata.annotations.clone().map(|mut annotations| {
        annotations.remove(LAST_APPLIED);
        annotations
    });
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        labels: metadata.labels.clone(),
        annotations: annotations.filter(|annotations| !annotations.is_empty()),
        ..ObjectMeta::default()
    }
}

fn owned_by(job: &TrainJob, child: &ObjectMeta) -> bool {
    let is_controller = |owner: &&OwnerReference| owner.controller == Some(true);
    let owner = child.owner_references.iter().flatten().find(is_controller);
    owner.is_some_and(|owner| job.metadata.uid.as_ref() == Some(&owner.uid))
}

/// The document as a runtime, if it is the one that the job's `runtimeRef` names.
fn named_by(job: &TrainJob, document: Document) -> Result<Runtime, SnapshotError> {
    let reference = &job.spec.runtime_ref;
    let name = document.metadata.name.clone().unwrap_or_default();
    let group = document.api_version.split_once('/').map_or("", |(group, _)| group);

    // An absent or empty field of the reference matches any value, as in Kubeflow Trainer.
    let matches = |wanted: Option<&str>, found| wanted.is_none_or(|w| w.is_empty() || w == found);
    let key = match document.kind.as_str() {
        CLUSTER_TRAINING_RUNTIME_KIND => Some(RuntimeKey::Cluster { name: name.clone() }),
        TRAINING_RUNTIME_KIND => Some(RuntimeKey::Namespaced {
            namespace: job.metadata.namespace.clone().unwrap_or_default(),
            name: name.clone(),
        }),
        _ => None,
    };
    match key {
        Some(key)
            if reference.name == name
                && matches(reference.api_group.as_deref(), group)
                && matches(reference.kind.as_deref(), &document.kind) =>
        {
            Ok(Runtime { key, metadata: document.metadata, spec: document.spec })
        }
        _ => Err(SnapshotError::WrongRuntime {
            expected: quoted([
                &reference.name,
                reference.api_group.as_deref().unwrap_or_default(),
                reference.kind.as_deref().unwrap_or_default(),
            ]),
            found: quoted([&name, group, &document.kind]),
        }),
    }
}

fn quoted(parts: [&str; 3]) -> String {
    parts.map(|part| format!("{part:?}")).join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::testing::{job, runtime, torch},
        *,
    };

    /// A snapshot of a runtime with everything in its metadata that an API server puts there.
    fn snapshot() -> ConfigMap {
        let mut runtime = torch(&json!({}));
        runtime.metadata = serde_json::from_value(json!({
            "name": "torch-distributed",
            "uid": "W",
            "resourceVersion": "5",
            "generation": 2,
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["trainer.kubeflow.org/resource-in-use"],
            "labels": {"trainer.kubeflow.org/framework": "torch"},
            "annotations": {(LAST_APPLIED): "{}", "kept": "yes"},
            "managedFields": [{"manager": "helm"}],
        }))
        .unwrap();
        render(&job(&json!({})), &runtime).unwrap()
    }

    fn with_data(yaml: &str) -> ConfigMap {
        let data = Some(BTreeMap::from([(SNAPSHOT_KEY.into(), yaml.into())]));
        ConfigMap { data, ..snapshot() }
    }

    fn error(config_map: &ConfigMap) -> String {
        read(&job(&json!({})), config_map).unwrap_err().to_string()
    }

    #[test]
    fn a_snapshot_is_an_immutable_config_map_of_the_job() {
        let ConfigMap { metadata, data, immutable, .. } = snapshot();
        assert_eq!(metadata.name.as_deref(), Some("tj-runtime-snapshot"));
        assert_eq!(metadata.namespace.as_deref(), Some("ns"));
        assert_eq!(metadata.owner_references, Some(vec![owner_reference(&job(&json!({})))]));
        assert_eq!(immutable, Some(true));
        assert_eq!(data.unwrap().keys().collect::<Vec<_>>(), ["runtime"]);
    }

    #[test]
    fn a_snapshot_keeps_what_says_something_about_the_runtime() {
        let read = read(&job(&json!({})), &snapshot()).unwrap();
        assert_eq!(read.spec, torch(&json!({})).spec);
        assert_eq!(read.key.to_string(), "ClusterTrainingRuntime torch-distributed");
        assert_eq!(
            serde_json::to_value(read.metadata).unwrap(),
            json!({
                "name": "torch-distributed",
                "labels": {"trainer.kubeflow.org/framework": "torch"},
                "annotations": {"kept": "yes"},
            })
        );
    }

    #[test]
    fn the_snapshot_of_another_owner_is_foreign() {
        for owners in [
            json!(null),
            json!([{"kind": "TrainJob", "name": "tj", "uid": "predecessor", "controller": true}]),
            json!([{"kind": "TrainJob", "name": "tj", "uid": "U"}]),
        ] {
            let mut config_map = snapshot();
            config_map.metadata.owner_references = serde_json::from_value(owners).unwrap();
            assert_eq!(
                error(&config_map),
                "invalid runtime snapshot: a snapshot configmap exists but is owned by another object"
            );
        }
    }

    #[test]
    fn a_job_without_a_uid_owns_nothing() {
        let mut job = job(&json!({}));
        job.metadata.uid = None;
        let config_map = render(&job, &torch(&json!({}))).unwrap();
        assert_eq!(read(&job, &config_map), Err(SnapshotError::Foreign));
    }

    #[test]
    fn an_empty_snapshot_lacks_its_key() {
        assert_eq!(
            error(&ConfigMap { data: None, ..snapshot() }),
            "invalid runtime snapshot: snapshot ConfigMap missing \"runtime\" data key"
        );
    }

    #[test]
    fn a_damaged_snapshot_is_unreadable() {
        for yaml in ["{", "- a", "spec: 1", "spec: {mlPolicy: {numNodes: many}}"] {
            let error = error(&with_data(yaml));
            let expected = "invalid runtime snapshot: unable to unmarshal the snapshot: ";
            assert!(error.starts_with(expected) && !error.contains('\n'), "{yaml}: {error}");
        }
    }

    #[test]
    fn snapshot_of_more_parts_than_are_read_is_unreadable() {
        let of = |parts: usize| {
            let volumes = vec!["{}"; parts].join(",");
            let pod = format!("containers: [], volumes: [{volumes}]");
            let template = format!("spec: {{template: {{spec: {{{pod}}}}}}}");
            let jobs = format!("replicatedJobs: [{{name: node, template: {{{template}}}}}]");
            with_data(&format!("spec: {{template: {{spec: {{{jobs}}}}}}}"))
        };
        assert!(error(&of(MAX_OBJECTS)).contains("more than 13500 parts"));
        // It names no runtime, which is found out once it was read.
        assert!(!error(&of(MAX_OBJECTS - 100)).contains("parts"));
    }

    #[test]
    fn a_snapshot_of_another_runtime_is_wrong() {
        let snapshot_of = |kind: &str, group: &str, name: &str| {
            with_data(&format!("apiVersion: {group}/v1\nkind: {kind}\nmetadata: {{name: {name}}}"))
        };
        let group = "trainer.kubeflow.org";
        let absent = job(&json!({}));
        let full = job(&json!({"runtimeRef": {
            "name": "torch-distributed", "apiGroup": group, "kind": "TrainingRuntime",
        }}));
        for (job, kind, of_group, name, right) in [
            (&absent, "ClusterTrainingRuntime", group, "torch-distributed", true),
            (&absent, "TrainingRuntime", group, "torch-distributed", true),
            (&absent, "TrainingRuntime", group, "other", false),
            (&absent, "Other", group, "torch-distributed", false),
            (&full, "TrainingRuntime", group, "torch-distributed", true),
            (&full, "ClusterTrainingRuntime", group, "torch-distributed", false),
            (&full, "TrainingRuntime", "example.com", "torch-distributed", false),
        ] {
            let result = read(job, &snapshot_of(kind, of_group, name));
            assert_eq!(result.is_ok(), right, "{kind}.{of_group} {name}");
        }
        let wrong = read(&full, &snapshot_of("ClusterTrainingRuntime", group, "other"));
        assert_eq!(
            wrong.unwrap_err().to_string(),
            "invalid runtime snapshot: the snapshot refers to the wrong runtime: expecting a runtime \
             with name, api group and kind of \"torch-distributed\", \"trainer.kubeflow.org\", \
             \"TrainingRuntime\" but found runtime with name, api group and kind of \"other\", \
             \"trainer.kubeflow.org\", \"ClusterTrainingRuntime\""
        );
    }

    #[test]
    fn a_snapshot_that_kubeflow_trainer_wrote_is_read() {
        let yaml = include_str!("../../tests/golden/snapshots/kubeflow_trainer.yaml");
        let config_map: ConfigMap = serde_saphyr::from_str(yaml).unwrap();
        let read = read(&job(&json!({})), &config_map).unwrap();
        let expected = runtime(&json!({
            "mlPolicy": {"numNodes": 2, "torch": {}},
            "template": {"metadata": {}, "spec": {"network": {}, "replicatedJobs": [{
                "name": "node",
                "groupName": "default",
                "replicas": 1,
                "template": {
                    "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                    "spec": {"template": {"metadata": {}, "spec": {"containers": [{
                        "name": "node",
                        "image": "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
                        "command": ["python", "-c"],
                        "args": ["yes", "010", "1:30", "import os\nprint(\"x: #1\")"],
                        "env": [{"name": "FLAG", "value": "true"}],
                        "livenessProbe": {
                            "httpGet": {"path": "/", "port": 8080}, "initialDelaySeconds": 5,
                        },
                        "readinessProbe": {"tcpSocket": {"port": "ssh"}},
                        "resources": {"limits": {"cpu": "4", "memory": "1000", "nvidia.com/gpu": "2"}},
                    }]}}},
                },
            }]}},
        }));
        assert_eq!(read.spec, expected.spec);
        assert_eq!(read.metadata.labels.unwrap()["version"], "1.0");
    }
}
