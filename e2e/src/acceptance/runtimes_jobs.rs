//! The Jobs of the chart that create and remove runtimes as long as these are not objects of the release.
//!
//! Their Pods run on fake nodes. What such a Pod would run, runs beside the cluster, with the Job's account and files; then
//! the Pod completes.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::COMPLETES_AFTER;
use crate::testenv::product::Options;
use crate::testenv::release::programs::Program;
use crate::testenv::tools::Tools;
use crate::testenv::until::until_ok;

/// How long the slowest step may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Where the Pods have their files.
const FOLDER: &str = "--from=/etc/trainjob-operator/runtimes";

/// Waits for the Job that does this (`create` or `remove`), does it with the rights and the files that the Job has, and lets the
/// Job complete. What the program has logged.
pub(super) async fn play(
    cluster: &Cluster,
    tools: &Tools,
    (release, namespace): (&str, &str),
    what: &str,
) -> Result<String> {
    let name = format!("{release}-runtimes");
    let job = format!("job-name={name}-{what}");
    let of_job = |verb: &'static str, rest: &[&'static str]| {
        let arguments = [verb, "pods", "--namespace", namespace, "-l", &job];
        [
            &arguments.map(str::to_owned)[..],
            &rest.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(),
        ]
        .concat()
    };
    let pod = until_ok(format!("the Job that should {what} runtimes runs"), PATIENCE, || async {
        let list = tools.kubectl(&of_job("get", &["-o", "json"]), None).await?;
        let list: Value = serde_json::from_str(&list)?;
        list.pointer("/items/0").cloned().context("no Pod")
    })
    .await?;
    let arguments = pod.pointer("/spec/containers/0/args").and_then(Value::as_array);
    let arguments: Vec<_> = arguments.into_iter().flatten().filter_map(Value::as_str).collect();
    let ["runtimes", FOLDER, ref flags @ ..] = arguments[..] else {
        anyhow::bail!("it runs {arguments:?}");
    };

    let files = ["get", "configmap", &name, "--namespace", namespace, "-o", "jsonpath={.data}"];
    let files: BTreeMap<String, String> =
        serde_json::from_str(&tools.kubectl(&files, None).await?)?;
    let folder = tempfile::tempdir()?;
    for (file, text) in &files {
        fs::write(folder.path().join(file), text)?;
    }
    let from = format!("--from={}", folder.path().display());
    let options = Options {
        command: Some("runtimes"),
        kubeconfig: Some(cluster.service_account_kubeconfig(namespace, &name).await?),
        extra_args: [&*from].iter().chain(flags).map(|flag| (*flag).to_owned()).collect(),
        ..Options::default()
    };
    let program = Program::Operator.start(cluster, options).await?;
    let status = program.wait(PATIENCE).await?;
    let log = program.log()?;
    ensure!(status.success(), "{status}: {log}");

    let mut annotate = of_job("annotate", &[]);
    annotate.push(format!("{COMPLETES_AFTER}=1s"));
    tools.kubectl(&annotate, None).await?;
    Ok(log)
}
