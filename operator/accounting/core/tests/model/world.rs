//! The API server with its Pods and one record, the kubelets, people, and a network that takes its time.

mod network;
mod pods;
mod rest;

use std::time::Duration;

use trainjob_accounting_core::{
    answer::Failure,
    clock::Now,
    job::{Finish, FinishedHow, Job, Suspension},
    keeper::Answer,
};
use trainjob_api::{lifecycle::v1alpha1::record::TrainJobRecordStatus, time::Timestamp};

use self::network::Sent;
use super::{
    defect::Defect,
    process::{History, Process},
    random::Random,
    rules::Rules,
};

const MOST_PODS: usize = 12;
/// What may be the matter with a record that cannot be written.
const REFUSALS: [Failure; 4] =
    [Failure::Forbidden, Failure::Unavailable, Failure::Conflict, Failure::Unanswered];

/// What can happen in a run, beside the normal life of Pods.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plot {
    /// People remove finalizers, put them back, and write to the record.
    people: bool,
    /// Some Pods have no finalizer.
    observes: bool,
    /// By how many seconds the clock of the second process is behind, if there is one.
    second: Option<u64>,
    /// At the end the record cannot be written for some time, and this is the answer.
    refuses: Option<Failure>,
}

impl Plot {
    /// Whether the record has to be that of an undisturbed run.
    pub(crate) const fn is_comparable(self) -> bool {
        !self.people
            && !self.observes
            && self.refuses.is_none()
            && matches!(self.second, None | Some(0))
    }
}

pub(crate) struct World {
    seed: u64,
    random: Random,
    plot: Plot,
    defect: Option<Defect>,
    seconds: u64,
    version: u64,
    pods: Vec<History>,
    record: Option<(u64, TrainJobRecordStatus)>,
    /// Whether replies are lost again and again.
    is_lossy: bool,
    /// What every write of the record is answered with now.
    refusal: Option<Failure>,
    job: Job,
    processes: [Process; 2],
    requests: Vec<Sent>,
    replies: Vec<(Sent, Answer)>,
    rules: Rules,
    steps: Vec<String>,
    accidents: [usize; 8],
}

impl World {
    pub(crate) fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut random = Random(seed);
        let plot = Plot {
            people: random.percent(30),
            observes: random.percent(25),
            second: random.percent(60).then(|| if random.percent(40) { 3 } else { 0 }),
            refuses: random.percent(20).then(|| REFUSALS[random.below(REFUSALS.len())]),
        };
        Self {
            seed,
            random,
            plot,
            defect,
            seconds: 1_000,
            version: 1,
            pods: Vec::new(),
            record: None,
            is_lossy: false,
            refusal: None,
            job: Job::Running { suspension: Suspension::Never },
            processes: [0, 1].map(|_| Process::new(0, &[], defect)),
            requests: Vec::new(),
            replies: Vec::new(),
            rules: Rules::default(),
            steps: vec![format!("{plot:?}")],
            accidents: [0; 8],
        }
    }

    pub(crate) fn violations(&self) -> &[String] {
        self.rules.violations()
    }

    pub(crate) fn steps(&self) -> &[String] {
        &self.steps
    }

    /// Crashes, stores, refused stores, lost requests, lost replies, late requests, Pods that went uncounted, and that
    /// were let go.
    pub(crate) fn accidents(&self) -> [usize; 8] {
        let [crashes, stores, refused, requests, replies, late, ..] = self.accidents;
        let (uncounted, let_go) = self.rules.uncounted();
        [crashes, stores, refused, requests, replies, late, uncounted, let_go]
    }

    /// Lives through the run.
    pub(crate) fn run(mut self) -> Self {
        let steps = 40 + self.random.below(160);
        for _ in 0..steps {
            self.step();
        }
        self.come_to_rest();
        self
    }

    fn say(&mut self, step: String) {
        self.steps.push(step);
    }

    fn now(&self, process: usize) -> Now {
        let behind = if process == 1 { self.plot.second.unwrap_or_default() } else { 0 };
        Now {
            server: Timestamp(i64::try_from(self.seconds - behind).unwrap()),
            clock: Duration::from_secs(self.seconds),
        }
    }

    fn instant(&self) -> Timestamp {
        self.now(0).server
    }

    fn step(&mut self) {
        let process = if self.plot.second.is_some() { self.random.below(2) } else { 0 };
        let pod = self.random.below(MOST_PODS);
        match self.random.below(100) {
            0..7 => self.create(),
            7..15 => self.end(pod),
            15..20 => self.delete(pod),
            20..23 if self.plot.people => self.people(pod),
            20..28 => self.seconds += self.random.below(8) as u64,
            28..48 => self.send(process),
            48..66 => self.with_request(Self::carry_out),
            66..82 => self.with_reply(false),
            82..85 => self.with_reply(true),
            85..87 => self.lose_request(),
            87..89 => self.give_up(),
            89..94 => {
                self.watch(process, pod);
            }
            94..97 => {
                // Nothing is in its way for a while.
                for _ in 0..self.random.below(4) {
                    self.seconds += 2;
                    self.round(process);
                }
            }
            97 => self.processes[process].relist(&self.pods, self.now(process)),
            98 => self.crash(process),
            _ if self.random.percent(20) => self.finish(),
            _ => {}
        }
    }

    fn crash(&mut self, process: usize) {
        self.accidents[0] += 1;
        self.say(format!("process {process} crashes"));
        let epoch = self.processes[process].epoch + 1;
        self.processes[process] = Process::new(epoch, &self.pods, self.defect);
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn finish(&mut self) {
        if !self.job.is_over() {
            self.say("the TrainJob completes".into());
            self.job = Job::Finished(Finish {
                how: FinishedHow::Complete,
                at: self.instant(),
                reason: String::new(),
                message: String::new(),
                suspension: Suspension::Never,
            });
        }
    }
}
