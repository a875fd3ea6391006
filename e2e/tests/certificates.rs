//! The webhook's certificate changes while the API server keeps asking, and no admission fails.
//!
//! With `CERTIFICATES=full`, it changes a thousand times while ten thousand jobs are admitted; without, a tenth of that.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::answer::ask;
use e2e::authority::Authority;
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::train_job;
use e2e::until::until_ok;
use e2e::webhook::{
    Certificates, DEFAULTER, NAMESPACE, SECRET, VALIDATOR, Webhook, WebhookOptions, register,
};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// Rotations of an authority of its own.
const AUTHORITIES: usize = 3;
/// Requests to the API server at the same time.
const AT_ONCE: usize = 8;
/// How long each sender waits after an answer before it sends the next request: other tests need the processors, too.
const BETWEEN_ASKS: Duration = Duration::from_millis(50);
/// A change is taken into use within this time, on a busy machine.
const NOTICED: Duration = Duration::from_secs(10);
/// How soon a webhook is ready on a cluster in which there is nothing, on a busy machine.
const READY: Duration = Duration::from_secs(20);

async fn cluster() -> Result<Cluster> {
    let cluster = Cluster::start(Options { crds: true, ..Options::bare() }).await?;
    let runtime = e2e::fixtures::runtime("torch", &json!({}), 3, None);
    cluster.apply_yaml("default", &runtime.to_string()).await?;
    Ok(cluster)
}

/// Asks for admissions, several at once, until told to stop.
struct Traffic {
    stop: Arc<AtomicBool>,
    admitted: Arc<AtomicUsize>,
    senders: JoinSet<Result<()>>,
}

impl Traffic {
    fn start(client: &Client) -> Self {
        let (stop, admitted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut senders = JoinSet::new();
        for sender in 0..AT_ONCE {
            let (client, stop, admitted) = (client.clone(), stop.clone(), admitted.clone());
            senders.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let admission = admit(&client, &format!("job-{sender}")).await;
                    if admission.is_err() {
                        stop.store(true, Ordering::Relaxed);
                        return admission;
                    }
                    admitted.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(BETWEEN_ASKS).await;
                }
                Ok(())
            });
        }
        Self { stop, admitted, senders }
    }

    fn admitted(&self) -> usize {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Whether it was told to stop, or one was not admitted.
    fn has_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How many were admitted; an error if a single one was not.
    async fn end(mut self) -> Result<usize> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(sender) = self.senders.join_next().await {
            sender??;
        }
        Ok(self.admitted())
    }
}

/// Sees that a TrainJob is admitted: defaults filled in by one webhook, and judged by the other.
async fn admit(client: &Client, name: &str) -> Result<()> {
    let job = train_job(name, "torch", &json!({"runtimePatches": [{"manager": "a.b/c"}]}));
    let path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs?dryRun=All";
    let answer = ask(client, http::Method::POST, path, "application/json", &job).await?;
    ensure!(answer.code == 201, "not admitted: {answer:?}");
    let time = answer.object.pointer("/spec/runtimePatches/0/time");
    ensure!(time.is_some_and(Value::is_string), "no time was filled in: {answer:?}");
    Ok(())
}

/// The folder of a mounted Secret, as kubelet makes it: two links to files in a folder that is itself
/// behind a link, which is exchanged as a whole.
struct Mounted<'a> {
    folder: &'a Path,
    authority: &'a Authority,
    number: usize,
}

impl Mounted<'_> {
    /// Exchanges the certificate; returns the new one.
    fn rotate(&mut self) -> Result<CertificateDer<'static>> {
        self.number += 1;
        let (new, link) = (format!("..{}", self.number), self.folder.join("..data"));
        self.authority.issue(&self.folder.join(&new))?;
        symlink(&new, self.folder.join("..new"))?;
        fs::rename(self.folder.join("..new"), &link)?;
        for name in ["tls.crt", "tls.key"] {
            let file = self.folder.join(name);
            if !file.is_symlink() {
                fs::remove_file(&file)?;
                symlink(Path::new("..data").join(name), &file)?;
            }
        }
        if self.number > 1 {
            fs::remove_dir_all(self.folder.join(format!("..{}", self.number - 1)))?;
        }
        Ok(CertificateDer::from_pem_file(link.join("tls.crt"))?)
    }
}

/// How often the serving certificate changes under one authority, and how many are admitted meanwhile.
fn rotations_and_admissions() -> (usize, usize) {
    let is_full = env::var_os("CERTIFICATES").is_some_and(|it| it == "full");
    if is_full { (1_000, 10_000) } else { (100, 1_000) }
}

fn connector(roots: &[u8]) -> Result<TlsConnector> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(roots) {
        store.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificate that a new connection to `address` gets, which has to be a good one.
async fn served(connector: &TlsConnector, address: &str) -> Result<CertificateDer<'static>> {
    let stream = TcpStream::connect(address).await?;
    let stream = connector.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    let chain = stream.get_ref().1.peer_certificates().context("no certificate")?;
    Ok(chain.first().context("an empty chain")?.clone().into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_certificates_of_one_authority() -> Result<()> {
    let (rotations, admissions) = rotations_and_admissions();
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    let config_yaml = "certificates: {pollInterval: 50ms}".to_owned();
    let options = WebhookOptions { config_yaml, ..WebhookOptions::default() };
    let webhook = Webhook::start(&cluster, options).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&client).await?;
    let (authority, folder) = webhook.authority().context("its certificate is from files")?;
    let connector = connector(authority.pem().as_bytes())?;
    let mut mounted = Mounted { folder, authority, number: 0 };

    let traffic = Traffic::start(&client);
    let begin = Instant::now();
    for number in 0..rotations {
        let new = mounted.rotate()?;
        until_ok("the new certificate is served", NOTICED, || async {
            let found = served(&connector, &webhook.address()).await?;
            ensure!(found == new, "rotation {number}: still another one");
            Ok(())
        })
        .await?;
    }
    let rotated = begin.elapsed();
    until_ok("enough was admitted, or something was not", Duration::from_mins(10), || async {
        let admitted = traffic.admitted();
        ensure!(traffic.has_ended() || admitted >= admissions, "{admitted} admissions");
        Ok(())
    })
    .await?;
    let admitted = traffic.end().await?;
    println!("{rotations} rotations in {rotated:?}, {admitted} admissions, none failed");
    Ok(())
}

/// The CA bundles of every webhook.
async fn bundles(client: &Client) -> Result<Vec<Vec<u8>>> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating = mutating.get(DEFAULTER).await?.webhooks.unwrap_or_default();
    let validating = validating.get(VALIDATOR).await?.webhooks.unwrap_or_default();
    let mutating = mutating.into_iter().map(|webhook| webhook.client_config);
    let configs = mutating.chain(validating.into_iter().map(|webhook| webhook.client_config));
    Ok(configs.map(|config: WebhookClientConfig| config.ca_bundle.unwrap_or_default().0).collect())
}

/// The authority that signs, from its Secret.
async fn signer(client: &Client) -> Result<Vec<u8>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let data = secrets.get(SECRET).await?.data.unwrap_or_default();
    Ok(data.get("ca.crt").context("no ca.crt")?.0.clone())
}

fn self_managed(config_yaml: &str) -> WebhookOptions {
    WebhookOptions {
        config_yaml: config_yaml.to_owned(),
        certificates: Certificates::SelfManaged,
        ..WebhookOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn authorities_of_its_own_follow_each_other() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    // An API server that has much to do may take seconds to notice that it is to trust another authority, and the webhook seconds
    // to make one: 13 s are left when the next one may sign.
    let quick =
        "certificates: {authorityLifetime: 36s, lifetime: 36s, renewBefore: 18s, bundleLead: 5s}";
    let webhook = Webhook::start(&cluster, self_managed(quick)).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&client).await?;

    let traffic = Traffic::start(&client);
    let mut last = signer(&client).await?;
    for number in 0..AUTHORITIES {
        let mut in_bundle_before = false;
        until_ok("another authority signs", Duration::from_mins(1), || async {
            let signs = signer(&client).await?;
            ensure!(signs != last, "authority {number} still signs");
            Ok(())
        })
        .await?;
        last = signer(&client).await?;
        for bundle in bundles(&client).await? {
            let text = String::from_utf8(bundle)?;
            in_bundle_before |= text.contains(std::str::from_utf8(&last)?.trim());
            ensure!(text.matches("BEGIN CERTIFICATE").count() >= 2, "no overlap: {text}");
            let found = served(&connector(text.as_bytes())?, &webhook.address()).await;
            ensure!(found.is_ok(), "the bundle does not fit what is served: {found:?}");
        }
        ensure!(in_bundle_before, "an authority signs that is in no bundle");
    }
    let admitted = traffic.end().await?;
    println!("{AUTHORITIES} authorities, {admitted} admissions, none failed");
    ensure!(admitted > 0, "nothing was asked");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_somebody_deletes_is_made_anew_without_a_gap() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    // The API server has to notice meanwhile that it is to trust another authority, which may take it seconds.
    let options = self_managed("certificates: {bundleLead: 5s}");
    let (first, second) = tokio::try_join!(
        Webhook::start(&cluster, options.clone()),
        Webhook::start(&cluster, options),
    )?;
    tokio::try_join!(first.wait_ready(), second.wait_ready())?;
    register(&client, &first.address(), None).await?;
    first.wait_asked(&client).await?;
    let old = signer(&client).await?;

    let traffic = Traffic::start(&client);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.delete(SECRET, &DeleteParams::default()).await?;
    until_ok("both serve a certificate of another authority", NOTICED * 3, || async {
        let new = signer(&client).await?;
        ensure!(new != old, "the old one signs");
        let connector = connector(&new)?;
        served(&connector, &first.address()).await?;
        served(&connector, &second.address()).await?;
        Ok(())
    })
    .await?;
    for bundle in bundles(&client).await? {
        let bundle = String::from_utf8(bundle)?;
        ensure!(bundle.contains(std::str::from_utf8(&old)?.trim()), "the old one is not trusted");
    }
    let admitted = traffic.end().await?;
    println!("{admitted} admissions, none failed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_on_an_empty_cluster_have_one_authority() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    let replicas = tokio::try_join!(
        Webhook::start(&cluster, self_managed("")),
        Webhook::start(&cluster, self_managed("")),
    )?;
    let begin = Instant::now();
    tokio::try_join!(replicas.0.wait_ready(), replicas.1.wait_ready())?;
    let took = begin.elapsed();
    println!("two replicas were ready after {took:?}");
    ensure!(took < READY, "ready after {took:?}");

    let authority = signer(&client).await?;
    let connector = connector(&authority)?;
    for replica in [&replicas.0, &replicas.1] {
        served(&connector, &replica.address()).await.context("signed by another authority")?;
        register(&client, &replica.address(), None).await?;
        replica.wait_asked(&client).await?;
    }
    for bundle in bundles(&client).await? {
        assert_eq!(String::from_utf8(bundle)?.trim(), String::from_utf8(authority.clone())?.trim());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_ca_bundle_is_repaired() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    let webhook = Webhook::start(&cluster, self_managed("")).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&client).await?;
    let good = bundles(&client).await?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    for spoilt in [json!(null), json!("bm8gY2VydGlmaWNhdGU=")] {
        let field = "/webhooks/1/clientConfig/caBundle";
        let edit = json!([{"op": "add", "path": field, "value": spoilt}]);
        let edit = Patch::Json::<()>(serde_json::from_value(edit)?);
        // The API server may refuse what is no certificate at all.
        if validating.patch(VALIDATOR, &PatchParams::default(), &edit).await.is_err() {
            continue;
        }
        until_ok("the bundle is good again", NOTICED, || async {
            ensure!(bundles(&client).await? == good, "not yet");
            Ok(())
        })
        .await?;
    }
    admit(&client, "after").await
}
