//! TrainJobs and the objects they become, in `golden/`.
//!
//! Each file holds a TrainJob and what must come of it: the JobSet, then ConfigMaps, then Secrets, of which
//! only the kind of content is known, then the PodGroup; and then maybe more TrainJobs with theirs, after comments that say
//! what they show. `@<file>` stands for the text of a file of this crate. The runtimes they name are those
//! that the chart ships and those in `examples/`, which have a file of cases each, or else in `golden/runtimes/`. The expected
//! objects were derived by hand from what Kubeflow Trainer does; nothing regenerates them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, JobSet, TrainJob, TrainingRuntime};
use trainjob_core::{
    Action, Now, Observed,
    admission::{lifecycle::FieldUpdates, limits::Limits, runtimes, train_job},
    build::{Objects, Runtime, build, snapshot},
    facts::{JobFacts, Scheduler},
    lifecycle::deadline::Clock,
    mark::{self, Accounting, Mode, Program},
    observed::{KnownRuntime, Listed, PodGroups, Presence, Reading, Readings, Settings},
    plan,
    take_over::Comparison,
};

#[test]
fn every_job_becomes_the_objects_of_its_golden_file() {
    let cases = cases();
    assert!(cases.len() > 50, "the golden files are gone");
    let mut differences = Vec::new();
    for (case, job, expected) in cases {
        let objects = build(&job, &runtime(&job)).unwrap_or_else(|e| panic!("{case}: {e}"));
        compare(&case, &expected, &listed(objects), &mut differences);
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

/// The JobSet that is created for a new job.
fn created(job: &TrainJob, accounting: Accounting) -> String {
    let (facts, runtime, settings) = (JobFacts::of(job), runtime(job), Settings::default());
    let readings = Readings { snapshot: Reading::Absent, ..Readings::default() };
    let observed = Observed {
        job: &facts,
        manifest: Some(job),
        job_set: None,
        pod_groups: PodGroups::from_fn(|_| Presence::Absent),
        runtime: KnownRuntime::There(&runtime),
        readings: &readings,
        settings: &settings,
        accounting,
        comparison: Comparison::Due,
        listed: Listed::Everything,
    };
    let mut actions = plan(&observed, Now::at(facts.created_at)).actions.into_iter();
    let job_set = actions.find_map(|action| match action {
        Action::CreateJobSet { job_set, .. } => Some(job_set),
        _ => None,
    });
    job_set.expect("a new job gets a JobSet").json().to_owned()
}

/// A13 of `docs/accounting.md`: while accounting is off, not one byte of a JobSet differs from what it would be without
/// it. While it is on, nothing differs but labels and finalizer of Pod templates.
#[test]
fn accounting_changes_nothing_while_it_is_off_and_nothing_else_while_it_is_on() {
    let lives = Program::Changed(Duration::ZERO);
    for (case, job, _) in cases() {
        let built = build(&job, &runtime(&job)).unwrap().job_set;
        let bytes = serde_json::to_string(&built).unwrap();
        for (mode, program, marked) in [
            (Mode::Off, lives, false),
            (Mode::Off, Program::Silent, false),
            (Mode::Exact, Program::Silent, false),
            (Mode::Observe, lives, true),
            (Mode::Exact, lives, true),
        ] {
            let created = created(&job, Accounting { mode, program });
            assert_eq!(created != bytes, marked, "{case} {mode:?}");
            let mut kept: JobSet = serde_json::from_str(&created).unwrap();
            mark::keep_mark(&mut kept, &built, "job", "uid");
            assert_eq!(marked_parts_emptied(kept), marked_parts_emptied(built.clone()), "{case}");
        }
    }
}

/// What says nothing in the metadata of Pod templates is left out.
fn marked_parts_emptied(mut job_set: JobSet) -> JobSet {
    for job in job_set.spec.replicated_jobs.iter_mut().flatten() {
        let Some(spec) = &mut job.template.spec else { continue };
        let metadata = spec.template.metadata.get_or_insert_default();
        metadata.labels = metadata.labels.take().filter(|labels| !labels.is_empty());
        metadata.finalizers = metadata.finalizers.take().filter(|all| !all.is_empty());
    }
    job_set
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

#[test]
fn what_is_shipped_is_admitted() {
    let root = root();
    let files = [root.join(SHIPPED), root.join("examples/runtimes")];
    for path in files.iter().flat_map(|directory| entries(directory)) {
        let [written] = documents(&path).try_into().expect("one runtime");
        assert_eq!(runtimes::create(&read(written)).denial(), None, "{}", path.display());
    }
}

#[test]
fn every_job_of_a_golden_file_is_admitted_unless_it_shows_what_is_not() {
    let denial = |job: &TrainJob| {
        let runtime = runtime(job);
        let request = train_job::Request {
            operation: train_job::Operation::Create,
            job,
            runtime: Ok(&runtime),
            snapshot: None,
            active: Ok(&[]),
            missing_priority_classes: &BTreeMap::new(),
            field_updates: FieldUpdates::Immutable,
            deadline_clock: Clock::Creation,
            limits: Limits::default(),
        };
        train_job::validate(&request).denial()
    };
    for (case, job, _) in cases() {
        // Several nodes for a small model, and a variable of the framework: built, but not admitted.
        let field = match case.as_str() {
            case if case.starts_with("torchtune-") && case.contains("/four") => {
                Some("spec.trainer.numNodes: Invalid value: 4: must be 1 for ")
            }
            "user_wins/tj" => Some("spec.trainer.env: Invalid value: "),
            _ => None,
        };
        let denial = denial(&job);
        assert_eq!(denial.is_some(), field.is_some(), "{case}: {denial:?}");
        assert!(denial.unwrap_or_default().starts_with(field.unwrap_or_default()), "{case}");
    }
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

/// The objects as golden files list them.
fn listed(objects: Objects) -> Value {
    let mut documents = vec![serde_json::to_value(objects.job_set).unwrap()];
    documents.extend(objects.config_maps.iter().map(|map| serde_json::to_value(map).unwrap()));
    documents.extend(objects.secrets.iter().map(|secret| {
        let content = format!("{:?}", secret.content);
        json!({"kind": "Secret", "metadata": secret.metadata, "content": content})
    }));
    documents.extend(objects.pod_group.iter().map(|group| {
        let api_version = match group.spec.scheduler() {
            Scheduler::Coscheduling => "scheduling.x-k8s.io/v1alpha1",
            Scheduler::Volcano => "scheduling.volcano.sh/v1beta1",
        };
        let (kind, metadata, spec) = ("PodGroup", &group.metadata, &group.spec);
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    }));
    documents.into()
}

/// Name, TrainJob and expected objects of each case.
fn cases() -> Vec<(String, TrainJob, Value)> {
    let mut cases: Vec<(String, TrainJob, Value)> = Vec::new();
    for path in entries(&golden()) {
        for document in documents(&path) {
            if document["kind"] == "TrainJob" {
                let name =
                    format!("{}/{}", stem(&path), document["metadata"]["name"].as_str().unwrap());
                cases.push((name, serde_json::from_value(document).unwrap(), json!([])));
            } else {
                let (_, _, objects) = cases.last_mut().expect("a TrainJob goes first");
                objects.as_array_mut().unwrap().push(document);
            }
        }
    }
    cases
}

/// The runtime that the TrainJob names.
fn runtime(job: &TrainJob) -> Runtime {
    let file = format!("{}.yaml", job.spec.runtime_ref.name);
    let shipped = [SHIPPED, "examples/runtimes"].map(|folder| root().join(folder).join(&file));
    let of_tests = golden().join("runtimes").join(file);
    let path = shipped.into_iter().find(|path| path.exists()).unwrap_or(of_tests);
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
