//! `trainjob-operator`: the controller of TrainJobs. See the library for how it works.

use std::{io::Write, process::ExitCode};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use trainjob_operator::{
    client,
    config::{self, Flags, FlagsError},
    logging, run,
};

fn main() -> ExitCode {
    let flags = match Flags::read(std::env::args_os()) {
        Ok(flags) => flags,
        Err(FlagsError::Answer(answer)) => {
            return match writeln!(std::io::stdout(), "{}", answer.trim_end()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(error) => return refuse(&error),
    };
    let config = match config::load(&flags) {
        Ok(config) => config,
        Err(error) => return refuse(&error),
    };
    if let Err(error) = logging::init(flags.logging) {
        return refuse(&error);
    }
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    runtime.block_on(async {
        let stop = match stop_on_signal() {
            Ok(stop) => stop,
            Err(error) => return refuse(&error),
        };
        let clients = match client::connect(flags.kubeconfig.as_deref()).await {
            Ok(clients) => clients,
            Err(error) => return refuse(&error),
        };
        // As a task: what runs on this thread instead is woken by way of the kernel each time.
        match tokio::spawn(run::run(config, clients, stop)).await {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(error)) => refuse(&error),
            Err(error) => refuse(&error),
        }
    })
}

/// Says in one line why the process ends.
fn refuse(error: &dyn std::error::Error) -> ExitCode {
    // If even this cannot be written, the exit code still says it.
    let _ = writeln!(std::io::stderr(), "trainjob-operator: {error}");
    ExitCode::FAILURE
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
