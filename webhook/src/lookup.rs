//! What a verdict depends on beside the request itself.
//!
//! Runtimes come from the watches; whatever else there is, which is needed rarely, is asked for. Every
//! question has a time limit, so that an API server that is slow to answer makes a verdict poorer and
//! not late: the API server that waits for it gives up after ten seconds.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use k8s_openapi::{
    Resource as _,
    api::{
        core::v1::{ConfigMap, Namespace},
        scheduling::v1::PriorityClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Client, api::Resource};
use serde::de::DeserializeOwned;
use tokio::{sync::Semaphore, time::timeout};
use trainjob_api::{
    ClusterTrainingRuntime, TrainJob, TrainingRuntime,
    jobset::JobSetView,
    v1alpha1::{GROUP, TRAIN_JOB_KIND},
};
use trainjob_core::{
    admission::{limits::NamespaceLimits, priority_classes},
    build::{Runtime, RuntimeKey, snapshot},
    facts::controlling_train_job,
};
use trainjob_engine::Readable;

use crate::{
    namespaces::{Namespaces, annotated},
    runtimes::Runtimes,
};

/// How long one question may take. A verdict asks two after each other at most.
const PATIENCE: Duration = Duration::from_secs(4);
/// How many priorities of one runtime are looked for: a hostile one may name thousands.
const PRIORITY_CLASSES: usize = 100;

/// How many questions may be under way.
const AT_ONCE: usize = 32;

/// Where to look things up.
pub struct Lookup {
    runtimes: Arc<Runtimes>,
    namespaces: Arc<Namespaces>,
    client: Client,
    places: Semaphore,
}

/// Why something is not known.
enum Unknown {
    /// There is no such object.
    Absent,
    /// It could not be read.
    Failed(String),
}

impl Lookup {
    /// Runtimes and namespaces from watches, and a client for everything else.
    #[must_use]
    pub const fn new(runtimes: Arc<Runtimes>, namespaces: Arc<Namespaces>, client: Client) -> Self {
        Self { runtimes, namespaces, client, places: Semaphore::const_new(AT_ONCE) }
    }

    /// What the annotations of a namespace set, as the watch knows it, or the API server. One that does not exist sets
    /// nothing: nothing can be created there.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in the API server's words.
    pub async fn limits(&self, namespace: &str) -> Result<Option<Arc<NamespaceLimits>>, String> {
        if let Some(known) = self.namespaces.get(namespace) {
            return Ok(known);
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        // On the heap: the future is large, and hardly ever needed.
        match Box::pin(self.answered(api.get_metadata(namespace))).await {
            Ok(object) => Ok(annotated(&object.metadata)),
            Err(Unknown::Absent) => Ok(None),
            Err(Unknown::Failed(problem)) => Err(problem),
        }
    }

    /// The runtime, if the watches know it.
    #[must_use]
    pub fn known_runtime(&self, key: &RuntimeKey) -> Option<Arc<Runtime>> {
        self.runtimes.get(key)
    }

    /// The runtime, as the watches know it, or the API server.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in the API server's words.
    pub async fn runtime(&self, key: &RuntimeKey) -> Result<Arc<Runtime>, String> {
        if let Some(runtime) = self.runtimes.get(key) {
            return Ok(runtime);
        }
        let (client, name) = (self.client.clone(), key.name());
        let read = match key {
            RuntimeKey::Cluster { .. } => {
                let api: Api<Readable<ClusterTrainingRuntime>> = Api::all(client);
                self.get(&api, name).await.and_then(readable)
            }
            RuntimeKey::Namespaced { namespace, .. } => {
                let api: Api<Readable<TrainingRuntime>> = Api::namespaced(client, namespace);
                self.get(&api, name).await.and_then(readable)
            }
        };
        match read {
            Ok(runtime) => Ok(Arc::new(runtime)),
            Err(Unknown::Absent) => Err(not_found(key.kind(), GROUP, name)),
            Err(Unknown::Failed(problem)) => Err(problem),
        }
    }

    /// The runtime that a TrainJob started with, if it has.
    pub async fn snapshot(&self, job: &TrainJob) -> Option<Runtime> {
        let (namespace, name) = names(job)?;
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let problem = match self.get(&api, &snapshot::name(name)).await {
            Ok(config_map) => match snapshot::read(job, &config_map) {
                Ok(runtime) => return Some(runtime),
                Err(problem) => problem.to_string(),
            },
            Err(Unknown::Absent) => return None,
            Err(Unknown::Failed(problem)) => problem,
        };
        tracing::warn!(
            kind = TRAIN_JOB_KIND,
            namespace,
            name,
            problem,
            "its snapshot cannot be read, judging by the runtime it names"
        );
        None
    }

    /// The names of the replicated jobs of a TrainJob's JobSet that are active.
    ///
    /// # Errors
    ///
    /// Why they cannot be read. A JobSet that does not exist has none.
    pub async fn active(&self, job: &TrainJob) -> Result<Vec<String>, String> {
        let Some((namespace, name)) = names(job) else { return Ok(Vec::new()) };
        let api: Api<JobSetView> = Api::namespaced(self.client.clone(), namespace);
        match self.get(&api, name).await {
            Ok(job_set) if !is_controlled_by(&job_set.metadata, job) => Ok(Vec::new()),
            Ok(job_set) => {
                let replicated_jobs = job_set.status.replicated_jobs_status.into_iter();
                Ok(replicated_jobs
                    .filter(|replicated_job| replicated_job.active > 0)
                    .map(|replicated_job| replicated_job.name)
                    .collect())
            }
            Err(Unknown::Absent) => Ok(Vec::new()),
            Err(Unknown::Failed(problem)) => Err(problem),
        }
    }

    /// Of the `PriorityClass` objects that a TrainJob on this runtime needs those that cannot be read,
    /// and why. Not more than 100 are looked for.
    pub async fn missing_priority_classes(&self, runtime: &Runtime) -> BTreeMap<String, String> {
        let api: Api<PriorityClass> = Api::all(self.client.clone());
        let names = priority_classes(runtime).into_iter().take(PRIORITY_CLASSES);
        let questions = names.map(|name| async {
            let problem = match self.get(&api, name).await {
                Ok(_) => return None,
                Err(Unknown::Absent) => not_found("PriorityClass", PriorityClass::GROUP, name),
                Err(Unknown::Failed(problem)) => problem,
            };
            Some((name.to_owned(), problem))
        });
        join_all(questions).await.into_iter().flatten().collect()
    }

    async fn get<K>(&self, api: &Api<K>, name: &str) -> Result<K, Unknown>
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
    {
        self.answered(api.get(name)).await
    }

    async fn answered<T>(
        &self,
        question: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Unknown> {
        let answer = timeout(PATIENCE, async {
            // Nobody closes it: there is always a place.
            let _place = self.places.acquire().await;
            question.await
        });
        match answer.await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Err(Unknown::Absent),
            Ok(Err(kube::Error::Api(status))) => Err(Unknown::Failed(status.message)),
            Ok(Err(error)) => Err(Unknown::Failed(error.to_string())),
            Err(_) => Err(Unknown::Failed(format!("no answer within {PATIENCE:?}"))),
        }
    }
}

fn readable<K: Into<Runtime>>(read: Readable<K>) -> Result<Runtime, Unknown> {
    match read.0 {
        Ok(runtime) => Ok(runtime.into()),
        Err(unreadable) => Err(Unknown::Failed(format!("cannot be read: {}", unreadable.error))),
    }
}

/// That there is no such object, as Kubeflow Trainer says it, with the kind and not the resource.
fn not_found(kind: &str, group: &str, name: &str) -> String {
    format!("{kind}.{group} {name:?} not found")
}

/// Whether an object is the job's own.
fn is_controlled_by(metadata: &ObjectMeta, job: &TrainJob) -> bool {
    let owner = controlling_train_job(metadata);
    owner.is_some_and(|owner| Some(&owner.uid) == job.metadata.uid.as_ref())
}

/// Namespace and name; a job that has none yet, whose name is to be generated, has nothing of its own.
fn names(job: &TrainJob) -> Option<(&str, &str)> {
    Some((job.metadata.namespace.as_deref()?, job.metadata.name.as_deref()?))
}
