//! The RBAC rules of the webhook.

use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::PATIENCE;
use e2e::proxy::{Proxy, Scope};
use e2e::rbac::{Grant, account, of_webhook};
use e2e::until::until_ok;
use e2e::webhook::{
    Certificates, DEFAULTER, SECRET, SERVICE_ACCOUNT, VALIDATOR, Webhook, WebhookOptions, register,
};
use e2e::yaml;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use super::question::Question;
use super::{Play, Player, each_is_missed};

/// A scenario about a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// It is asked something.
    Asked(Question),
    /// It makes its certificate itself, where there is nothing yet.
    OwnAuthority,
    /// The same where there is an empty Secret for it.
    EmptySecret,
}

impl Scenario {
    /// All of them. Where several need a permission, the first is played without it.
    const ALL: [Self; 8] = [
        Self::Asked(Question::NoRuntime("ClusterTrainingRuntime")),
        Self::Asked(Question::NoRuntime("TrainingRuntime")),
        Self::Asked(Question::NewNamespace),
        Self::Asked(Question::NoPriority),
        Self::Asked(Question::Snapshot),
        Self::Asked(Question::Patch),
        Self::OwnAuthority,
        Self::EmptySecret,
    ];

    const fn certificates(self) -> Certificates {
        match self {
            Self::Asked(_) => Certificates::Files,
            Self::OwnAuthority | Self::EmptySecret => Certificates::SelfManaged,
        }
    }
}

/// An API server, and whose turn it is to write into the webhook configurations: there is one pair of them.
pub(crate) struct Site {
    cluster: Cluster,
    webhook_configurations: Mutex<()>,
}

/// A webhook with permissions of its own, in a namespace of its own.
pub(crate) struct WebhookPlayer<'a> {
    scenario: Scenario,
    client: Client,
    proxy: Proxy,
    webhook: Webhook,
    /// What it answered, where that was not what it should.
    answer: OnceLock<String>,
    /// Held while it has the webhook configurations to itself.
    _turn: Option<MutexGuard<'a, ()>>,
}

impl<'a> WebhookPlayer<'a> {
    async fn start(site: &'a Site, scenario: Scenario, grants: &[Grant]) -> Result<Self> {
        let cluster = &site.cluster;
        let (client, namespace) = (cluster.client().await?, cluster.namespace("rbac").await?);
        let kubeconfig = account(cluster, &namespace, SERVICE_ACCOUNT, grants).await?;
        let proxy = Proxy::start(cluster, Scope::Cluster).await?;
        if scenario == Scenario::EmptySecret {
            let secret =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}});
            cluster.apply_yaml(&namespace, &yaml::stream(&[secret])).await?;
        }
        let certificates = scenario.certificates();
        let turn = match certificates {
            Certificates::Files => None,
            Certificates::SelfManaged => Some(site.webhook_configurations.lock().await),
        };
        if turn.is_some() {
            // As those before have not left it: nobody is trusted, and nobody is asked.
            register(&client, "127.0.0.1:1", Some("")).await?;
        }
        let options = WebhookOptions {
            certificates,
            kubeconfig: Some(proxy.kubeconfig(&kubeconfig)?),
            namespace: Some(namespace),
            ..WebhookOptions::default()
        };
        let webhook = Webhook::unregistered(cluster, options).await?;
        Ok(Self { scenario, client, proxy, webhook, answer: OnceLock::new(), _turn: turn })
    }

    /// A client that asks this webhook as the API server would.
    fn asking(&self) -> Result<Client> {
        let (authority, _) = self.webhook.authority().context("nobody knows its authority")?;
        let mut config = Config::new(format!("https://{}", self.webhook.address()).parse()?);
        let certificate = CertificateDer::from_pem_slice(authority.pem().as_bytes())?;
        config.root_cert = Some(vec![certificate.to_vec()]);
        Ok(Client::try_from(config)?)
    }

    /// Waits until both webhook configurations hold an authority.
    async fn is_registered(&self) -> Result<()> {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        until_ok("both webhook configurations hold an authority", PATIENCE, || async {
            let validators = validating.get(VALIDATOR).await?.webhooks.unwrap_or_default();
            let defaulters = mutating.get(DEFAULTER).await?.webhooks.unwrap_or_default();
            let mut clients = validators.into_iter().map(|it| it.client_config);
            let mut others = defaulters.into_iter().map(|it| it.client_config);
            let holds = |bundle: Option<k8s_openapi::ByteString>| {
                bundle.is_some_and(|bundle| !bundle.0.is_empty())
            };
            ensure!(clients.all(|it| holds(it.ca_bundle)), "the validators do not");
            ensure!(others.all(|it| holds(it.ca_bundle)), "the defaulter does not");
            Ok(())
        })
        .await
    }
}

impl Player for WebhookPlayer<'_> {
    async fn play(&self) -> Result<()> {
        self.webhook.wait_ready().await?;
        let played = match self.scenario {
            Scenario::Asked(question) => question.ask(&self.asking()?).await,
            Scenario::OwnAuthority | Scenario::EmptySecret => self.is_registered().await,
        };
        played.inspect_err(|error| {
            // It is asked once.
            self.answer.get_or_init(|| format!("{error:#}"));
        })
    }

    fn said(&self) -> Result<String> {
        Ok(self.webhook.log()? + self.answer.get().map_or("", String::as_str))
    }

    fn proxy(&self) -> &Proxy {
        &self.proxy
    }
}

impl Drop for WebhookPlayer<'_> {
    /// Dropping a webhook would wait for it, and all lanes with it.
    fn drop(&mut self) {
        self.webhook.kill9();
    }
}

async fn site() -> Result<Site> {
    let options = Options { jobset: true, crds: true, ..Options::bare() };
    let cluster = Cluster::start(options).await?;
    Question::prepare(&cluster.client().await?).await?;
    Ok(Site { cluster, webhook_configurations: Mutex::default() })
}

impl Play for Site {
    type Scenario = Scenario;
    type Player<'a> = WebhookPlayer<'a>;
    const SCENARIOS: &'static [Scenario] = &Scenario::ALL;

    async fn start(&self, scenario: Scenario, grants: &[Grant]) -> Result<WebhookPlayer<'_>> {
        WebhookPlayer::start(self, scenario, grants).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_rbac_rules_are_sufficient_and_each_is_needed() -> Result<()> {
    each_is_missed(&Box::pin(site()).await?, &of_webhook()?).await
}
