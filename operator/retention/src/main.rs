//! `trainjob-retention`: deletes finished objects by policy. See the library for how it works.

use std::{env, num::NonZeroUsize, process::ExitCode};

use trainjob_process::{Program, start};
use trainjob_retention::{
    explain::{self, COMMAND},
    manual::MANUAL,
    metrics, run,
};

const PROGRAM: Program = Program {
    name: "trainjob-retention",
    about: "The retention engine: deletes finished objects by policy.",
    metrics: metrics::PREFIX,
    kinds: &[
        ("retentionpolicies", "RetentionPolicy"),
        ("clusterretentionpolicies", "ClusterRetentionPolicy"),
        ("namespaces", "Namespace"),
        ("jobs", "Job"),
        ("pods", "Pod"),
        ("jobsets", "JobSet"),
        ("trainjobs", "TrainJob"),
        ("workloads", "Workload"),
        ("trainjobrecords", "TrainJobRecord"),
        ("events", "Event"),
        ("leases", "Lease"),
        ("tokenreviews", "TokenReview"),
        ("subjectaccessreviews", "SubjectAccessReview"),
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ],
    // Two threads wake each other up for what one does: a fifth of the CPU at rest.
    threads: Some(NonZeroUsize::MIN),
    flags: &[],
    manual: MANUAL,
};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == COMMAND) {
        return explain::main(PROGRAM, arguments);
    }
    start(PROGRAM, env::args_os(), run::run)
}
