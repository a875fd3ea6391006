//! `cargo demo` and `cargo box`: builds every binary, then runs the one that was asked for.
//!
//! It has no dependencies, so it is running a second after it was asked to, and what takes long is
//! built under its eyes.

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

use launcher::{build_workspace, say};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        say("usage: launcher PROGRAM [ARGUMENTS]");
        return ExitCode::from(2);
    };
    match launch(&program, arguments) {
        Ok(code) => code,
        Err(error) => {
            say(format_args!("{}: {error}", program.display()));
            ExitCode::FAILURE
        }
    }
}

fn launch(
    program: &OsString,
    arguments: impl Iterator<Item = OsString>,
) -> std::io::Result<ExitCode> {
    let mut path = env::current_exe()?;
    path.pop();
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    build_workspace(&cargo, &path)?;

    path.push(program);
    // Ctrl-C reaches the program itself, as a member of the same foreground group; the launcher
    // dies of it too, which the shell expects of an interrupted command.
    let status = Command::new(&path).args(arguments).status()?;
    Ok(match status.code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        None => ExitCode::FAILURE,
    })
}
