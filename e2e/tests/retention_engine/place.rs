//! A namespace of a box in which the retention engine runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::chart::install_retention_crds;
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::shared::Shared;
use e2e::fixtures::{PATIENCE, audit_flags, requests_of};
use e2e::retention::{Retention, USER, allow_retention, install_retention_rbac};
use e2e::until::until_ok;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::policy::RetentionPolicy;
use trainjob_api::time::Timestamp;

const TARGETS: &str = "{targets: [{apiGroup: batch, kind: Job, resource: jobs, pods: true}]}";
const TRAIN_JOBS: &str =
    "{targets: [{apiGroup: trainer.kubeflow.org, kind: TrainJob, resource: trainjobs}]}";

/// A box with the retention engine, and nothing else that acts.
struct World {
    // Dropped before the box.
    retention: Retention,
    cluster: Cluster,
}

impl World {
    async fn start() -> Result<Self> {
        Self::with(Options::bare(), TARGETS).await
    }

    async fn with(options: Options, targets: &str) -> Result<Self> {
        let options = Options { apiserver_flags: audit_flags().into(), ..options };
        let cluster = Cluster::start(options).await?;
        install_retention_crds(&cluster.client().await?).await?;
        install_retention_rbac(&cluster).await?;
        let retention = Retention::start(&cluster, targets).await?;
        retention.wait_ready().await?;
        Ok(Self { retention, cluster })
    }
}

/// A deletion that the retention engine asked for.
#[derive(Debug)]
pub(crate) struct Deletion {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    /// The second in which the API server received it.
    pub(crate) at: Timestamp,
    pub(crate) code: u16,
}

/// A namespace of its own.
pub(crate) struct Place {
    world: Arc<World>,
    client: Client,
    namespace: String,
    jobs: Api<Job>,
    pods: Api<Pod>,
    uids: Mutex<BTreeMap<String, String>>,
}

impl Place {
    /// One whose name begins like this.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        static WORLD: Shared<World> = Shared::new();
        Self::within(WORLD.get(World::start).await?, prefix).await
    }

    /// One in a box of its own, so that nobody else is told what the engine there may do.
    pub(crate) async fn alone(prefix: &str) -> Result<Self> {
        // On the heap: what starts a box is a large future.
        let world = Arc::new(Box::pin(World::start()).await?);
        Self::within(world, prefix).await
    }

    /// One in a box of its own with TrainJobs as the target, and JobSet.
    pub(crate) async fn with_train_jobs(prefix: &str) -> Result<Self> {
        let options = Options { jobset: true, crds: true, ..Options::bare() };
        let world = Arc::new(Box::pin(World::with(options, TRAIN_JOBS)).await?);
        Self::within(world, prefix).await
    }

    async fn within(world: Arc<World>, prefix: &str) -> Result<Self> {
        let client = world.cluster.client().await?;
        let namespace = world.cluster.namespace(prefix).await?;
        let jobs = Api::namespaced(client.clone(), &namespace);
        let pods = Api::namespaced(client.clone(), &namespace);
        Ok(Self { world, client, namespace, jobs, pods, uids: Mutex::default() })
    }

    /// Its name.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// As an administrator.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Its Jobs.
    pub(crate) const fn jobs(&self) -> &Api<Job> {
        &self.jobs
    }

    /// The UIDs of the Jobs that were made.
    pub(crate) fn uids(&self) -> BTreeMap<String, String> {
        self.uids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Allows the engine just this about Jobs.
    pub(crate) async fn allow(&self, verbs: &[&str]) -> Result<()> {
        allow_retention(&self.world.cluster, verbs).await
    }

    pub(crate) async fn apply(&self, manifest: Value) -> Result<()> {
        apply(&self.client, &self.namespace, vec![manifest]).await?;
        Ok(())
    }

    /// Makes a Job with these annotations. Nobody runs it.
    pub(crate) async fn create(&self, name: &str, annotations: &Value) -> Result<()> {
        let container = json!({"name": "a", "image": "none"});
        let pod = json!({"restartPolicy": "Never", "containers": [container]});
        let job = json!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"template": {"spec": pod}},
        });
        let job = self.jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        let uid = job.uid().context("no UID")?;
        self.uids.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), uid);
        Ok(())
    }

    /// Ends a Job now. Returns from when on it is old.
    pub(crate) async fn finish(&self, name: &str) -> Result<Timestamp> {
        let created = self.jobs.get(name).await?.creation_timestamp().context("no time")?;
        let now = json!(created);
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let status = json!({"status": {
            "startTime": now, "completionTime": now, "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        }});
        self.jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        Ok(Timestamp::from(&created))
    }

    /// Makes a Pod with the label of a Job, which may be there or not, and these annotations, and puts it in this phase.
    pub(crate) async fn create_pod(
        &self,
        name: &str,
        job: &str,
        phase: &str,
        annotations: &Value,
    ) -> Result<()> {
        let uid = self.uids().get(job).cloned().unwrap_or_else(|| "another".to_owned());
        let labels = json!({"batch.kubernetes.io/controller-uid": uid});
        self.labelled_pod(name, &labels, phase, annotations).await
    }

    /// Makes a Pod with these labels and annotations, and puts it in this phase.
    pub(crate) async fn labelled_pod(
        &self,
        name: &str,
        labels: &Value,
        phase: &str,
        annotations: &Value,
    ) -> Result<()> {
        // Nobody else makes it here, and there is no Pod without one.
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        self.apply(account).await?;
        let pod = json!({
            "metadata": {"name": name, "annotations": annotations, "labels": labels},
            "spec": {"containers": [{"name": "a", "image": "none"}]},
        });
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let status = json!({"status": {"phase": phase}});
        self.pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        Ok(())
    }

    /// Sees that just these Pods are there.
    pub(crate) async fn has_pods(&self, expected: &[&str]) -> Result<()> {
        let pods = self.pods.list(&ListParams::default()).await?;
        let names: Vec<_> = pods.items.iter().map(ResourceExt::name_any).collect();
        ensure!(names == expected, "Pods {names:?} are there");
        Ok(())
    }

    /// Sees that just these Jobs are there.
    pub(crate) async fn has(&self, expected: &[&str]) -> Result<()> {
        let jobs = self.jobs.list(&ListParams::default()).await?;
        let names: Vec<_> = jobs.items.iter().map(ResourceExt::name_any).collect();
        ensure!(names == expected, "{names:?} are there");
        Ok(())
    }

    /// Waits until just these Jobs are there.
    pub(crate) async fn becomes(&self, expected: &[&str]) -> Result<()> {
        let what = format!("{expected:?} are left");
        until_ok(what, PATIENCE, || async { self.has(expected).await }).await
    }

    /// What the policy of this name says of itself.
    pub(crate) async fn status(&self, name: &str) -> Result<Value> {
        let policies: Api<RetentionPolicy> = Api::namespaced(self.client.clone(), &self.namespace);
        Ok(json!(policies.get(name).await?.status))
    }

    /// What the program says of a Job.
    pub(crate) async fn explain(&self, name: &str) -> Result<String> {
        self.world.retention.explain(&self.namespace, name).await
    }

    /// All deletions here that the retention engine has asked for.
    pub(crate) fn deletions(&self) -> Result<Vec<Deletion>> {
        let requests = requests_of(self.world.cluster.folder(), USER)?;
        let own = requests.into_iter().filter(|request| {
            request.verb == "delete" && request.object.namespace == self.namespace
        });
        let text = |sent: &Value, field: &str| {
            let value = sent.pointer(&format!("/preconditions/{field}")).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let deletions = own.map(|request| Deletion {
            uid: text(&request.sent, "uid"),
            resource_version: text(&request.sent, "resourceVersion"),
            at: Timestamp(request.at.0.as_second()),
            code: request.code(),
            name: request.object.name,
        });
        Ok(deletions.collect())
    }

    /// Waits for an event with this reason about the Job.
    pub(crate) async fn told(&self, reason: &str, name: &str) -> Result<()> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        until_ok(format!("{reason} is told of {name}"), PATIENCE, || async {
            let events = events.list(&ListParams::default()).await?;
            let is_it = |event: &Event| {
                let regarding = event.regarding.as_ref();
                event.reason.as_deref() == Some(reason)
                    && regarding.and_then(|it| it.name.as_deref()) == Some(name)
            };
            ensure!(events.items.iter().any(is_it), "{} other events", events.items.len());
            Ok(())
        })
        .await
    }
}
