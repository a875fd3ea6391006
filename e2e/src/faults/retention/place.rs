//! A namespace with an engine behind a proxy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use invariants::retention::{Terms, Violation, check};
use invariants::{History, Millis, Request};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::ground::Ground;
use super::objects::job;
use super::slot::Slot;
use crate::faults::proxy::{Call, Proxy, Scope};
use crate::testenv::apply::apply;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::recorder::{RetentionRecorder, kind};
use crate::testenv::retention::Retention;
use crate::testenv::until::{consistently, until_ok};

/// Objects that are stored at the same time.
const AT_A_TIME: usize = 32;

/// A namespace, a proxy behind which an engine sees that, and somebody who writes down what happens in it.
pub struct Place {
    /// The box that it is in.
    pub ground: Arc<Ground>,
    /// A client with all permissions.
    pub client: Client,
    /// Its name.
    pub namespace: String,
    /// What is between the engine and the API server.
    pub proxy: Arc<Proxy>,
    /// The Jobs in it.
    pub jobs: Api<Job>,
    recorder: RetentionRecorder,
    slot: Arc<Slot>,
}

impl Place {
    /// One whose name begins like this, without an engine. One that is started sees nothing but this.
    pub async fn prepare(ground: Arc<Ground>, prefix: &str) -> Result<Self> {
        let namespace = ground.cluster().namespace(prefix).await?;
        Self::within(ground, namespace).await
    }

    /// The same of a namespace that is there.
    pub async fn within(ground: Arc<Ground>, namespace: String) -> Result<Self> {
        let slot = Slot::new(Arc::clone(&ground), Scope::Namespace(namespace.clone())).await?;
        Self::named(ground, namespace, Arc::new(slot)).await
    }

    /// The same with an engine that sees the whole box, if it is started.
    pub async fn in_sight_of_all(ground: Arc<Ground>, prefix: &str) -> Result<Self> {
        let namespace = ground.cluster().namespace(prefix).await?;
        let slot = Slot::new(Arc::clone(&ground), Scope::Cluster).await?;
        Self::named(ground, namespace, Arc::new(slot)).await
    }

    /// Another namespace that the same engine sees.
    pub async fn another(&self, prefix: &str) -> Result<Self> {
        let ground = Arc::clone(&self.ground);
        let namespace = ground.cluster().namespace(prefix).await?;
        Self::named(ground, namespace, Arc::clone(&self.slot)).await
    }

    async fn named(ground: Arc<Ground>, namespace: String, slot: Arc<Slot>) -> Result<Self> {
        let client = ground.cluster().client().await?;
        let jobs = Api::namespaced(client.clone(), &namespace);
        let kinds =
            ground.kinds().iter().map(|(group, version, name, _)| kind(group, version, name));
        let kinds: Vec<_> = kinds.collect();
        let recorder = RetentionRecorder::start(client.clone(), &namespace, &kinds).await?;
        let proxy = Arc::clone(&slot.proxy);
        Ok(Self { ground, client, namespace, proxy, jobs, recorder, slot })
    }

    /// Starts an engine in it; whether it is ready is another question.
    pub async fn start(&self) -> Result<()> {
        self.slot.start(&Value::Null, Vec::new()).await
    }

    /// Starts an engine in it, and waits until that is ready.
    pub async fn launch(&self) -> Result<()> {
        self.launch_with(&Value::Null, Vec::new()).await
    }

    /// Starts an engine with these settings of `retention` beside the usual ones, and with these environment variables.
    pub async fn launch_with(&self, settings: &Value, env: Vec<(String, String)>) -> Result<()> {
        self.slot.start(settings, env).await?;
        self.engine()?.wait_ready().await
    }

    /// Kills the engine, as a crash of its machine would.
    pub fn kill(&self) {
        self.slot.kill();
    }

    /// The engine that runs.
    pub fn engine(&self) -> Result<Arc<Retention>> {
        self.slot.engine()
    }

    /// Stores a manifest.
    pub async fn apply(&self, manifest: Value) -> Result<()> {
        apply(&self.client, &self.namespace, vec![manifest]).await?;
        Ok(())
    }

    /// The objects of a kind of the box, by its plural.
    pub fn objects(&self, plural: &str) -> Result<Api<DynamicObject>> {
        let known = self.ground.kinds().iter().find(|(.., it)| *it == plural);
        let (group, version, name, _) = known.with_context(|| format!("no kind {plural}"))?;
        let resource = kind(group, version, name);
        Ok(Api::namespaced_with(self.client.clone(), &self.namespace, &resource))
    }

    /// Stores Jobs that have ended a moment ago, each with this metadata beside its name.
    pub async fn finished(
        &self,
        names: impl IntoIterator<Item = String>,
        metadata: &Value,
    ) -> Result<()> {
        let names: Vec<String> = names.into_iter().collect();
        for some in names.chunks(AT_A_TIME) {
            let stored = some.iter().map(|name| async move {
                self.create(name, metadata, &Value::Null).await?;
                self.finish(name).await
            });
            try_join_all(stored).await?;
        }
        Ok(())
    }

    /// Stores a Job with this metadata and this in its spec.
    pub async fn create(&self, name: &str, metadata: &Value, spec: &Value) -> Result<Job> {
        let mut object = job(name);
        for (part, more) in [("metadata", metadata), ("spec", spec)] {
            let fields = object.get_mut(part).and_then(Value::as_object_mut);
            let more = more.as_object().cloned().unwrap_or_default();
            fields.context("a Job has it")?.extend(more);
        }
        Ok(self.jobs.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    /// Ends a Job at the second of its creation.
    pub async fn finish(&self, name: &str) -> Result<()> {
        let created = self.jobs.get(name).await?.creation_timestamp().context("no time")?;
        let now = json!(created);
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let status = json!({"status": {
            "startTime": now, "completionTime": now, "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        }});
        self.jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        Ok(())
    }

    /// Changes an object by a merge patch.
    pub async fn edit(&self, plural: &str, name: &str, patch: &Value) -> Result<()> {
        let how = PatchParams::default();
        self.objects(plural)?.patch(name, &how, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Deletes an object of a kind by hand.
    pub async fn delete(&self, plural: &str, name: &str) -> Result<()> {
        self.objects(plural)?.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// The names of the objects of a kind, in order.
    pub async fn names(&self, plural: &str) -> Result<Vec<String>> {
        let objects = self.objects(plural)?.list_metadata(&ListParams::default()).await?;
        Ok(objects.items.iter().map(ResourceExt::name_any).collect())
    }

    /// Waits until just these objects of a kind are there.
    pub async fn becomes(&self, plural: &str, expected: &[&str]) -> Result<()> {
        self.becomes_within(plural, expected, PATIENCE).await
    }

    /// The same for so long at most.
    pub async fn becomes_within(
        &self,
        plural: &str,
        expected: &[&str],
        patience: Duration,
    ) -> Result<()> {
        until_ok(format!("of {plural} {expected:?} are left"), patience, || async {
            let names = self.names(plural).await?;
            ensure!(names == expected, "{} are there: {names:?}", names.len());
            Ok(())
        })
        .await
    }

    /// Sees that no deletion is asked for in this time beside those that were.
    pub async fn asks_for_nothing_more(&self, window: Duration) -> Result<()> {
        let before = self.deletions();
        consistently("no deletion is asked for", window, async || {
            let now = self.deletions();
            ensure!(now == before, "{} more are", now - before);
            Ok(())
        })
        .await
    }

    /// How many deletions of objects here have been asked for.
    #[must_use]
    pub fn deletions(&self) -> usize {
        self.proxy.count(|call| is_deletion(call) && call.namespace == self.namespace)
    }

    /// How often the deletion of each object was asked for, by its name, and how often that was accepted.
    #[must_use]
    pub fn deleted(&self) -> BTreeMap<String, (usize, usize)> {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for request in self.requests().iter().filter(|request| request.verb == "delete") {
            let (asked, accepted) = counts.entry(request.name.clone()).or_default();
            *asked += 1;
            *accepted += usize::from(request.took_effect());
        }
        counts
    }

    /// The sum of a metric of the engine over all its labels.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        self.engine()?.metric(name).await
    }

    /// What the engine asked for here, and in no namespace.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        let mut requests = self.proxy.requests();
        requests.retain(|it| it.namespace.is_empty() || it.namespace == self.namespace);
        requests
    }

    /// The policies of this namespace.
    #[must_use]
    pub fn policies(&self) -> Api<DynamicObject> {
        let policies = kind("lifecycle.trainjob.dev", "v1alpha1", "RetentionPolicy");
        Api::namespaced_with(self.client.clone(), &self.namespace, &policies)
    }

    /// Deletes a policy.
    pub async fn delete_policy(&self, name: &str) -> Result<()> {
        self.policies().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until the status of a policy is as it is to be.
    pub async fn status(&self, policy: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        status(&self.policies(), policy, fits).await
    }

    /// The same of a cluster policy.
    pub async fn cluster_status(
        &self,
        policy: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let policies = kind("lifecycle.trainjob.dev", "v1alpha1", "ClusterRetentionPolicy");
        status(&Api::all_with(self.client.clone(), &policies), policy, fits).await
    }

    /// Waits until the engine has looked at the last edit of a policy.
    pub async fn settled(&self, policy: &str) -> Result<Value> {
        let edited = self.policies().get(policy).await?.metadata.generation;
        self.status(policy, |status| {
            status.get("observedGeneration").and_then(Value::as_i64) == edited
        })
        .await
    }

    /// Everything that was stored and asked for.
    pub async fn history(&self) -> Result<History> {
        self.recorder.caught_up().await?;
        let (changes, requests) = (self.recorder.changes(), self.requests());
        Ok(History { changes, requests, end: now()?, ..History::default() })
    }

    /// Sees that all that happened keeps the invariants.
    pub async fn judge(&self, terms: &Terms) -> Result<History> {
        let history = self.history().await?;
        let broken: Vec<String> = check(&history, terms).iter().map(Violation::to_string).collect();
        if broken.is_empty() {
            return Ok(history);
        }
        let log = self.engine().and_then(|engine| engine.log()).unwrap_or_default();
        bail!("{} violations:\n{}\n{log}", broken.len(), broken.join("\n"))
    }
}

async fn status(
    policies: &Api<DynamicObject>,
    policy: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Value> {
    until_ok(format!("the status of {policy} is right"), PATIENCE, || async {
        let status = policies.get(policy).await?.data.get("status").cloned();
        let status = status.unwrap_or_default();
        ensure!(fits(&status), "{status}");
        Ok(status)
    })
    .await
}

/// Whether a call deletes something.
pub(super) fn is_deletion(call: &Call) -> bool {
    call.verb == "delete"
}

/// This instant.
pub(super) fn now() -> Result<Millis> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}
