//! The chart as one file, as a release has it: `.ci/manifest`, and kubectl is all that takes it.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::{NAMESPACE, PATIENCE, RELEASE, Trial, job};
use crate::testenv::fixtures::{COMPLETES_AFTER, runtime};
use crate::testenv::release::programs::Programs;
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

/// A runtime of one's own: those that ship are not in the file.
const RUNTIME: &str = "one-file";
const SCRIPT: &str = ".ci/manifest";

/// Installs the file on a cluster that has nothing of it, twice, runs a job to its end, and removes it.
pub(super) async fn run(trial: &Trial<'_>, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let file = trial.cluster.folder().join("trainjob-operator.yaml");
    let address = trial.address();
    let arguments = address.iter().flat_map(|it| ["--set", it]).collect::<Vec<_>>();
    let text = trial.tools.with_helm(&workspace::path(SCRIPT), &arguments).await?;
    fs::write(&file, text)?;
    let file = file.display().to_string();
    let apply = ["apply", "--server-side", "-f", &file];
    trial.tools.kubectl(&apply, None).await?;
    let wait = ["wait", "deployment", "--all", "--for=condition=Available", "--timeout=2m"];
    let wait = [&wait[..], &["--namespace", NAMESPACE]].concat();
    trial.tools.kubectl(&wait, None).await?;
    let before = versions(trial).await?;
    trial.tools.kubectl(&apply, None).await?;
    ensure!(versions(trial).await? == before, "applying the file again has changed Deployments");
    tell(
        "installed by kubectl from one file; every Pod is ready, and applying it again changes nothing",
    );

    let programs = Programs::start(trial.cluster, &trial.tools, RELEASE, NAMESPACE).await?;
    let completes = runtime(RUNTIME, &serde_json::json!({COMPLETES_AFTER: "1s"}), 1, None);
    let objects = yaml::stream(&[completes, job(RUNTIME)]);
    until_ok("a job is admitted", PATIENCE, || async {
        trial.cluster.apply_yaml("default", &objects).await
    })
    .await?;
    let complete = ["wait", "trainjob", super::JOB, "--for=condition=Complete", "--timeout=2m"];
    trial.tools.kubectl(&complete, None).await?;
    drop(programs);
    trial.tools.kubectl(&["delete", "trainjob", super::JOB, "--timeout=60s"], None).await?;
    trial.tools.kubectl(&["delete", "-f", &file, "--timeout=2m"], None).await?;
    let left = trial.names("crd,clusterrole,mutatingwebhookconfiguration").await?;
    let left = left.iter().find(|it| it.contains("trainer.kubeflow.org") || it.contains(RELEASE));
    ensure!(left.is_none(), "{left:?} has stayed");
    tell("a job has run with it; deleted by the same file, it leaves nothing");
    Ok(())
}

/// What changes when a Deployment does.
async fn versions(trial: &Trial<'_>) -> Result<String> {
    let columns = "jsonpath={range .items[*]}{.metadata.name} {.metadata.generation}{\"\\n\"}{end}";
    let get = ["get", "deployments", "--namespace", NAMESPACE, "-o", columns];
    let versions = trial.tools.kubectl(&get, None).await?;
    (!versions.is_empty()).then_some(versions).context("there are no Deployments")
}
