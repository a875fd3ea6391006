//! Its process and its configuration.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, PostParams};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{install, queues};
use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::Cluster;
use crate::testenv::modules::{Module, ModuleFiles};
use crate::testenv::ports::Port;
use crate::testenv::process::Process;
use crate::testenv::product::{UNSHARE, confined};
use crate::testenv::ready::answers;
use crate::testenv::until::until_ok;

pub use super::install::NAMESPACE;

/// The `ServiceAccount` that it runs as.
pub const SERVICE_ACCOUNT: &str = "kueue-controller-manager";
/// The manager of the runtime patch by which it places a job.
pub const MANAGER: &str = "kueue.x-k8s.io/manager";

/// The folder of its certificate for metrics, which its release fixes.
const METRICS_CERTIFICATES: &str = "etc/kueue/metrics/certs";
/// The folder of its certificate for webhooks.
const WEBHOOK_CERTIFICATES: &str = "certs";
/// The files of a serving certificate.
const CERTIFICATE: [&str; 2] = ["tls.crt", "tls.key"];
/// What the API server says of a request that a webhook refused.
const REFUSED: &str = "denied the request";
/// What Kubeflow Trainer's rule says to whoever changes patches while Pods of the job are still active. Kueue takes its own
/// back as soon as the TrainJob counts no active Pod, which may be a moment before its JobSet counts none, and tries again.
const STILL_ACTIVE: &str = "is still active";
/// How long it may take to stop by itself when its handle is dropped.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long the API server may take to ask its webhooks, on a busy machine.
const NOTICED: Duration = Duration::from_mins(1);

/// How to run Kueue.
#[derive(Debug, Clone, Default)]
pub struct KueueOptions {
    /// More for its configuration, section by section.
    pub config: Value,
}

/// A running Kueue. Dropped, it is asked to stop, and killed if it does not; its webhook configurations stay.
#[derive(Debug)]
pub struct Kueue {
    process: Process,
    health: Port,
    authority: String,
}

impl Kueue {
    /// Installs Kueue and starts it, and waits until the API server asks its webhooks. The kind TrainJob must be
    /// defined.
    pub async fn start(cluster: &Cluster, options: KueueOptions) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let (binaries, files) = tokio::task::spawn_blocking(|| {
            let binaries = Binaries::provide(&[Program::Kueue])?;
            anyhow::Ok((binaries, ModuleFiles::provide(Module::Kueue)?))
        })
        .await??;
        let (webhook, health) = (Port::take()?, Port::take()?);
        let config = configuration(&webhook, &health, &options.config)?;
        install::install(cluster, &files, &webhook.address(), manages_pods(&config)).await?;

        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        let name = format!("kueue-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let root = cluster.folder().join(&name);
        furnish(&root, cluster.serving_certificate(), binaries.path(Program::Kueue), &kubeconfig)?;
        fs::write(root.join("kueue.yaml"), config.to_string())?;

        let mut arguments = confined(&root, Path::new("/kueue"));
        let flags = ["--config=/kueue.yaml", "--kubeconfig=/kubeconfig", "--zap-log-level=3"];
        arguments.extend(flags.map(str::to_owned));
        let process = cluster.spawn(&name, Path::new(UNSHARE), &arguments, &[])?;
        let kueue = Self { process, health, authority: cluster.authority().to_owned() };
        kueue.wait_ready(cluster).await?;
        Ok(kueue)
    }

    /// Waits until it is ready and the API server asks its webhooks.
    async fn wait_ready(&self, cluster: &Cluster) -> Result<()> {
        let client = cluster.client().await?;
        let health = format!("http://{}", self.health.address());
        let ready = async {
            answers(&health, "/readyz", &self.authority).await?;
            let flavors: Api<kube::api::DynamicObject> =
                Api::all_with(client.clone(), &queues::resource("ResourceFlavor"));
            let dry_run = PostParams { dry_run: true, ..PostParams::default() };
            // Its defaulter gives every flavor a finalizer.
            let probe = serde_json::from_value(json!({
                "apiVersion": queues::API_VERSION,
                "kind": "ResourceFlavor",
                "metadata": {"name": "e2e-kueue-probe"},
            }))?;
            until_ok("the API server asks Kueue's webhooks", NOTICED, || async {
                let flavor = flavors.create(&dry_run, &probe).await?;
                let finalizers = flavor.metadata.finalizers.unwrap_or_default();
                ensure!(!finalizers.is_empty(), "a flavor has no finalizer yet");
                Ok(())
            })
            .await
        };
        // On the heap: the future is large.
        Box::pin(self.process.ready_when(ready)).await
    }

    /// Asks it to stop and waits until it has.
    pub async fn stop(&self) -> Result<()> {
        self.process.signal(Signal::TERM)?;
        self.process.wait(Duration::from_secs(30)).await?;
        Ok(())
    }

    /// The requests about objects of a namespace that an admission webhook refused for good, as its log has them: whose
    /// they were and what was said, each once.
    pub fn refusals(&self, namespace: &str) -> Result<BTreeSet<String>> {
        let log = self.process.log()?;
        let is_refusal = |line: &&str| {
            line.contains(REFUSED) && line.contains(namespace) && !line.contains(STILL_ACTIVE)
        };
        let refused = log.lines().filter(is_refusal);
        let said = refused.map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap_or_else(|_| json!(line));
            let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            match text("error") {
                "" => line.to_owned(),
                error => format!("{}: {error}", text("name")),
            }
        });
        Ok(said.collect())
    }
}

impl Deref for Kueue {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Drop for Kueue {
    fn drop(&mut self) {
        // A process that ended before needs no farewell.
        let _ = self.process.signal(Signal::TERM);
        self.process.wait_or_kill(FAREWELL);
    }
}

/// Puts everything it reads into the folder that it takes for the whole file system: its certificate for metrics
/// has a fixed place, which is not ours to write to.
fn furnish(root: &Path, certificate: &Path, program: &Path, kubeconfig: &Path) -> Result<()> {
    for folder in [METRICS_CERTIFICATES, WEBHOOK_CERTIFICATES] {
        let folder = root.join(folder);
        fs::create_dir_all(&folder)?;
        for file in CERTIFICATE {
            fs::copy(certificate.join(file), folder.join(file))?;
        }
    }
    fs::copy(kubeconfig, root.join("kubeconfig"))?;
    link(program, &root.join("kueue"))
}

/// A second name of a program, or a copy of it on another file system.
fn link(program: &Path, to: &PathBuf) -> Result<()> {
    if fs::hard_link(program, to).is_err() {
        fs::copy(program, to).with_context(|| format!("cannot copy {}", program.display()))?;
    }
    Ok(())
}

/// Its configuration, with `more` of each section.
fn configuration(webhook: &Port, health: &Port, more: &Value) -> Result<Value> {
    let mut config = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "webhook": {
            "host": "127.0.0.1",
            "port": webhook.number(),
            "certDir": format!("/{WEBHOOK_CERTIFICATES}"),
        },
        "health": {"healthProbeBindAddress": health.address()},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": false},
        "internalCertManagement": {"enable": false},
        "clientConnection": {"qps": 500, "burst": 1000},
        "integrations": {
            "frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"],
        },
        // Its server of pending workloads is an API service, which the box does not have.
        "featureGates": {"VisibilityOnDemand": false},
    });
    let sections = config.as_object_mut().context("a configuration is a map")?;
    for (name, section) in more.as_object().into_iter().flatten() {
        match (sections.get_mut(name).and_then(Value::as_object_mut), section.as_object()) {
            (Some(known), Some(more)) => known.extend(more.clone()),
            _ => {
                sections.insert(name.clone(), section.clone());
            }
        }
    }
    Ok(config)
}

/// Whether Pods are among the frameworks of a configuration.
fn manages_pods(config: &Value) -> bool {
    let frameworks = config.pointer("/integrations/frameworks").and_then(Value::as_array);
    frameworks.is_some_and(|it| it.contains(&json!("pod")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_keeps_its_sections_and_gets_more_of_them() {
        let (webhook, health) = (Port::take().unwrap(), Port::take().unwrap());
        let more = json!({
            "featureGates": {"MultiKueue": false},
            "objectRetentionPolicies": {"workloads": {"afterFinished": "0s"}},
        });
        let config = configuration(&webhook, &health, &more).unwrap();
        let gates = json!({"VisibilityOnDemand": false, "MultiKueue": false});
        assert_eq!(config["featureGates"], gates);
        assert_eq!(config["objectRetentionPolicies"]["workloads"]["afterFinished"], "0s");
        assert_eq!(config["webhook"]["port"], json!(webhook.number()));
    }
}
