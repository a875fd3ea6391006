//! `trainjob-retention explain KIND NAME --namespace NAMESPACE`: why one object is, or is not, deleted, and when
//! (`docs/retention.md`, R53).
//!
//! It asks the API server once, with the rights of whoever calls it, and plans with the same functions as the engine. What
//! only the engine knows, such as which objects wait after an edit, it takes from the statuses of policies.

mod arguments;
mod case;
mod cluster;
mod error;
mod lists;
mod page;
mod questions;
mod verdict;

use std::{ffi::OsString, io::Write, process::ExitCode};

use trainjob_engine::clock::Clock;
use trainjob_process::{
    Program, client,
    config::{Flags, Settings},
    metrics::Requests,
    server_time::ServerTime,
};

pub use self::arguments::COMMAND;
use self::{arguments::Arguments, cluster::Cluster, error::ExplainError};
use crate::config::Config;

/// Answers a command line, without the names of program and command.
///
/// Exit code 0 if there is an answer, whatever it is; otherwise 1, and stderr says why in one line.
#[must_use]
pub fn main(program: Program, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::read(program.name, arguments) {
        Ok(arguments) => arguments,
        Err(answer) => {
            // If even this cannot be written, the exit code still says it.
            let _ = answer.print();
            return if answer.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = runtime
        .map_err(ExplainError::from)
        .and_then(|runtime| runtime.block_on(answer(program, &arguments)));
    let written = match &answer {
        Ok(page) => write!(std::io::stdout(), "{page}"),
        Err(error) => writeln!(std::io::stderr(), "{} {COMMAND}: {error}", program.name),
    };
    if answer.is_ok() && written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn answer(program: Program, arguments: &Arguments) -> Result<String, ExplainError> {
    let config = arguments.config();
    let is_configured = config.is_some();
    let config = Config::load(&Flags { config, ..Flags::default() })?;
    let requests = Requests::new(program.metrics, program.kinds)?;
    let server_time = ServerTime::new(config.clock_jump_pause());
    let clients = client::connect(arguments.kubeconfig.as_deref(), requests, server_time).await?;
    let clock = Clock::new(clients.server_time);
    let cluster = Cluster::new(clients.work, &config, is_configured);
    let case = cluster.read(&arguments.object(), &clock).await?;
    let there = case.policies.in_namespace(&case.namespace);
    let (governing, audited) = questions::judge(cluster.client(), &there, &case).await;
    Ok(page::of(&case, governing.as_ref(), &audited))
}
