//! Pods that have our finalizer and whose labels can name no TrainJob (`docs/accounting.md`, AH7).
//!
//! A record of it could never be made, so nothing is counted of such a Pod, and it is released like one without our labels.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::Pod as StoredPod;
use kube::ResourceExt as _;
use trainjob_api::lifecycle::v1alpha1::ACCOUNTING_FINALIZER;

use crate::key::PodKey;

/// Such Pods, by UID.
#[derive(Debug, Default)]
pub struct Nameless(HashMap<Arc<str>, PodKey>);

impl Nameless {
    /// The watch shows a Pod whose labels can name no TrainJob.
    pub(super) fn saw(&mut self, stored: &StoredPod) {
        let pod = PodKey::of(&stored.metadata);
        if stored.finalizers().iter().any(|finalizer| finalizer == ACCOUNTING_FINALIZER) {
            self.0.insert(pod.uid.as_str().into(), pod);
        } else {
            self.forget(&pod.uid);
        }
    }

    /// A list has shown these Pods: there are no others.
    pub(super) fn keep_only(&mut self, listed: &HashSet<Arc<str>>) {
        self.0.retain(|uid, _| listed.contains(uid));
    }

    /// A Pod is gone, or released, or its labels name a TrainJob.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }

    /// Those that are to be released.
    #[must_use]
    pub fn held(&self) -> Vec<PodKey> {
        self.0.values().cloned().collect()
    }
}
