//! The requests, and what their answers mean to the core.

mod failure;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{api::core::v1::Pod as StoredPod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams, Request},
};
use serde_json::json;
use trainjob_accounting_core::{
    answer::Failure,
    keeper::{Answer, Fence, Store},
    pod::Pod,
};
use trainjob_api::{
    TrainJob,
    lifecycle::v1alpha1::{
        ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
        record::{TrainJobRecord, TrainJobRecordSpec},
    },
};
use trainjob_engine::{answer::timed, error::RequestError, list, versions};

pub use self::failure::{failed, is_gone};
use crate::{key::JobKey, pod_view::read};

/// How many digits of the UID are in the short name of a record.
const DIGITS: usize = 8;

/// Sends the requests about one TrainJob.
pub struct Requests<'a> {
    /// The client.
    pub client: &'a Client,
    /// The TrainJob.
    pub job: &'a JobKey,
}

impl Requests<'_> {
    fn records(&self) -> Api<TrainJobRecord> {
        Api::namespaced(self.client.clone(), &self.job.namespace)
    }

    fn pods(&self) -> Api<StoredPod> {
        Api::namespaced(self.client.clone(), &self.job.namespace)
    }

    /// The name of the record.
    fn record_name(&self, long: bool) -> String {
        let JobKey { name, uid, .. } = self.job;
        let digits = uid.chars().filter(char::is_ascii_hexdigit);
        let uid = if long { uid.to_string() } else { digits.take(DIGITS).collect() };
        format!("{name}-{uid}")
    }

    /// Creates the record.
    ///
    /// # Errors
    ///
    /// What the request fails with.
    pub async fn create(
        &self,
        long_name: bool,
        spec: TrainJobRecordSpec,
        mut labels: BTreeMap<String, String>,
    ) -> Result<Answer, RequestError> {
        let JobKey { namespace, name, uid } = self.job;
        labels.insert(TRAIN_JOB_NAME_LABEL.into(), name.to_string());
        labels.insert(TRAIN_JOB_UID_LABEL.into(), uid.to_string());
        let metadata = ObjectMeta {
            name: Some(self.record_name(long_name)),
            namespace: Some(namespace.to_string()),
            labels: Some(labels),
            ..ObjectMeta::default()
        };
        let record = TrainJobRecord { metadata, spec, status: None };
        let created = timed(self.records().create(&PostParams::default(), &record)).await?;
        Ok(self.answer(created))
    }

    /// Reads the record.
    ///
    /// # Errors
    ///
    /// What the request fails with.
    pub async fn get(&self, long_name: bool) -> Result<Answer, RequestError> {
        let found = timed(self.records().get(&self.record_name(long_name))).await?;
        Ok(self.answer(found))
    }

    fn answer(&self, record: TrainJobRecord) -> Answer {
        if record.spec.train_job.uid != *self.job.uid {
            let failure = Failure::AlreadyExists { same: false };
            return Answer::Failed { failure, retry_after: Duration::ZERO };
        }
        let fence = Fence {
            name: record.name_any(),
            uid: record.uid().unwrap_or_default(),
            version: record.resource_version().unwrap_or_default(),
        };
        Answer::Record(fence, Box::new(record.status.unwrap_or_default()))
    }

    /// Reads the TrainJob; `None`: there is none of its name.
    ///
    /// # Errors
    ///
    /// What the request fails with.
    pub async fn train_job(&self) -> Result<Option<TrainJob>, RequestError> {
        let jobs: Api<TrainJob> = Api::namespaced(self.client.clone(), &self.job.namespace);
        match timed(jobs.get(&self.job.name)).await {
            Ok(job) => Ok(Some(job)),
            Err(error) if error.says_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status, fenced by UID and version. All of it: with a merge, keys that are gone would stay.
    ///
    /// # Errors
    ///
    /// What the request fails with.
    pub async fn store(
        &self,
        spec: TrainJobRecordSpec,
        store: &Store,
    ) -> Result<Answer, RequestError> {
        let Fence { name, uid, version } = &store.fence;
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(self.job.namespace.to_string()),
            uid: Some(uid.clone()),
            resource_version: Some(version.clone()),
            ..ObjectMeta::default()
        };
        let record = TrainJobRecord { metadata, spec, status: Some(store.status.clone()) };
        let records = self.records();
        let params = PostParams::default();
        let stored = timed(records.replace_status(name, &params, &record)).await?;
        Ok(Answer::Stored { version: stored.resource_version().unwrap_or_default() })
    }

    /// Releases a Pod.
    ///
    /// # Errors
    ///
    /// What the request fails with.
    pub async fn release(&self, name: &str, uid: &str) -> Result<Answer, RequestError> {
        let version = release(&self.pods(), name, uid, Annotation::Set).await?;
        Ok(Answer::Released { version })
    }
}

/// The Pods of some TrainJobs of one namespace, the most recent.
#[derive(Debug)]
pub struct Listed {
    /// The version of the list.
    version: u64,
    /// The Pods by the UID of their TrainJob, each with its version.
    pods: HashMap<Arc<str>, Vec<(u64, Pod)>>,
}

impl Listed {
    /// Those of the TrainJob with this UID that belong to one record, once. Somebody may give a Pod the UID of a TrainJob and
    /// another name, which makes another record.
    pub fn take(&mut self, uid: &str, belongs: impl Fn(&Pod) -> bool) -> Answer {
        let all = self.pods.get_mut(uid);
        let taken = all.map(|all| all.extract_if(.., |(_, pod)| belongs(pod)).collect());
        Answer::Pods { version: self.version, pods: taken.unwrap_or_default() }
    }
}

/// Lists the Pods of TrainJobs of one namespace.
///
/// # Errors
///
/// What a request fails with.
pub async fn list_pods(
    client: &Client,
    namespace: &str,
    uids: &[&str],
) -> Result<Listed, RequestError> {
    let url = StoredPod::url_path(&(), Some(namespace));
    let labels = format!("{TRAIN_JOB_UID_LABEL} in ({})", uids.join(","));
    let params = ListParams::default().labels(&labels);
    let mut pods: HashMap<_, Vec<_>> = HashMap::new();
    let take = |text: &str| match read(text).map(|stored| versioned(&stored)) {
        Ok(Some((version, pod))) => {
            pods.entry(Arc::clone(&pod.template.job_uid)).or_default().push((version, pod));
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "a Pod cannot be read"),
    };
    let request = |params: &ListParams| Request::new(&*url).list(params);
    let version = list::each(client, params, request, take).await?;
    Ok(Listed { version: versions::parse(&version), pods })
}

/// Whether a Pod that is released gets our annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotation {
    /// It is counted, or never will be.
    Set,
    /// Whoever counts it later, if it is still there, does so.
    Unset,
}

/// Removes the finalizer of a Pod and annotates it, fenced by its UID. Kubelets write the same object, so there is no version
/// in the request. Returns the version that this made.
///
/// # Errors
///
/// What the request fails with.
pub async fn release(
    pods: &Api<StoredPod>,
    name: &str,
    uid: &str,
    annotation: Annotation,
) -> Result<u64, RequestError> {
    let patch = Patch::Strategic(release_patch(uid, annotation));
    let released = timed(pods.patch_metadata(name, &PatchParams::default(), &patch)).await?;
    let version = released.metadata.resource_version.unwrap_or_default();
    Ok(versions::parse(&version))
}

/// A10: nothing but our finalizer and our annotation.
fn release_patch(uid: &str, annotation: Annotation) -> serde_json::Value {
    let annotations = match annotation {
        Annotation::Set => Some((ACCOUNTED_ANNOTATION, uid)),
        Annotation::Unset => None,
    };
    json!({"metadata": {
        "uid": uid,
        "$deleteFromPrimitiveList/finalizers": [ACCOUNTING_FINALIZER],
        "annotations": BTreeMap::from_iter(annotations),
    }})
}

/// A Pod with its version, if it is marked.
#[must_use]
pub fn versioned(pod: &StoredPod) -> Option<(u64, Pod)> {
    let version = pod.metadata.resource_version.as_deref().map_or(0, versions::parse);
    Some((version, Pod::read(pod)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a10_a_release_changes_the_finalizer_and_the_annotation_and_nothing_else() {
        let remove = json!([ACCOUNTING_FINALIZER]);
        let set = release_patch("u1", Annotation::Set);
        let expected = json!({"metadata": {
            "uid": "u1",
            "$deleteFromPrimitiveList/finalizers": remove,
            "annotations": {"lifecycle.trainjob.dev/accounted": "u1"},
        }});
        assert_eq!(set, expected);
        let unset = release_patch("u1", Annotation::Unset);
        let expected =
            json!({"uid": "u1", "$deleteFromPrimitiveList/finalizers": remove, "annotations": {}});
        assert_eq!(unset, json!({"metadata": expected}));
    }
}
