//! What the Pods of a replicated job have in common.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod as StoredPod, PodSpec};
use trainjob_api::{
    constants::JOBSET_UID_LABEL,
    lifecycle::v1alpha1::{TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL, record::OTHER},
};

use crate::amounts::{self, Amounts};

/// Label of a Pod: its replicated job.
pub const REPLICATED_JOB_LABEL: &str = "jobset.sigs.k8s.io/replicatedjob-name";

/// In place of the UID of a JobSet, for a Pod that does not say it: somebody took its label, or made it by hand. A record
/// with an empty one would be refused.
const UNKNOWN: &str = "unknown";

/// What a Pod has from its template. There may be 100,000 open Pods, and this is most of what is known of one, so those of
/// a replicated job share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its replicated job.
    pub replicated_job: Box<str>,
    /// UID of its JobSet.
    pub job_set: Box<str>,
    /// Name of its TrainJob.
    pub job_name: Arc<str>,
    /// UID of its TrainJob.
    pub job_uid: Arc<str>,
    /// The names of its containers, which their statuses share.
    pub container_names: Box<[Arc<str>]>,
    /// What the scheduler takes it to request (AT4).
    pub amounts: Amounts,
}

impl Template {
    /// Reads that of a Pod. `None`: it does not carry the labels of the mark.
    pub(super) fn read(pod: &StoredPod) -> Option<Self> {
        let labels = pod.metadata.labels.as_ref()?;
        let label = |key: &str| labels.get(key).map(String::as_str);
        let named = |key: &str| label(key).filter(|name| !name.is_empty());
        let spec = pod.spec.as_ref();
        Some(Self {
            replicated_job: named(REPLICATED_JOB_LABEL).unwrap_or(OTHER).into(),
            job_set: named(JOBSET_UID_LABEL).unwrap_or(UNKNOWN).into(),
            job_name: label(TRAIN_JOB_NAME_LABEL)?.into(),
            job_uid: label(TRAIN_JOB_UID_LABEL)?.into(),
            container_names: spec.map(container_names).unwrap_or_default(),
            amounts: spec.map(amounts::requested).unwrap_or_default(),
        })
    }

    /// Whether a TrainJob can have the name and the UID that its labels say (RFC 1123). If not, no record can be made: it is
    /// named after both.
    #[must_use]
    pub fn may_name_job(&self) -> bool {
        self.job_name.split('.').all(is_dns_label) && is_dns_label(&self.job_uid)
    }

    /// The name of a container, shared if the template has it.
    pub(super) fn container_name(&self, name: &str) -> Arc<str> {
        self.container_names
            .iter()
            .find(|it| ***it == *name)
            .map_or_else(|| name.into(), Arc::clone)
    }
}

/// Whether this is a DNS label (RFC 1123). How long it is need not be looked at: values of labels are not longer.
fn is_dns_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

fn container_names(spec: &PodSpec) -> Box<[Arc<str>]> {
    let init = spec.init_containers.iter().flatten();
    init.chain(&spec.containers).map(|container| container.name.as_str().into()).collect()
}
