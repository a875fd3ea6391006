//! Carries out actions: one short function for each, idempotent, fenced and bounded in time.
//!
//! Nothing is decided here. What a reply shows goes into the [cache](crate::cache) at once, so that the
//! next decision about the job is made on it. A 404 shows nothing: an API server that has just started
//! answers so for every custom resource. That an object is gone is for the watch to say.

mod auxiliary;
mod pod_group;

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Resource,
    api::{
        DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions,
        PropagationPolicy,
    },
    core::Request,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use trainjob_api::{
    JobSet, TrainJob,
    constants::{FIELD_MANAGER, JOBSET_NAME_LABEL},
    jobset::JobSetView,
    time::Timestamp,
};
use trainjob_core::{
    action::{Action, StatusWrite, TtlDeletion},
    facts::{JobFacts, JobSetFacts, ObjectKey, controlling_train_job},
    lane::Lane,
    observed::{Propagation, Reading, Readings, RunningPods},
    runtime::{JobSetUpdate, snapshot},
};
use trainjob_process::lean;

use crate::{
    answer,
    cache::{Cache, Lists, Source},
    error::{Class, RequestError},
    events::Events,
    lease::Mandate,
    limit::Limiter,
};

/// Pods that still hold resources.
pub const RUNNING: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// Label by which JobSet names the very JobSet a Pod belongs to.
pub(crate) const JOBSET_UID_LABEL: &str = "jobset.sigs.k8s.io/jobset-uid";

/// The hands of the operator.
pub struct Executor {
    /// The client for work.
    pub client: kube::Client,
    /// Where replies go.
    pub cache: Arc<Cache>,
    /// Where notices go.
    pub events: Events,
    /// The configured rate limit, if there is one.
    pub limiter: Option<Arc<Limiter>>,
    /// Whether anything may be done.
    pub mandate: Mandate,
}

/// For whom and how urgently an action is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The lists that were complete before the action was begun.
    pub lists: Lists,
    /// The job.
    pub job: &'a JobFacts,
    /// The lane its work waited in, or a better one if its deadline has come due since.
    pub lane: Lane,
    /// When its deadline comes due, if it will.
    pub due: Option<Timestamp>,
}

impl Executor {
    /// Carries out one action for one job.
    ///
    /// # Errors
    ///
    /// When the action is not done, or it is not known whether it is. It may be repeated.
    pub async fn execute(&self, pass: Pass<'_>, action: &Action) -> Result<(), RequestError> {
        match action {
            Action::WriteStatus(write) => self.write_status(pass, write).await,
            Action::ReadTrainJob => self.read_train_job(pass).await,
            Action::CreateSnapshot(config_map) => self.create_snapshot(pass, config_map).await,
            Action::ReadSnapshot => self.read_snapshot(pass).await,
            Action::ProbeSecret { claim, witness } => {
                self.probe_secret(pass, claim, witness.as_deref()).await
            }
            Action::CreateSecret(claim) => self.create_secret(pass, claim).await,
            Action::CreateConfigMap(config_map) => self.create_config_map(pass, config_map).await,
            Action::DeleteConfigMap { name, uid, resource_version } => {
                self.delete_config_map(pass, name, (uid, resource_version)).await
            }
            Action::CreatePodGroup(group) => self.create_pod_group(pass, group).await,
            Action::UpdatePodGroup { scheduler, uid, resource_version, spec } => {
                self.update_pod_group(pass, *scheduler, (uid, resource_version), spec).await
            }
            Action::DeletePodGroup { scheduler, uid } => {
                self.delete_pod_group(pass, *scheduler, uid).await
            }
            Action::CreateJobSet(job_set) => self.create_job_set(pass, job_set).await,
            Action::ReadJobSet => self.read_job_set(pass).await,
            Action::UpdateJobSet(update) => self.update_job_set(pass, update).await,
            Action::SuspendJobSet { uid, resource_version, suspend } => {
                self.suspend_job_set(pass, uid, resource_version, *suspend).await
            }
            Action::DeleteJobSet { uid, resource_version } => {
                self.delete_job_set(pass, uid, resource_version.as_deref()).await
            }
            Action::CheckPods { except_job_set } => {
                self.check_pods(pass, except_job_set.as_deref()).await
            }
            Action::DeleteTrainJob(deletion) => self.delete_train_job(pass, deletion).await,
            Action::Tell(notice) => {
                self.events.tell(pass.job, notice);
                Ok(())
            }
            Action::TellOutOfMemory { job_set } => {
                self.events.tell_out_of_memory(pass.job, job_set);
                Ok(())
            }
        }
    }

    async fn write_status(&self, pass: Pass<'_>, write: &StatusWrite) -> Result<(), RequestError> {
        let mut status = serde_json::Map::new();
        if let Some(conditions) = &write.conditions {
            status.insert("conditions".into(), json!(conditions));
        }
        if let Some(counts) = &write.jobs_status {
            // In a merge patch, null removes the field.
            let value = if counts.is_empty() { serde_json::Value::Null } else { json!(counts) };
            status.insert("jobsStatus".into(), value);
        }
        let patch = json!({
            "metadata": { "uid": write.uid, "resourceVersion": write.resource_version },
            "status": status,
        });
        let request = request::<TrainJob>(pass.job).patch_subresource(
            "status",
            &pass.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::Merge(patch),
        );
        let job = self.send::<TrainJob>(pass, request).await?;
        self.cache.put_job(job, Source::Reply { lists: pass.lists.jobs });
        Ok(())
    }

    /// One that is gone is an error: the watch will say so too, and until then nothing is done for it.
    async fn read_train_job(&self, pass: Pass<'_>) -> Result<(), RequestError> {
        let name = &pass.job.key.name;
        let request = request::<TrainJob>(pass.job).get(name, &kube::api::GetParams::default());
        let job = self.send::<TrainJob>(pass, request).await?;
        if job.metadata.uid.as_ref() == Some(&pass.job.uid) {
            self.remember(pass.job, |readings| readings.in_doubt = false);
        }
        self.cache.put_job(job, Source::Reply { lists: pass.lists.jobs });
        Ok(())
    }

    /// AlreadyExists is no failure: what is there may well be this job's own, from before a restart.
    /// It is read, and judged by its owner when the job is planned again.
    async fn create_snapshot(
        &self,
        pass: Pass<'_>,
        config_map: &ConfigMap,
    ) -> Result<(), RequestError> {
        let request = create(&request::<ConfigMap>(pass.job), &post_params(), config_map)?;
        match self.send::<ConfigMap>(pass, Ok(request)).await {
            Ok(_) => Ok(()),
            Err(error) if error.class() == Class::Exists => {
                self.read_snapshot(pass).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn read_snapshot(&self, pass: Pass<'_>) -> Result<(), RequestError> {
        let name = snapshot::name(&pass.job.key.name);
        let reading = self.read::<ConfigMap>(pass, &name).await?;
        self.remember(pass.job, |readings| readings.snapshot = reading);
        Ok(())
    }

    /// An older JobSet definition lacks some fields. The API server is asked to refuse them, so that the user is told,
    /// instead of dropping them.
    async fn create_job_set(&self, pass: Pass<'_>, job_set: &JobSet) -> Result<(), RequestError> {
        let request = strict(create(&request::<JobSet>(pass.job), &post_params(), job_set)?)?;
        match self.send::<JobSetView>(pass, Ok(request)).await {
            Ok(created) => {
                self.saw_job_set(pass, &created);
                Ok(())
            }
            Err(error) if error.class() == Class::Exists => {
                self.judge_job_set(pass).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// A JobSet is there that the cache did not know. With ours, from a request whose reply was lost, the
    /// job is planned again: it may have been made from what the job said then. Any other keeps the job
    /// waiting.
    async fn judge_job_set(&self, pass: Pass<'_>) -> Result<(), RequestError> {
        let Reading::Found(there) = self.read::<JobSetView>(pass, &pass.job.key.name).await? else {
            return Ok(());
        };
        self.saw_job_set(pass, &there);
        let owner = controlling_train_job(&there.metadata).map(|owner| &owner.uid);
        if owner == Some(&pass.job.uid) {
            return Ok(());
        }
        Err(RequestError::Foreign { kind: "JobSet", key: pass.job.key.clone() })
    }

    async fn read_job_set(&self, pass: Pass<'_>) -> Result<(), RequestError> {
        let name = &pass.job.key.name;
        let request = request::<JobSet>(pass.job).get(name, &kube::api::GetParams::default());
        let job_set = self.send::<JobSet>(pass, request).await?;
        self.remember(pass.job, |readings| readings.job_set = Some(job_set));
        Ok(())
    }

    async fn update_job_set(
        &self,
        pass: Pass<'_>,
        update: &JobSetUpdate,
    ) -> Result<(), RequestError> {
        let patch = update.patch().map_err(kube::Error::SerdeError)?;
        let request = request::<JobSet>(pass.job).patch(
            &pass.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::<()>::Json(patch),
        );
        let updated: JobSetView = self.send(pass, request).await?;
        self.saw_job_set(pass, &updated);
        Ok(())
    }

    async fn suspend_job_set(
        &self,
        pass: Pass<'_>,
        uid: &str,
        resource_version: &str,
        suspend: bool,
    ) -> Result<(), RequestError> {
        let patch = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "spec": { "suspend": suspend },
        });
        let request = request::<JobSet>(pass.job).patch(
            &pass.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::Merge(patch),
        );
        let updated: JobSetView = self.send(pass, request).await?;
        self.saw_job_set(pass, &updated);
        Ok(())
    }

    /// In the foreground: the JobSet normally stays until its Jobs and Pods are gone.
    async fn delete_job_set(
        &self,
        pass: Pass<'_>,
        uid: &str,
        resource_version: Option<&str>,
    ) -> Result<(), RequestError> {
        let preconditions = Preconditions {
            uid: Some(uid.into()),
            resource_version: resource_version.map(Into::into),
        };
        let params = delete_params(PropagationPolicy::Foreground, preconditions);
        let request = request::<JobSet>(pass.job).delete(&pass.job.key.name, &params);
        match self.delete::<JobSetView>(pass, request).await? {
            Some(terminating) => self.saw_job_set(pass, &terminating),
            None => self.cache.forget_job_set(&pass.job.key, uid),
        }
        Ok(())
    }

    async fn check_pods(&self, pass: Pass<'_>, except: Option<&str>) -> Result<(), RequestError> {
        let labels = format!("{JOBSET_NAME_LABEL}={}", pass.job.key.name);
        let params = ListParams::default().labels(&labels).fields(RUNNING);
        let api: Api<PartialObjectMeta<Pod>> =
            Api::namespaced(self.client.clone(), &pass.job.key.namespace);
        let pods = self.ask(pass, async move { api.list(&params).await }).await?.items;
        let running = pods.iter().filter(|pod| {
            let labels = pod.metadata.labels.as_ref();
            let job_set = labels.and_then(|labels| labels.get(JOBSET_UID_LABEL));
            except.is_none() || job_set.map(String::as_str) != except
        });
        let reading = match running.count() {
            0 => Reading::Absent,
            count => Reading::Found(RunningPods(count)),
        };
        self.remember(pass.job, |readings| readings.pods = reading);
        Ok(())
    }

    async fn delete_train_job(
        &self,
        pass: Pass<'_>,
        deletion: &TtlDeletion,
    ) -> Result<(), RequestError> {
        let policy = match deletion.propagation {
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Background => PropagationPolicy::Background,
        };
        let preconditions = Preconditions {
            uid: Some(deletion.uid.clone()),
            resource_version: Some(deletion.resource_version.clone()),
        };
        let params = delete_params(policy, preconditions);
        let request = request::<TrainJob>(pass.job).delete(&pass.job.key.name, &params);
        match self.delete::<TrainJob>(pass, request).await? {
            Some(terminating) => {
                self.cache.put_job(terminating, Source::Reply { lists: pass.lists.jobs });
            }
            None => self.cache.forget_job(&pass.job.key, &deletion.uid),
        }
        Ok(())
    }

    fn saw_job_set(&self, pass: Pass<'_>, job_set: &JobSetView) {
        let key = ObjectKey::of(&job_set.metadata);
        let source = Source::Reply { lists: pass.lists.job_sets };
        self.cache.put_job_set(&key, JobSetFacts::of(job_set), source);
    }

    fn remember(&self, job: &JobFacts, change: impl FnOnce(&mut Readings)) {
        self.cache.read(&job.key, &job.uid, change);
    }

    async fn read<K>(&self, pass: Pass<'_>, name: &str) -> Result<Reading<K>, RequestError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
    {
        let request = request::<K>(pass.job).get(name, &kube::api::GetParams::default());
        match self.send::<K>(pass, request).await {
            Ok(object) => Ok(Reading::Found(object)),
            Err(error) if error.class() == Class::Gone => Ok(Reading::Absent),
            Err(error) => Err(error),
        }
    }

    /// What is left of a deleted object, while something keeps it.
    async fn delete<K: DeserializeOwned + Send + 'static>(
        &self,
        pass: Pass<'_>,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<K>, RequestError> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let client = self.client.clone();
        let answer = self.ask(pass, async move { client.request_text(request).await });
        let answer = answer.await?;
        let Kind { kind } = serde_json::from_str(&answer).map_err(kube::Error::SerdeError)?;
        if kind == "Status" {
            return Ok(None);
        }
        Ok(Some(lean::read(&answer).map_err(kube::Error::SerdeError)?))
    }

    async fn send<K: DeserializeOwned + Send + 'static>(
        &self,
        pass: Pass<'_>,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<K, RequestError> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let client = self.client.clone();
        let answer = self.ask(pass, async move { client.request_text(request).await }).await?;
        Ok(lean::read(&answer).map_err(kube::Error::SerdeError)?)
    }

    /// What enforces a deadline is fenced, so that it can be sent anew while it may still be under way.
    async fn ask<T: Send + 'static>(
        &self,
        pass: Pass<'_>,
        request: impl Future<Output = Result<T, kube::Error>> + Send + 'static,
    ) -> Result<T, RequestError> {
        if let Some(limiter) = &self.limiter {
            limiter.acquire(pass.lane).await;
        }
        self.mandate.check()?;
        match pass.lane {
            Lane::Stop => answer::impatient(request).await,
            Lane::Live | Lane::Cleanup => answer::before(pass.due, request).await,
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
    object: &impl serde::Serialize,
) -> Result<http::Request<Vec<u8>>, RequestError> {
    let data = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    Ok(request.create(params, data).map_err(kube::Error::BuildRequest)?)
}

/// Asks the API server to refuse unknown fields instead of dropping them. `PostParams` has no such setting.
fn strict(mut request: http::Request<Vec<u8>>) -> Result<http::Request<Vec<u8>>, RequestError> {
    let uri = request.uri();
    let before = if uri.query().is_some() { '&' } else { '?' };
    let uri = format!("{uri}{before}fieldValidation=Strict").parse::<http::Uri>();
    let build = kube::core::request::Error::BuildRequest;
    *request.uri_mut() = uri.map_err(|error| kube::Error::BuildRequest(build(error.into())))?;
    Ok(request)
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
