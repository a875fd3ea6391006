//! `trainjob-webhook`: the admission server. See the library for how it works.

use std::{env, process::ExitCode};

use mimalloc::MiMalloc;
use trainjob_process::{Program, start};
use trainjob_webhook::{manual::MANUAL, metrics, run};

/// Decision 19: reviews on two threads wait for each other in the allocator of glibc.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const PROGRAM: Program = Program {
    name: "trainjob-webhook",
    about: "The admission server of TrainJobs and their runtimes: fills in defaults, refuses mistakes.",
    metrics: metrics::PREFIX,
    kinds: &[
        ("trainingruntimes", "TrainingRuntime"),
        ("clustertrainingruntimes", "ClusterTrainingRuntime"),
        ("jobsets", "JobSet"),
        ("configmaps", "ConfigMap"),
        ("secrets", "Secret"),
        ("namespaces", "Namespace"),
        ("priorityclasses", "PriorityClass"),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
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
