//! A control plane for the retention engine and the raw client, and what is stored in it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy,
};
use kube::core::Request;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use trainjob_api::time::Timestamp;

use super::kinds::{KINDS, Kind, of_cluster, of_namespaces};
use crate::bench::calls::{Micros, Noted};
use crate::bench::jobs::{Stored, side_by_side};
use crate::bench::progress::Progress;
use crate::bench::rig::{RAW, audit_flags, noted, raw_client};
use crate::testenv::apply::{apply, established};
use crate::testenv::chart::install_retention_crds;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::retention::{
    NAMESPACE, Retention, SERVICE_ACCOUNT, install_chart_rbac, install_raw_client,
};
use crate::testenv::until::until_ok;

/// Namespaces in which objects are at rest.
const NAMESPACES: usize = 20;
/// Policies in all.
const POLICIES: usize = 50;
/// How long an engine may take to list and evaluate everything.
const EVALUATED_WITHIN: Duration = Duration::from_mins(10);

/// The control plane.
pub(super) struct Rig {
    pub(super) cluster: Cluster,
    pub(super) admin: Client,
    pub(super) raw: Client,
    engine: PathBuf,
    pub(super) progress: Progress,
}

/// An object that is there.
pub(super) struct There {
    pub(super) kind: &'static Kind,
    pub(super) stored: Stored,
}

impl Rig {
    /// Starts it.
    pub(super) async fn start(fsync: bool, progress: &Progress) -> Result<Self> {
        progress.step("starting a control plane", 0);
        let apiserver_flags = audit_flags().into();
        let cluster = Cluster::start(Options { fsync, apiserver_flags, ..Options::bare() }).await?;
        let admin = cluster.client().await?;
        install_retention_crds(&admin).await?;
        let definitions = KINDS.iter().filter_map(Kind::definition).collect();
        established(&admin, &apply(&admin, "default", definitions).await?).await?;
        let targets: Vec<_> = KINDS.iter().map(|kind| (kind.group, kind.plural)).collect();
        install_chart_rbac(&cluster, &of_chart()).await?;
        install_raw_client(&cluster, RAW, &targets).await?;
        let engine = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        let raw = cluster.service_account_kubeconfig(RAW, SERVICE_ACCOUNT).await?;
        let raw = raw_client(&raw).await?;
        Ok(Self { cluster, admin, raw, engine, progress: progress.clone() })
    }

    /// Everything that was asked for so far.
    pub(super) async fn noted(&self) -> Result<Noted> {
        noted(&self.cluster, &self.raw).await
    }

    /// A namespace in which Pods can be stored.
    pub(super) async fn namespace(&self, prefix: &str) -> Result<String> {
        let namespace = self.cluster.namespace(prefix).await?;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        apply(&self.admin, &namespace, vec![account]).await?;
        Ok(namespace)
    }

    /// Starts the engine without limits of its rate. It does not know of anything yet.
    pub(super) async fn launch(&self) -> Result<Retention> {
        let section = json!({"targets": of_chart(), "deletesPerSecond": 0}).to_string();
        Retention::start_as(&self.cluster, &section, self.engine.clone(), Vec::new()).await
    }

    /// Waits until the engine knows of so many objects.
    pub(super) async fn evaluated(&self, engine: &Retention, objects: usize) -> Result<()> {
        self.progress.step("the engine lists and evaluates", objects);
        until_ok("everything is evaluated", EVALUATED_WITHIN, || async {
            let known = engine.metric("trainjob_retention_objects").await?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let known = known as usize;
            self.progress.at(known);
            ensure!(known >= objects, "{known} objects");
            Ok(())
        })
        .await
    }

    /// Stores policies by which nothing is due.
    pub(super) async fn policies(&self, namespaces: &[String]) -> Result<()> {
        let own = of_namespaces(POLICIES - KINDS.len(), namespaces)?;
        apply(&self.admin, "default", [of_cluster(0)?, own].concat()).await?;
        Ok(())
    }

    /// Stores objects that have ended now, evenly of all kinds, and evenly in so many namespaces.
    pub(super) async fn at_rest(&self, objects: usize) -> Result<Vec<String>> {
        let mut namespaces = Vec::new();
        for _ in 0..NAMESPACES {
            namespaces.push(self.namespace("rest").await?);
        }
        self.stored("storing finished objects", objects, &namespaces).await?;
        Ok(namespaces)
    }

    /// Stores objects that have ended now, evenly of all kinds, and evenly in these namespaces.
    pub(super) async fn stored(
        &self,
        step: &str,
        objects: usize,
        namespaces: &[String],
    ) -> Result<Vec<There>> {
        self.progress.step(step, objects);
        let kinds = KINDS.iter().cycle().take(objects).enumerate();
        let wanted = kinds.map(|(number, kind)| {
            let namespace = namespaces.get((number / KINDS.len()) % namespaces.len().max(1));
            (number, kind, namespace.cloned().unwrap_or_default())
        });
        let (admin, progress) = (self.admin.clone(), self.progress.clone());
        side_by_side(wanted.collect(), move |(number, kind, namespace)| {
            let (api, progress) = (kind.api(&admin, &namespace), progress.clone());
            async move {
                let (stored, _) = finished(kind, &api, &format!("object-{number:06}")).await?;
                progress.one();
                Ok(There { kind, stored })
            }
        })
        .await
    }

    /// How many objects are left in a namespace.
    pub(super) async fn left(&self, namespace: &str) -> Result<usize> {
        let mut left = 0;
        for kind in &KINDS {
            let api = kind.api(&self.admin, namespace);
            let page = api.list_metadata(&ListParams::default().limit(1)).await?;
            let rest = page.metadata.remaining_item_count.unwrap_or(0);
            left += page.items.len() + usize::try_from(rest)?;
        }
        Ok(left)
    }
}

/// The kinds as targets of the chart, and of the engine.
fn of_chart() -> Vec<Value> {
    let target =
        |kind: &Kind| json!({"apiGroup": kind.group, "kind": kind.name, "resource": kind.plural});
    KINDS.iter().map(target).collect()
}

/// Stores an object that has ended now. Returns from when on it is old, too.
pub(super) async fn finished(
    kind: &'static Kind,
    api: &Api<DynamicObject>,
    name: &str,
) -> Result<(Stored, Timestamp)> {
    let ended = Timestamp::from(SystemTime::now());
    let at = json!(Time::from(ended));
    let at = at.as_str().context("a time is a text")?;
    let object = serde_json::from_value(kind.object(name, at))?;
    let mut stored = api.create(&PostParams::default(), &object).await?;
    if kind.has_own_status() {
        let status = Patch::Merge(json!({"status": kind.status(at)}));
        stored = api.patch_status(name, &PatchParams::default(), &status).await?;
    }
    let created = stored.creation_timestamp().as_ref().map(Timestamp::from);
    let start = created.map_or(ended, |created| created.max(ended));
    let stored = Stored {
        name: name.to_owned(),
        uid: stored.uid().context("no UID")?,
        version: stored.resource_version().context("no version")?,
    };
    Ok((stored, start))
}

/// Deletes an object as the engine does: this very version of it.
pub(super) async fn delete(client: &Client, namespace: &str, there: &There) -> Result<Micros> {
    let Stored { name, uid, version } = &there.stored;
    let preconditions =
        Preconditions { uid: Some(uid.clone()), resource_version: Some(version.clone()) };
    let how = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    let request = Request::new(there.kind.path(namespace)).delete(name, &how)?;
    let sent = Micros::now();
    client.request_text(request).await?;
    Ok(sent)
}
