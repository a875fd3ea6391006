//! TrainJobs and the objects they become, one file a case in `golden/`.
//!
//! Each file holds a TrainJob and what must come of it, after a comment that says what it shows: the
//! JobSet, then ConfigMaps, then Secrets, of which only the kind of content is known. `@<file>` stands
//! for the text of a file of this crate. The runtimes they name are in `golden/runtimes/`. The expected
//! objects were derived by hand from what Kubeflow Trainer does; nothing regenerates them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainJob, TrainingRuntime};
use trainjob_core::runtime::{Objects, Runtime, build, snapshot};

#[test]
fn every_job_becomes_the_objects_of_its_golden_file() {
    let cases = cases();
    assert!(cases.len() > 10, "the golden files are gone");
    let mut differences = Vec::new();
    for (case, job, expected) in cases {
        let objects = build(&job, &runtime(&job)).unwrap_or_else(|e| panic!("{case}: {e}"));
        compare(&case, &expected, &documents(objects), &mut differences);
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

#[test]
fn a_job_becomes_the_same_from_its_snapshot() {
    for (case, job, _) in cases() {
        let runtime = runtime(&job);
        let frozen = snapshot::read(&job, &snapshot::render(&job, &runtime).unwrap()).unwrap();
        assert_eq!(build(&job, &frozen), build(&job, &runtime), "{case}");
    }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The objects as golden files list them.
fn documents(objects: Objects) -> Value {
    let mut documents = vec![serde_json::to_value(objects.job_set).unwrap()];
    documents.extend(objects.config_maps.iter().map(|map| serde_json::to_value(map).unwrap()));
    documents.extend(objects.secrets.iter().map(|secret| {
        let content = format!("{:?}", secret.content);
        json!({"kind": "Secret", "metadata": secret.metadata, "content": content})
    }));
    documents.into()
}

/// Name, TrainJob and expected objects of each case.
fn cases() -> Vec<(String, TrainJob, Value)> {
    let files = fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let case = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&fs::read_to_string(&path).unwrap()).unwrap();
        let (job, objects) = documents.split_first().expect("a TrainJob and what it becomes");
        (name, serde_json::from_value(job.clone()).unwrap(), objects.into())
    };
    files.filter(|path| path.is_file()).map(case).collect()
}

/// The runtime that the TrainJob names.
fn runtime(job: &TrainJob) -> Runtime {
    let path = golden().join("runtimes").join(format!("{}.yaml", job.spec.runtime_ref.name));
    let yaml = fs::read_to_string(path).unwrap();
    let runtime: Value = serde_saphyr::from_str(&yaml).unwrap();
    if runtime["kind"] == "TrainingRuntime" {
        serde_json::from_value::<TrainingRuntime>(runtime).unwrap().into()
    } else {
        serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap().into()
    }
}

/// Collects the fields in which the two differ.
fn compare(path: &str, expected: &Value, actual: &Value, differences: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, value) in expected {
                let actual = actual.get(key).unwrap_or(&Value::Null);
                compare(&format!("{path}.{key}"), value, actual, differences);
            }
            for (key, value) in actual.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                differences.push(format!("{path}.{key}: unexpected {value}"));
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                compare(&format!("{path}[{index}]"), expected, actual, differences);
            }
        }
        (Value::String(file), Value::String(actual)) if file.starts_with('@') => {
            let text = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file[1..]);
            if fs::read_to_string(text).unwrap() != *actual {
                differences.push(format!("{path}: not the text of {file}"));
            }
        }
        _ if expected == actual => {}
        _ => differences.push(format!("{path}: expected {expected}, found {actual}")),
    }
}
