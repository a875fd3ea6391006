//! The rights of the webhook.

use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::PATIENCE;
use e2e::proxy::{Proxy, Scope};
use e2e::rights::{Grant, account, of_webhook};
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

use super::judgement::Question;
use super::{Play, Player, each_is_missed};

/// A story about a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Story {
    /// It is asked something.
    Asked(Question),
    /// It makes its certificate itself, where there is nothing yet.
    OwnAuthority,
    /// The same where there is an empty Secret for it.
    EmptySecret,
}

impl Story {
    /// All of them. Where several take a right, the first is played without it.
    const ALL: [Self; 7] = [
        Self::Asked(Question::NoRuntime("ClusterTrainingRuntime")),
        Self::Asked(Question::NoRuntime("TrainingRuntime")),
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

/// An API server, and whose turn it is to write into the registrations: there is one pair of them.
pub(crate) struct Site {
    cluster: Cluster,
    registrations: Mutex<()>,
}

/// A webhook with rights of its own, in a namespace of its own.
pub(crate) struct Seat<'a> {
    story: Story,
    client: Client,
    proxy: Proxy,
    webhook: Webhook,
    /// What it answered, where that was not what it should.
    answer: OnceLock<String>,
    /// Held while it has the registrations to itself.
    _turn: Option<MutexGuard<'a, ()>>,
}

impl<'a> Seat<'a> {
    async fn take(site: &'a Site, story: Story, grants: &[Grant]) -> Result<Self> {
        let cluster = &site.cluster;
        let (client, namespace) = (cluster.client().await?, cluster.namespace("rights").await?);
        let kubeconfig = account(cluster, &namespace, SERVICE_ACCOUNT, grants).await?;
        let proxy = Proxy::start(cluster, Scope::Cluster).await?;
        if story == Story::EmptySecret {
            let secret =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}});
            cluster.apply_yaml(&namespace, &yaml::stream(&[secret])).await?;
        }
        let certificates = story.certificates();
        let turn = match certificates {
            Certificates::Files => None,
            Certificates::SelfManaged => Some(site.registrations.lock().await),
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
        Ok(Self { story, client, proxy, webhook, answer: OnceLock::new(), _turn: turn })
    }

    /// A client that asks this webhook as the API server would.
    fn asking(&self) -> Result<Client> {
        let (authority, _) = self.webhook.authority().context("nobody knows its authority")?;
        let mut config = Config::new(format!("https://{}", self.webhook.address()).parse()?);
        let certificate = CertificateDer::from_pem_slice(authority.pem().as_bytes())?;
        config.root_cert = Some(vec![certificate.to_vec()]);
        Ok(Client::try_from(config)?)
    }

    /// Waits until both registrations hold an authority.
    async fn is_registered(&self) -> Result<()> {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        until_ok("both registrations hold an authority", PATIENCE, || async {
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

impl Player for Seat<'_> {
    async fn play(&self) -> Result<()> {
        self.webhook.wait_ready().await?;
        let played = match self.story {
            Story::Asked(question) => question.ask(&self.asking()?).await,
            Story::OwnAuthority | Story::EmptySecret => self.is_registered().await,
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

impl Drop for Seat<'_> {
    /// Dropping a webhook would wait for it, and all lanes with it.
    fn drop(&mut self) {
        self.webhook.kill9();
    }
}

async fn site() -> Result<Site> {
    let options = Options { jobset: true, crds: true, ..Options::bare() };
    let cluster = Cluster::start(options).await?;
    Question::prepare(&cluster.client().await?).await?;
    Ok(Site { cluster, registrations: Mutex::default() })
}

impl Play for Site {
    type Story = Story;
    type Player<'a> = Seat<'a>;
    const STORIES: &'static [Story] = &Story::ALL;

    async fn start(&self, story: Story, grants: &[Grant]) -> Result<Seat<'_>> {
        Seat::take(self, story, grants).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_misses_each_of_its_rights_and_asks_for_nothing_else() -> Result<()> {
    each_is_missed(&Box::pin(site()).await?, &of_webhook()?).await
}
