//! TrainJobs and the JobSets they become, in `golden/`.
//!
//! Each file holds a TrainJob and the JobSet that must come of it, and then maybe more such pairs, after
//! comments that say what they show. The runtimes they name are those that the chart ships, which have a
//! file of cases each, or else in `golden/runtimes/`. The expected JobSets were derived by hand from what
//! Kubeflow Trainer does; nothing regenerates them.

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

use serde_json::Value;
use trainjob_api::{ClusterTrainingRuntime, TrainJob, TrainingRuntime};
use trainjob_core::runtime::{Runtime, build, snapshot};

#[test]
fn every_job_becomes_the_job_set_of_its_golden_file() {
    let cases = cases();
    assert!(cases.len() > 50, "the golden files are gone");
    let mut differences = Vec::new();
    for (case, job, expected) in cases {
        let objects = build(&job, &runtime(&job)).unwrap_or_else(|e| panic!("{case}: {e}"));
        let built = serde_json::to_value(objects.job_set).unwrap();
        compare(&case, &expected, &built, &mut differences);
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

#[test]
fn the_runtimes_that_are_shipped_are_read_as_they_are_written() {
    let root = root();
    let files = [root.join(SHIPPED), root.join("examples/runtimes")];
    let mut names = Vec::new();
    for path in files.iter().flat_map(|directory| entries(directory)) {
        let name = stem(&path);
        let [written] = documents(&path).try_into().expect("one runtime");
        assert_eq!(written["metadata"]["name"], name);
        let framework = &written["metadata"]["labels"]["trainer.kubeflow.org/framework"];
        assert!(framework.is_string(), "{name}");
        // A field that is written wrong or in the wrong place is one that reading forgets.
        let read = serde_json::to_value(read(written.clone()).spec).unwrap();
        let mut differences = Vec::new();
        compare(&name, &written["spec"], &read, &mut differences);
        differences.retain(|difference| difference.ends_with("found null"));
        assert!(differences.is_empty(), "\n{}", differences.join("\n"));
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    assert!(names.len() > 9, "the runtimes are gone: {names:?}");
}

#[test]
fn the_examples_use_the_runtime_that_is_shipped() {
    let spec = |path| documents(&root().join(path))[0]["spec"].take();
    let shipped = spec("charts/trainjob-operator/files/runtimes/torch-distributed.yaml");
    assert_eq!(spec("examples/runtimes/torch-distributed.yaml"), shipped);
}

/// The runtimes that the chart ships.
const SHIPPED: &str = "charts/trainjob-operator/files/runtimes";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file())
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn documents(path: &Path) -> Vec<Value> {
    serde_saphyr::from_multiple(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Name, TrainJob and expected JobSet of each case.
fn cases() -> Vec<(String, TrainJob, Value)> {
    let mut cases = Vec::new();
    for path in entries(&golden()) {
        let documents = documents(&path);
        let (pairs, rest) = documents.as_chunks();
        assert!(rest.is_empty(), "{}: TrainJobs and JobSets in turn", path.display());
        for [job, job_set] in pairs {
            let name = format!("{}/{}", stem(&path), job["metadata"]["name"].as_str().unwrap());
            cases.push((name, serde_json::from_value(job.clone()).unwrap(), job_set.clone()));
        }
    }
    cases
}

/// The runtime that the TrainJob names.
fn runtime(job: &TrainJob) -> Runtime {
    let file = format!("{}.yaml", job.spec.runtime_ref.name);
    let shipped = root().join(SHIPPED).join(&file);
    let path = if shipped.exists() { shipped } else { golden().join("runtimes").join(file) };
    let [runtime] = documents(&path).try_into().expect("one runtime");
    read(runtime)
}

fn read(runtime: Value) -> Runtime {
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
        _ if expected == actual => {}
        _ => differences.push(format!("{path}: expected {expected}, found {actual}")),
    }
}
