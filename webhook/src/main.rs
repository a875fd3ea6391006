//! `trainjob-webhook`: the admission server. See the library for how it works.

use std::process::ExitCode;

use trainjob_process::{Program, start};
use trainjob_webhook::run;

const PROGRAM: Program = Program {
    name: "trainjob-webhook",
    about: "The admission server of TrainJobs and their runtimes: fills in defaults, refuses mistakes.",
};

fn main() -> ExitCode {
    start(PROGRAM, run::run)
}
