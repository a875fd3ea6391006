//! From the command line to what is printed.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser as _};

use crate::{
    access::Access,
    arguments::{Arguments, Command, Place},
    extend,
    failure::Failure,
    status, why,
};

/// The name of the file, by which kubectl and shells know this program.
const PROGRAM: &str = "kubectl-trainjob";

/// Runs one command. Exit code 0, or 1, and stderr says why; of wrong flags it says what would be right.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(answer) => {
            // Help and version are asked for, and no error. If they cannot be printed, nobody is there to read them.
            let _ = answer.print();
            return if answer.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    match carry_out(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough, as `head` has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(Arguments { place, command }: Arguments) -> Result<(), Failure> {
    match command {
        Command::Status(arguments) => {
            with_server(&place, async |access| status::run(access, arguments, io::stdout()).await)
        }
        Command::Why(arguments) => {
            with_server(&place, async |access| why::run(access, &arguments, io::stdout()).await)
        }
        Command::Extend(arguments) => {
            with_server(&place, async |access| extend::run(access, &arguments, io::stdout()).await)
        }
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), PROGRAM, &mut script);
            Ok(io::stdout().write_all(&script)?)
        }
    }
}

fn with_server(
    place: &Place,
    work: impl AsyncFnOnce(&Access) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { work(&Access::new(place).await?).await })
}
