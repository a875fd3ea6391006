//! The accounting program under test: the real binary, with an account of its own.

pub mod accounting_box;
mod install;

pub mod marked;

use std::ops::Deref;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use trainjob_api::lifecycle::v1alpha1::record::{TrainJobRecord, TrainJobRecordStatus};
use trainjob_api::lifecycle::v1alpha1::{ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL};
use trainjob_api::time::Timestamp;

use self::accounting_box::AccountingBox;
pub use self::install::{
    NAMESPACE, SERVICE_ACCOUNT, grant_all_but, install_accounting, install_raw_client,
};
use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::{PATIENCE, Tenant, World};
use crate::testenv::product::{Options, Product};
use crate::testenv::until::until_ok;
use crate::testenv::workspace;

/// The user that it is.
pub const USER: &str = "system:serviceaccount:trainjob-accounting:trainjob-accounting";
/// The name of its Lease.
pub const LEASE: &str = "trainjob-accounting";

/// How many lines of its log a failed test shows.
const SHOWN: usize = 40;

/// The part of the configuration by which another takes over a few seconds after one was killed.
const SHORT_LIVED: &str =
    "leaderElection: {leaseDuration: 6s, renewDeadline: 5s, retryPeriod: 1s}\n";

/// A running accounting program, or one of its commands. Dropped, it is asked to stop, and killed if it does not.
#[derive(Debug)]
pub struct Accounting(Product);

impl Accounting {
    /// Starts one as its own `ServiceAccount`, with this section `accounting` in its configuration, and waits until it is
    /// ready.
    pub async fn start(cluster: &Cluster, section: &str) -> Result<Self> {
        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        Self::start_as(cluster, section, kubeconfig).await
    }

    /// The same with these credentials.
    pub async fn start_as(cluster: &Cluster, section: &str, kubeconfig: PathBuf) -> Result<Self> {
        let program = Self::with(cluster, section, "", kubeconfig).await?;
        program.wait_ready().await?;
        Ok(program)
    }

    /// The same, with a Lease that another takes over a few seconds after it was killed.
    pub async fn short_lived(
        cluster: &Cluster,
        section: &str,
        kubeconfig: PathBuf,
    ) -> Result<Self> {
        let program = Self::with(cluster, section, SHORT_LIVED, kubeconfig).await?;
        program.wait_ready().await?;
        Ok(program)
    }

    /// Starts one as it ships, and waits until it is ready.
    pub async fn as_shipped(cluster: &Cluster, kubeconfig: PathBuf) -> Result<Self> {
        let options =
            Options { kubeconfig: Some(kubeconfig), extra_args: Vec::new(), ..options("{}") };
        let program = Self::run(cluster, options).await?;
        program.wait_ready().await?;
        Ok(program)
    }

    /// The same as one of which there is only one, so that none is elected; whether it is ready is another question.
    pub async fn unelected(cluster: &Cluster, section: &str, kubeconfig: PathBuf) -> Result<Self> {
        Self::with(cluster, section, "leaderElection: {leaderElect: false}\n", kubeconfig).await
    }

    async fn with(
        cluster: &Cluster,
        section: &str,
        election: &str,
        kubeconfig: PathBuf,
    ) -> Result<Self> {
        let mut options = Options { kubeconfig: Some(kubeconfig), ..options(section) };
        options.config_yaml.push_str(election);
        Self::run(cluster, options).await
    }

    /// Starts one of its commands with these flags.
    pub async fn command(cluster: &Cluster, command: &'static str, flags: &[&str]) -> Result<Self> {
        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        Self::command_as(cluster, command, flags, kubeconfig).await
    }

    /// The same with these credentials.
    pub async fn command_as(
        cluster: &Cluster,
        command: &'static str,
        flags: &[&str],
        kubeconfig: PathBuf,
    ) -> Result<Self> {
        let options = Options {
            command: Some(command),
            kubeconfig: Some(kubeconfig),
            extra_args: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            ..options("{}")
        };
        Self::run(cluster, options).await
    }

    async fn run(cluster: &Cluster, options: Options) -> Result<Self> {
        let binary = tokio::task::spawn_blocking(workspace::accounting).await??;
        Ok(Self(Product::start(cluster, "accounting", &binary, options)?))
    }

    /// The end of what it has logged, for a failure to show.
    #[must_use]
    pub fn last_logged(&self) -> String {
        let log = self.log().unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default();
        format!("what the program logged:\n{}", last.join("\n"))
    }

    /// Waits until it counts.
    pub async fn leads(&self) -> Result<()> {
        until_ok("it leads", PATIENCE, || async {
            ensure!(self.metric("trainjob_accounting_leader").await? > 0.5, "it does not");
            Ok(())
        })
        .await
    }
}

fn options(section: &str) -> Options {
    let head = "apiVersion: config.lifecycle.trainjob.dev/v1alpha1\nkind: AccountingConfiguration";
    Options {
        config_yaml: format!("{head}\naccounting: {section}\n"),
        env: vec![("POD_NAMESPACE".to_owned(), NAMESPACE.to_owned())],
        extra_args: vec!["--log-level=debug".to_owned()],
        ..Options::default()
    }
}

impl Deref for Accounting {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.0
    }
}

/// A box in which an operator marks Pods and the accounting program counts them.
#[derive(Debug)]
pub struct Counted {
    /// The program, which ends before the box does.
    pub program: Accounting,
    /// The box.
    pub world: AccountingBox,
}

impl Counted {
    /// Starts one in a box of the pool: the operator in this mode, the program with this section `accounting` in its
    /// configuration. Other tests use the box afterwards, so its nodes and components have to stay as they are.
    pub async fn start(mode: &str, section: &str) -> Result<Self> {
        Self::start_in(AccountingBox::pooled().await?, mode, section).await
    }

    /// The same in this box.
    pub async fn start_in(world: AccountingBox, mode: &str, section: &str) -> Result<Self> {
        let program = Accounting::start(&world.cluster, section).await?;
        program.leads().await?;
        start_operator(&world, mode).await?;
        Ok(Self { program, world })
    }

    /// Runs one test in a namespace of its own; a failure shows what there is to know about it.
    pub async fn test<T>(
        &self,
        prefix: &str,
        body: impl AsyncFnOnce(&Tenant<'_>) -> Result<T>,
    ) -> Result<T> {
        let explained = async |tenant: &Tenant<'_>| {
            let result = Box::pin(body(tenant)).await;
            result.with_context(|| {
                let log = self.program.log().unwrap_or_default();
                let about = log.lines().filter(|line| line.contains(&tenant.namespace));
                let about: Vec<_> = about.collect();
                let last = about.len().saturating_sub(SHOWN);
                format!(
                    "what the program logged:\n{}",
                    about.into_iter().skip(last).collect::<Vec<_>>().join("\n")
                )
            })
        };
        self.world.test(prefix, explained).await
    }
}

/// Starts an operator in this mode, and waits until it knows that somebody counts.
pub async fn start_operator(world: &World, mode: &str) -> Result<()> {
    let section = format!("accounting: {{mode: {mode}, leaseNamespace: {NAMESPACE}}}\n");
    world.start_operator_with(&section).await?;
    marks(world).await
}

/// Waits until the operator knows that somebody counts, so that it marks Pods.
pub async fn marks(world: &World) -> Result<()> {
    until_ok("the operator knows that somebody counts", PATIENCE, || async {
        let is_alive = |line: &str| line == "trainjob_operator_accounting_alive 1";
        ensure!(world.metrics().await?.lines().any(is_alive), "it does not");
        Ok(())
    })
    .await
}

/// The records of TrainJobs of this name.
pub async fn records(tenant: &Tenant<'_>, job: &str) -> Result<Vec<TrainJobRecord>> {
    let records: Api<TrainJobRecord> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
    let labels = format!("{TRAIN_JOB_NAME_LABEL}={job}");
    Ok(records.list(&ListParams::default().labels(&labels)).await?.items)
}

/// The status of the only record of a job.
pub async fn status(tenant: &Tenant<'_>, job: &str) -> Result<TrainJobRecordStatus> {
    let mut records = records(tenant, job).await?;
    ensure!(records.len() == 1, "{} records", records.len());
    records.pop().and_then(|record| record.status).context("a record without status")
}

/// Waits until the only record of a job is final, and returns its status.
pub async fn becomes_final(tenant: &Tenant<'_>, job: &str) -> Result<TrainJobRecordStatus> {
    until_ok("the record is final", PATIENCE, || async {
        let status = status(tenant, job).await?;
        ensure!(holds(&status, "Final"), "it is not: {status:#?}");
        Ok(status)
    })
    .await
}

/// Whether a Pod has our finalizer.
#[must_use]
pub fn is_held(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == ACCOUNTING_FINALIZER)
}

/// Whether a condition of a record is true.
#[must_use]
pub fn holds(status: &TrainJobRecordStatus, condition: &str) -> bool {
    status.conditions.iter().any(|it| it.type_ == condition && it.status == "True")
}

/// The reason of a condition of a record.
#[must_use]
pub fn reason<'a>(status: &'a TrainJobRecordStatus, condition: &str) -> Option<&'a str> {
    let mut all = status.conditions.iter();
    all.find(|it| it.type_ == condition).map(|it| it.reason.as_str())
}

/// Why the Pods of a record ended.
#[must_use]
pub fn reasons(status: &TrainJobRecordStatus) -> Vec<(&str, u64)> {
    let attempts = status.replicated_jobs.iter().flat_map(|job| &job.attempts);
    let reasons = attempts.flat_map(|attempt| &attempt.sums.reasons);
    reasons.map(|(reason, count)| (reason.as_str(), *count)).collect()
}

/// Waits until these Pods are older than a suspension that comes now.
///
/// Instants are whole seconds: of a Pod that is as old as the suspension nobody can say which came first. The operator writes
/// down its estimate of the time, which may be a moment behind, so that the next second is not enough.
pub async fn become_older(pods: &[Pod]) -> Result<()> {
    let created = pods.iter().filter_map(ResourceExt::creation_timestamp).max();
    let created = Timestamp::from(&created.context("no Pod")?);
    until_ok("they are older", PATIENCE, || async {
        let now = Timestamp::from(SystemTime::now());
        ensure!(now > created.plus(1), "they are not");
        Ok(())
    })
    .await
}
