//! `cargo box`: a real control plane in a box, until Ctrl-C.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use e2e::cluster::{Cluster, Options};
use e2e::release::Release;
use e2e::release::programs::Programs;
use e2e::stopped::stopped;
use launcher::say;
use tokio::runtime::Runtime;

/// A real Kubernetes control plane with JobSet and fake GPU nodes, on 127.0.0.1, until Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "cargo box", bin_name = "cargo box")]
struct Arguments {
    /// How many fake nodes, of 8 GPUs each.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// Also install the chart and run the operator and the webhook.
    #[arg(long)]
    operator: bool,
    /// A file of values for the chart, such as the `retention.yaml` of docs/cleanup.md; may be given several times. The
    /// retention engine and the accounting program run if they enable them.
    #[arg(long, value_name = "FILE", requires = "operator")]
    values: Vec<PathBuf>,
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
    // Whatever it is doing when it is told to stop, dropping it stops everything.
    tokio::select! {
        outcome = run(arguments) => outcome,
        stopped = stopped() => {
            stopped?;
            say("Stopped.");
            Ok(())
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let begun = Instant::now();
    let options =
        Options { nodes: Some(arguments.nodes), report: print_step, ..Options::default() };
    let cluster = Cluster::start(options).await?;
    // Until the signal drops what runs.
    if arguments.operator {
        let release = Release::install_with(cluster, &arguments.values, &[]).await?;
        let programs = release.start().await?;
        print_usage(&release.cluster, Some(&programs), begun.elapsed())?;
        std::future::pending().await
    } else {
        print_usage(&cluster, None, begun.elapsed())?;
        std::future::pending().await
    }
}

fn print_step(elapsed: Duration, step: &str) {
    say(format_args!("{:>6.1} s  {step}", elapsed.as_secs_f64()));
}

fn print_usage(cluster: &Cluster, programs: Option<&Programs>, took: Duration) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\nReady after {:.1} s. In another terminal:\n", took.as_secs_f64())?;
    writeln!(out, "  export KUBECONFIG={}", cluster.kubeconfig().display())?;
    writeln!(out, "  alias kubectl={}", cluster.kubectl().display())?;
    writeln!(out, "  kubectl get nodes\n")?;
    if let Some(Programs { retention: Some(engine), .. }) = programs {
        let config = engine.flags().iter().find(|flag| flag.starts_with("--config="));
        let (binary, config) = (engine.binary().display(), config.map_or("", String::as_str));
        writeln!(out, "Why an object is not deleted, or when it is (docs/cleanup.md):\n")?;
        writeln!(out, "  explain() {{ {binary} explain {config} \"$@\"; }}\n")?;
    }
    writeln!(out, "Logs are in {}.", cluster.folder().display())?;
    if let Some(Programs { operator, webhook, retention, accounting }) = programs {
        let optional = [("retention engine", retention), ("accounting program", accounting)];
        let optional = optional.into_iter().filter_map(|(whose, it)| Some((whose, it.as_ref()?)));
        for (whose, program) in
            [("operator", operator), ("webhook", webhook)].into_iter().chain(optional)
        {
            let (log, metrics) =
                (program.process().log_path().display(), program.metrics_address());
            writeln!(
                out,
                "The {whose}'s log is {log}, its metrics are at http://{metrics}/metrics."
            )?;
        }
    }
    writeln!(out, "Ctrl-C stops everything and removes it.")?;
    out.flush()?;
    Ok(())
}
