//! `cargo demo`, `cargo box`, `cargo acceptance`, `cargo faults` and `cargo bench-box`: builds what is
//! asked for, and the operator, which all of them run, then runs it.
//!
//! It has no dependencies, so it is running a second after it was asked to, and what takes long is
//! built under its eyes.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use launcher::{build, say};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        say("usage: launcher PROGRAM [ARGUMENTS]");
        return ExitCode::from(2);
    };
    let Err(error) = launch(&program, arguments);
    say(format_args!("{}: {error}", program.display()));
    ExitCode::FAILURE
}

fn launch(program: &OsString, arguments: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    let mut path = env::current_exe()?;
    path.pop();
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let name = program.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    build(&cargo, &path, &[name, "trainjob-operator"])?;

    path.push(program);
    // The program takes the launcher's place: signals reach it, and its exit code is ours.
    Err(Command::new(&path).args(arguments).exec())
}
