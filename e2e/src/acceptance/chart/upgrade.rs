//! From the chart of version 0.1, as its users have it, to this one.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{JOB, NAMESPACE, PATIENCE, RELEASE, RUNTIMES, Trial};
use crate::testenv::fixtures::{COMPLETES_AFTER, runtime, train_job};
use crate::testenv::release::programs::Programs;
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

/// The chart of 0.1, as it was packaged.
const OLD: &str = "e2e/charts/trainjob-operator-0.1.0.tgz";
const RUNTIME: &str = "upgrade";
/// Its programs do not run here, so nobody answers for them.
const NOBODY_ANSWERS: &str = "webhook.failurePolicy=Ignore";

/// Installs the old chart, stores a job, upgrades, and sees the job through.
pub(super) async fn run(trial: &Trial<'_>, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let old = workspace::path(OLD);
    ensure!(fs::exists(&old)?, "{OLD} is missing");
    trial.tools.kubectl(&["create", "namespace", NAMESPACE], None).await?;
    trial.install_chart("install", &old.display().to_string(), &[NOBODY_ANSWERS]).await?;
    let completes = runtime(RUNTIME, &json!({COMPLETES_AFTER: "1s"}), 1, None);
    let lives = json!({"ttlSecondsAfterFinished": 1, "trainer": {"numNodes": 1}});
    let objects = yaml::stream(&[completes, train_job(JOB, RUNTIME, &lives)]);
    trial.cluster.apply_yaml("default", &objects).await?;
    let before = uid(trial).await?;
    let sets = ["webhook.failurePolicy=Fail", "runtimes.defaultEnabled=true"];
    let sets = [&["--reset-then-reuse-values"][..], &sets].concat();
    trial.install("upgrade", &sets).await?;
    ensure!(uid(trial).await? == before, "the job is another one");
    let runtimes = trial.names("clustertrainingruntimes").await?.len();
    ensure!(runtimes == RUNTIMES + 1, "there are {runtimes} runtimes, one of our own");
    tell("upgraded from version 0.1, with its values kept; the job that it had is there");

    let programs = Programs::start(trial.cluster, &trial.tools, RELEASE, NAMESPACE).await?;
    let gone = ["wait", "trainjob", JOB, "--for=delete", "--timeout=2m"];
    trial.tools.kubectl(&gone, None).await?;
    let again = train_job("after", RUNTIME, &lives);
    until_ok("a job is admitted", PATIENCE, || async {
        trial.cluster.apply_yaml("default", &again.to_string()).await
    })
    .await?;
    trial
        .tools
        .kubectl(&["wait", "trainjob", "after", "--for=delete", "--timeout=2m"], None)
        .await?;
    tell("the job of before has run, completed and been deleted by its TTL, and so has a new one");
    drop(programs);
    trial.tools.helm(&["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"]).await?;
    Ok(())
}

async fn uid(trial: &Trial<'_>) -> Result<String> {
    let get = ["get", "trainjob", JOB, "-o", "jsonpath={.metadata.uid}"];
    let uid = trial.tools.kubectl(&get, None).await?;
    (!uid.is_empty()).then_some(uid).context("the job has no UID")
}
