//! From the command line to the work, and back to an exit code.

use std::{
    error::Error,
    ffi::OsString,
    io::Write,
    process::{ExitCode, Termination},
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{
    client::{self, Clients},
    config::{Flags, FlagsError, Settings},
    logging,
    metrics::Requests,
    program::Program,
    server_time::ServerTime,
};

/// Runs `work` with what the command line, file and environment say, until it ends by itself or because its third
/// argument became true, on the first SIGTERM or SIGINT; the second signal ends the process at once. The first argument is
/// the name of the program.
///
/// Exit code 0, or what `work` says, if all went well; otherwise 1, and stderr says why in one line.
pub fn start<C, W, T, E>(
    program: Program,
    arguments: impl IntoIterator<Item = OsString>,
    work: impl FnOnce(C, Clients, watch::Receiver<bool>) -> W,
) -> ExitCode
where
    C: Settings,
    W: Future<Output = Result<T, E>> + Send + 'static,
    T: Termination + Send + 'static,
    E: Error + Send + 'static,
{
    let refuse = |error: &dyn Error| {
        // If even this cannot be written, the exit code still says it.
        let _ = writeln!(std::io::stderr(), "{}: {error}", program.name);
        ExitCode::FAILURE
    };
    let flags = match Flags::read(program, arguments) {
        Ok(flags) => flags,
        Err(FlagsError::Answer(answer)) => {
            return match writeln!(std::io::stdout(), "{}", answer.trim_end()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(error) => return refuse(&error),
    };
    let config = match C::load(&flags) {
        Ok(config) => config,
        Err(error) => return refuse(&error),
    };
    if let Err(error) = logging::init(flags.logging) {
        return refuse(&error);
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = program.threads {
        runtime.worker_threads(threads.get());
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    runtime.block_on(async {
        let stop = match stop_on_signal() {
            Ok(stop) => stop,
            Err(error) => return refuse(&error),
        };
        let requests = match Requests::new(program.metrics, program.kinds) {
            Ok(requests) => requests,
            Err(error) => return refuse(&error),
        };
        let server_time = ServerTime::new(config.clock_jump_pause());
        let clients = client::connect(flags.kubeconfig.as_deref(), requests, server_time).await;
        let clients = match clients {
            Ok(clients) => clients,
            Err(error) => return refuse(&error),
        };
        // As a task: what runs on this thread instead is woken by way of the kernel each time.
        match tokio::spawn(work(config, clients, stop)).await {
            Ok(Ok(ended)) => ended.report(),
            Ok(Err(error)) => refuse(&error),
            Err(error) => refuse(&error),
        }
    })
}

/// Becomes true with the first SIGTERM or SIGINT; the second ends the process at once.
fn stop_on_signal() -> std::io::Result<watch::Receiver<bool>> {
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (sender, stop) = watch::channel(false);
    tokio::spawn(async move {
        for last in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if last {
                std::process::exit(1);
            }
            sender.send_replace(true);
        }
    });
    Ok(stop)
}
