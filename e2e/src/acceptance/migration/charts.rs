//! The Helm charts of Kubeflow Trainer and JobSet as they were released, where the box needs them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::testenv::binaries::JobSet;
use crate::testenv::cluster::Cluster;
use crate::testenv::modules::{Module, ModuleFiles};
use crate::testenv::ports::Port;
use crate::testenv::tools::Tools;
use crate::testenv::workspace::copy_folder;
use crate::testenv::{trainer, yaml};

/// The namespace of Trainer.
pub(super) const NAMESPACE: &str = trainer::NAMESPACE;
/// Its release and its Deployment.
pub(super) const TRAINER: &str = "kubeflow-trainer";
const CHART: &str = "Chart.yaml";
/// The chart that Trainer's brings only for its data cache, which is off. Its files are in no module that is pinned.
const OF_CACHE: &str = "lws";
/// What registers Trainer's webhooks.
const WEBHOOK_CONFIGURATIONS: [&str; 2] = [
    "templates/webhook/mutating_webhook_configuration.yaml",
    "templates/webhook/validating_webhook_configuration.yaml",
];
/// What registers JobSet's. Those of the JobSet that runs in the box are there, and have the same names.
const OF_JOBSET: &str = "templates/webhook/manifests.yaml";

/// Where the charts are.
pub(super) struct Charts {
    pub(super) trainer: PathBuf,
    pub(super) jobset: PathBuf,
}

impl Charts {
    /// Copies them to `folder`, such that Trainer's admission server is asked at `webhook`.
    pub(super) async fn provide(
        cluster: &Cluster,
        tools: &Tools,
        folder: &Path,
        webhook: &Port,
    ) -> Result<Self> {
        let (trainer, jobset) = (folder.join(TRAINER), folder.join("jobset"));
        copy_folder(&trainer::files().await?.path(&format!("charts/{TRAINER}")), &trainer)?;
        let module = || ModuleFiles::provide(Module::JobSet(JobSet::Newest));
        let module = tokio::task::spawn_blocking(module).await??;
        copy_folder(&module.path("charts/jobset"), &jobset)?;
        fs::remove_file(jobset.join(OF_JOBSET))?;
        copy_folder(&jobset, &trainer.join("charts/jobset"))?;
        without_cache(&trainer.join(CHART))?;
        for file in WEBHOOK_CONFIGURATIONS {
            let chart = trainer.display().to_string();
            let template =
                ["template", TRAINER, &chart, "--namespace", NAMESPACE, "--show-only", file];
            let mut objects = yaml::documents(&tools.helm_offline(&template).await?)?;
            trainer::point(&mut objects, cluster, webhook)?;
            replace(&trainer.join(file), &yaml::stream(&objects))?;
        }
        Ok(Self { trainer, jobset })
    }
}

/// Helm refuses a chart that lacks one of its dependencies, even one that is off.
fn without_cache(file: &Path) -> Result<()> {
    let mut chart = yaml::documents(&fs::read_to_string(file)?)?.pop().context("an empty chart")?;
    let dependencies = chart.get_mut("dependencies").and_then(Value::as_array_mut);
    dependencies.context("no dependencies")?.retain(|it| it["name"] != OF_CACHE);
    replace(file, &chart.to_string())
}

/// The files of a module cannot be written to, nor can their copies.
fn replace(file: &Path, text: &str) -> Result<()> {
    fs::remove_file(file)?;
    Ok(fs::write(file, text)?)
}
