//! A process: the product's keeper, what its watches have shown, and what the program around the keeper does.

use std::{collections::BTreeSet, time::Duration};

use trainjob_accounting_core::{
    answer::Failure,
    clock::Now,
    job::{Finish, FinishedHow, Job, Suspension},
    keeper::{Answer, Call, Keeper},
    pod::Pod,
    settings::Settings,
};

use super::{defect::Defect, history::History};

/// How often the TrainJob may not be read before the watch is believed.
const JOB_READS: u32 = 2;

/// A process.
pub(super) struct Process {
    /// `None`: there is nothing left to do.
    keeper: Option<Keeper>,
    /// How many processes there were before in its place.
    pub(super) epoch: u64,
    defect: Option<Defect>,
    /// How many versions of each Pod its watch has shown.
    shown: Vec<usize>,
    /// The TrainJob, and in which version it was shown.
    job: Job,
    job_version: usize,
    /// How many deletions of the record its watch has shown.
    gone_records: usize,
    /// News are numbered by [`Defect::TakesOldNews`].
    news: u64,
    released: BTreeSet<String>,
    releases: usize,
    settings: Settings,
    /// When the record was last written, or the API server was silent, or this process began.
    pub(super) good_at: i64,
    /// Whether it has let a Pod go since the record was last written.
    pub(super) is_leaking: bool,
    /// How often the TrainJob could not be read since the record was last written.
    unread: u32,
    /// After how long it asks again.
    pub(super) after: Option<Duration>,
}

impl Process {
    /// One that knows nothing.
    pub(super) fn new(epoch: u64, defect: Option<Defect>, hold_limit: u64) -> Self {
        let hold_limit = Some(Duration::from_secs(hold_limit));
        Self {
            keeper: Some(Keeper::default()),
            epoch,
            defect,
            shown: Vec::new(),
            job: Job::Running { suspension: Suspension::Never },
            job_version: 0,
            gone_records: 0,
            news: 1_000_000,
            released: BTreeSet::new(),
            releases: 0,
            settings: Settings { hold_limit, ..Settings::default() },
            good_at: 0,
            is_leaking: false,
            unread: 0,
            after: None,
        }
    }

    /// Its first list of Pods is so many versions old. Of a TrainJob that is gone it knows nothing.
    pub(super) fn begin(&mut self, pods: &[History], late: usize, jobs: &[Job], records: usize) {
        self.shown = pods.iter().map(|pod| pod.events.len().saturating_sub(late)).collect();
        self.gone_records = records;
        self.job_version = jobs.len().saturating_sub(1);
        let gone = Job::Gone { suspension: Suspension::Never };
        let there = jobs.last().filter(|job| !matches!(job, Job::Gone { .. }));
        self.job = there.cloned().unwrap_or(gone);
    }

    pub(super) fn next(&mut self, now: Now) -> Vec<Call> {
        let Some(keeper) = &mut self.keeper else { return Vec::new() };
        if keeper.is_done() && self.releases == 0 {
            self.keeper = None;
            self.after = None;
            return Vec::new();
        }
        let planned = keeper.next(&self.job, &self.settings, now);
        let mut calls = planned.now;
        self.after = planned.after;
        for call in &mut calls {
            if let (Call::Store(store), Some(before)) = (call, keeper.status()) {
                Defect::spoil(self.defect, store, before);
            }
        }
        if self.defect == Some(Defect::ReleasesFirst) {
            let ended = keeper.pods().filter(|it| it.pod.is_terminal() && it.pod.finalizer);
            for pod in ended.map(|it| &it.pod) {
                if self.released.insert(pod.uid.to_string()) {
                    let (uid, name) = (pod.uid.to_string(), pod.name.to_string());
                    calls.push(Call::Release { uid, name, is_counted: true });
                }
            }
        }
        self.releases += calls.iter().filter(|call| matches!(call, Call::Release { .. })).count();
        calls
    }

    /// Whether what it stores now has to tell of a suspension before which a Pod was created.
    pub(super) const fn knows_job(&self) -> bool {
        let is_told_otherwise = matches!(
            self.job,
            Job::Gone { .. } | Job::Finished(Finish { how: FinishedHow::DeadlineExceeded, .. })
        );
        self.unread < JOB_READS && !is_told_otherwise
    }

    /// Takes an answer. What it sends at once is returned.
    pub(super) fn answered(&mut self, call: &Call, answer: Answer, now: Now) -> Option<Call> {
        self.note(call, &answer, now);
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
            (
                Some(Defect::CountsSilence),
                Answer::Failed { failure: Failure::Silent, retry_after },
            ) => Answer::Failed { failure: Failure::Forbidden, retry_after },
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
        if let Some(keeper) = &mut self.keeper {
            keeper.answered(call, answer, now);
        }
        again
    }

    fn note(&mut self, call: &Call, answer: &Answer, now: Now) {
        let seconds = i64::try_from(now.clock.as_secs()).unwrap_or(i64::MAX);
        match (call, answer) {
            (Call::Release { .. }, _) => self.releases = self.releases.saturating_sub(1),
            (Call::Store(_), Answer::Stored { .. }) => {
                (self.good_at, self.is_leaking, self.unread) = (seconds, false, 0);
            }
            (Call::ReadJob, Answer::Failed { .. }) => self.unread += 1,
            _ => {}
        }
        if let Answer::Failed { failure: Failure::Silent, .. } = answer {
            self.good_at = seconds;
        }
    }

    /// The TrainJob was read. What that means to the keeper.
    pub(super) fn read_job(&mut self, version: usize, job: &Job) -> Answer {
        let is_there = !matches!(job, Job::Gone { .. });
        if is_there && version > self.job_version && self.defect != Some(Defect::BelievesWatch) {
            (self.job, self.job_version) = (job.clone(), version);
        }
        if is_there { Answer::Job } else { Answer::without_job(&self.job) }
    }

    /// The watch shows the next version of the TrainJob. Whether there was one.
    pub(super) fn watch_job(&mut self, jobs: &[Job]) -> bool {
        let Some(job) = jobs.get(self.job_version + 1) else { return false };
        self.job_version += 1;
        match (job, &self.job) {
            // How it finished stays known.
            (Job::Gone { .. }, Job::Finished(_)) => {}
            (Job::Gone { .. }, before) => self.job = Job::Gone { suspension: before.suspension() },
            (job, _) => self.job = job.clone(),
        }
        true
    }

    /// The watch shows the next deletion of the record. Whether there was one.
    pub(super) fn watch_record(&mut self, gone: &[String]) -> bool {
        let Some(uid) = gone.get(self.gone_records) else { return false };
        self.gone_records += 1;
        if let Some(keeper) = &mut self.keeper {
            keeper.record_went(uid);
        }
        true
    }

    /// The Pods as the watch has shown them.
    pub(super) fn watched(&self, pods: &[History]) -> Vec<(u64, Pod)> {
        let shown = self.shown.iter().zip(pods).filter_map(|(shown, pod)| {
            let (version, pod) = pod.events.get(shown.checked_sub(1)?)?;
            Some((*version, pod.clone()?))
        });
        shown.collect()
    }

    /// The watch shows the next version of a Pod. Whether there was one.
    pub(super) fn watch(&mut self, index: usize, history: &History, now: Now) -> bool {
        let Some(shown) = self.shown(index) else { return false };
        let Some((version, pod)) = history.events.get(*shown) else { return false };
        *shown += 1;
        self.show(&history.last.uid, *version, pod.as_ref(), now);
        true
    }

    fn shown(&mut self, index: usize) -> Option<&mut usize> {
        if self.shown.len() <= index {
            self.shown.resize(index + 1, 0);
        }
        self.shown.get_mut(index)
    }

    /// The watch begins anew, with a list.
    pub(super) fn relist(&mut self, pods: &[History], now: Now) {
        for (index, history) in pods.iter().enumerate() {
            let Some(shown) = self.shown(index) else { continue };
            let was_seen = *shown > 0;
            *shown = history.events.len();
            let Some((version, pod)) = history.events.last() else { continue };
            if pod.is_some() || was_seen {
                self.show(&history.last.uid, *version, pod.as_ref(), now);
            }
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.recheck();
        }
    }

    fn show(&mut self, uid: &str, version: u64, pod: Option<&Pod>, now: Now) {
        let version = if self.defect == Some(Defect::TakesOldNews) {
            self.news += 1;
            self.news
        } else {
            version
        };
        let Some(pod) = pod else { return self.left(uid, now) };
        let is_done = pod.accounted && !pod.finalizer;
        if !is_done {
            self.keeper.get_or_insert_default();
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.saw(version, Defect::read(self.defect, pod.clone()), now);
        }
    }

    /// A Pod has left the watch. One that was seen with our finalizer may still have it: its release tells.
    fn left(&mut self, uid: &str, now: Now) {
        let Some(keeper) = &mut self.keeper else { return };
        if keeper.pod(uid).is_some_and(|tracked| tracked.pod.finalizer) {
            keeper.lost_labels(uid, now);
        } else {
            keeper.went(uid, now);
        }
    }
}
