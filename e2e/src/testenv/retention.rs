//! The retention engine under test: the real binary, with the permissions that the chart gives it for its targets.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::testenv::apply::apply;
use crate::testenv::chart::CHART;
use crate::testenv::cluster::Cluster;
use crate::testenv::product::{Granted, Options, Product, grant};
use crate::testenv::release::RELEASE;
use crate::testenv::tools::Tools;
use crate::testenv::{workspace, yaml};

/// The namespace of the retention engine.
pub const NAMESPACE: &str = "trainjob-retention";
/// The `ServiceAccount` that it runs as.
pub const SERVICE_ACCOUNT: &str = "trainjob-retention";
/// The user that it is.
pub const USER: &str = "system:serviceaccount:trainjob-retention:trainjob-retention";

/// A running retention engine. Dropped, it is asked to stop, and killed if it does not.
#[derive(Debug)]
pub struct Retention(Product);

impl Retention {
    /// Starts a retention engine as its own `ServiceAccount`, with this section `retention` in its configuration.
    pub async fn start(cluster: &Cluster, section: &str) -> Result<Self> {
        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        Self::start_as(cluster, section, kubeconfig, Vec::new()).await
    }

    /// The same with these credentials, and these environment variables.
    pub async fn start_as(
        cluster: &Cluster,
        section: &str,
        kubeconfig: PathBuf,
        env: Vec<(String, String)>,
    ) -> Result<Self> {
        let binary = tokio::task::spawn_blocking(workspace::retention).await??;
        let head =
            "apiVersion: config.lifecycle.trainjob.dev/v1alpha1\nkind: RetentionConfiguration";
        let options = Options {
            config_yaml: format!("{head}\nretention: {section}\n"),
            kubeconfig: Some(kubeconfig),
            env,
            ..Options::default()
        };
        Ok(Self(Product::start(cluster, "retention", &binary, options)?))
    }

    /// What the program says of a Job, with the configuration and the rights of the engine.
    pub async fn explain(&self, namespace: &str, job: &str) -> Result<String> {
        let mut command = Command::new(self.binary());
        command.args(["explain", "job", job, "--namespace", namespace]).args(self.flags());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && complaint.is_empty(), "{complaint}");
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Deref for Retention {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.0
    }
}

/// Creates the namespace of the retention engine with its `ServiceAccount`, which has the rights that the chart gives it where
/// Jobs, whose Pods may go before them, and TrainJobs are its targets.
pub async fn install_retention_rbac(cluster: &Cluster) -> Result<()> {
    let rbac = rendered(cluster, &jobs_and_train_jobs()).await?;
    install(cluster, rbac).await
}

/// The same, with these verbs for Jobs instead of those of the chart.
pub async fn allow_retention(cluster: &Cluster, for_jobs: &[&str]) -> Result<()> {
    let mut rbac = rendered(cluster, &jobs_and_train_jobs()).await?;
    let rules = rbac.iter_mut().filter_map(|it| it.get_mut("rules")?.as_array_mut()).flatten();
    let mut of_jobs = rules.filter(|rule| rule.get("resources") == Some(&json!(["jobs"])));
    let rule = of_jobs.next().context("the chart has no rule about Jobs")?;
    rule.as_object_mut().context("a rule is a map")?.insert("verbs".to_owned(), json!(for_jobs));
    install(cluster, rbac).await
}

/// Creates the namespace of the retention engine with its `ServiceAccount`, which has the rights that the chart gives it for
/// these targets, as its values have them.
pub async fn install_chart_rbac(cluster: &Cluster, targets: &[Value]) -> Result<()> {
    install(cluster, rendered(cluster, targets).await?).await
}

fn jobs_and_train_jobs() -> [Value; 2] {
    [
        json!({"apiGroup": "batch", "kind": "Job", "resource": "jobs", "pods": true}),
        json!({"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "resource": "trainjobs"}),
    ]
}

/// The accounts, roles and bindings of the retention engine as Helm renders them for these targets.
async fn rendered(cluster: &Cluster, targets: &[Value]) -> Result<Vec<Value>> {
    let chart = workspace::path(CHART).display().to_string();
    let account = format!("retention.serviceAccount.name={SERVICE_ACCOUNT}");
    let targets = format!("retention.targets={}", json!(targets));
    let arguments = [
        &["template", RELEASE, &chart, "--namespace", NAMESPACE][..],
        &["--show-only", "templates/rights.yaml", "--set", "retention.enabled=true"],
        &["--set", &account, "--set-json", &targets],
    ];
    let text = Tools::provide(cluster).await?.helm_offline(&arguments.concat()).await?;
    let mut objects = yaml::documents(&text)?;
    let component = "/metadata/labels/app.kubernetes.io~1component";
    objects.retain(|object| object.pointer(component) == Some(&json!("retention")));
    ensure!(!objects.is_empty(), "the chart renders nothing for the retention engine");
    Ok(objects)
}

async fn install(cluster: &Cluster, rbac: Vec<Value>) -> Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let manifests = [vec![namespace], rbac].concat();
    apply(&cluster.client().await?, NAMESPACE, manifests).await?;
    Ok(())
}

/// Creates a namespace with a `ServiceAccount` of the engine's name, which may read and delete objects of these kinds, group
/// and plural, and look for ConfigMaps in its namespace.
pub async fn install_raw_client(
    cluster: &Cluster,
    namespace: &str,
    targets: &[(&str, &str)],
) -> Result<()> {
    let own = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let verbs = ["get", "list", "watch", "delete"];
    let rule = |(group, resource): &(&str, &str)| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let rules: Value = targets.iter().map(rule).collect();
    let granted = Granted {
        cluster: serde_json::from_value(rules)?,
        namespace: serde_json::from_value(own)?,
    };
    grant(cluster, namespace, SERVICE_ACCOUNT, &granted).await
}
