//! Where a round takes place: a control plane that notes what is asked of it, and the two sides.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::Instant;
use trainjob_api::TrainJob;
use trainjob_process::client::connect;
use trainjob_process::metrics::Requests;
use trainjob_process::server_time::ServerTime;

use super::calls::{Micros, Noted};
use super::figures::float;
use super::progress::Progress;
use crate::faults::proxy::Proxy;
use crate::testenv::apply::apply;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::fixtures::{PATIENCE, SYSTEM};
use crate::testenv::operator::{Operator, OperatorOptions, SERVICE_ACCOUNT, install_operator_rbac};
use crate::testenv::until::{until, until_ok};
use crate::testenv::workspace;

/// The namespace of the raw client, which is the same `ServiceAccount` with the same permissions there.
pub(super) const RAW: &str = "raw-client";

/// The namespace in which the operator's requests are noted with all that was sent and answered.
pub(super) const VERBATIM: &str = "verbatim";

/// The runtime of the jobs that run.
const RUNTIME: &str = "examples/runtimes/torch-distributed.yaml";

const AUDIT_POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/audit.yaml");
/// In the folder of the cluster, where all its processes work.
const AUDIT_LOG: &str = "audit.log";

/// Between two looks at how many objects there are, at least.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Objects a second that come or go at most, so that it need not be looked before. To count 100,000 takes the API server
/// and etcd 50 ms of CPU, which whoever is measured would lack.
const FASTEST: f64 = 4_000.0;
/// Objects of a page of a list.
const PAGE: u32 = 1_000;
/// What counts the deletions of the operator.
const DELETIONS: &str = "trainjob_ttl_deletions_total";

/// Where a round takes place.
pub(super) struct Rig {
    pub(super) cluster: Cluster,
    /// Has all permissions and is not subject to priority and fairness: it prepares.
    pub(super) admin: Client,
    /// The client that the operator is compared with.
    pub(super) raw: Client,
    operator: PathBuf,
    raw_credentials: PathBuf,
    pub(super) progress: Progress,
}

impl Rig {
    /// Starts a control plane of what `options` asks for, with the CRDs, a runtime and both sides' permissions.
    pub(super) async fn start(options: Options, progress: &Progress) -> Result<Self> {
        let rig = Self::start_server(options, progress).await?;
        rig.cluster.boot_others().await?;
        Ok(rig)
    }

    /// The same, but of the control plane only what stores: objects can be written behind its back
    /// ([`super::etcd`]). [`Cluster::boot_others`] is the rest.
    pub(super) async fn start_server(mut options: Options, progress: &Progress) -> Result<Self> {
        progress.step("starting a control plane", 0);
        options.apiserver_flags.extend(audit_flags());
        options.crds = true;
        let cluster = Cluster::prepare(options).await?;
        cluster.boot_server().await?;
        cluster.apply_yaml("default", &workspace::read(RUNTIME)?).await?;
        install_operator_rbac(&cluster, SYSTEM).await?;
        install_operator_rbac(&cluster, RAW).await?;
        let operator = cluster.service_account_kubeconfig(SYSTEM, SERVICE_ACCOUNT).await?;
        let raw_credentials = cluster.service_account_kubeconfig(RAW, SERVICE_ACCOUNT).await?;
        let (raw, admin) = (raw_client(&raw_credentials).await?, cluster.client().await?);
        let progress = progress.clone();
        Ok(Self { cluster, admin, raw, operator, raw_credentials, progress })
    }

    /// The raw client with a proxy between it and the API server.
    pub(super) async fn raw_through(&self, proxy: &Proxy) -> Result<Client> {
        raw_client(&proxy.kubeconfig(&self.raw_credentials)?).await
    }

    /// Starts the operator as it ships and does not wait until it is ready.
    pub(super) async fn launch_operator(&self) -> Result<Operator> {
        let kubeconfig = Some(self.operator.clone());
        Operator::start(&self.cluster, OperatorOptions { kubeconfig, ..Default::default() }).await
    }

    /// Starts the operator and waits until it knows everything there is.
    pub(super) async fn start_operator(&self) -> Result<Operator> {
        let operator = self.launch_operator().await?;
        operator.wait_ready().await?;
        Ok(operator)
    }

    /// Starts the operator with this configuration, and with a proxy between it and the API server, and waits until it
    /// knows everything there is.
    pub(super) async fn start_operator_through(
        &self,
        proxy: &Proxy,
        config_yaml: &str,
    ) -> Result<Operator> {
        let options = OperatorOptions {
            config_yaml: config_yaml.to_owned(),
            kubeconfig: Some(proxy.kubeconfig(&self.operator)?),
            ..OperatorOptions::default()
        };
        let operator = Operator::start(&self.cluster, options).await?;
        operator.wait_ready().await?;
        Ok(operator)
    }

    /// Makes a namespace of this name, in which Pods cannot be created yet.
    pub(super) async fn bare_namespace(&self, name: &str) -> Result<()> {
        let kind = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&self.admin, name, vec![kind]).await?;
        Ok(())
    }

    /// Makes the namespace [`VERBATIM`].
    pub(super) async fn verbatim_namespace(&self) -> Result<()> {
        self.bare_namespace(VERBATIM).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), VERBATIM);
        until_ok("Pods can be created in it", PATIENCE, || async {
            Ok(accounts.get("default").await?)
        })
        .await?;
        Ok(())
    }

    /// Waits until `namespace` has `count` objects of a kind, for as long as it comes nearer to
    /// that; returns how many there are then.
    pub(super) async fn until_count<K>(&self, namespace: &str, count: usize) -> Result<usize>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.admin.clone(), namespace);
        let (mut last, mut since) = (usize::MAX, Instant::now());
        loop {
            let page = api.list_metadata(&ListParams::default().limit(1)).await?;
            let rest = usize::try_from(page.metadata.remaining_item_count.unwrap_or(0))?;
            let there = page.items.len() + rest;
            self.progress.at(there);
            if there != last {
                (last, since) = (there, Instant::now());
            }
            if there == count || since.elapsed() > PATIENCE {
                return Ok(there);
            }
            tokio::time::sleep(until_next_look(float(there.abs_diff(count)))).await;
        }
    }

    /// Waits until the operator says that it deleted `count` jobs, for as long as it deletes more: whether it did, the
    /// audit log tells.
    pub(super) async fn until_all_deleted(&self, operator: &Operator, count: usize) -> Result<()> {
        let (mut deleted, mut since) = (0.0, Instant::now());
        while since.elapsed() < PATIENCE {
            let so_far = operator.metric(DELETIONS).await?;
            if so_far > deleted {
                (deleted, since) = (so_far, Instant::now());
            }
            let missing = float(count) - deleted;
            if missing < 1.0 {
                break;
            }
            tokio::time::sleep(until_next_look(missing)).await;
        }
        Ok(())
    }

    /// How many TrainJobs of a namespace nobody has deleted; those that wait for the garbage collector are.
    pub(super) async fn not_deleted(&self, namespace: &str) -> Result<usize> {
        let api: Api<TrainJob> = Api::namespaced(self.admin.clone(), namespace);
        let (mut page, mut count) = (ListParams::default().limit(PAGE), 0);
        loop {
            let list = api.list_metadata(&page).await?;
            let ends = list.items.iter().map(|job| &job.metadata.deletion_timestamp);
            count += ends.filter(|end| end.is_none()).count();
            match list.metadata.continue_ {
                Some(next) if !next.is_empty() => page = page.continue_token(&next),
                _ => return Ok(count),
            }
        }
    }

    /// Everything that was asked for so far.
    pub(super) async fn noted(&self) -> Result<Noted> {
        noted(&self.cluster, &self.raw).await
    }

    /// Waits until the operator says that it deleted at least `count` jobs.
    pub(super) async fn until_deleted(&self, operator: &Operator, count: f64) -> Result<()> {
        until_ok(format!("{count} jobs are deleted"), PATIENCE, || async {
            let deleted = operator.metric(DELETIONS).await?;
            ensure!(deleted >= count, "{deleted} are");
            Ok(())
        })
        .await
    }
}

/// What an API server needs to be told so that it notes what is asked of it, behind the requests, so that it holds up
/// neither side.
pub(super) fn audit_flags() -> [String; 7] {
    [
        format!("--audit-policy-file={AUDIT_POLICY}"),
        format!("--audit-log-path={AUDIT_LOG}"),
        // In megabytes: it is read as one file, and would otherwise begin anew after 100.
        "--audit-log-maxsize=10000".to_owned(),
        "--audit-log-mode=batch".to_owned(),
        "--audit-log-batch-buffer-size=200000".to_owned(),
        "--audit-log-batch-max-size=500".to_owned(),
        "--audit-log-batch-max-wait=1s".to_owned(),
    ]
}

/// Everything that was asked of the API server so far. The raw client leaves a mark in its namespace.
pub(super) async fn noted(cluster: &Cluster, raw: &Client) -> Result<Noted> {
    let mark = format!("mark-{}", Micros::now().0);
    let config_maps: Api<ConfigMap> = Api::namespaced(raw.clone(), RAW);
    let path = cluster.folder().join(AUDIT_LOG);
    let before = usize::try_from(fs::metadata(&path).map_or(0, |log| log.len()))?;
    config_maps.get_opt(&mark).await?;
    let log = until("everything is noted", PATIENCE, || async {
        let log = fs::read(&path).ok()?;
        // Any number of events may be noted behind the mark, but nothing that was answered before it.
        let since = log.get(before..)?;
        let is_noted = since.ends_with(b"\n") && String::from_utf8_lossy(since).contains(&mark);
        is_noted.then_some(log)
    });
    let mut noted = Noted::read(&log.await?)?;
    noted.raw.work.retain(|call| call.object.namespace != RAW);
    Ok(noted)
}

/// The very connections that a program makes.
pub(super) async fn raw_client(credentials: &Path) -> Result<Client> {
    let (requests, time) = (Requests::new("raw", &[])?, ServerTime::new(Duration::ZERO));
    Ok(connect(Some(credentials), requests, time).await?.work)
}

/// How long to wait before looking again, while so many objects are still to come or go.
fn until_next_look(missing: f64) -> Duration {
    LOOK_EVERY.max(Duration::from_secs_f64(missing / FASTEST))
}

/// A control plane that collects garbage, with JobSet and its webhooks; nothing is scheduled in it.
pub(super) fn control_plane(fsync: bool) -> Options {
    Options { nodes: None, fsync, ..Options::default() }
}

/// How the store of a bench was set up.
pub(super) const fn store(fsync: bool) -> &'static str {
    if fsync { "etcd waits for the disk" } else { "etcd does not wait for the disk" }
}
