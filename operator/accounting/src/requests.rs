//! The requests, and what their answers mean to the core.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::core::v1::Pod as StoredPod, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::{Status, response::StatusCause},
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
use trainjob_engine::{answer::timed, error::RequestError, versions};

use crate::key::JobKey;

/// How many Pods are listed at a time.
const PAGE: u32 = 500;
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

    /// Lists the Pods, the most recent.
    pub async fn list(&self) -> Result<Answer, RequestError> {
        let labels = format!("{TRAIN_JOB_UID_LABEL}={}", self.job.uid);
        let mut params = ListParams::default().labels(&labels).limit(PAGE);
        let mut pods = Vec::new();
        loop {
            let page = timed(self.pods().list(&params)).await?;
            pods.extend(page.items.iter().filter_map(versioned));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version.unwrap_or_default();
                return Ok(Answer::Pods { version: versions::parse(&version), pods });
            }
        }
    }

    /// Reads the TrainJob; `None`: there is none of its name.
    pub async fn train_job(&self) -> Result<Option<TrainJob>, RequestError> {
        let jobs: Api<TrainJob> = Api::namespaced(self.client.clone(), &self.job.namespace);
        match timed(jobs.get(&self.job.name)).await {
            Ok(job) => Ok(Some(job)),
            Err(error) if error.says_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status, fenced by UID and version. All of it: with a merge, keys that are gone would stay.
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
        let replace = records.replace_status(name, &PostParams::default(), &record);
        let stored = timed(replace).await?;
        Ok(Answer::Stored { version: stored.resource_version().unwrap_or_default() })
    }

    /// Removes the finalizer of a Pod and annotates it, fenced by its UID. Kubelets write the same object, so there is no
    /// version in it.
    pub async fn release(&self, name: &str, uid: &str) -> Result<Answer, RequestError> {
        let patch = Patch::Strategic(release_patch(uid));
        let pods = self.pods();
        let released = timed(pods.patch_metadata(name, &PatchParams::default(), &patch)).await?;
        let version = released.resource_version().unwrap_or_default();
        Ok(Answer::Released { version: versions::parse(&version) })
    }
}

/// A10: nothing but our finalizer and our annotation.
fn release_patch(uid: &str) -> serde_json::Value {
    json!({"metadata": {
        "uid": uid,
        "$deleteFromPrimitiveList/finalizers": [ACCOUNTING_FINALIZER],
        "annotations": {ACCOUNTED_ANNOTATION: uid},
    }})
}

/// A Pod with its version, if it is marked.
#[must_use]
pub fn versioned(pod: &StoredPod) -> Option<(u64, Pod)> {
    let version = pod.metadata.resource_version.as_deref().map_or(0, versions::parse);
    Some((version, Pod::read(pod)?))
}

/// What a failure means to the core.
#[must_use]
pub fn failed(error: &RequestError) -> Answer {
    let (failure, retry_after) = match error {
        RequestError::Refused(status) => (refused(status), retry_after(status)),
        // Nothing was sent.
        RequestError::NotLeading | RequestError::Unbuildable(_) | RequestError::Foreign { .. } => {
            (Failure::Unavailable, Duration::ZERO)
        }
        RequestError::TimedOut(_) | RequestError::Unreachable(_) | RequestError::BadReply(_) => {
            (Failure::Unanswered, Duration::ZERO)
        }
    };
    Answer::Failed { failure, retry_after }
}

fn refused(status: &Status) -> Failure {
    let causes = status.details.as_ref().map(|details| &details.causes[..]).unwrap_or_default();
    let has_cause = |is_it: fn(&StatusCause) -> bool| causes.iter().any(is_it);
    match status.code {
        // Of a kind that is not served, it says 404 and gives no reason.
        404 if status.reason == "NotFound" && !names_no_object(status) => Failure::NotFound,
        404 => Failure::NotServed,
        // Whose it is shows when it is read.
        409 if status.is_already_exists() => Failure::AlreadyExists { same: true },
        409 if status.message.contains("Precondition failed: UID") => Failure::OtherUid,
        409 => Failure::Conflict,
        422 if has_cause(|cause| cause.field == "metadata.uid") => Failure::InvalidUid,
        403 if has_cause(|cause| cause.reason == "NamespaceTerminating") => {
            Failure::NamespaceTerminating
        }
        403 => Failure::Forbidden,
        401 | 408 | 429 => Failure::Unavailable,
        400..=499 => Failure::Invalid,
        _ => Failure::Unavailable,
    }
}

/// Whether a 404 is about the path and not about an object.
fn names_no_object(status: &Status) -> bool {
    status.details.as_ref().is_none_or(|details| details.name.is_empty())
}

fn retry_after(status: &Status) -> Duration {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(seconds.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_the_table_of_the_page_says() {
        let causes = |field: &str, reason: &str| json!([{"field": field, "reason": reason}]);
        for (code, reason, details, message, expected) in [
            (404, "NotFound", json!({"name": "llm-1"}), "", Failure::NotFound),
            (404, "NotFound", json!({}), "the server could not find", Failure::NotServed),
            (404, "", json!({}), "404 page not found", Failure::NotServed),
            (409, "AlreadyExists", json!({}), "", Failure::AlreadyExists { same: true }),
            (409, "Conflict", json!({}), "the object has been modified", Failure::Conflict),
            (
                409,
                "Conflict",
                json!({}),
                "Precondition failed: UID in precondition: a, UID in object meta: b",
                Failure::OtherUid,
            ),
            (
                422,
                "Invalid",
                json!({"causes": causes("metadata.uid", "")}),
                "",
                Failure::InvalidUid,
            ),
            (422, "Invalid", json!({"causes": causes("spec", "")}), "", Failure::Invalid),
            (
                403,
                "Forbidden",
                json!({"causes": causes("", "NamespaceTerminating")}),
                "",
                Failure::NamespaceTerminating,
            ),
            (403, "Forbidden", json!({}), "exceeded quota", Failure::Forbidden),
            (400, "BadRequest", json!({}), "", Failure::Invalid),
            (429, "TooManyRequests", json!({"retryAfterSeconds": 7}), "", Failure::Unavailable),
            (500, "InternalError", json!({}), "", Failure::Unavailable),
        ] {
            let status = json!({"code": code, "reason": reason, "details": details, "message": message});
            let status: Status = serde_json::from_value(status).unwrap();
            assert_eq!(refused(&status), expected, "{code} {reason} {message}");
            let waits = retry_after(&status).as_secs();
            assert_eq!(waits, if code == 429 { 7 } else { 0 });
        }
    }

    #[test]
    fn a10_a_release_changes_the_finalizer_and_the_annotation_and_nothing_else() {
        let patch = release_patch("u1");
        let metadata = patch["metadata"].as_object().unwrap();
        assert_eq!(patch.as_object().unwrap().len(), 1);
        assert_eq!(metadata.len(), 3);
        assert_eq!(metadata["uid"], "u1");
        assert_eq!(metadata["annotations"], json!({"lifecycle.trainjob.dev/accounted": "u1"}));
    }
}
