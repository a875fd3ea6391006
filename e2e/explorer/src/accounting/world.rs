//! The API server with its Pods, TrainJob and record, what is under way, and the time.

use std::time::Duration;

use trainjob_accounting_core::{
    answer::Failure,
    clock::Now,
    job::{Job, Suspension},
    keeper::Answer,
};
use trainjob_api::{lifecycle::v1alpha1::record::TrainJobRecordStatus, time::Timestamp};

use super::{
    history::History, options::Options, plot::Plot, process::Process, report::Report,
    request::Sent, rules::Rules,
};
use crate::random::Random;

/// The record, as it is stored.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) version: u64,
    pub(super) uid: String,
    pub(super) long_name: bool,
    pub(super) status: TrainJobRecordStatus,
}

/// An answer under way: to what, what, and which state of the TrainJob was read with it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) to: Sent,
    pub(super) answer: Answer,
    pub(super) job: usize,
}

/// Everything.
pub(super) struct World {
    pub(super) random: Random,
    pub(super) plot: Plot,
    pub(super) options: Options,
    pub(super) seconds: i64,
    pub(super) version: u64,
    pub(super) pods: Vec<History>,
    pub(super) record: Option<Stored>,
    /// UIDs of records that went, in this order.
    pub(super) gone_records: Vec<String>,
    /// Whether the record of another TrainJob has the short name.
    pub(super) name_taken: bool,
    /// What every write of the record is answered with now.
    pub(super) refusal: Option<Failure>,
    /// Whether the API server answers nothing.
    pub(super) is_silent: bool,
    /// Whether the namespace terminates.
    pub(super) is_ending: bool,
    /// The TrainJob in all its versions.
    pub(super) jobs: Vec<Job>,
    /// UID of the JobSet whose Pods are created.
    pub(super) job_set: &'static str,
    pub(super) processes: [Process; 2],
    pub(super) requests: Vec<Sent>,
    pub(super) replies: Vec<Reply>,
    pub(super) rules: Rules,
    pub(super) report: Report,
}

impl World {
    pub(super) fn new(seed: u64, options: Options) -> Self {
        let mut random = Random::new(seed);
        let plot = Plot::new(&mut random);
        let jobs = vec![Job::Running { suspension: Suspension::Never }];
        let process = || Process::new(0, options.defect, plot.hold_limit);
        let mut world = Self {
            random,
            plot,
            options,
            seconds: 1_000,
            version: 1,
            pods: Vec::new(),
            record: None,
            gone_records: Vec::new(),
            name_taken: plot.name_taken,
            refusal: None,
            is_silent: false,
            is_ending: false,
            jobs,
            job_set: "s",
            processes: [process(), process()],
            requests: Vec::new(),
            replies: Vec::new(),
            rules: Rules::default(),
            report: Report { two_leaders: plot.second.is_some(), ..Report::default() },
        };
        world.say(|| format!("{plot:?}"));
        world
    }

    pub(super) fn say(&mut self, step: impl FnOnce() -> String) {
        if self.options.trace {
            let seconds = self.seconds;
            self.report.trace.push(format!("{seconds}: {}", step()));
        }
    }

    /// What a process takes for the time.
    pub(super) fn now(&self, process: usize) -> Now {
        let behind = if process == 1 { self.plot.second.unwrap_or_default() } else { 0 };
        Now {
            server: Timestamp(self.seconds - behind),
            clock: Duration::from_secs(self.seconds.unsigned_abs()),
        }
    }

    pub(super) const fn instant(&self) -> Timestamp {
        Timestamp(self.seconds)
    }

    pub(super) const fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// The TrainJob as it is.
    pub(super) fn job(&self) -> Job {
        let never = Job::Running { suspension: Suspension::Never };
        self.jobs.last().cloned().unwrap_or(never)
    }

    pub(super) const fn job_version(&self) -> usize {
        self.jobs.len().saturating_sub(1)
    }

    /// A process ends, and another begins that knows nothing. Its first list of Pods may be old.
    pub(super) fn crash(&mut self, index: usize) {
        let Some(process) = self.processes.get_mut(index) else { return };
        let late = 1 + self.random.below(4);
        let epoch = process.epoch + 1;
        *process = Process::new(epoch, self.options.defect, self.plot.hold_limit);
        process.begin(&self.pods, late, &self.jobs, self.gone_records.len());
        self.report.crashes += 1;
        self.say(|| format!("process {index} crashes; its list is {late} versions old"));
    }

    /// Changes the TrainJob.
    pub(super) fn job_becomes(&mut self, job: Job) {
        self.say(|| format!("the TrainJob: {job:?}"));
        self.jobs.push(job);
    }
}
