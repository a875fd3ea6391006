//! `kubectl-trainjob`: the plugin that `kubectl trainjob` runs. See the library for how it works.

use std::{env, process::ExitCode};

use kubectl_trainjob::run::run;

fn main() -> ExitCode {
    run(env::args_os())
}
