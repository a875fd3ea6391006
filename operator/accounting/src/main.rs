//! `trainjob-accounting`: counts the Pods of TrainJobs. See the library for how it works.

use std::process::ExitCode;

use trainjob_accounting::{manual::MANUAL, metrics, run};
use trainjob_process::{Program, start};

const PROGRAM: Program = Program {
    name: "trainjob-accounting",
    about: "The accounting program: counts the Pods of TrainJobs.",
    metrics: metrics::PREFIX,
    kinds: &[
        ("trainjobrecords", "TrainJobRecord"),
        ("pods", "Pod"),
        ("trainjobs", "TrainJob"),
        ("events", "Event"),
        ("leases", "Lease"),
        ("tokenreviews", "TokenReview"),
        ("subjectaccessreviews", "SubjectAccessReview"),
    ],
    manual: MANUAL,
};

fn main() -> ExitCode {
    start(PROGRAM, run::run)
}
