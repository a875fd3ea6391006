//! `trainjob-operator`: the controller of TrainJobs. See the library for how it works.

use std::{env, ffi::OsString, num::NonZeroUsize, process::ExitCode};

use trainjob_operator::{manual, metrics, run, runtimes};
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
    // Two are enough for every API server that was measured. A large node would have one for each of its cores.
    threads: NonZeroUsize::new(2),
    flags: &[],
    manual: manual::MANUAL,
};

const RUNTIMES: Program = Program {
    name: "trainjob-operator runtimes",
    about: "Creates the predefined runtimes of a Helm release, or removes them.",
    flags: runtimes::FLAGS,
    manual: manual::RUNTIMES,
    ..PROGRAM
};

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let program = arguments.next();
    let mut rest = arguments.peekable();
    let command = rest.next_if(|first| first == runtimes::COMMAND);
    let arguments = program.into_iter().chain(rest).collect::<Vec<OsString>>();
    match command {
        None => start(PROGRAM, arguments, run::run),
        Some(_) => start(RUNTIMES, arguments, runtimes::run),
    }
}
