//! Who reads the metrics of a release, and how: Prometheus, as the chart's `ServiceMonitor` tells it, and nobody else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use kube::config::AuthInfo;
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::testenv::chart::CHART;
use crate::testenv::release::{NAMESPACE, PATIENCE, Release};
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

/// The value of the chart that lets the account of Prometheus read.
pub(super) const READERS: &str =
    "metrics.readers[0].name=prometheus,metrics.readers[0].namespace=monitoring";
/// The namespace of Prometheus, and that of somebody else.
const MONITORING: &str = "monitoring";
/// The accounts in it.
const PROMETHEUS: &str = "prometheus";
const STRANGER: &str = "stranger";
/// Where a Pod has the token of its account.
const TOKEN_OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// Where Prometheus has it here, beside its configuration.
const TOKEN: &str = "token";

/// What Prometheus needs to scrape a release.
pub(super) struct Access {
    endpoint: Value,
    token: String,
    stranger: String,
}

impl Access {
    /// What the `ServiceMonitor` says that the chart renders by default, and a token of Prometheus' account.
    pub(super) async fn of(release: &Release) -> Result<Self> {
        let account = |name| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MONITORING}});
        let objects = [namespace, account(PROMETHEUS), account(STRANGER)];
        release.cluster.apply_yaml(MONITORING, &yaml::stream(&objects)).await?;
        let token = async |name| {
            let create = ["create", "token", name, "--namespace", MONITORING];
            release.tools.kubectl(&create, None).await.map(|token| token.trim().to_owned())
        };
        Ok(Self {
            endpoint: endpoint(release).await?,
            token: token(PROMETHEUS).await?,
            stranger: token(STRANGER).await?,
        })
    }

    /// The part of a scrape configuration that is the same, with the token in `folder`.
    pub(super) fn scrape_config(&self, folder: &Path) -> Result<Value> {
        let known = json!({
            "scheme": "https",
            "tlsConfig": {"insecureSkipVerify": true},
            "bearerTokenFile": TOKEN_OF_POD,
            "path": "/metrics",
        });
        for (field, value) in known.as_object().into_iter().flatten() {
            ensure!(self.endpoint.get(field) == Some(value), "{field} in {}", self.endpoint);
        }
        fs::write(folder.join(TOKEN), &self.token)?;
        Ok(json!({
            "scheme": "https",
            "tls_config": {"insecure_skip_verify": true},
            "authorization": {"credentials_file": TOKEN},
            "metrics_path": "/metrics",
        }))
    }

    /// Sees that a program shows its metrics to nobody else.
    pub(super) async fn is_of_nobody_else(&self, address: &str) -> Result<()> {
        for (token, expected) in [(None, 401), (Some("x.y.z"), 401), (Some(&*self.stranger), 403)] {
            until_ok(format!("{address} says {expected}"), PATIENCE, || async {
                let said = status("https", address, token).await?;
                // It asks so often a second and not more, whoever wants to know.
                ensure!(said == expected, "it says {said}");
                Ok(())
            })
            .await?;
        }
        ensure!(
            status("http", address, Some(&self.token)).await.is_err(),
            "{address} needs no TLS"
        );
        Ok(())
    }
}

/// The endpoint of the `ServiceMonitor`.
async fn endpoint(release: &Release) -> Result<Value> {
    let chart = workspace::path(CHART).display().to_string();
    let arguments = ["template", "release", &chart, "--namespace", NAMESPACE];
    let values = ["--set", "metrics.serviceMonitor.enabled=true"];
    let only = ["--show-only", "templates/monitoring.yaml"];
    let text = release.tools.helm_offline(&[&arguments[..], &values, &only].concat()).await?;
    let monitor = yaml::documents(&text)?.pop().context("no ServiceMonitor")?;
    monitor.pointer("/spec/endpoints/0").cloned().with_context(|| format!("{monitor}"))
}

/// The status of the answer to somebody with this token.
async fn status(scheme: &str, address: &str, token: Option<&str>) -> Result<u16> {
    let mut config = Config::new(format!("{scheme}://{address}").parse()?);
    config.accept_invalid_certs = true;
    // The library would ask again and again.
    config.default_retry = false;
    config.auth_info = AuthInfo { token: token.map(Into::into), ..AuthInfo::default() };
    let request = http::Request::get("/metrics").body(Vec::new())?;
    match Client::try_from(config)?.request_text(request).await {
        Ok(_) => Ok(200),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => bail!(error),
    }
}
