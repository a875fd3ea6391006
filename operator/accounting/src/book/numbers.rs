//! What gauges show.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use trainjob_accounting_core::{
    clock::Now,
    settings::Settings,
    tracked::{Presence, Tracked},
};

use super::{
    Book,
    entry::{Entry, is_held},
};

/// A namespace, and the queue that a TrainJob of it was submitted to; empty if to none.
pub type Source = (Arc<str>, String);

/// GPUs of Pods that run, by namespace and queue.
pub type Running = BTreeMap<Source, u64>;

/// What gauges show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Pods that are marked and not counted, as records have them.
    pub open: u64,
    /// Pods that have ended, are deleted, and are held by our finalizer.
    pub held: usize,
    /// For how long the Pod is held that is held longest.
    pub longest: Duration,
    /// Pods whose release is refused.
    pub refused: usize,
    /// Records that cannot be written.
    pub unwritable: usize,
    /// Records that are not final, and those that are.
    pub records: [usize; 2],
    /// GPUs of Pods that run.
    pub gpus: Running,
    /// Where the TrainJobs are whose records are not final.
    pub sources: BTreeSet<Source>,
}

impl Book {
    /// What gauges show.
    #[must_use]
    pub fn numbers(&self, settings: &Settings, now: Now) -> Numbers {
        let mut numbers = Numbers { records: self.records.count(), ..Numbers::default() };
        for (key, entry) in &self.entries {
            numbers.add(entry, now);
            let queue = self.jobs.queue(key).unwrap_or_default().to_owned();
            let source = (Arc::clone(&key.namespace), queue);
            let gpus = entry.keeper.pods().filter(|it| runs(it)).map(|it| gpus(it, settings));
            let gpus = gpus.fold(0, u64::saturating_add);
            if gpus > 0 {
                let of = numbers.gpus.entry(source.clone()).or_default();
                *of = of.saturating_add(gpus);
            }
            // Of a TrainJob that nobody has read yet, the queue is not known.
            if self.jobs.has(key) {
                numbers.sources.insert(source);
            }
        }
        numbers
    }
}

impl Numbers {
    fn add(&mut self, entry: &Entry, now: Now) {
        self.unwritable += usize::from(entry.keeper.is_unwritable());
        // One that has gone is not asked for again, so nothing tells that its refusal is over.
        self.refused += entry.refused.iter().filter(|uid| entry.keeper.pod(uid).is_some()).count();
        let active = entry.keeper.status().map_or(0, |status| status.totals.pods.active);
        self.open = self.open.saturating_add(active);
        for tracked in entry.keeper.pods().filter(|tracked| is_held(tracked)) {
            let Some(seen) = tracked.ended_seen else { continue };
            self.held += 1;
            self.longest = self.longest.max(now.clock.saturating_sub(seen));
        }
    }
}

fn runs(tracked: &Tracked) -> bool {
    let is_there = match tracked.presence {
        Presence::Here | Presence::Stripped | Presence::Releasing => true,
        Presence::Gone | Presence::Released => false,
    };
    is_there && tracked.pod.node.is_some() && !tracked.pod.is_terminal()
}

fn gpus(tracked: &Tracked, settings: &Settings) -> u64 {
    let of_gpus = tracked.pod.template.amounts.iter().filter(|(name, _)| settings.is_gpu(name));
    of_gpus.map(|(_, amount)| *amount).fold(0, u64::saturating_add)
}
