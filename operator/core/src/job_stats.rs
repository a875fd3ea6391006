//! Counts: how all jobs are, at one moment, as metrics show it (`docs/metrics.md`).
//!
//! A count is made of how each job [stands](Standing), which is kept up to date as facts change, with the rules that
//! decisions are made by. Nothing is added and taken away as jobs change, so no number can drift from the truth.
//!
//! What is overdue is counted by the most likely time, also while nothing acts by it: that it is overdue then is what
//! somebody has to see.

use std::{
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
};

use trainjob_api::time::Timestamp;

pub use crate::facts::is_running;
use crate::{
    facts::{JobFacts, JobSetFacts, ObjectKey, Outcome, Standing},
    lifecycle::{deadline, release, ttl},
    now::Now,
    observed::{Reading, Settings},
    plan,
    running_pods::RunningPods,
};

/// How a job is: of those that fit, the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Somebody else manages it.
    ManagedElsewhere,
    /// It has a `deletionTimestamp`.
    Terminating,
    /// It has finished, so.
    Finished(Outcome),
    /// It is not to run.
    Suspended,
    /// It is to run, and none of it does.
    Queued,
    /// It [runs](is_running).
    Running,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ManagedElsewhere,
        Self::Terminating,
        Self::Finished(Outcome::Complete),
        Self::Finished(Outcome::Failed),
        Self::Finished(Outcome::DeadlineExceeded),
        Self::Suspended,
        Self::Queued,
        Self::Running,
    ];

    /// How a job is.
    #[must_use]
    pub fn of(job: impl Into<Standing>) -> Self {
        let job = job.into();
        match job.finished {
            _ if job.managed_elsewhere => Self::ManagedElsewhere,
            _ if job.terminating => Self::Terminating,
            Some(finished) => Self::Finished(finished.outcome),
            None if job.suspend => Self::Suspended,
            None if job.runs => Self::Running,
            None => Self::Queued,
        }
    }
}

/// How many unreleased jobs are shown by name.
pub const MOST_UNRELEASED: usize = 10;

/// How far away a deadline is, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Horizon {
    /// A minute.
    Minute,
    /// Ten minutes.
    TenMinutes,
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// More than that.
    Later,
}

impl Horizon {
    /// All of them, the nearest first.
    pub const ALL: [Self; 5] = [Self::Minute, Self::TenMinutes, Self::Hour, Self::Day, Self::Later];

    /// The first that a deadline in so many seconds is within.
    #[must_use]
    pub const fn of(seconds: i64) -> Self {
        match seconds {
            ..=60 => Self::Minute,
            61..=600 => Self::TenMinutes,
            601..=3_600 => Self::Hour,
            3_601..=86_400 => Self::Day,
            _ => Self::Later,
        }
    }
}

/// Jobs that something is late for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// How many there are.
    pub jobs: u64,
    /// By how many seconds it is late for the first of them; 0 if there is none.
    pub longest: i64,
}

impl Late {
    const NONE: Self = Self { jobs: 0, longest: 0 };

    fn add(&mut self, since: Timestamp, now: Timestamp) {
        self.jobs += 1;
        self.longest = self.longest.max(now.since(since));
    }
}

/// How many jobs are how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    states: [u64; State::ALL.len()],
    horizons: [u64; Horizon::ALL.len()],
    /// Finished jobs with a TTL that is not due yet, or whose release it awaits.
    pub pending: u64,
    /// Finished jobs whose TTL is due and whose deletion nobody has begun, and for how long.
    pub overdue: Late,
    /// Finished jobs whose TTL has passed and that are being deleted.
    pub terminating: u64,
    /// Unfinished jobs whose deadline is due, and for how long.
    pub overdue_deadlines: Late,
    /// Jobs that their deadline failed and that are not released, and for how long.
    pub unreleased: Late,
    /// Jobs that their deadline failed, whose Pods are gone and whose JobSet a finalizer keeps.
    pub blocked: u64,
}

impl Counts {
    /// Those of no job.
    pub const NONE: Self = Self {
        states: [0; State::ALL.len()],
        horizons: [0; Horizon::ALL.len()],
        pending: 0,
        overdue: Late::NONE,
        terminating: 0,
        overdue_deadlines: Late::NONE,
        unreleased: Late::NONE,
        blocked: 0,
    };

    /// How many jobs are so.
    #[must_use]
    pub fn in_state(&self, state: State) -> u64 {
        counted(&self.states, &State::ALL, &state)
    }

    /// How many deadlines are within this horizon, and no nearer one.
    #[must_use]
    pub fn within(&self, horizon: Horizon) -> u64 {
        counted(&self.horizons, &Horizon::ALL, &horizon)
    }
}

/// A count that is under way, and its result.
#[derive(Debug, Clone)]
pub struct JobStats<'a> {
    /// By what the caller tells apart, namespaces for instance. It bounds their number.
    groups: BTreeMap<Arc<str>, Counts>,
    counter: Counter<'a>,
}

/// What counts one job, and the jobs that are told by name.
#[derive(Debug, Clone)]
struct Counter<'a> {
    settings: &'a Settings,
    now: Timestamp,
    oldest_unreleased: BinaryHeap<(Timestamp, ObjectKey)>,
    nearest: BinaryHeap<(Timestamp, ObjectKey)>,
    most_nearest: usize,
}

impl<'a> JobStats<'a> {
    /// Nothing has been counted. Of the deadlines to come, `most_nearest` are remembered with their jobs.
    #[must_use]
    pub const fn new(settings: &'a Settings, now: Timestamp, most_nearest: usize) -> Self {
        let counter = Counter {
            settings,
            now,
            oldest_unreleased: BinaryHeap::new(),
            nearest: BinaryHeap::new(),
            most_nearest,
        };
        Self { groups: BTreeMap::new(), counter }
    }

    /// Counts one job in a group. How its release stands is asked only where that matters, which is seldom.
    pub fn add(
        &mut self,
        group: Arc<str>,
        key: &ObjectKey,
        job: impl Into<Standing>,
        release: impl FnOnce() -> release::Decision,
    ) {
        let counts = self.groups.entry(group).or_insert(Counts::NONE);
        self.counter.count(counts, (key, &job.into()), release);
    }

    /// The groups that have jobs, and how these are.
    pub fn groups(&self) -> impl Iterator<Item = (&Arc<str>, &Counts)> {
        self.groups.iter()
    }

    /// The jobs whose deadlines are nearest, with the seconds that are left; the nearest first.
    #[must_use]
    pub fn nearest(&self) -> Vec<(ObjectKey, i64)> {
        let Counter { nearest, now, .. } = &self.counter;
        let left = |(due, key): (Timestamp, ObjectKey)| (key, due.since(*now).max(0));
        nearest.clone().into_sorted_vec().into_iter().map(left).collect()
    }

    /// The [`MOST_UNRELEASED`] jobs that have been unreleased longest, with the seconds since they failed; the longest
    /// first.
    #[must_use]
    pub fn oldest_unreleased(&self) -> Vec<(ObjectKey, i64)> {
        let Counter { oldest_unreleased, now, .. } = &self.counter;
        let failed = |(since, key): (Timestamp, ObjectKey)| (key, now.since(since).max(0));
        oldest_unreleased.clone().into_sorted_vec().into_iter().map(failed).collect()
    }
}

impl Counter<'_> {
    fn count(
        &mut self,
        counts: &mut Counts,
        (key, job): (&ObjectKey, &Standing),
        release: impl FnOnce() -> release::Decision,
    ) {
        count(&mut counts.states, &State::ALL, &State::of(job));
        let released = !job.has_release() || self.add_release(counts, (key, job), release());
        match job.finished {
            Some(_) => self.add_ttl(counts, job, released),
            None if !job.managed_elsewhere => self.add_deadline(counts, (key, job)),
            None => {}
        }
    }

    /// Whether it is released.
    fn add_release(
        &mut self,
        counts: &mut Counts,
        (key, job): (&ObjectKey, &Standing),
        release: release::Decision,
    ) -> bool {
        match release {
            release::Decision::Released => return true,
            release::Decision::Blocked => counts.blocked += 1,
            release::Decision::DeleteJobSet
            | release::Decision::Terminating { .. }
            | release::Decision::CheckPods
            | release::Decision::PodsRunning => {
                // A release is about a job that has finished.
                let since = job.finished.map_or(self.now, |finished| finished.at);
                counts.unreleased.add(since, self.now);
                keep_first(&mut self.oldest_unreleased, MOST_UNRELEASED, (since, key));
            }
        }
        false
    }

    fn add_ttl(&self, counts: &mut Counts, job: &Standing, released: bool) {
        let subject = plan::ttl_subject(job, released, *self.settings);
        let unexempted = ttl::Subject { exemption: None, ..subject };
        match (ttl::decide(&unexempted, Now::at(self.now)), subject.exemption) {
            (ttl::Decision::Wait { .. } | ttl::Decision::Held { .. }, None)
            | (
                ttl::Decision::Wait { .. }
                | ttl::Decision::Held { .. }
                | ttl::Decision::Delete { .. },
                Some(ttl::Exemption::AwaitingRelease),
            ) => counts.pending += 1,
            (ttl::Decision::Delete { due }, None) => counts.overdue.add(due, self.now),
            (ttl::Decision::Delete { .. }, Some(ttl::Exemption::Terminating)) => {
                counts.terminating += 1;
            }
            _ => {}
        }
    }

    fn add_deadline(&mut self, counts: &mut Counts, (key, job): (&ObjectKey, &Standing)) {
        let subject = deadline::Subject::of(job, self.settings.deadline_clock);
        let due = match deadline::decide(&subject, Now::at(self.now)) {
            deadline::Decision::Never => return,
            deadline::Decision::Wait { due } => due,
            deadline::Decision::Exceeded { due } => {
                counts.overdue_deadlines.add(due, self.now);
                due
            }
        };
        let horizon = Horizon::of(due.since(self.now));
        count(&mut counts.horizons, &Horizon::ALL, &horizon);
        keep_first(&mut self.nearest, self.most_nearest, (due, key));
    }
}

/// How the release of a job that its deadline failed stands at `now`.
#[must_use]
pub fn release_of(
    job: &JobFacts,
    job_set: Option<&JobSetFacts>,
    pods: &Reading<RunningPods>,
    now: Timestamp,
) -> release::Decision {
    let own = job_set.filter(|job_set| job_set.train_job_uid.as_ref() == Some(&job.uid));
    release::decide(&plan::release_subject(own, pods), Now::at(now))
}

/// Adds a job to those that come first, of which there are at most `most`.
fn keep_first(
    first: &mut BinaryHeap<(Timestamp, ObjectKey)>,
    most: usize,
    (at, key): (Timestamp, &ObjectKey),
) {
    if first.len() < most {
        first.push((at, key.clone()));
    } else if let Some(mut last) = first.peek_mut()
        && (at, key) < (last.0, &last.1)
    {
        *last = (at, key.clone());
    }
}

fn count<T: PartialEq, const N: usize>(counts: &mut [u64; N], all: &[T; N], of: &T) {
    for (count, _) in counts.iter_mut().zip(all).filter(|(_, it)| *it == of) {
        *count += 1;
    }
}

fn counted<T: PartialEq, const N: usize>(counts: &[u64; N], all: &[T; N], of: &T) -> u64 {
    counts.iter().zip(all).filter(|(_, it)| *it == of).map(|(count, _)| count).sum()
}

#[cfg(test)]
mod tests;
