//! `trainjob-operator`: the controller of TrainJobs. See the library for how it works.

use std::{env, process::ExitCode};

use trainjob_operator::{manual::MANUAL, metrics, run};
use trainjob_process::{Program, start};

const PROGRAM: Program = Program {
    name: "trainjob-operator",
    about: "The controller of TrainJobs: runs them, ends them on time, removes what is finished.",
    metrics: metrics::PREFIX,
    kinds: &[
        ("trainjobs", "TrainJob"),
        ("trainingruntimes", "TrainingRuntime"),
        ("clustertrainingruntimes", "ClusterTrainingRuntime"),
        ("jobsets", "JobSet"),
        ("podgroups", "PodGroup"),
        ("pods", "Pod"),
        ("configmaps", "ConfigMap"),
        ("secrets", "Secret"),
        ("events", "Event"),
        ("leases", "Lease"),
        ("tokenreviews", "TokenReview"),
        ("subjectaccessreviews", "SubjectAccessReview"),
    ],
    threads: None,
    flags: &[],
    manual: MANUAL,
};

fn main() -> ExitCode {
    start(PROGRAM, env::args_os(), run::run)
}
