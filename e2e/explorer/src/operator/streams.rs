//! What each watch has yet to deliver.

use std::{collections::VecDeque, sync::Arc};

use trainjob_core::build::Runtime;

use crate::{
    objects::{StoredJob, StoredJobSet},
    server::News,
};

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// TrainJobs.
    Job,
    /// JobSets.
    JobSet,
    /// Runtimes.
    Runtime,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Job, Self::JobSet, Self::Runtime];
}

/// What each watch has yet to deliver.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    pub(super) jobs: Stream<StoredJob>,
    pub(super) job_sets: Stream<StoredJobSet>,
    pub(super) runtime_list: RuntimeList,
    pub(super) runtimes: usize,
    pub(super) runtimes_listed: bool,
}

/// The list of runtimes that a watch begins with.
#[derive(Debug, Default)]
pub(super) enum RuntimeList {
    /// Delivered.
    #[default]
    Over,
    /// Yet to be delivered.
    Pending(Option<Arc<Runtime>>),
}

#[derive(Debug)]
pub(super) struct Stream<T> {
    pub(super) list: VecDeque<Listed<T>>,
    /// How many changes were delivered, or were in the list.
    pub(super) cursor: usize,
    pub(super) listed: bool,
}

#[derive(Debug)]
pub(super) enum Listed<T> {
    Item(Arc<T>),
    End,
}

impl<T> Default for Stream<T> {
    fn default() -> Self {
        Self { list: VecDeque::new(), cursor: 0, listed: false }
    }
}

impl<T> Stream<T> {
    pub(super) fn relist(&mut self, stored: impl Iterator<Item = Arc<T>>, changes: usize) {
        self.list = stored.map(Listed::Item).collect();
        self.list.push_back(Listed::End);
        self.cursor = changes;
    }

    pub(super) fn pending(&self, news: &[News<T>]) -> bool {
        !self.list.is_empty() || self.cursor < news.len()
    }
}
