//! The API server with its Pods and one record, the kubelets, people, and a network that takes its time.

use trainjob_accounting_core::{
    amounts::Amounts,
    clock::Now,
    job::{Finish, FinishedHow, Job},
    pod::{Container, ContainerEnd, Deletion, Phase, Pod, State},
};
use trainjob_api::{lifecycle::v1alpha1::record::TrainJobRecordStatus, time::Timestamp};

use super::{process::Process, rules::Rules};

/// What happens next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Create { exact: bool, restart: u64 },
    End { pod: usize, success: bool },
    Delete { pod: usize },
    Strip { pod: usize },
    PutBack { pod: usize },
    TouchRecord,
    FinishJob,
    Wait { seconds: u64 },
    Plan { process: usize },
    CarryOut { request: usize },
    Answer { reply: usize },
    LoseReply { reply: usize },
    Watch { process: usize, pod: usize },
    Crash { process: usize },
}

/// What is wrong with the processes of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// A version that somebody else wrote is taken for its own (AG5).
    NeverProves,
    /// Older news replace newer ones (AG6).
    TakesOldNews,
    /// A release leaves no annotation (AG2).
    NoAnnotation,
    /// A Pod is released when it has ended, not when it is stored (AG2).
    ReleasesFirst,
    /// UIDs are dropped with the next store, released or not (AG3).
    ClearsTooEarly,
    /// Counters start anew with each process (AG1).
    ForgetsCounters,
    /// The UIDs are stored without the shares (AG2).
    StoresOnlyUids,
    /// What went unseen is told of with each store (AG11).
    TellsLossesTwice,
}

impl Defect {
    /// The rule that each breaks.
    pub(crate) const ALL: [(Self, &'static str); 8] = [
        (Self::NeverProves, "A1"),
        (Self::TakesOldNews, "A1"),
        (Self::NoAnnotation, "A1"),
        (Self::ReleasesFirst, "A2"),
        (Self::ClearsTooEarly, "A3"),
        (Self::ForgetsCounters, "A4"),
        (Self::StoresOnlyUids, "A5"),
        (Self::TellsLossesTwice, "A6"),
    ];
}

/// One request of a process.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Create,
    Get,
    List { over: bool },
    ReadJob,
    Store { version: u64, status: Box<TrainJobRecordStatus> },
    Release { uid: String },
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Record(Option<(u64, TrainJobRecordStatus)>),
    Pods { version: u64, pods: Vec<(u64, Pod)>, over: bool },
    Job,
    Stored(u64),
    Refused,
    Released,
}

#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) from: usize,
    pub(crate) epoch: u64,
    pub(crate) call: Call,
}

#[derive(Debug)]
struct Replied {
    sent: Sent,
    answer: Answer,
}

/// All versions of a Pod; `None`: it was gone.
#[derive(Debug, Default)]
pub(crate) struct History(pub(crate) Vec<(u64, Option<Pod>)>);

impl History {
    pub(crate) fn newest(&self) -> Option<&Pod> {
        self.0.last().and_then(|(_, pod)| pod.as_ref())
    }
}

pub(crate) struct World {
    pub(crate) defect: Defect,
    seconds: u64,
    version: u64,
    pub(crate) pods: Vec<History>,
    record: Option<(u64, TrainJobRecordStatus)>,
    pub(crate) job: Job,
    processes: [Process; 2],
    requests: Vec<Sent>,
    replies: Vec<Replied>,
    rules: Rules,
}

impl World {
    pub(crate) fn new(defect: Defect) -> Self {
        Self {
            defect,
            seconds: 1_000,
            version: 1,
            pods: Vec::new(),
            record: None,
            job: Job::Running { suspended_changed_at: None },
            processes: [0, 1].map(|index| Process::new(index, 0)),
            requests: Vec::new(),
            replies: Vec::new(),
            rules: Rules::default(),
        }
    }

    /// The clock of the second process is behind.
    fn now(&self, process: usize) -> Now {
        let behind = if process == 1 { 3 } else { 0 };
        Now {
            server: Timestamp(i64::try_from(self.seconds - behind).unwrap()),
            clock: std::time::Duration::from_secs(self.seconds),
        }
    }

    fn instant(&self) -> Timestamp {
        self.now(0).server
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Create { exact, restart } => self.create(exact, restart),
            Step::End { pod, success } => self.end(pod, success),
            Step::Delete { pod } => self.delete(pod),
            Step::Strip { pod } => self.change(pod, |pod| pod.finalizer = false),
            Step::PutBack { pod } => {
                self.change(pod, |pod| pod.finalizer |= pod.deletion.is_none());
            }
            Step::TouchRecord => {
                if self.record.is_some() {
                    let version = self.next_version();
                    self.record.as_mut().unwrap().0 = version;
                }
            }
            Step::FinishJob => self.finish(),
            Step::Wait { seconds } => self.seconds += seconds,
            Step::Plan { process } => self.plan(process),
            Step::CarryOut { request } if !self.requests.is_empty() => {
                let sent = self.requests.remove(request % self.requests.len());
                self.carry_out(sent);
            }
            Step::Answer { reply } if !self.replies.is_empty() => {
                let reply = self.replies.remove(reply % self.replies.len());
                self.answer(reply, false);
            }
            Step::LoseReply { reply } if !self.replies.is_empty() => {
                let reply = self.replies.remove(reply % self.replies.len());
                self.answer(reply, true);
            }
            Step::Watch { process, pod } => {
                self.watch(process, pod);
            }
            Step::Crash { process } => {
                let epoch = self.processes[process].epoch + 1;
                self.processes[process] = Process::new(process, epoch);
                self.processes[process].begin(&self.pods);
            }
            Step::CarryOut { .. } | Step::Answer { .. } | Step::LoseReply { .. } => {}
        }
    }

    /// Everything ends, and one process has all the time it needs.
    pub(crate) fn come_to_rest(&mut self) {
        self.finish();
        for round in 0..60 {
            self.seconds += 10;
            for pod in 0..self.pods.len() {
                self.end(pod, round % 2 == 0);
                self.delete(pod);
                while self.watch(0, pod) {}
            }
            self.plan(0);
            while let Some(sent) = self.requests.pop() {
                self.carry_out(sent);
            }
            while let Some(reply) = self.replies.pop() {
                self.answer(reply, false);
            }
        }
        let pods = self.pods.len();
        let left = self.pods.iter().filter(|pod| pod.newest().is_some()).count();
        self.rules.at_rest(self.record.as_ref().map(|(_, status)| status), pods, left);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.rules.violations.clone()
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn finish(&mut self) {
        if !self.job.is_over() {
            self.job = Job::Finished(Finish {
                how: FinishedHow::Complete,
                at: self.instant(),
                reason: String::new(),
                message: String::new(),
                suspended_changed_at: None,
            });
        }
    }

    fn create(&mut self, exact: bool, restart: u64) {
        if self.job.is_over() || self.pods.len() >= 12 {
            return;
        }
        let (version, now) = (self.next_version(), self.instant());
        let pod = Pod {
            name: format!("p{}", self.pods.len()),
            uid: format!("p{}", self.pods.len()),
            job_name: "llm".into(),
            job_uid: "j".into(),
            replicated_job: "node".into(),
            job_set: "s".into(),
            restart,
            created_at: now,
            deletion: None,
            phase: Phase::Open,
            reason: String::new(),
            message: String::new(),
            node: Some("n".into()),
            bound_at: Some(now),
            unready_since: None,
            disruption: None,
            generations: None,
            containers: Vec::new(),
            amounts: Amounts::from([("nvidia.com/gpu".into(), 1)]),
            finalizer: exact,
            accounted: false,
        };
        self.rules.pod_created(&pod);
        self.pods.push(History(vec![(version, Some(pod))]));
    }

    fn end(&mut self, pod: usize, success: bool) {
        let at = self.instant();
        self.change(pod, |pod| {
            if pod.is_terminal() {
                return;
            }
            let exit_code = i32::from(!success);
            let end = ContainerEnd { exit_code, reason: String::new(), message: String::new(), at };
            let state = State::Ended(end);
            pod.containers =
                vec![Container { name: "n".into(), restarts: 0, state, last_end: None }];
            pod.phase = if success { Phase::Succeeded } else { Phase::Failed };
        });
    }

    fn delete(&mut self, pod: usize) {
        let at = self.instant();
        self.change(pod, |pod| {
            pod.deletion.get_or_insert(Deletion { at, grace: 30 });
        });
    }

    /// Changes a Pod that is there. It goes when it has ended, is deleted and nothing holds it.
    fn change(&mut self, pod: usize, change: impl FnOnce(&mut Pod)) {
        let Some(before) = self.pods.get(pod).and_then(|it| it.newest()) else { return };
        let (mut after, before) = (before.clone(), before.clone());
        change(&mut after);
        let goes = after.deletion.is_some() && after.is_terminal() && !after.finalizer;
        if before == after && !goes {
            return;
        }
        self.rules.pod_changed(&before, (!goes).then_some(&after));
        let version = self.next_version();
        self.pods[pod].0.push((version, (!goes).then_some(after)));
    }

    fn plan(&mut self, process: usize) {
        let now = self.now(process);
        self.requests.extend(self.processes[process].plan(&self.job, now, self.defect));
    }

    fn carry_out(&mut self, sent: Sent) {
        let answer = match &sent.call {
            Call::Create => {
                if self.record.is_none() {
                    self.record = Some((self.next_version(), TrainJobRecordStatus::default()));
                }
                Answer::Record(self.record.clone())
            }
            Call::Get => Answer::Record(self.record.clone()),
            Call::List { over } => {
                let there = self.pods.iter().filter_map(|pod| {
                    let (version, pod) = pod.0.last()?;
                    Some((*version, pod.clone()?))
                });
                Answer::Pods { version: self.version, pods: there.collect(), over: *over }
            }
            Call::ReadJob => Answer::Job,
            Call::Store { version, status } => match &self.record {
                Some((current, before)) if current == version => {
                    self.rules.stored(before, status);
                    let version = self.next_version();
                    self.record = Some((version, (**status).clone()));
                    Answer::Stored(version)
                }
                Some(_) | None => Answer::Refused,
            },
            Call::Release { uid } => {
                self.release(uid);
                Answer::Released
            }
        };
        self.replies.push(Replied { sent, answer });
    }

    fn release(&mut self, uid: &str) {
        let found = self.pods.iter().position(|it| it.newest().is_some_and(|pod| pod.uid == uid));
        if let Some(pod) = found {
            self.rules.released(uid);
            let annotates = self.defect != Defect::NoAnnotation;
            self.change(pod, |pod| {
                pod.finalizer = false;
                pod.accounted |= annotates;
            });
        }
    }

    fn answer(&mut self, Replied { sent, answer }: Replied, lost: bool) {
        let now = self.now(sent.from);
        let process = &mut self.processes[sent.from];
        if process.epoch == sent.epoch {
            let answer = if lost { None } else { Some(answer) };
            let defect = self.defect;
            self.requests.extend(process.answered(&sent.call, answer, &self.job, now, defect));
        }
    }

    /// The next event of a Pod reaches a process.
    fn watch(&mut self, process: usize, pod: usize) -> bool {
        let now = self.now(process);
        let Some(history) = self.pods.get(pod) else { return false };
        self.processes[process].watched(pod, history, now, self.defect)
    }
}
