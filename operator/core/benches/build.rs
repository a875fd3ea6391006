//! How long it takes to build a TrainJob's objects: `cargo bench -p trainjob-core --bench build`.
//!
//! Fails when the median of a case misses its bar. The bars leave room for a slow machine; they are there
//! so that nothing becomes quadratic in what a job may hold.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench talks, and may fail loudly")]

use std::{
    hint::black_box,
    process::ExitCode,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainJob};
use trainjob_core::build::{Runtime, build};

const TORCH: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../charts/trainjob-operator/files/runtimes/torch-distributed.yaml"
));
/// The most replicated jobs that the schema of a runtime and of a patch admits.
const REPLICATED_JOBS: usize = 100;
/// The most variables that the schema of a patch admits for a container.
const VARIABLES: usize = 128;
/// How long each case is repeated.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let plain = serde_saphyr::from_str::<ClusterTrainingRuntime>(TORCH).unwrap();
    let met = [
        case("a torch job", &torch_job(), &plain.into(), Duration::from_micros(50)),
        case("the largest job", &largest_job(), &largest_runtime(), Duration::from_millis(5)),
    ];
    if met.into_iter().all(|met| met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures one case; whether it met its bar.
fn case(name: &str, job: &TrainJob, runtime: &Runtime, bar: Duration) -> bool {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < LONG_ENOUGH {
        let begun = Instant::now();
        let built = black_box(build(black_box(job), black_box(runtime)));
        times.push(begun.elapsed());
        assert!(built.is_ok(), "{built:?}");
    }
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let (median, slow) = (at(50), at(99));
    let met = median <= bar;
    let verdict = if met { "met   " } else { "MISSED" };
    println!(
        "{verdict} {name}: median {median:?} (at most {bar:?}), p99 {slow:?}, {} times",
        times.len()
    );
    met
}

fn torch_job() -> TrainJob {
    let trainer = json!({
        "image": "registry.example.com/train:1",
        "command": ["torchrun", "train.py"],
        "numNodes": 4,
        "numProcPerNode": 8,
        "resourcesPerNode": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}},
        "env": [{"name": "EPOCHS", "value": "3"}],
    });
    job(&json!({"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}))
}

/// A patch of every variable of every container, and a trainer that sets them once more.
fn largest_job() -> TrainJob {
    let steps: Vec<Value> = (0..REPLICATED_JOBS)
        .map(|step| {
            let pod =
                json!({"spec": {"containers": [{"name": "node", "env": variables("patched")}]}});
            json!({"name": format!("step-{step}"), "template": {"spec": {"template": pod}}})
        })
        .collect();
    let template = json!({"spec": {"replicatedJobs": steps}});
    job(&json!({
        "runtimeRef": {"name": "largest"},
        "trainer": {"numNodes": 4, "env": variables("of the job")},
        "runtimePatches": [{"manager": "bench.example.com/b", "trainingRuntimeSpec": {"template": template}}],
    }))
}

fn largest_runtime() -> Runtime {
    let steps: Vec<Value> = (0..REPLICATED_JOBS)
        .map(|step| {
            let labels = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
            let metadata = if step == 0 { json!({"labels": labels}) } else { json!({}) };
            let container =
                json!({"name": "node", "image": "i", "env": variables("of the runtime")});
            let pod = json!({"spec": {"containers": [container]}});
            let job = json!({"metadata": metadata, "spec": {"template": pod}});
            json!({"name": format!("step-{step}"), "template": job})
        })
        .collect();
    let template = json!({"spec": {"replicatedJobs": steps}});
    let runtime = json!({
        "metadata": {"name": "largest"},
        "spec": {"mlPolicy": {"numNodes": 4, "torch": {}}, "template": template},
    });
    serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap().into()
}

fn variables(value: &str) -> Vec<Value> {
    (0..VARIABLES).map(|n| json!({"name": format!("VARIABLE_{n}"), "value": value})).collect()
}

fn job(spec: &Value) -> TrainJob {
    serde_json::from_value(json!({
        "metadata": {"name": "tj", "namespace": "ns", "uid": "uid"},
        "spec": spec,
    }))
    .unwrap()
}
