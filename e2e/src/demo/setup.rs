//! What the demo plays on: a cluster, the operator with the rights it ships with, a runtime.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use kube::Client;

use crate::cluster::{Cluster, Options};
use crate::demo::cast;
use crate::demo::clock::elapsed;
use crate::demo::screen::clock;
use crate::fixtures::audit_flags;
use crate::operator::{Operator, OperatorOptions, SERVICE_ACCOUNT, install_operator_rbac};
use crate::recorder::Recorder;

/// The namespace of the operator.
const OPERATOR: &str = "trainjob-system";

/// GPUs of each node of a box.
pub const GPUS_OF_NODE: usize = 8;

/// Longer than any single step of a start takes by itself.
const SILENCE: Duration = Duration::from_secs(8);

/// A cluster with a running operator, and a namespace to play in. The operator is stopped first.
pub struct Setup {
    /// The operator.
    pub operator: Operator,
    /// The cluster.
    pub cluster: Cluster,
    /// A client with all rights.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
    /// Writes down what happens.
    pub recorder: Recorder,
}

impl Setup {
    /// Builds what is missing, starts everything and waits until it is ready.
    ///
    /// # Errors
    ///
    /// Something cannot be built or does not become ready.
    pub async fn start(nodes: usize) -> Result<Self> {
        let plural = if nodes == 1 { "" } else { "s" };
        say(&format!("starting a control plane with {nodes} node{plural} of {GPUS_OF_NODE} GPUs"));
        let report = |_: Duration, step: &str| say(step);
        let apiserver_flags = audit_flags().to_vec();
        let basis = Options { apiserver_flags, ..Options::default() };
        let options = Options { nodes: Some(nodes), crds: true, report, ..basis };
        // It tells of its progress by itself.
        let cluster = Cluster::prepare(options).await?;
        audibly("starting the control plane", Box::pin(cluster.boot())).await?;
        let installed = audibly("installing the operator", install(&cluster));
        let (kubeconfig, namespace) = installed.await?;
        let client = cluster.client().await?;
        let recorder = Recorder::start(client.clone()).await?;
        let options = OperatorOptions { kubeconfig: Some(kubeconfig), ..Default::default() };
        let operator = Operator::start(&cluster, options).await?;
        audibly("starting the operator", operator.wait_ready()).await?;
        say("operator is ready");
        Ok(Self { operator, cluster, client, namespace, recorder })
    }
}

/// Gives the kubeconfig of the operator, and the namespace to play in.
async fn install(cluster: &Cluster) -> Result<(std::path::PathBuf, String)> {
    install_operator_rbac(cluster, OPERATOR).await?;
    let namespace = cluster.namespace("demo").await?;
    cluster.apply_yaml(&namespace, &cast::runtime("torch-distributed")?).await?;
    let kubeconfig = cluster.service_account_kubeconfig(OPERATOR, SERVICE_ACCOUNT).await?;
    Ok((kubeconfig, namespace))
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
