//! A Pod, and what a watch shows of it.

use trainjob_accounting_core::pod::Pod;

/// A Pod, and what a watch shows of it.
#[derive(Debug)]
pub(super) struct History {
    /// What a watch of marked Pods shows, by versions; `None`: it has left.
    pub(super) events: Vec<(u64, Option<Pod>)>,
    /// As it was last stored.
    pub(super) last: Pod,
    /// Whether it is there.
    pub(super) is_there: bool,
    /// Whether it has our labels.
    pub(super) is_labelled: bool,
}

impl History {
    pub(super) fn new(version: u64, pod: Pod) -> Self {
        let events = vec![(version, Some(pod.clone()))];
        Self { events, last: pod, is_there: true, is_labelled: true }
    }

    /// As it is, if it is there.
    pub(super) fn newest(&self) -> Option<&Pod> {
        self.is_there.then_some(&self.last)
    }

    /// What a list of marked Pods shows.
    pub(super) fn listed(&self) -> Option<(u64, Pod)> {
        let (version, pod) = self.events.last()?;
        Some((*version, pod.clone()?))
    }
}
