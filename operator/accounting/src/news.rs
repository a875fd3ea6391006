//! What users are told.

use k8s_openapi::api::core::v1::ObjectReference;
use trainjob_accounting_core::{
    answer::{Failure, ForPod, ForRecord, for_pod, for_record},
    job::Job,
    keeper::{Answer, Call},
    share::{self, Share},
    tracked::Tracked,
};
use trainjob_api::{
    lifecycle::v1alpha1::{API_VERSION, TRAIN_JOB_RECORD_KIND},
    time::Timestamp,
    v1alpha1,
};
use trainjob_core::event::Severity;
use trainjob_engine::{error::RequestError, events::Event};

use crate::{book::Change, key::JobKey, requests};

/// The longest text of an error in a note, in bytes; a note has 1,024 at most.
const LONGEST_ERROR: usize = 700;

/// The share of a Pod that is let go.
#[must_use]
pub fn share(tracked: &Tracked, job: &Job, now: Timestamp) -> Share {
    share::share(&tracked.pod, tracked.order, job, now)
}

/// Pods were lost, as a stored status tells.
#[must_use]
pub fn lost(job: &JobKey, record: Option<(String, String)>, change: &Change) -> Option<Event> {
    let sum = |of: &trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus| {
        of.lost.values().fold(0_u64, |sum, count| sum.saturating_add(*count))
    };
    let (before, after) = (sum(&change.before), sum(&change.after));
    let note = format!("{after} Pods are not counted: status.lost says why");
    (after > before).then(|| event(job, record, "PodsLost", note))
}

/// A request was refused for good.
#[must_use]
pub fn failed(
    job: &JobKey,
    record: Option<(String, String)>,
    call: &Call,
    error: &RequestError,
) -> Option<Event> {
    let Answer::Failed { failure, .. } = requests::failed(error, false) else { return None };
    let said = error.to_string();
    let said = said.get(..said.floor_char_boundary(LONGEST_ERROR)).unwrap_or_default();
    match call {
        Call::Release { name, .. } => match for_pod(failure) {
            ForPod::Refused => {
                let note = format!(
                    "Pod {name} is counted and keeps the finalizer, because that is refused: {said}"
                );
                Some(event(job, record, "ReleaseRefused", note))
            }
            ForPod::Released | ForPod::Absent | ForPod::Again => None,
        },
        Call::Create { .. } | Call::Store(_) => match for_record(failure) {
            ForRecord::Refused if failure != Failure::NotServed || record.is_none() => {
                let note = format!("The record cannot be written: {said}");
                Some(event(job, record, "RecordUnwritable", note))
            }
            ForRecord::Refused
            | ForRecord::Create
            | ForRecord::CreateWithLongName
            | ForRecord::Prove
            | ForRecord::LetAllGo
            | ForRecord::ForgetAll
            | ForRecord::Again => None,
        },
        Call::Get { .. } | Call::List { .. } | Call::ReadJob => None,
    }
}

/// About the record; without one, about the TrainJob.
fn event(
    job: &JobKey,
    record: Option<(String, String)>,
    reason: &'static str,
    note: String,
) -> Event {
    let of_job = || {
        let version = format!("{}/v1alpha1", v1alpha1::GROUP);
        (version, "TrainJob", job.name.to_string(), job.uid.to_string())
    };
    let of_record = |(name, uid)| (API_VERSION.to_owned(), TRAIN_JOB_RECORD_KIND, name, uid);
    let (api_version, kind, name, uid) = record.map_or_else(of_job, of_record);
    let regarding = ObjectReference {
        api_version: Some(api_version),
        kind: Some(kind.to_owned()),
        namespace: Some(job.namespace.to_string()),
        name: Some(name),
        uid: Some(uid),
        ..ObjectReference::default()
    };
    Event { regarding, severity: Severity::Warning, reason, action: "Accounting", note }
}
