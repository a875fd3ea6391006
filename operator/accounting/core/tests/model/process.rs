//! A process: the product's keeper, and how far its watch has come.

use std::collections::{BTreeMap, BTreeSet};

use trainjob_accounting_core::{
    answer::Failure,
    clock::Now,
    job::Job,
    keeper::{Answer, Call, Keeper},
    pod::Pod,
    settings::Settings,
};

use super::defect::Defect;

/// All versions of a Pod; `None`: it was gone.
#[derive(Debug, Default)]
pub(crate) struct History(pub(crate) Vec<(u64, Option<Pod>)>);

impl History {
    pub(crate) fn newest(&self) -> Option<&Pod> {
        self.0.last().and_then(|(_, pod)| pod.as_ref())
    }

    /// The last version in which it was there.
    pub(crate) fn last(&self) -> &Pod {
        self.0.iter().rev().find_map(|(_, pod)| pod.as_ref()).unwrap()
    }
}

pub(crate) struct Process {
    keeper: Keeper,
    /// How many processes there were before in its place.
    pub(crate) epoch: u64,
    defect: Option<Defect>,
    /// How many versions of each Pod its watch has shown.
    shown: BTreeMap<usize, usize>,
    /// News are numbered by [`Defect::TakesOldNews`].
    news: u64,
    released: BTreeSet<String>,
    settings: Settings,
}

impl Process {
    /// Its first list is two versions old.
    pub(crate) fn new(epoch: u64, pods: &[History], defect: Option<Defect>) -> Self {
        let shown = pods.iter().map(|pod| pod.0.len().saturating_sub(2)).enumerate().collect();
        Self {
            keeper: Keeper::default(),
            epoch,
            defect,
            shown,
            news: 1_000_000,
            released: BTreeSet::new(),
            settings: Settings::default(),
        }
    }

    pub(crate) fn next(&mut self, job: &Job, now: Now) -> Vec<Call> {
        let mut calls = self.keeper.next(job, &self.settings, now).now;
        for call in &mut calls {
            if let (Call::Store(store), Some(before)) = (call, self.keeper.status()) {
                Defect::spoil(self.defect, &mut store.status, before);
            }
        }
        if self.defect == Some(Defect::ReleasesFirst) {
            let ended = self.keeper.pods().filter(|it| it.pod.is_terminal() && it.pod.finalizer);
            for pod in ended.map(|it| &it.pod) {
                if self.released.insert(pod.uid.clone()) {
                    let (uid, name) = (pod.uid.clone(), pod.name.clone());
                    calls.push(Call::Release { uid, name, is_counted: true });
                }
            }
        }
        calls
    }

    /// Takes an answer. What it sends at once is returned.
    pub(crate) fn answered(
        &mut self,
        call: &Call,
        answer: Answer,
        pods: &[History],
        now: Now,
    ) -> Option<Call> {
        let answer = match (self.defect, answer) {
            (Some(Defect::NeverRepeats), Answer::Failed { .. })
                if matches!(call, Call::Release { .. }) =>
            {
                return None;
            }
            (
                Some(Defect::ValveStaysShut),
                Answer::Failed { failure: Failure::Forbidden, retry_after },
            ) => Answer::Failed { failure: Failure::Silent, retry_after },
            (Some(Defect::ProvesByWatch), Answer::Pods { version, .. }) => {
                Answer::Pods { version, pods: self.watched(pods) }
            }
            (_, Answer::Pods { version, pods }) => {
                let read = |(version, pod)| (version, Defect::read(self.defect, pod));
                Answer::Pods { version, pods: pods.into_iter().map(read).collect() }
            }
            (_, answer) => answer,
        };
        let again = match (self.defect, call, &answer) {
            (Some(Defect::WritesAgain), Call::Store(store), Answer::Stored { version }) => {
                let mut store = store.clone();
                store.fence.version.clone_from(version);
                Some(Call::Store(store))
            }
            _ => None,
        };
        self.keeper.answered(call, answer, now);
        again
    }

    /// The Pods as the watch has shown them.
    fn watched(&self, pods: &[History]) -> Vec<(u64, Pod)> {
        let shown = self.shown.iter().filter_map(|(index, shown)| {
            let (version, pod) = pods.get(*index)?.0.get(shown.checked_sub(1)?)?;
            Some((*version, pod.clone()?))
        });
        shown.collect()
    }

    /// The watch shows the next version of a Pod. Whether there was one.
    pub(crate) fn watch(&mut self, index: usize, history: &History, now: Now) -> bool {
        let shown = self.shown.entry(index).or_default();
        let Some((version, pod)) = history.0.get(*shown) else { return false };
        *shown += 1;
        self.show(index, *version, pod.as_ref(), now);
        true
    }

    /// The watch begins anew, with a list.
    pub(crate) fn relist(&mut self, pods: &[History], now: Now) {
        for (index, history) in pods.iter().enumerate() {
            let seen = self.shown.insert(index, history.0.len()).is_some_and(|shown| shown > 0);
            let Some((version, pod)) = history.0.last() else { continue };
            if pod.is_some() || seen {
                self.show(index, *version, pod.as_ref(), now);
            }
        }
        self.keeper.recheck();
    }

    fn show(&mut self, index: usize, version: u64, pod: Option<&Pod>, now: Now) {
        let version = if self.defect == Some(Defect::TakesOldNews) {
            self.news += 1;
            self.news
        } else {
            version
        };
        match pod {
            Some(pod) => self.keeper.saw(version, Defect::read(self.defect, pod.clone()), now),
            None => self.keeper.went(&format!("p{index}"), now),
        }
    }
}
