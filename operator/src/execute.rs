//! Carries out calls: one short function for each, idempotent, fenced and bounded in time.
//!
//! Nothing is decided here. What a reply shows goes into the [cache](crate::cache) at once, so that the
//! next decision about the job is made on it. A 404 shows nothing: an API server that has just started
//! answers so for every custom resource. That an object is gone is for the watch to say.

mod config_map;
mod job_set;
mod operation;
mod pod_group;
pub mod pods;
mod runtime;
mod secret;
mod train_job;

use std::{borrow::Cow, future::pending, sync::Arc};

use kube::{
    Resource,
    api::{DeleteParams, PostParams, Preconditions, PropagationPolicy},
    core::Request,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use trainjob_api::{constants::FIELD_MANAGER, time::Timestamp};
use trainjob_core::{
    action::Action,
    build::snapshot,
    facts::JobFacts,
    observed::Reading,
    pass::{Call, Class, Reply},
    priority::Priority,
    running_pods::PodCheck,
};
use trainjob_engine::{
    answer::{self, LateAnswer},
    clock::Clock,
    error::RequestError,
    leader::LeaderGuard,
    stripped,
};

pub use self::operation::operation;
use crate::{
    cache::{Cache, Lists},
    events::Events,
    queue::{Limiter, Place},
};

/// What sends the requests of the operator.
pub struct Executor {
    /// The client for work.
    pub client: kube::Client,
    /// Where replies go.
    pub cache: Arc<Cache>,
    /// Where events go.
    pub events: Events,
    /// The configured rate limit, if there is one.
    pub limiter: Option<Arc<Limiter>>,
    /// Whether anything may be done.
    pub leader: LeaderGuard,
    /// The time.
    pub clock: Clock,
}

/// For whom and how urgently an action is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The lists that were complete before the action was begun.
    pub lists: Lists,
    /// The job.
    pub job: &'a JobFacts,
    /// The priority its work waited in, or a better one if its deadline has come due since.
    pub priority: Priority,
    /// When its deadline comes due, if it will.
    pub due: Option<Timestamp>,
    /// Its place among the requests under way.
    pub place: &'a Place,
}

/// What came back of a call that has not failed.
#[derive(Debug)]
pub enum Replied {
    /// The reply.
    Now(Reply),
    /// Only that the answer to a check for Pods takes long, and that answer once it comes.
    Later(LateAnswer<PodCheck>),
}

impl Executor {
    /// Carries out one call for one job.
    ///
    /// # Errors
    ///
    /// When it is not done, or it is not known whether it is. It may be repeated.
    pub async fn execute(&self, of: Context<'_>, call: Call<'_>) -> Result<Replied, RequestError> {
        let reply = match call {
            Call::Act(Action::CheckPods { except_job_set, name_them }) => {
                return self.check_pods(of, except_job_set.as_deref(), *name_them).await;
            }
            Call::Act(action) => self.act(of, action).await,
            Call::Inspect(action) => self.inspect(of, action).await,
        };
        reply.map(Replied::Now)
    }

    async fn act(&self, of: Context<'_>, action: &Action) -> Result<Reply, RequestError> {
        match action {
            Action::WriteStatus(write) => self.write_status(of, write).await?,
            Action::WriteWaiting(write) => self.write_waiting(of, write).await?,
            Action::ReadTrainJob => return self.read_train_job(of).await,
            Action::ReadRuntime(key) => self.read_runtime(of, key).await?,
            Action::CreateSnapshot(config_map) | Action::CreateConfigMap(config_map) => {
                self.create(of, &**config_map).await?;
            }
            Action::ReadSnapshot => return self.read_snapshot(of).await,
            Action::ProbeSecret { claim, .. } => self.probe_secret(of, claim).await?,
            Action::CreateSecret(claim) => self.create_secret(of, claim).await?,
            Action::DeleteConfigMap { name, uid, resource_version } => {
                self.delete_config_map(of, name, (uid, resource_version)).await?;
            }
            Action::CreatePodGroup(group) => self.create_pod_group(of, group).await?,
            Action::UpdatePodGroup { scheduler, uid, resource_version, spec } => {
                self.update_pod_group(of, *scheduler, (uid, resource_version), spec).await?;
            }
            Action::DeletePodGroup { scheduler, uid } => {
                self.delete_pod_group(of, *scheduler, uid).await?;
            }
            Action::CreateJobSet { job_set, .. } => self.create_job_set(of, job_set).await?,
            Action::ReadJobSet => return self.read_job_set(of).await,
            Action::UpdateJobSet { patch, .. } => self.update_job_set(of, patch).await?,
            Action::SuspendJobSet { uid, resource_version, suspend } => {
                self.suspend_job_set(of, uid, resource_version, *suspend).await?;
            }
            Action::DeleteJobSet { uid, reason } => {
                self.delete_job_set(of, uid, reason.resource_version()).await?;
            }
            // Its answer may come later: it is carried out by `execute`.
            Action::CheckPods { .. } => {}
            Action::DeleteTrainJob(deletion) => self.delete_train_job(of, deletion).await?,
            Action::RecordEvent(event) => self.events.record(of.job, event),
            Action::RecordOutOfMemory { job_set } => {
                self.events.record_out_of_memory(of.job, job_set);
            }
        }
        Ok(Reply::Done)
    }

    /// Reads what has the name of an object that was to be created.
    async fn inspect(&self, of: Context<'_>, action: &Action) -> Result<Reply, RequestError> {
        match action {
            Action::CreateSnapshot(config_map) | Action::CreateConfigMap(config_map) => {
                self.read_config_map(of, config_map.metadata.name.as_deref()).await
            }
            Action::ProbeSecret { witness, .. } => {
                self.read_config_map(of, witness.as_deref()).await
            }
            Action::CreatePodGroup(group) => self.read_pod_group(of, group).await,
            Action::CreateJobSet { .. } => self.read_job_set_of_name(of).await,
            Action::WriteStatus(_)
            | Action::WriteWaiting(_)
            | Action::ReadTrainJob
            | Action::ReadRuntime(_)
            | Action::ReadSnapshot
            | Action::CreateSecret(_)
            | Action::DeleteConfigMap { .. }
            | Action::UpdatePodGroup { .. }
            | Action::DeletePodGroup { .. }
            | Action::ReadJobSet
            | Action::UpdateJobSet { .. }
            | Action::SuspendJobSet { .. }
            | Action::DeleteJobSet { .. }
            | Action::CheckPods { .. }
            | Action::DeleteTrainJob(_)
            | Action::RecordEvent(_)
            | Action::RecordOutOfMemory { .. } => Ok(Reply::Done),
        }
    }

    async fn read_snapshot(&self, of: Context<'_>) -> Result<Reply, RequestError> {
        self.read_config_map(of, Some(&snapshot::name(&of.job.key.name))).await
    }

    async fn create<K>(&self, of: Context<'_>, object: &K) -> Result<K, RequestError>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + 'static,
    {
        let request = create(&request::<K>(of.job), &post_params(), object)?;
        self.send::<K>(of, Ok(request)).await
    }

    async fn read<K>(&self, of: Context<'_>, name: &str) -> Result<Reading<K>, RequestError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
    {
        let request = request::<K>(of.job).get(name, &kube::api::GetParams::default());
        match self.send::<K>(of, request).await {
            Ok(object) => Ok(Reading::Found(object)),
            Err(error) if error.class() == Class::Gone => Ok(Reading::Absent),
            Err(error) => Err(error),
        }
    }

    /// What is left of a deleted object, while something keeps it.
    async fn delete<K: DeserializeOwned + Send + 'static>(
        &self,
        of: Context<'_>,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<K>, RequestError> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let client = self.client.clone();
        let answer = self.ask(of, async move { client.request_text(request).await });
        let answer = answer.await?;
        let Kind { kind } = serde_json::from_str(&answer).map_err(kube::Error::SerdeError)?;
        if kind == "Status" {
            return Ok(None);
        }
        Ok(Some(stripped::read(&answer).map_err(kube::Error::SerdeError)?))
    }

    async fn send<K: DeserializeOwned + Send + 'static>(
        &self,
        of: Context<'_>,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<K, RequestError> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let client = self.client.clone();
        let answer = self.ask(of, async move { client.request_text(request).await }).await?;
        Ok(stripped::read(&answer).map_err(kube::Error::SerdeError)?)
    }

    /// Waits for the configured rate, but no longer than until the job's deadline comes due: what enforces it goes first.
    async fn permitted(&self, of: Context<'_>) -> Result<(), RequestError> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let overdue = async {
            match of.due {
                Some(due) => self.clock.reach(due).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = limiter.acquire(of.priority) => Ok(()),
            () = overdue => Err(RequestError::Overtaken),
        }
    }

    /// Waits until a request may be sent. It is under way until it is answered or given up.
    async fn admitted<T, F: Future<Output = Result<T, kube::Error>>>(
        &self,
        of: Context<'_>,
        request: F,
    ) -> Result<impl Future<Output = Result<T, RequestError>> + use<T, F>, RequestError> {
        self.permitted(of).await?;
        self.leader.check()?;
        let under_way = of.place.ask();
        Ok(async move { Ok(under_way.answer(request).await??) })
    }

    /// What enforces a deadline is fenced, so that it can be sent anew while it may still be under way.
    async fn ask<T: Send + 'static>(
        &self,
        of: Context<'_>,
        request: impl Future<Output = Result<T, kube::Error>> + Send + 'static,
    ) -> Result<T, RequestError> {
        let request = self.admitted(of, request).await?;
        match of.priority {
            Priority::Stop => answer::detach_after(request).await,
            Priority::Live | Priority::Cleanup => {
                let due_in = of.due.and_then(|due| self.clock.until(due));
                answer::before(due_in, request).await
            }
        }
    }
}

/// Of what kind an answer is.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// Requests for objects of kind `K` in the job's namespace.
fn request<K: Resource<DynamicType = ()>>(job: &JobFacts) -> Request {
    Request::new(K::url_path(&(), Some(&job.key.namespace)))
}

fn create(
    request: &Request,
    params: &PostParams,
    object: &impl Serialize,
) -> Result<http::Request<Vec<u8>>, RequestError> {
    let data = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    Ok(request.create(params, data).map_err(kube::Error::BuildRequest)?)
}

fn post_params() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() }
}

fn delete_params(policy: PropagationPolicy, preconditions: Preconditions) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    }
}
