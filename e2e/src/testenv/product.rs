//! The programs under test: the real binaries, with the permissions the chart gives them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use invariants::RbacRule;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::{Client, Config};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::testenv::chart::file_of_chart;
use crate::testenv::cluster::Cluster;
use crate::testenv::ports::Port;
use crate::testenv::process::Process;
use crate::testenv::ready::answers;
use crate::testenv::yaml;

/// How long a program may take to stop by itself when its handle is dropped.
const FAREWELL: Duration = Duration::from_secs(3);

/// Part of every Linux.
pub(crate) const UNSHARE: &str = "/usr/bin/unshare";

/// How to run one of the programs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its configuration file; empty for the defaults. The addresses of its health and metrics
    /// servers are added where they are missing.
    pub config_yaml: String,
    /// The command of the program that is run; by default it has none.
    pub command: Option<&'static str>,
    /// More command line arguments.
    pub extra_args: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Whose permissions it has; by default those of the administrator.
    pub kubeconfig: Option<PathBuf>,
    /// The folder that it takes for the whole file system, and in which it is; by default it sees everything.
    pub root: Option<PathBuf>,
}

/// A running program. Dropped, it is asked to stop, and killed if it does not.
#[derive(Debug)]
pub struct Product {
    process: Process,
    health: Port,
    metrics: Port,
    authority: String,
    binary: PathBuf,
    told: Vec<String>,
}

impl Product {
    /// Starts a program; whether it is ready is another question: [`Product::wait_ready`]. Its log is
    /// `KIND-NUMBER.log`.
    pub(crate) fn start(
        cluster: &Cluster,
        kind: &str,
        binary: &Path,
        options: Options,
    ) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let (health, metrics) = (Port::take()?, Port::take()?);
        let name = format!("{kind}-{}", COUNT.fetch_add(1, Ordering::Relaxed));

        let addressed = with_addresses(&options.config_yaml, &health, &metrics)?;
        let config = yaml::stream(&[addressed]);
        let kubeconfig = options.kubeconfig.unwrap_or_else(|| cluster.kubeconfig());
        let (program, mut arguments): (_, Vec<_>) = match &options.root {
            None => {
                let file = cluster.folder().join(format!("{name}.yaml"));
                fs::write(&file, config)?;
                let command = options.command.map(str::to_owned).into_iter();
                (binary, command.chain(told(&file, &kubeconfig)).collect())
            }
            Some(root) => {
                let [file, copy] = [format!("{name}.yaml"), format!("{name}.kubeconfig")];
                fs::write(root.join(&file), config)?;
                fs::copy(&kubeconfig, root.join(&copy))?;
                let mut arguments = confined(root, binary);
                arguments.extend(told(&Path::new("/").join(file), &Path::new("/").join(copy)));
                (Path::new(UNSHARE), arguments)
            }
        };
        let told = told(&cluster.folder().join(format!("{name}.yaml")), &kubeconfig);
        arguments.extend(options.extra_args);
        let env = [allocator_environment(kind)?, options.env].concat();
        let process = cluster.spawn(&name, program, &arguments, &env)?;
        let authority = cluster.authority().to_owned();
        let binary = binary.to_owned();
        Ok(Self { process, health, metrics, authority, binary, told })
    }

    /// Waits until `/readyz` says yes.
    pub async fn wait_ready(&self) -> Result<()> {
        self.process.ready_when(answers(&self.health_url(), "/readyz", &self.authority)).await
    }

    /// Kills it at once, as a crash would.
    pub fn kill9(&self) {
        self.process.kill();
    }

    /// Asks it to stop.
    pub fn sigterm(&self) -> Result<()> {
        self.process.signal(Signal::TERM)
    }

    /// Waits until it has ended.
    pub async fn wait(&self, timeout: Duration) -> Result<ExitStatus> {
        self.process.wait(timeout).await
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> Result<String> {
        self.process.log()
    }

    /// The file of the program.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The flags that name its configuration and its credentials.
    #[must_use]
    pub fn flags(&self) -> &[String] {
        &self.told
    }

    /// Its process, for every other signal and its id.
    #[must_use]
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// The URL of its health server.
    #[must_use]
    pub fn health_url(&self) -> String {
        format!("http://{}", self.health.address())
    }

    /// The address of its metrics server.
    #[must_use]
    pub fn metrics_address(&self) -> String {
        self.metrics.address()
    }

    /// Its page of metrics.
    pub async fn metrics_page(&self) -> Result<String> {
        let mut config = Config::new(format!("http://{}", self.metrics_address()).parse()?);
        // By default each client reads all certificates that the system trusts, which none is needed of here.
        config.root_cert = Some(Vec::new());
        let request = http::Request::get("/metrics").body(Vec::new())?;
        Client::try_from(config)?.request_text(request).await.context("no metrics")
    }

    /// The sum of a metric over all its labels; 0 if there is none of that name.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        self.labelled_metric(name, "").await
    }

    /// The same over those that have this label, such as `kind="Job"`.
    pub async fn labelled_metric(&self, name: &str, label: &str) -> Result<f64> {
        let page = self.metrics_page().await?;
        let of_metric = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        let of_label = |line: &&str| line.contains(label);
        let lines = page.lines().filter(of_metric).filter(of_label);
        let values = lines.filter_map(|line| line.rsplit(' ').next());
        Ok(values.filter_map(|value| value.parse::<f64>().ok()).sum())
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        let _ = self.sigterm();
        self.process.wait_or_kill(FAREWELL);
    }
}

/// What the chart tells the allocator of a program, so that it takes the memory here that it takes in a cluster.
fn allocator_environment(kind: &str) -> Result<Vec<(String, String)>> {
    let programs = file_of_chart("allocator-environment.yaml")?;
    let of = |kind| programs.iter().find_map(|programs| programs[kind].as_array());
    let variables = of(kind).or_else(|| of("others")).context("no variables")?;
    let pair = |variable: &Value| {
        let text = |field: &str| variable[field].as_str().map(str::to_owned);
        Some((text("name")?, text("value")?))
    };
    let pairs: Option<_> = variables.iter().map(pair).collect();
    pairs.context("a variable has a name and a value")
}

fn told(config: &Path, kubeconfig: &Path) -> Vec<String> {
    let files = [("config", config), ("kubeconfig", kubeconfig)];
    files.map(|(flag, file)| format!("--{flag}={}", file.display())).into()
}

/// How `unshare` runs a program that sees nothing but `root`. It takes no privileges: what is root within is nobody new
/// without.
pub(crate) fn confined(root: &Path, program: &Path) -> Vec<String> {
    let root = format!("--root={}", root.display());
    ["--map-root-user", &root, "--wd=/", &program.display().to_string()].map(str::to_owned).into()
}

/// The configuration, with the addresses of its servers where it gives none.
fn with_addresses(config_yaml: &str, health: &Port, metrics: &Port) -> Result<Value> {
    let mut config = yaml::documents(config_yaml)?.pop().unwrap_or_else(|| json!({}));
    let settings = [
        ("apiVersion", None, json!("config.trainer.kubeflow.org/v1alpha1")),
        ("kind", None, json!("Configuration")),
        ("health", Some("healthProbeBindAddress"), json!(health.address())),
        ("metrics", Some("bindAddress"), json!(metrics.address())),
        ("metrics", Some("secureServing"), json!(false)),
    ];
    let config_map = config.as_object_mut().context("a configuration is a map")?;
    for (key, inner, value) in settings {
        match inner {
            None => {
                config_map.entry(key).or_insert(value);
            }
            Some(inner) => {
                let section = config_map.entry(key).or_insert_with(|| json!({}));
                let section = section.as_object_mut().with_context(|| format!("{key} is a map"))?;
                section.entry(inner).or_insert(value);
            }
        }
    }
    Ok(config)
}

/// The files of the chart with the permissions of a program: its own list of rules for the whole cluster
/// and for its own namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) cluster: &'static str,
    pub(crate) namespace: &'static str,
}

impl Rules {
    /// Creates `namespace` with the `ServiceAccount` `name`, which gets these permissions.
    pub(crate) async fn install(
        self,
        cluster: &Cluster,
        namespace: &str,
        name: &str,
    ) -> Result<()> {
        grant(cluster, namespace, name, &self.read()?).await
    }

    /// All of them.
    pub(crate) fn rbac_rules(self) -> Result<Vec<RbacRule>> {
        let Granted { cluster, namespace } = self.read()?;
        let rules = cluster.into_iter().chain(namespace).map(|rule| RbacRule {
            groups: rule.api_groups.unwrap_or_default(),
            resources: rule.resources.unwrap_or_default(),
            verbs: rule.verbs,
        });
        Ok(rules.collect())
    }

    /// The rules in the files.
    pub(crate) fn read(self) -> Result<Granted> {
        Ok(Granted { cluster: rules(self.cluster)?, namespace: rules(self.namespace)? })
    }
}

/// What a `ServiceAccount` may do in the whole cluster, and in its own namespace beyond that.
#[derive(Debug, Clone, Default)]
pub(crate) struct Granted {
    pub(crate) cluster: Vec<PolicyRule>,
    pub(crate) namespace: Vec<PolicyRule>,
}

/// Creates `namespace` with the `ServiceAccount` `name`, which may do just this.
pub(crate) async fn grant(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    granted: &Granted,
) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
    let metadata = json!({"name": name});
    // A second namespace of the program must not take the binding of the first.
    let cluster_wide = json!({"name": format!("{name}-{namespace}")});
    let role = |kind: &str, metadata: &Value, rules: &[PolicyRule]| json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules});
    let binding = |kind: &str, metadata: &Value| {
        json!({
            "apiVersion": version,
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": kind, "name": metadata["name"]},
            "subjects": subjects,
        })
    };
    let manifests = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        role("ClusterRole", &cluster_wide, &granted.cluster),
        binding("ClusterRole", &cluster_wide),
        role("Role", &metadata, &granted.namespace),
        binding("Role", &metadata),
    ];
    let client = cluster.client().await?;
    crate::testenv::apply::apply(&client, namespace, manifests).await?;
    Ok(())
}

/// A file of the chart that is a plain list of rules.
pub(crate) fn rules(file: &str) -> Result<Vec<PolicyRule>> {
    let list = file_of_chart(file)?.pop().with_context(|| format!("{file} is empty"))?;
    serde_json::from_value(list).with_context(|| format!("{file} is no list of rules"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_keeps_what_it_says_and_gets_the_addresses_it_lacks() {
        let (health, metrics) = (Port::take().unwrap(), Port::take().unwrap());
        let given = "health: {healthProbeBindAddress: '127.0.0.1:1'}\nwebhook: {port: 2}\n";
        let config = with_addresses(given, &health, &metrics).unwrap();
        assert_eq!(config["health"]["healthProbeBindAddress"], "127.0.0.1:1");
        assert_eq!(config["metrics"]["bindAddress"], json!(metrics.address()));
        assert_eq!(config["webhook"]["port"], 2);
        assert_eq!(config["kind"], "Configuration");
    }
}
