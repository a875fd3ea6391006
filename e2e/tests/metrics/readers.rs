//! Who may read metrics, and how.

use anyhow::{Context, Result, bail, ensure};
use e2e::apply::apply;
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{PATIENCE, SYSTEM};
use e2e::operator::SERVICE_ACCOUNT;
use e2e::until::until_ok;
use e2e::webhook::{Webhook, WebhookOptions, unregister};
use e2e::{workspace, yaml};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::AuthInfo;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::test;

/// What the programs do unless they are told otherwise; the other tests tell them.
const BY_DEFAULT: &str = "metrics: {secureServing: true}";
const FOR_ALL: &str = "metrics: {secureServing: true, auth: {enabled: false}}";

/// Whose certificate a reader trusts.
enum Trust<'a> {
    /// Anybody's.
    Blind,
    /// Of who was vouched for by this authority, as PEM.
    Authority(&'a str),
}

/// The status of an answer, and the page, or why there is none.
async fn read(address: &str, trust: Trust<'_>, token: Option<&str>) -> Result<(u16, String)> {
    let mut config = Config::new(format!("https://{address}").parse()?);
    // The library would ask again and again.
    config.default_retry = false;
    match trust {
        Trust::Blind => config.accept_invalid_certs = true,
        Trust::Authority(pem) => {
            let authority = CertificateDer::from_pem_slice(pem.as_bytes())?;
            config.root_cert = Some(vec![authority.to_vec()]);
        }
    }
    config.auth_info = AuthInfo { token: token.map(Into::into), ..AuthInfo::default() };
    let request = http::Request::get("/metrics").body(Vec::new())?;
    match Client::try_from(config)?.request_text(request).await {
        Ok(page) => Ok((200, page)),
        Err(kube::Error::Api(status)) => Ok((status.code, status.message)),
        Err(error) => bail!(error),
    }
}

/// A token of a new `ServiceAccount`.
async fn token(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    apply(&tenant.client, &tenant.namespace, vec![account]).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
    let request =
        TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let made = accounts.create_token_request(name, &PostParams::default(), &request).await?;
    made.status.and_then(|status| status.token).context("no token")
}

/// Gives these permissions in the whole cluster to a `ServiceAccount`.
async fn allow(tenant: &Tenant<'_>, name: &str, namespace: &str, rules: Value) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let metadata = json!({"name": format!("{}-{name}", tenant.namespace)});
    let objects = vec![
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }),
    ];
    apply(&tenant.client, &tenant.namespace, objects).await?;
    Ok(())
}

#[tokio::test]
async fn metrics_require_tls_and_authorization_by_default() -> Result<()> {
    test("readers", async |tenant, _| {
        let operator = tenant.world.start_operator_with(BY_DEFAULT).await?;
        let address = operator.metrics_address();
        let (stranger, reader) = (token(tenant, "stranger").await?, token(tenant, "reader").await?);
        let reads = [json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})];
        allow(tenant, "reader", &tenant.namespace, json!(reads)).await?;

        let rules = workspace::read("charts/trainjob-operator/files/metrics-auth-rules.yaml")?;
        let rules = yaml::documents(&rules)?.pop().context("no rules")?;
        for missing in rules.as_array().context("no list")? {
            let others = rules.as_array().into_iter().flatten().filter(|rule| *rule != missing);
            allow(tenant, SERVICE_ACCOUNT, SYSTEM, others.cloned().collect()).await?;
            let resource = missing["resources"][0].as_str().context("no resource")?;
            until_ok(format!("{resource} are missed"), PATIENCE, || async {
                let (status, why) = read(&address, Trust::Blind, Some(&reader)).await?;
                ensure!(status == 503 && why.contains(resource), "it gets {status}: {why}");
                Ok(())
            })
            .await?;
        }
        allow(tenant, SERVICE_ACCOUNT, SYSTEM, rules).await?;

        let page = until_ok("a reader gets the page", PATIENCE, || async {
            let (status, page) = read(&address, Trust::Blind, Some(&reader)).await?;
            ensure!(status == 200, "it gets {status}");
            Ok(page)
        })
        .await?;
        ensure!(page.contains("trainjob_operator_leader 1"), "{page}");
        for (who, token, expected) in [
            ("nobody", None, 401),
            ("a forger", Some("x.y.z"), 401),
            ("a stranger", Some(&*stranger), 403),
        ] {
            until_ok(format!("{who} is refused"), PATIENCE, || async {
                let (status, _) = read(&address, Trust::Blind, token).await?;
                // Somebody else may just have asked too much.
                ensure!(status == expected, "it gets {status}");
                Ok(())
            })
            .await?;
        }
        ensure!(tenant.world.metrics().await.is_err(), "it answers without TLS, too");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_admission_server_shows_its_metrics_with_the_certificate_it_serves_with() -> Result<()>
{
    test("webhook", async |tenant, _| {
        let options =
            WebhookOptions { config_yaml: FOR_ALL.to_owned(), ..WebhookOptions::default() };
        let webhook = Webhook::start(&tenant.world.cluster, options).await?;
        webhook.wait_ready().await?;
        let (authority, _) =
            webhook.authority().context("it has its certificate from elsewhere")?;
        let trust = authority.pem();
        let (status, page) =
            read(&webhook.metrics_address(), Trust::Authority(&trust), None).await?;
        ensure!(status == 200 && page.contains("trainjob_webhook_build_info"), "{status}: {page}");
        unregister(&tenant.client).await?;
        Ok(())
    })
    .await
}
