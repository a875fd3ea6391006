//! `trainjob-operator`: the controller of TrainJobs. See the library for how it works.

use std::process::ExitCode;

use trainjob_operator::run;
use trainjob_process::{Program, start};

const PROGRAM: Program = Program {
    name: "trainjob-operator",
    about: "The controller of TrainJobs: runs them, ends them on time, removes what is finished.",
};

fn main() -> ExitCode {
    start(PROGRAM, run::run)
}
