//! A Prometheus on 127.0.0.1: what it scrapes, and what it says when it is asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use form_urlencoded::Serializer;
use http::Request;
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access::Access;
use crate::testenv::cluster::Cluster;
use crate::testenv::ports::Port;
use crate::testenv::process::Process;
use crate::testenv::release::PATIENCE;
use crate::testenv::until::until_ok;

/// How often targets are scraped and rules evaluated.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// Replaced as a whole, and looked at by Prometheus whenever it is.
const TARGETS: &str = "targets.json";

/// A server that answers at `/metrics`, and the labels that every series of it gets.
pub(super) struct Target {
    pub(super) address: String,
    pub(super) labels: BTreeMap<&'static str, String>,
}

/// What a query gives of one combination of labels.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Series {
    pub(super) labels: BTreeMap<String, String>,
    /// Instants, in seconds since the epoch, and values.
    pub(super) points: Vec<(f64, f64)>,
}

impl Series {
    /// Whether it has a value that is a number.
    pub(super) fn has_data(&self) -> bool {
        self.points.iter().any(|(_, value)| value.is_finite())
    }
}

/// A running Prometheus. Dropped, it ends.
pub(super) struct Prometheus {
    _process: Process,
    _port: Port,
    client: Client,
    folder: PathBuf,
}

impl Prometheus {
    /// Starts one beside a cluster, with no targets, these rules and this access to its targets, and waits until it is ready.
    pub(super) async fn start(
        cluster: &Cluster,
        program: &Path,
        rules: &str,
        access: &Access,
    ) -> Result<Self> {
        let folder = cluster.folder().join("prometheus");
        fs::create_dir(&folder)?;
        fs::write(folder.join(TARGETS), "[]")?;
        fs::write(folder.join("alerts.yaml"), rules)?;
        let every = format!("{}s", INTERVAL.as_secs());
        let mut trainjob = access.scrape_config(&folder)?;
        for (field, value) in [
            ("job_name", json!("trainjob")),
            ("file_sd_configs", json!([{"files": [TARGETS], "refresh_interval": every}])),
        ] {
            trainjob.as_object_mut().context("no map")?.insert(field.to_owned(), value);
        }
        let config = json!({
            "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
            "rule_files": ["alerts.yaml"],
            "scrape_configs": [trainjob],
        });
        // JSON is YAML.
        fs::write(folder.join("prometheus.yaml"), config.to_string())?;
        let port = Port::take()?;
        let arguments = [
            format!("--config.file={}", folder.join("prometheus.yaml").display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address={}", port.address()),
        ];
        let process = cluster.spawn("prometheus", program, &arguments, &[])?;
        let client = Client::try_from(Config::new(format!("http://{}", port.address()).parse()?))?;
        let ready = until_ok("it answers", PATIENCE, || async {
            Ok(client.request_text(Request::get("/-/ready").body(Vec::new())?).await?)
        });
        process.ready_when(ready).await?;
        Ok(Self { _process: process, _port: port, client, folder })
    }

    /// Scrapes these from now on, and forgets all others, as when a Pod has gone.
    pub(super) fn scrape(&self, targets: &[Target]) -> Result<()> {
        let groups: Vec<Value> = targets
            .iter()
            .map(|target| json!({"targets": [target.address], "labels": target.labels}))
            .collect();
        let new = self.folder.join("targets.new");
        fs::write(&new, json!(groups).to_string())?;
        fs::rename(new, self.folder.join(TARGETS))?;
        Ok(())
    }

    /// What a query gives at an instant, by default now.
    pub(super) async fn at(&self, query: &str, instant: Option<f64>) -> Result<Vec<Series>> {
        let mut parameters = vec![("query", query.to_owned())];
        parameters.extend(instant.map(|instant| ("time", instant.to_string())));
        self.query("query", &parameters).await
    }

    /// What a query gives over a time, at steps of whole seconds.
    pub(super) async fn over(&self, query: &str, span: Span) -> Result<Vec<Series>> {
        let parameters = [
            ("query", query.to_owned()),
            ("start", span.start.to_string()),
            ("end", span.end.to_string()),
            ("step", span.step.to_string()),
        ];
        self.query("query_range", &parameters).await
    }

    async fn query(&self, what: &str, parameters: &[(&str, String)]) -> Result<Vec<Series>> {
        let data: Data = self.get(what, parameters).await?;
        data.result.into_iter().map(series).collect()
    }

    /// The values that a label has in what a selector selects.
    pub(super) async fn label_values(&self, label: &str, selector: &str) -> Result<Vec<String>> {
        self.get(&format!("label/{label}/values"), &[("match[]", selector.to_owned())]).await
    }

    /// The alerts that are pending or firing now.
    pub(super) async fn alerts(&self) -> Result<Vec<Alert>> {
        let alerts: Alerts = self.get("alerts", &[]).await?;
        Ok(alerts.alerts)
    }

    /// The alerting rules, with how their last evaluation went.
    pub(super) async fn rules(&self) -> Result<Vec<Rule>> {
        let groups: Groups = self.get("rules", &[]).await?;
        Ok(groups.groups.into_iter().flat_map(|group| group.rules).collect())
    }

    async fn get<T: DeserializeOwned>(
        &self,
        what: &str,
        parameters: &[(&str, String)],
    ) -> Result<T> {
        let query = Serializer::new(String::new()).extend_pairs(parameters).finish();
        let request = Request::get(format!("/api/v1/{what}?{query}")).body(Vec::new())?;
        let text = self.client.request_text(request).await;
        let text = text.with_context(|| format!("{what} {parameters:?}"))?;
        let answer: Answer<T> = serde_json::from_str(&text)?;
        ensure!(answer.status == "success", "{what} {parameters:?}: {text}");
        ensure!(answer.warnings.is_empty(), "{what} {parameters:?}: {:?}", answer.warnings);
        Ok(answer.data)
    }
}

/// A time to look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// In seconds since the epoch.
    pub(super) start: u64,
    pub(super) end: u64,
    /// In seconds.
    pub(super) step: u64,
}

/// Seconds since the epoch, now.
pub(super) fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

#[derive(Deserialize)]
struct Answer<T> {
    status: String,
    data: T,
    #[serde(default)]
    warnings: Vec<String>,
}

/// The result of a query; numbers among it are those of a query without labels.
#[derive(Deserialize)]
struct Data {
    result: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

#[derive(Deserialize)]
struct Alerts {
    alerts: Vec<Alert>,
}

/// An alert that is pending or firing.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Alert {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) state: String,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

/// A rule, and how its last evaluation went.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) health: String,
    #[serde(default, rename = "lastError")]
    pub(super) last_error: String,
}

fn series(found: Found) -> Result<Series> {
    let points = found.value.into_iter().chain(found.values);
    let points = points.map(|(at, value)| Ok((at, value.parse::<f64>()?)));
    Ok(Series { labels: found.metric, points: points.collect::<Result<Vec<_>>>()? })
}
