//! What is known of a run: versions of Pods and records, and writes of the program.

use std::collections::{BTreeMap, BTreeSet};

use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

use super::charge::Charge;
use crate::history::Millis;

/// The history of a run.
#[derive(Debug, Clone, Default)]
pub struct AccountingHistory {
    /// Every version of every marked Pod.
    pub pods: Vec<PodVersion>,
    /// Every version of every record.
    pub records: Vec<RecordVersion>,
    /// What the program wrote.
    pub written: Vec<(Millis, Written)>,
    /// When the history ends.
    pub end: Millis,
}

/// A Pod was stored, or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that rules look at")]
pub struct PodVersion {
    /// The resource version of the change: the order in which the API server made all changes.
    pub revision: u64,
    /// When it was seen.
    pub at: Millis,
    /// Its namespace and name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// UID of its TrainJob, by its label.
    pub job: String,
    /// Whether it has our finalizer.
    pub finalizer: bool,
    /// Whether it has our annotation, with its own UID.
    pub accounted: bool,
    /// Whether its phase is terminal, or it is deleted and has no node.
    pub ended: bool,
    /// Whether it is being deleted.
    pub deleted: bool,
    /// Whether it is gone; the rest is as it was last.
    pub gone: bool,
    /// What it is charged for; `None`: that does not follow from what is stored.
    pub charge: Option<Charge>,
}

/// A record was stored, or is gone.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordVersion {
    /// The resource version of the change.
    pub revision: u64,
    /// When it was seen.
    pub at: Millis,
    /// Its namespace and name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// UID of its TrainJob.
    pub job: String,
    /// What it says.
    pub status: TrainJobRecordStatus,
    /// Whether it is gone.
    pub gone: bool,
}

/// What the program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// A Pod, with these fields.
    Pod(BTreeSet<String>),
    /// The status of a record, perhaps without saying in which version.
    Status {
        /// Whether the version was named.
        with_version: bool,
    },
    /// Something else: verb and resource.
    Other(String),
}

impl AccountingHistory {
    /// The versions of each Pod, in the order in which they were stored, by UID.
    pub(super) fn by_pod(&self) -> BTreeMap<&str, Vec<&PodVersion>> {
        let mut all = BTreeMap::<&str, Vec<&PodVersion>>::new();
        for version in &self.pods {
            all.entry(&version.uid).or_default().push(version);
        }
        for versions in all.values_mut() {
            versions.sort_by_key(|version| version.revision);
        }
        all
    }

    /// The versions of each record, in the order in which they were stored, by UID.
    pub(super) fn by_record(&self) -> BTreeMap<&str, Vec<&RecordVersion>> {
        let mut all = BTreeMap::<&str, Vec<&RecordVersion>>::new();
        for version in &self.records {
            all.entry(&version.uid).or_default().push(version);
        }
        for versions in all.values_mut() {
            versions.sort_by_key(|version| version.revision);
        }
        all
    }
}
