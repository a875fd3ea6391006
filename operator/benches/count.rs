//! How long it takes to count the jobs of a large cluster: `cargo bench -p trainjob-operator --bench count`.
//!
//! What counts is the time on a CPU, which does not depend on what else runs. Fails when the median of a case misses its
//! bar, which leaves room for a slow machine.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench talks, and may fail loudly")]

use std::{
    fs,
    hint::black_box,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use trainjob_api::{TrainJob, time::Timestamp};
use trainjob_core::{job_stats::JobStats, observed::Settings};
use trainjob_engine::versions::Source;
use trainjob_operator::cache::Cache;

const JOBS: usize = 200_000;
const NAMESPACES: usize = 200;
const NOW: Timestamp = Timestamp(1_767_230_000);
/// How often each case is repeated.
const TIMES: usize = 15;
const BAR: Duration = Duration::from_millis(150);

fn main() -> ExitCode {
    let cache = Cache::new(16 << 20);
    for number in 0..JOBS {
        cache.put_job(job(number), Source::Watch);
    }
    let all: Arc<str> = "".into();
    let met = [
        case("all together", || count(&cache, |_| Arc::clone(&all))),
        case("by namespace", || count(&cache, |name| name.into())),
    ];
    if met.into_iter().all(|met| met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How long this thread has been on a CPU.
fn on_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
}

/// Measures one case; whether it met its bar.
fn case(name: &str, count: impl Fn()) -> bool {
    let time = |()| {
        let begun = on_cpu();
        count();
        on_cpu().saturating_sub(begun)
    };
    let mut times: Vec<_> = std::iter::repeat_n((), TIMES).map(time).collect();
    times.sort_unstable();
    let median = times.get(TIMES / 2).copied().unwrap();
    println!("{JOBS} jobs, {name}: {median:?} (at most {BAR:?})");
    median <= BAR
}

fn count(cache: &Cache, group: impl Fn(&str) -> Arc<str>) {
    let settings = Settings::default();
    let mut job_stats = JobStats::new(&settings, NOW, 20);
    cache.count(&mut job_stats, NOW, group);
    black_box(job_stats.groups().count());
}

/// Every second one is finished; one in a hundred of these by its deadline.
fn job(number: usize) -> TrainJob {
    let created = Timestamp(NOW.0 - 3_600 - i64::try_from(number % 3_000).unwrap());
    let (is_finished, by_deadline) = (number.is_multiple_of(2), number.is_multiple_of(200));
    let conditions = match (is_finished, by_deadline) {
        (true, true) => condition("Failed", "DeadlineExceeded"),
        (true, false) => condition("Complete", "AllJobsCompleted"),
        (false, _) => condition("Suspended", "Suspended"),
    };
    serde_json::from_value(json!({
        "metadata": {
            "namespace": format!("team-{:03}", number % NAMESPACES), "name": format!("train-{number}"),
            "uid": format!("00000001-8b86-4011-b42d-{number:012x}"),
            "resourceVersion": (1_000_000 + number).to_string(),
            "generation": 1, "creationTimestamp": created.to_string(),
        },
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime",
                "name": "torch-distributed"},
            "suspend": number % 4 == 1, "ttlSecondsAfterFinished": 3_600,
            "activeDeadlineSeconds": 3_600 + number % 90_000,
        },
        "status": {
            "conditions": [conditions],
            "jobsStatus": [{"name": "node", "ready": number % 3, "succeeded": 0, "failed": 0,
                "active": 0, "suspended": 1}],
        },
    }))
    .unwrap()
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": Timestamp(NOW.0 - 3_000).to_string()})
}
