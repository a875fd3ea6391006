//! What the demo plays on: a cluster with a release of the chart, whose programs run, and a runtime.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;

use crate::demo::clock::elapsed;
use crate::demo::scenarios;
use crate::demo::screen::clock;
use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::discovered::until_discovered;
use crate::testenv::fixtures::{PATIENCE, audit_flags};
use crate::testenv::operator::SERVICE_ACCOUNT;
use crate::testenv::recorder::{AccountingRecorder, Recorder};
use crate::testenv::release::programs::Programs;
use crate::testenv::release::{NAMESPACE, Release};
use crate::testenv::until::until_ok;

/// GPUs of each node of a box.
pub const GPUS_OF_NODE: usize = 8;

/// The values of the chart by which the accounting program and the retention engine are installed. The time to live deletes Pods a
/// few seconds after they have ended: only the mode `Exact` promises that none goes before it is counted. A Workload waits for its
/// Job, which the engine reads.
const VALUES: [&str; 4] = [
    "accounting.program=true",
    "accounting.mode=Exact",
    "retention.enabled=true",
    "retention.targets=[\
        {\"apiGroup\":\"batch\",\"kind\":\"Job\",\"resource\":\"jobs\"},\
        {\"apiGroup\":\"jobset.x-k8s.io\",\"kind\":\"JobSet\",\"resource\":\"jobsets\"},\
        {\"apiGroup\":\"kueue.x-k8s.io\",\"kind\":\"Workload\",\"resource\":\"workloads\",\
         \"owners\":[{\"apiGroup\":\"batch\",\"resource\":\"jobs\"}]}]",
];
/// Longer than any single step of a start takes by itself.
const SILENCE: Duration = Duration::from_secs(8);

/// A cluster with the chart in it and its programs beside it, and a namespace to play in. The programs are
/// stopped first.
pub struct Setup {
    /// The programs of the release.
    pub programs: Programs,
    /// The release, and the cluster that it is in.
    pub release: Release,
    /// A client with all permissions.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
    /// Writes down what happens.
    pub recorder: Recorder,
    /// Writes down what is counted.
    pub accounting_recorder: AccountingRecorder,
}

impl Setup {
    /// Builds what is missing, starts everything and waits until it is ready.
    pub async fn start(nodes: usize) -> Result<Self> {
        let plural = if nodes == 1 { "" } else { "s" };
        say(&format!("starting a control plane with {nodes} node{plural} of {GPUS_OF_NODE} GPUs"));
        let report = |_: Duration, step: &str| say(step);
        let apiserver_flags = audit_flags().to_vec();
        let basis = Options { apiserver_flags, ..Options::default() };
        let options = Options { nodes: Some(nodes), report, ..basis };
        // They tell of their progress by themselves. Kueue comes in the second act, and is built before the first.
        let cluster = Cluster::prepare(options).await?;
        tokio::task::spawn_blocking(|| Binaries::provide(&[Program::Kueue])).await??;
        audibly("starting the control plane", Box::pin(cluster.boot())).await?;
        say("helm install");
        let installed = audibly("installing the chart", Release::install(cluster, &VALUES));
        let release = installed.await?;
        let programs = audibly("starting the programs", release.start()).await?;
        say("operator, webhook, retention engine and accounting program are ready");
        // Jobs of before would wait for it, too, while their deadlines run.
        let (account, kind) =
            ((NAMESPACE, SERVICE_ACCOUNT), ("trainer.kubeflow.org/v1alpha1", "TrainJob"));
        let discovered = until_discovered(&release.cluster, account, kind);
        let waiting =
            "waiting until the API server has discovered TrainJobs, which takes it up to 30 s";
        audibly(waiting, discovered).await?;
        audibly("waiting until the operator knows that Pods are counted", is_counting(&programs))
            .await?;
        let client = release.cluster.client().await?;
        let recorder = Recorder::start(client.clone()).await?;
        let accounting_recorder = AccountingRecorder::start(client.clone()).await?;
        let namespace = release.cluster.namespace("demo").await?;
        let runtime = scenarios::runtime("torch-distributed")?;
        // The API server hears of the webhook's certificate a moment after the webhook has made it.
        let admitted = || release.cluster.apply_yaml(&namespace, &runtime);
        audibly("having a runtime admitted", until_ok("it is admitted", PATIENCE, admitted))
            .await?;
        Ok(Self { programs, release, client, namespace, recorder, accounting_recorder })
    }
}

/// Waits until the operator marks Pods, which it does for a program that lives (AM2).
async fn is_counting(programs: &Programs) -> Result<()> {
    until_ok("the accounting program is seen to live", PATIENCE, || async {
        let alive = programs.operator.metric("trainjob_operator_accounting_alive").await?;
        ensure!(alive > 0.5, "it is not");
        Ok(())
    })
    .await
}

/// Waits for `work`, and says what it waits for when that takes long.
pub async fn audibly<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = Box::pin(work);
    loop {
        match tokio::time::timeout(SILENCE, &mut work).await {
            Ok(done) => return done,
            Err(_) => say(&format!("... {what}")),
        }
    }
}

/// Writes a line of progress. A reader that has gone is noticed later.
pub fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}  {line}", clock(elapsed()));
    let _ = out.flush();
}
