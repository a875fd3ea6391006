//! Kubeflow Trainer itself: its controller manager, with the manifests of its own release.
//!
//! Both come from its Go module, to be applied and run. The manager expects its certificate in a fixed place
//! in the folder of temporary files; each box gives it a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::Cluster;
use crate::testenv::modules::{Module, ModuleFiles};
use crate::testenv::ports::Port;
use crate::testenv::product::{Options, Product};
use crate::testenv::workspace::copy_folder;
use crate::testenv::yaml;

/// The release.
pub(crate) const VERSION: &str = "2.3.0";
/// The namespace of its manifests.
pub(crate) const NAMESPACE: &str = "kubeflow-system";
/// What its manifests call its Deployment and its `ServiceAccount`.
pub(crate) const MANAGER: &str = "kubeflow-trainer-controller-manager";
/// The ConfigMap with its configuration, and the file in it.
pub(crate) const CONFIGURATION: (&str, &str) =
    ("kubeflow-trainer-config", "controller_manager_config.yaml");

/// Where it looks for its certificate, below the folder of temporary files.
const CERTIFICATES: &str = "k8s-webhook-server/serving-certs";
const MANIFESTS: &str = "manifests";
/// The manager with everything it needs, as `kubectl apply -k` installs it.
const OF_MANAGER: &str = "overlays/manager";
/// The runtimes that come with it.
const OF_RUNTIMES: &str = "overlays/runtimes";
/// Downloaded while it is applied. The box has a JobSet of the same release.
const JOBSET: &str = "../../third-party/jobset";

/// The files of its module.
pub(crate) async fn files() -> Result<ModuleFiles> {
    tokio::task::spawn_blocking(|| ModuleFiles::provide(Module::Trainer)).await?
}

/// Its release, ready to be applied.
#[derive(Debug, Clone)]
pub(crate) struct Manifests {
    /// The manager and what it needs: definitions, RBAC, webhook configurations and its Deployment, without JobSet.
    pub(crate) manager: Vec<Value>,
    /// The runtimes that come with it.
    pub(crate) runtimes: Vec<Value>,
}

impl Manifests {
    /// Those for a manager whose admission server listens on `webhook`.
    pub(crate) async fn provide(cluster: &Cluster, webhook: &Port) -> Result<Self> {
        let folder = cluster.folder().join("trainer-manifests");
        copy_folder(&files().await?.path(MANIFESTS), &folder)?;
        without_jobset(&folder.join(OF_MANAGER).join("kustomization.yaml"))?;
        let mut manager = built(cluster, &folder.join(OF_MANAGER)).await?;
        point(&mut manager, cluster, webhook)?;
        let runtimes = built(cluster, &folder.join(OF_RUNTIMES)).await?;
        Ok(Self { manager, runtimes })
    }

    /// What a manager that runs beside the cluster needs in it.
    pub(crate) fn for_process(&self) -> Vec<Value> {
        let runs = |it: &&Value| matches!(it["kind"].as_str(), Some("Deployment" | "Service"));
        self.manager.iter().filter(|it| !runs(it)).cloned().collect()
    }

    /// The configuration that the manager is given.
    pub(crate) fn configuration(&self) -> Result<Value> {
        let (name, file) = CONFIGURATION;
        let is_it = |it: &&Value| {
            it.get("kind") == Some(&json!("ConfigMap"))
                && it.pointer("/metadata/name") == Some(&json!(name))
        };
        let found = self.manager.iter().find(is_it).context("Trainer has no configuration")?;
        let text = found.get("data").and_then(|data| data.get(file)).and_then(Value::as_str);
        let text = text.context("Trainer's configuration has no file")?;
        yaml::documents(text)?.pop().context("Trainer's configuration is empty")
    }
}

/// Points the webhook configurations among `objects` at an admission server that runs beside the cluster.
pub(crate) fn point(objects: &mut [Value], cluster: &Cluster, webhook: &Port) -> Result<()> {
    let authority = ByteString(cluster.authority().into());
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        if !kind.ends_with("WebhookConfiguration") {
            continue;
        }
        let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
        for registered in webhooks.context("a webhook configuration has no webhooks")? {
            let path = registered.pointer("/clientConfig/service/path").and_then(Value::as_str);
            let path = path.context("a webhook has no path")?;
            let url = format!("https://{}{path}", webhook.address());
            registered["clientConfig"] = json!({"url": url, "caBundle": authority});
        }
    }
    Ok(())
}

/// Starts the manager with `configuration`, which is that of its release, as the account that its manifests
/// made for it, and waits until it is ready. It exits where its definitions are not served yet.
pub(crate) async fn start(
    cluster: &Cluster,
    webhook: &Port,
    mut configuration: Value,
) -> Result<Product> {
    for (section, field, value) in [
        ("webhook", "host", json!("127.0.0.1")),
        ("webhook", "port", json!(webhook.number())),
        ("certManagement", "enable", json!(false)),
        // It reads the namespace of its own Pod otherwise.
        ("leaderElection", "resourceNamespace", json!(NAMESPACE)),
        ("metrics", "secureServing", json!(false)),
    ] {
        let sections = configuration.as_object_mut().context("a configuration is a map")?;
        let fields = sections.entry(section).or_insert_with(|| json!({})).as_object_mut();
        fields.with_context(|| format!("{section} is a map"))?.insert(field.to_owned(), value);
    }
    for (section, field) in [("health", "healthProbeBindAddress"), ("metrics", "bindAddress")] {
        let section = configuration.get_mut(section).and_then(Value::as_object_mut);
        // The ports of a Pod; the box gives it others.
        section.context("a section is missing")?.remove(field);
    }
    let provide = || Binaries::provide(&[Program::TrainerManager]);
    let programs = tokio::task::spawn_blocking(provide).await??;
    let temporary = certificates(cluster)?;
    let options = Options {
        config_yaml: configuration.to_string(),
        kubeconfig: Some(cluster.service_account_kubeconfig(NAMESPACE, MANAGER).await?),
        env: vec![("TMPDIR".to_owned(), temporary.display().to_string())],
        ..Options::default()
    };
    let manager =
        Product::start(cluster, "trainer", programs.path(Program::TrainerManager), options)?;
    manager.wait_ready().await?;
    Ok(manager)
}

/// Puts the certificate of the box where the manager looks for its own; the folder that it is to take for
/// that of temporary files.
fn certificates(cluster: &Cluster) -> Result<PathBuf> {
    let temporary = cluster.folder().join("trainer-temporary");
    let folder = temporary.join(CERTIFICATES);
    fs::create_dir_all(&folder)?;
    for file in ["tls.crt", "tls.key"] {
        fs::copy(cluster.serving_certificate().join(file), folder.join(file))?;
    }
    Ok(temporary)
}

/// Takes out of a kustomization what would be downloaded.
fn without_jobset(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file)?;
    let mut kustomization = yaml::documents(&text)?.pop().context("an empty kustomization")?;
    let resources = kustomization.get_mut("resources").and_then(Value::as_array_mut);
    let resources = resources.context("a kustomization without resources")?;
    let before = resources.len();
    resources.retain(|resource| resource != JOBSET);
    ensure!(resources.len() + 1 == before, "Trainer's manifests do not bring JobSet");
    // The files of a module cannot be written to, nor can their copies.
    fs::remove_file(file)?;
    fs::write(file, kustomization.to_string())?;
    Ok(())
}

/// What `kubectl kustomize` makes of a folder.
async fn built(cluster: &Cluster, folder: &Path) -> Result<Vec<Value>> {
    let mut command = Command::new(cluster.kubectl());
    command.arg("kustomize").arg(folder);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl kustomize: {}", complaint.trim());
    yaml::documents(&String::from_utf8(output.stdout)?)
}
