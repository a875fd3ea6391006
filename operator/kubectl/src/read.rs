//! What is asked of the API server. Lists come page by page, and no request is sent for each object of a list.

use std::{collections::BTreeSet, fmt::Debug};

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{
    Client, Resource,
    api::{Api, DynamicObject, ListParams},
    core::{ApiResource, GroupVersionKind},
};
use serde::de::DeserializeOwned;
use trainjob_api::{TrainJob, constants::JOBSET_NAME_LABEL, jobset::JobSetView};
use trainjob_core::facts::ObjectKey;

use crate::{failure::Failure, gpus::HeldByJob};

/// How many objects a page has.
const PAGE: u32 = 500;
/// From more jobs than this on, the Pods of all jobs are asked for: their names would make the request too long.
const MOST_NAMED: usize = 20;
/// No value of a label is longer.
const LONGEST_LABEL: usize = 63;

/// A TrainJob of a list.
#[derive(Debug, Clone)]
pub enum Listed {
    /// It can be read.
    Job(Box<TrainJob>),
    /// It can not: the schema allows one without a spec.
    Unreadable(ObjectKey),
}

impl Listed {
    fn of(object: DynamicObject) -> Self {
        let key = ObjectKey::of(&object.metadata);
        object.try_parse().map_or(Self::Unreadable(key), |job| Self::Job(Box::new(job)))
    }

    /// Its namespace and name.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Job(job) => ObjectKey::of(&job.metadata),
            Self::Unreadable(key) => key.clone(),
        }
    }
}

/// Which TrainJobs are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Those of this namespace; without one, of all.
    pub namespace: Option<String>,
    /// Those of these names; without names, all.
    pub names: Vec<String>,
    /// Those that this label selector selects.
    pub selector: Option<String>,
}

impl Selection {
    /// What a list of TrainJobs is asked for with. Several names cannot be asked for together.
    fn job_params(&self) -> ListParams {
        let params = ListParams {
            label_selector: self.selector.clone(),
            ..ListParams::default().limit(PAGE)
        };
        match &*self.names {
            [name] => params.fields(&format!("metadata.name={name}")),
            _ => params,
        }
    }

    /// What the Pods of these jobs are asked for with; `None` if they have none.
    fn pod_params(jobs: &[Listed]) -> Option<ListParams> {
        let names = jobs.iter().map(|job| job.key().name.to_string());
        let names: BTreeSet<String> = names.filter(|name| name.len() <= LONGEST_LABEL).collect();
        let selector = match names.len() {
            0 => return None,
            1..=MOST_NAMED => {
                let names: Vec<String> = names.into_iter().collect();
                format!("{JOBSET_NAME_LABEL} in ({})", names.join(","))
            }
            _ => JOBSET_NAME_LABEL.to_owned(),
        };
        Some(ListParams::default().limit(PAGE).labels(&selector))
    }
}

/// The TrainJobs of a selection, in the order of namespace and name.
///
/// # Errors
///
/// The API server refuses or does not answer, or one of the names does not exist.
pub async fn train_jobs(client: &Client, which: &Selection) -> Result<Vec<Listed>, Failure> {
    let kind = ApiResource::erase::<TrainJob>(&());
    let api: Api<DynamicObject> = match &which.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let mut found = Vec::new();
    each_page(&api, which.job_params(), |object| found.push(Listed::of(object)))
        .await
        .map_err(|error| Failure::of_request("list TrainJobs", error))?;
    if which.names.is_empty() {
        return Ok(found);
    }
    let named = |listed: &Listed| which.names.iter().any(|name| **name == *listed.key().name);
    found.retain(named);
    let is_missing = |name: &&String| !found.iter().any(|listed| *listed.key().name == ***name);
    let missing: Vec<String> = which.names.iter().filter(is_missing).cloned().collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let namespace = which.namespace.clone().unwrap_or_default();
    Err(Failure::NotFound { names: missing, namespace })
}

/// One TrainJob.
///
/// # Errors
///
/// It does not exist, or the API server refuses or does not answer.
pub async fn train_job(client: &Client, namespace: &str, name: &str) -> Result<TrainJob, Failure> {
    let api: Api<TrainJob> = Api::namespaced(client.clone(), namespace);
    let found = api.get_opt(name).await;
    let found =
        found.map_err(|error| Failure::of_request(format!("get TrainJob {name}"), error))?;
    let (names, namespace) = (vec![name.to_owned()], namespace.to_owned());
    found.ok_or(Failure::NotFound { names, namespace })
}

/// What the Pods of these jobs hold. `namespace` is where they are, if it is one.
///
/// # Errors
///
/// The API server refuses or does not answer.
pub async fn held(
    client: &Client,
    namespace: Option<&str>,
    jobs: &[Listed],
) -> Result<HeldByJob, Failure> {
    let mut held = HeldByJob::default();
    let Some(params) = Selection::pod_params(jobs) else { return Ok(held) };
    let api: Api<Pod> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    each_page(&api, params, |pod| held.add(&pod))
        .await
        .map_err(|error| Failure::of_request("list Pods", error))?;
    Ok(held)
}

/// The Pods of one job.
///
/// # Errors
///
/// The API server refuses or does not answer.
pub async fn pods(client: &Client, job: &ObjectKey) -> kube::Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &job.namespace);
    if job.name.len() > LONGEST_LABEL {
        return Ok(Vec::new());
    }
    let selector = format!("{JOBSET_NAME_LABEL}={}", job.name);
    all(&api, ListParams::default().labels(&selector)).await
}

/// The JobSet of one job, which has its name.
///
/// # Errors
///
/// The API server refuses or does not answer.
pub async fn job_set(client: &Client, job: &ObjectKey) -> kube::Result<Option<JobSetView>> {
    let api: Api<JobSetView> = Api::namespaced(client.clone(), &job.namespace);
    api.get_opt(&job.name).await
}

/// The events of a namespace that this field selector selects.
///
/// # Errors
///
/// The API server refuses or does not answer.
pub async fn events(client: &Client, namespace: &str, selector: &str) -> kube::Result<Vec<Event>> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    all(&api, ListParams::default().fields(selector)).await
}

/// Kueue's Workloads of the job with this UID. There are none where Kueue is not installed.
///
/// # Errors
///
/// The API server refuses or does not answer.
pub async fn workloads(
    client: &Client,
    namespace: &str,
    job_uid: &str,
) -> kube::Result<Vec<DynamicObject>> {
    let params = ListParams::default().labels(&format!("kueue.x-k8s.io/job-uid={job_uid}"));
    for version in ["v1beta2", "v1beta1"] {
        let kind = GroupVersionKind::gvk("kueue.x-k8s.io", version, "Workload");
        let kind = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
        match all(&api, params.clone()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            answer => return answer,
        }
    }
    Ok(Vec::new())
}

/// All objects of a list.
async fn all<K>(api: &Api<K>, params: ListParams) -> kube::Result<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut found = Vec::new();
    each_page(api, params.limit(PAGE), |object| found.push(object)).await?;
    Ok(found)
}

async fn each_page<K>(
    api: &Api<K>,
    mut params: ListParams,
    mut take: impl FnMut(K),
) -> kube::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    loop {
        let page = api.list(&params).await?;
        page.items.into_iter().for_each(&mut take);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: impl IntoIterator<Item = String>) -> Vec<Listed> {
        let key = |name: String| ObjectKey::new("team", name);
        names.into_iter().map(|name| Listed::Unreadable(key(name))).collect()
    }

    #[test]
    fn pods_of_few_jobs_are_asked_for_by_name_and_those_of_many_together() {
        let few = listed(["b".to_owned(), "a".to_owned(), "x".repeat(64)]);
        let many = listed((0..21).map(|number| format!("job-{number}")));
        for (jobs, expected) in [
            (few, "jobset.sigs.k8s.io/jobset-name in (a,b)"),
            (many, "jobset.sigs.k8s.io/jobset-name"),
        ] {
            let params = Selection::pod_params(&jobs).unwrap();
            assert_eq!(params.label_selector.as_deref(), Some(expected));
            assert_eq!(params.limit, Some(PAGE));
        }
        for none in [vec![], listed(["x".repeat(64)])] {
            assert_eq!(Selection::pod_params(&none).map(|params| params.label_selector), None);
        }
    }

    #[test]
    fn one_job_is_asked_for_by_name() {
        let params = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Selection { names, ..Selection::default() }.job_params().field_selector
        };
        assert_eq!(params(&["a"]).as_deref(), Some("metadata.name=a"));
        assert_eq!(params(&["a", "b"]), None);
        assert_eq!(params(&[]), None);
    }
}
