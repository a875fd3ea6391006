//! The webhook under test: the real binary, with the RBAC rules and the webhook configurations of the chart.
//!
//! The API server runs beside it and not in the cluster, so the webhook configurations have its URL in the place
//! of a Service; nothing else of them differs from what the chart installs.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use invariants::RbacRule;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Api, DeleteParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::testenv::answer::{Answer, ask};
use crate::testenv::apply::apply;
use crate::testenv::authority::Authority;
use crate::testenv::chart::file_of_chart;
use crate::testenv::cluster::Cluster;
use crate::testenv::ports::Port;
use crate::testenv::product::{Options, Product, Rules};
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

/// The `ServiceAccount` the webhook runs as, as the chart calls it.
pub const SERVICE_ACCOUNT: &str = "trainjob-operator-webhook";
/// The namespace of the webhook.
pub const NAMESPACE: &str = "kubeflow-system";
/// The Secret of its certificate, where it makes that itself.
pub const SECRET: &str = "kubeflow-trainer-webhook-cert";
/// The webhook configuration of the defaulter.
pub const DEFAULTER: &str = "defaulter.trainer.kubeflow.org";
/// The webhook configuration of the validators.
pub const VALIDATOR: &str = "validator.trainer.kubeflow.org";

pub(crate) const RULES: Rules =
    Rules { cluster: "webhook-cluster-rules.yaml", namespace: "webhook-namespace-rules.yaml" };
const WEBHOOK_CONFIGURATIONS: &str = "webhooks.yaml";

/// How long the API server may take to notice a webhook configuration, on a busy machine.
const NOTICED: Duration = Duration::from_mins(1);

/// Where the webhook has its certificate from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Certificates {
    /// From files, which the test issues; see [`Webhook::authority`].
    #[default]
    Files,
    /// It makes them itself and puts its authority into the webhook configurations.
    SelfManaged,
}

/// How to run a webhook.
#[derive(Debug, Clone, Default)]
pub struct WebhookOptions {
    /// Its configuration file; what it says of certificates is added to, the addresses are replaced.
    pub config_yaml: String,
    /// Where it has its certificate from.
    pub certificates: Certificates,
    /// Whose permissions it has; by default those the chart gives it.
    pub kubeconfig: Option<PathBuf>,
    /// Its namespace; by default [`NAMESPACE`].
    pub namespace: Option<String>,
}

/// A running webhook. Dropped, it is asked to stop, and killed if it does not; its webhook configurations stay.
#[derive(Debug)]
pub struct Webhook {
    product: Product,
    port: Port,
    authority: Option<Authority>,
    folder: PathBuf,
}

impl Webhook {
    /// Starts a webhook with the permissions and webhook configurations of the chart. Whether it is ready, and
    /// whether the API server asks it, are other questions: [`Product::wait_ready`] and
    /// [`Webhook::wait_asked`].
    pub async fn start(cluster: &Cluster, options: WebhookOptions) -> Result<Self> {
        let webhook = Self::unasked(cluster, options).await?;
        webhook.register(&cluster.client().await?, |_| {}).await?;
        Ok(webhook)
    }

    /// Starts a webhook with the permissions of the chart, whom nobody asks yet.
    pub async fn unasked(cluster: &Cluster, options: WebhookOptions) -> Result<Self> {
        RULES.install(cluster, NAMESPACE, SERVICE_ACCOUNT).await?;
        Self::unregistered(cluster, options).await
    }

    /// Installs the chart's webhook configurations for it, each webhook of them with a change.
    pub async fn register(&self, client: &Client, change: impl Fn(&mut Value)) -> Result<()> {
        let pem = self.authority.as_ref().map(Authority::pem);
        let mut objects = webhook_configurations(&self.address(), pem.as_deref())?;
        for object in &mut objects {
            let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
            webhooks.into_iter().flatten().for_each(&change);
        }
        apply(client, "default", objects).await?;
        Ok(())
    }

    /// Starts a webhook that nobody asks yet, as somebody who exists.
    pub async fn unregistered(cluster: &Cluster, options: WebhookOptions) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let binary = tokio::task::spawn_blocking(workspace::webhook).await??;
        let port = Port::take()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = cluster.folder().join(format!("webhook-certificates-{number}"));
        let authority = match options.certificates {
            Certificates::Files => Some(Authority::new()?),
            Certificates::SelfManaged => None,
        };
        if let Some(authority) = &authority {
            authority.issue(&folder)?;
        }

        let kubeconfig = match options.kubeconfig {
            Some(kubeconfig) => kubeconfig,
            None => cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?,
        };
        let namespace = options.namespace.unwrap_or_else(|| NAMESPACE.to_owned());
        let config = configured(&options.config_yaml, &port, options.certificates, &folder)?;
        let started = Options {
            config_yaml: yaml::stream(&[config]),
            // In a cluster the file of its ServiceAccount says so.
            env: vec![("POD_NAMESPACE".to_owned(), namespace)],
            kubeconfig: Some(kubeconfig),
            ..Options::default()
        };
        let product = Product::start(cluster, "webhook", &binary, started)?;
        Ok(Self { product, port, authority, folder })
    }

    /// Waits until the API server asks it: the defaulter and the validators, of which it has seen a
    /// runtime.
    pub async fn wait_asked(&self, client: &Client) -> Result<()> {
        let name = "e2e-webhook-probe";
        let asked = until_ok("the API server asks the webhook", NOTICED, || async {
            // Again and again, for this runtime may be the very first that it is asked about.
            apply(client, "default", vec![probe_runtime(name)]).await?;
            let missing = create(client, &probe_job("e2e-no-such-runtime")).await?;
            ensure!(missing.code == 403, "a job without a runtime: {missing:?}");
            let made = create(client, &probe_job(name)).await?;
            ensure!(made.code == 201, "a job: {made:?}");
            let time = made.object.pointer("/spec/runtimePatches/0/time");
            time.context("no time is filled in yet")?;
            Ok(())
        });
        // On the heap: the future is large.
        Box::pin(self.product.process().ready_when(asked)).await
    }

    /// The authority that its certificate is signed by, and the folder where it looks for another one;
    /// nothing where it makes its certificate itself.
    #[must_use]
    pub fn authority(&self) -> Option<(&Authority, &Path)> {
        self.authority.as_ref().map(|authority| (authority, self.folder.as_path()))
    }

    /// `127.0.0.1:PORT`, where it serves admission.
    #[must_use]
    pub fn address(&self) -> String {
        self.port.address()
    }
}

impl Deref for Webhook {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.product
    }
}

/// What the chart lets the webhook ask for, in the whole cluster and in its own namespace.
pub fn rbac_rules() -> Result<Vec<RbacRule>> {
    RULES.rbac_rules()
}

/// Installs the chart's webhook configurations, pointed at a webhook at `address`, whether or not there is one,
/// whose certificate this authority has signed.
pub async fn register(client: &Client, address: &str, authority: Option<&str>) -> Result<()> {
    apply(client, "default", webhook_configurations(address, authority)?).await?;
    Ok(())
}

/// Removes the webhook configurations: from now on nobody is asked.
pub async fn unregister(client: &Client) -> Result<()> {
    remove::<MutatingWebhookConfiguration>(client, DEFAULTER).await?;
    remove::<ValidatingWebhookConfiguration>(client, VALIDATOR).await
}

async fn remove<K>(client: &Client, name: &str) -> Result<()>
where
    K: Resource<Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
    K::DynamicType: Default,
{
    match Api::<K>::all(client.clone()).delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => bail!(error),
    }
}

/// The configuration with the address and the certificates of this webhook.
fn configured(
    config_yaml: &str,
    port: &Port,
    certificates: Certificates,
    folder: &Path,
) -> Result<Value> {
    let mut config = yaml::documents(config_yaml)?.pop().unwrap_or_else(|| json!({}));
    let sections = config.as_object_mut().context("a configuration is a map")?;
    let (management, files) = match certificates {
        Certificates::Files => (
            json!({"enable": false}),
            json!({"directory": folder.display().to_string(), "pollInterval": "100ms"}),
        ),
        Certificates::SelfManaged => {
            (json!({"enable": true, "webhookSecretName": SECRET}), json!({"names": ["127.0.0.1"]}))
        }
    };
    sections.insert("webhook".into(), json!({"host": "127.0.0.1", "port": port.number()}));
    sections.insert("certManagement".into(), management);
    let section = sections.entry("certificates").or_insert_with(|| json!({}));
    let section = section.as_object_mut().context("certificates is a map")?;
    for (name, value) in files.as_object().into_iter().flatten() {
        section.entry(name).or_insert_with(|| value.clone());
    }
    Ok(config)
}

/// The chart's webhook configurations, with the URL of a webhook at `address` in the place of its Service.
fn webhook_configurations(address: &str, authority: Option<&str>) -> Result<Vec<Value>> {
    let mut objects = file_of_chart(WEBHOOK_CONFIGURATIONS)?;
    for object in &mut objects {
        let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.context("a webhook configuration has no webhooks")? {
            let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
            let url = format!("https://{address}{}", path.context("a webhook has no path")?);
            webhook["clientConfig"] = match authority {
                Some(pem) => json!({"url": url, "caBundle": ByteString(pem.into())}),
                None => json!({"url": url}),
            };
        }
    }
    Ok(objects)
}

async fn create(client: &Client, job: &Value) -> Result<Answer> {
    let path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs?dryRun=All";
    ask(client, http::Method::POST, path, "application/json", job).await
}

fn probe_job(runtime: &str) -> Value {
    let patches = json!([{"manager": "e2e.trainjob.dev/probe"}]);
    crate::testenv::fixtures::train_job("probe", runtime, &json!({"runtimePatches": patches}))
}

fn probe_runtime(name: &str) -> Value {
    crate::testenv::fixtures::runtime(name, &json!({}), 3, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_lets_the_webhook_change_nothing_but_its_own() {
        let mut writes: Vec<_> = rbac_rules()
            .unwrap()
            .into_iter()
            .filter(|it| it.verbs.iter().any(|verb| !["get", "list", "watch"].contains(&&**verb)))
            .flat_map(|it| it.resources)
            .collect();
        writes.dedup();
        assert_eq!(
            writes,
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations", "secrets"]
        );
    }

    #[test]
    fn registrations_are_those_of_the_chart_but_for_where_the_webhook_is() {
        let objects = webhook_configurations("127.0.0.1:1", Some("PEM")).unwrap();
        let names: Vec<_> = objects.iter().map(|object| &object["metadata"]["name"]).collect();
        assert_eq!(names, [DEFAULTER, VALIDATOR]);
        let webhooks: Vec<_> =
            objects.iter().flat_map(|object| object["webhooks"].as_array().unwrap()).collect();
        assert_eq!(webhooks.len(), 4);
        for webhook in webhooks {
            let resource = webhook["rules"][0]["resources"][0].as_str().unwrap();
            let config = &webhook["clientConfig"];
            let url = config["url"].as_str().unwrap();
            assert!(url.starts_with("https://127.0.0.1:1/"), "{url}");
            assert!(url.ends_with(resource.trim_end_matches('s')), "{url}");
            assert_eq!(config["caBundle"], "UEVN");
            // A webhook that is down must not hold up what cannot change what runs.
            assert!(webhook.get("matchConditions").is_some());
            assert_eq!(webhook.get("objectSelector").is_some(), resource != "trainjobs");
        }
        let unmanaged = webhook_configurations("127.0.0.1:1", None).unwrap();
        assert_eq!(unmanaged[0]["webhooks"][0]["clientConfig"].get("caBundle"), None);
    }

    #[test]
    fn a_configuration_keeps_its_lifecycle_and_gets_address_and_certificates() {
        let port = Port::take().unwrap();
        let given = "lifecycle: {fieldUpdates: Mutable}\n";
        let folder = Path::new("/certificates");
        let files = configured(given, &port, Certificates::Files, folder).unwrap();
        assert_eq!(files["lifecycle"]["fieldUpdates"], "Mutable");
        assert_eq!(files["webhook"]["port"], json!(port.number()));
        assert_eq!(files["certManagement"], json!({"enable": false}));
        assert_eq!(files["certificates"]["directory"], "/certificates");
        let given = "certificates: {bundleLead: 1s}";
        let own = configured(given, &port, Certificates::SelfManaged, folder).unwrap();
        assert_eq!(own["certificates"]["bundleLead"], "1s");
        assert_eq!(own["certManagement"], json!({"enable": true, "webhookSecretName": SECRET}));
        assert_eq!(own["certificates"]["names"], json!(["127.0.0.1"]));
    }
}
