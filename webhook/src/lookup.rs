//! What a verdict depends on beside the request itself.
//!
//! Runtimes come from the watches; whatever else there is, which is needed rarely, is asked for. Every
//! question has a time limit, so that an API server that is slow to answer makes a verdict poorer and
//! not late: the API server that waits for it gives up after ten seconds.

use std::{collections::BTreeMap, ops::Deref, sync::Arc, time::Duration};

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
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};
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
use trainjob_engine::Unread;

use crate::{
    namespaces::{Namespaces, annotated},
    runtimes::Runtimes,
};

/// How long one question may take. A verdict asks two after each other at most.
const PATIENCE: Duration = Duration::from_secs(4);
/// How many priorities of one runtime are looked for: a hostile one may name thousands.
const PRIORITY_CLASSES: usize = 100;

/// How many questions may be under way, and how many reviews may be asking for priorities.
const AT_ONCE: usize = 32;
const ASKING_FOR_PRIORITIES: usize = 8;

/// Where to look things up.
pub struct Lookup {
    runtimes: Arc<Runtimes>,
    namespaces: Arc<Namespaces>,
    client: Client,
    places: Semaphore,
    /// The places of reviews that ask for priorities.
    asking_for_priorities: Semaphore,
    /// Whose turn it is to read a runtime for one review: it may be of any size, so there is one at a time.
    turn: Semaphore,
}

/// A runtime. While one is there that no watch knows, it is nobody else's turn to read such a one.
pub struct Found<'a> {
    runtime: Arc<Runtime>,
    _turn: Option<SemaphorePermit<'a>>,
}

impl Deref for Found<'_> {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
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
        Self {
            runtimes,
            namespaces,
            client,
            places: Semaphore::const_new(AT_ONCE),
            asking_for_priorities: Semaphore::const_new(ASKING_FOR_PRIORITIES),
            turn: Semaphore::const_new(1),
        }
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

    /// Whether a runtime takes so much time and memory that a review that needs it is a [large one](crate::large).
    #[must_use]
    pub fn is_large(&self, key: &RuntimeKey) -> bool {
        self.runtimes.is_large(key)
    }

    /// The runtime, if the watches know it.
    #[must_use]
    pub fn known_runtime(&self, key: &RuntimeKey) -> Option<Found<'_>> {
        self.runtimes.get(key).map(|runtime| Found { runtime, _turn: None })
    }

    /// The runtime, as the watches know it, or the API server.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in the API server's words.
    pub async fn runtime(&self, key: &RuntimeKey) -> Result<Found<'_>, String> {
        if let Some(runtime) = self.known_runtime(key) {
            return Ok(runtime);
        }
        let (client, name) = (self.client.clone(), key.name());
        // On the heap: the futures are large, and hardly ever needed.
        let read = match key {
            RuntimeKey::Cluster { .. } => {
                let api: Api<Unread<ClusterTrainingRuntime>> = Api::all(client);
                Box::pin(self.read(&api, name)).await
            }
            RuntimeKey::Namespaced { namespace, .. } => {
                let api: Api<Unread<TrainingRuntime>> = Api::namespaced(client, namespace);
                Box::pin(self.read(&api, name)).await
            }
        };
        read.map_err(|unknown| match unknown {
            Unknown::Absent => not_found(key.kind(), GROUP, name),
            Unknown::Failed(problem) => problem,
        })
    }

    /// A runtime that no watch knows. It is read when its turn comes.
    async fn read<K>(&self, api: &Api<Unread<K>>, name: &str) -> Result<Found<'_>, Unknown>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Into<Runtime>,
    {
        let unread = self.get(api, name).await?;
        let turn = self.turn.acquire().await.ok();
        match unread.read().0 {
            Ok(runtime) => Ok(Found { runtime: Arc::new(runtime.into()), _turn: turn }),
            Err(unreadable) => {
                Err(Unknown::Failed(format!("cannot be read: {}", unreadable.error)))
            }
        }
    }

    /// The snapshot of the runtime that a TrainJob started with, if there is one.
    pub async fn snapshot(&self, job: &TrainJob) -> Option<ConfigMap> {
        let (namespace, name) = names(job)?;
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        match self.get(&api, &snapshot::name(name)).await {
            Ok(config_map) => Some(config_map),
            Err(Unknown::Absent) => None,
            Err(Unknown::Failed(problem)) => {
                say_unreadable(job, &problem);
                None
            }
        }
    }

    /// The runtime in the snapshot of a TrainJob, if it can be read, when its turn comes.
    pub async fn in_snapshot(&self, job: &TrainJob, config_map: &ConfigMap) -> Option<Found<'_>> {
        let turn = self.turn.acquire().await.ok();
        match snapshot::read(job, config_map) {
            Ok(runtime) => Some(Found { runtime: Arc::new(runtime), _turn: turn }),
            Err(problem) => {
                say_unreadable(job, &problem.to_string());
                None
            }
        }
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
    /// and why. Not more than 100 are looked for, one after another: of the places there is one for a review, so
    /// a runtime that names many holds up nobody else.
    pub async fn missing_priority_classes(&self, runtime: &Runtime) -> BTreeMap<String, String> {
        let api: Api<PriorityClass> = Api::all(self.client.clone());
        let mut names = priority_classes(runtime).into_iter().take(PRIORITY_CLASSES).peekable();
        let mut missing = BTreeMap::new();
        if names.peek().is_none() {
            return missing;
        }
        let end = Instant::now() + PATIENCE;
        let _place = timeout_at(end, self.asking_for_priorities.acquire()).await;
        for name in names {
            let problem = match answered(end, api.get_metadata(name)).await {
                Ok(_) => continue,
                Err(Unknown::Absent) => not_found("PriorityClass", PriorityClass::GROUP, name),
                Err(Unknown::Failed(problem)) => problem,
            };
            missing.insert(name.to_owned(), problem);
        }
        missing
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
        let question = async {
            // Nobody closes it: there is always a place.
            let _place = self.places.acquire().await;
            question.await
        };
        answered(Instant::now() + PATIENCE, question).await
    }
}

/// The answer to a question, if it comes before `end`, which is [`PATIENCE`] after it was to be asked.
async fn answered<T>(
    end: Instant,
    question: impl Future<Output = kube::Result<T>>,
) -> Result<T, Unknown> {
    match timeout_at(end, question).await {
        Ok(Ok(object)) => Ok(object),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Err(Unknown::Absent),
        Ok(Err(kube::Error::Api(status))) => Err(Unknown::Failed(status.message)),
        Ok(Err(error)) => Err(Unknown::Failed(error.to_string())),
        Err(_) => Err(Unknown::Failed(format!("no answer within {PATIENCE:?}"))),
    }
}

fn say_unreadable(job: &TrainJob, problem: &str) {
    tracing::warn!(
        kind = TRAIN_JOB_KIND,
        namespace = job.metadata.namespace,
        name = job.metadata.name,
        problem,
        "its snapshot cannot be read, judging by the runtime it names"
    );
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
