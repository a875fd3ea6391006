//! `cargo box`: a real control plane in a box, until Ctrl-C.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use e2e::cluster::{Cluster, Options};
use e2e::operator::{Operator, OperatorOptions, SERVICE_ACCOUNT, install_operator_rbac};
use launcher::say;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// A real Kubernetes control plane with JobSet and fake GPU nodes, on 127.0.0.1, until Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "cargo box", bin_name = "cargo box")]
struct Arguments {
    /// How many fake nodes, of 8 GPUs each.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// Also install the custom resource definitions and run the operator.
    #[arg(long)]
    operator: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = Runtime::new().map_err(Into::into).and_then(|runtime| {
        let outcome = runtime.block_on(run_until_stopped(&arguments));
        // A build that is under way is not waited for.
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run_until_stopped(arguments: &Arguments) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    // Whatever it is doing when it is told to stop, dropping it stops everything.
    tokio::select! {
        outcome = run(arguments) => outcome,
        () = stopped => {
            say("Stopped.");
            Ok(())
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let begun = Instant::now();
    let options = Options {
        nodes: Some(arguments.nodes),
        crds: arguments.operator,
        report: print_step,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await?;
    let operator = if arguments.operator { Some(start_operator(&cluster).await?) } else { None };
    print_usage(&cluster, operator.as_ref(), begun.elapsed())?;
    // Until the signal drops this.
    std::future::pending().await
}

async fn start_operator(cluster: &Cluster) -> Result<Operator> {
    let namespace = "trainjob-system";
    install_operator_rbac(cluster, namespace).await?;
    let kubeconfig = cluster.service_account_kubeconfig(namespace, SERVICE_ACCOUNT).await?;
    let options = OperatorOptions { kubeconfig: Some(kubeconfig), ..OperatorOptions::default() };
    let operator = Operator::start(cluster, options).await?;
    operator.wait_ready().await?;
    Ok(operator)
}

fn print_step(elapsed: Duration, step: &str) {
    say(format_args!("{:>6.1} s  {step}", elapsed.as_secs_f64()));
}

fn print_usage(cluster: &Cluster, operator: Option<&Operator>, took: Duration) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\nReady after {:.1} s. In another terminal:\n", took.as_secs_f64())?;
    writeln!(out, "  export KUBECONFIG={}", cluster.kubeconfig().display())?;
    writeln!(out, "  alias kubectl={}", cluster.kubectl().display())?;
    writeln!(out, "  kubectl get nodes\n")?;
    writeln!(out, "Logs are in {}.", cluster.folder().display())?;
    if let Some(operator) = operator {
        writeln!(out, "The operator's log is {}.", operator.process().log_path().display())?;
    }
    writeln!(out, "Ctrl-C stops everything and removes it.")?;
    out.flush()?;
    Ok(())
}
