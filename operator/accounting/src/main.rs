//! `trainjob-accounting`: counts the Pods of TrainJobs. See the library for how it works.

use std::{env, ffi::OsString, process::ExitCode};

use mimalloc::MiMalloc;
use trainjob_accounting::{drain, manual, metrics, run, sweep};
use trainjob_process::{Program, start};

/// Decision 19: open Pods take less memory than with the allocator of glibc.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const PROGRAM: Program = Program {
    name: "trainjob-accounting",
    about: "The accounting program: counts the Pods of TrainJobs.",
    metrics: metrics::PREFIX,
    kinds: &[
        ("trainjobrecords", "TrainJobRecord"),
        ("pods", "Pod"),
        ("trainjobs", "TrainJob"),
        ("jobsets", "JobSet"),
        ("events", "Event"),
        ("leases", "Lease"),
        ("tokenreviews", "TokenReview"),
        ("subjectaccessreviews", "SubjectAccessReview"),
    ],
    threads: None,
    flags: &[],
    manual: manual::MANUAL,
};

const SWEEP: Program = Program {
    name: "trainjob-accounting sweep",
    about: "Releases Pods that wait for an accounting program that does not act.",
    flags: sweep::FLAGS,
    manual: manual::SWEEP,
    ..PROGRAM
};

const DRAIN: Program = Program {
    name: "trainjob-accounting drain",
    about: "Releases all Pods that wait to be counted.",
    flags: drain::FLAGS,
    manual: manual::DRAIN,
    ..PROGRAM
};

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let program = arguments.next();
    let mut rest = arguments.peekable();
    let command = rest.next_if(|first| first == sweep::COMMAND || first == drain::COMMAND);
    let arguments = program.into_iter().chain(rest).collect::<Vec<OsString>>();
    match command {
        None => start(PROGRAM, arguments, run::run),
        Some(command) if command == sweep::COMMAND => start(SWEEP, arguments, sweep::run),
        Some(_) => start(DRAIN, arguments, drain::run),
    }
}
