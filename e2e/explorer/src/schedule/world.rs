//! The cluster and its operators, and everything that can happen to them.

use invariants::{Millis, Terms, check};
use trainjob_core::{
    Action,
    lifecycle::{
        deadline::{Clock, DEFAULT_WARNING},
        hold::DEFAULT_MAXIMUM,
    },
    observed::{Propagation, Settings},
};

use super::report::{Options, Report};
use crate::{
    operator::{Estimate, Fate, Kind, Operator, Turn},
    random::Random,
    rule::Rule,
    server::{
        START, Server,
        requests::{Call, Refusal, Request},
    },
    violation::Violation,
};

/// How long everything takes that happens.
const STEP: Millis = 20;

/// The cluster and its operators.
#[derive(Debug)]
pub(super) struct World {
    pub(super) server: Server,
    pub(super) operators: Vec<Operator>,
    /// Requests that nobody waits for any more but that may still arrive.
    pub(super) strays: Vec<Request>,
    /// Whether a snapshot was made that whoever acts may not know of: nobody watches ConfigMaps.
    pub(super) late_snapshot: bool,
    options: Options,
    processes: u32,
    /// Whether the operators take a wrong time for most likely.
    skewed: bool,
    report: Report,
}

impl World {
    /// A cluster with nothing in it but, mostly, the runtime.
    pub(super) fn new(random: &mut Random, options: Options) -> Self {
        let names = if random.percent(30) { 2 } else { 1 };
        let mut server = Server::new(names, settings(random));
        let report = Report { two_leaders: random.percent(25), ..Report::default() };
        server.alone = !report.two_leaders;
        let skewed = report.two_leaders && random.percent(50);
        let mut world = Self {
            server,
            operators: Vec::new(),
            strays: Vec::new(),
            late_snapshot: false,
            options,
            processes: 0,
            skewed,
            report,
        };
        if random.percent(85) {
            world.server.set_runtime(crate::objects::runtime(0));
        }
        world
    }

    /// The operators start, when there are jobs.
    pub(super) fn start_leaders(&mut self, random: &mut Random) {
        let leaders = if self.report.two_leaders { 2 } else { 1 };
        for _ in 0..leaders {
            let behind = if random.percent(50) { random.between(0, 3_000) } else { 0 };
            let ahead = if self.skewed { random.between(-behind, 3_000) } else { 0 };
            self.start(Estimate { behind, ahead, held: false });
        }
    }

    pub(super) fn report(mut self) -> Report {
        if self.server.violation.is_none() && !self.skewed {
            self.judge_history();
        }
        self.report.requests = self.server.history.requests.len();
        let conflicts = self.server.history.requests.iter();
        self.report.conflicts =
            conflicts.filter(|request| request.answer.served == Some(409)).count();
        self.report.violation = self.server.violation;
        self.report
    }

    /// The judge of recorded runs has its say as well, unless clocks differ: it orders what happened by
    /// time. What takes long and what may be outdated is for the schedule to say, so any time is allowed.
    fn judge_history(&mut self) {
        let server = &mut self.server;
        let last_resume = server.settings.deadline_clock == Clock::LastResume;
        server.history.end = server.now;
        server.history.terms = Terms {
            clock: if last_resume {
                invariants::Clock::LastResume
            } else {
                invariants::Clock::Creation
            },
            ttl_for_managed_elsewhere: server.settings.ttl_for_managed_elsewhere,
            maximum_hold: server.settings.maximum_hold.into(),
            allowance: START,
            staleness: START,
            ..Terms::default()
        };
        if let Some(found) = check(&server.history).into_iter().next() {
            server.broke(Rule::History(found.rule), || format!("{}: {}", found.object, found.what));
        }
    }

    /// Notes a step, which takes as long as a request may, and writes it down if that is asked for.
    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        self.report.steps += 1;
        self.server.now += STEP;
        if self.options.trace {
            let (step, now) = (self.report.steps, self.server.now - START);
            let revision = self.server.revision;
            self.report
                .trace
                .push(format!("{step:>4} {now:>7} ms, revision {revision}: {}", what()));
        }
    }

    fn start(&mut self, time: Estimate) {
        let process = self.processes;
        self.processes += 1;
        self.server.record_start(process, self.server.now);
        self.operators.push(Operator::new(process, time, &self.server, self.options.defect));
        self.note(|| format!("operator {process} starts, {time:?}"));
    }

    pub(super) fn deliver(&mut self, number: usize, kind: Kind) -> bool {
        let Some(operator) = self.operators.get_mut(number) else { return false };
        if !operator.is_behind(kind, &self.server) {
            return false;
        }
        operator.deliver(kind, &self.server);
        let process = operator.process;
        self.note(|| format!("operator {process} hears of a {kind:?}"));
        true
    }

    pub(super) fn relist(&mut self, number: usize, kind: Kind) {
        let Some(operator) = self.operators.get_mut(number) else { return };
        operator.relist(kind, &self.server);
        let process = operator.process;
        self.note(|| format!("operator {process} lists every {kind:?}"));
    }

    pub(super) fn turns(&self, number: usize) -> Vec<Turn> {
        let operator = self.operators.get(number);
        operator.map(|operator| operator.turns(&self.server)).unwrap_or_default()
    }

    pub(super) fn take(&mut self, number: usize, turn: Turn, fate: Fate) {
        let Some(operator) = self.operators.get_mut(number) else { return };
        let given_up = match turn {
            Turn::Continue(name) if fate == Fate::GivenUp => operator.on_its_way(name).cloned(),
            _ => None,
        };
        let sent_before = self.server.history.requests.len();
        let late_before = operator.late_checks();
        operator.take(turn, fate, &mut self.server);
        self.report.late_checks += usize::from(operator.late_checks() > late_before);
        let process = operator.process;
        self.strays.extend(given_up);
        let sent = self.server.history.requests.get(sent_before);
        let sent = sent.map(|sent| format!(", {} {} {}", sent.verb, sent.resource, sent.name));
        let fate = if matches!(turn, Turn::Continue(_) | Turn::Late(_)) {
            format!(": {fate:?}")
        } else {
            String::new()
        };
        self.note(|| format!("operator {process} {turn:?}{fate}{}", sent.unwrap_or_default()));
    }

    /// A request that nobody waits for arrives after all.
    pub(super) fn arrive(&mut self, number: usize) {
        if number >= self.strays.len() {
            return;
        }
        let request = self.strays.swap_remove(number);
        let answer = self.server.serve(&request);
        match &request.call {
            Call::Act(Action::UpdateJobSet { .. }) if answer.is_ok() => self.server.alone = false,
            Call::Act(Action::CreateSnapshot(_)) if answer.is_ok() => self.late_snapshot = true,
            _ => {}
        }
        self.note(|| format!("a late request arrives: {}: {}", title(&request), brief(&answer)));
    }

    /// An operator is killed, and another started in its place.
    pub(super) fn crash(&mut self, number: usize, requests_survive: bool) {
        if number >= self.operators.len() {
            return;
        }
        let time = self.stop(number, requests_survive);
        self.start(time);
    }

    /// An operator is killed; returns what it knew of the time.
    pub(super) fn stop(&mut self, number: usize, requests_survive: bool) -> Estimate {
        let operator = self.operators.remove(number);
        let (process, time) = (operator.process, operator.time);
        if requests_survive {
            self.strays.extend(operator.into_requests());
        }
        self.report.crashes += 1;
        self.note(|| format!("operator {process} is killed"));
        time
    }

    /// An operator does not know the time any more, or knows it again.
    pub(super) fn hold_time(&mut self, number: usize) {
        let Some(operator) = self.operators.get_mut(number) else { return };
        operator.time.held = !operator.time.held;
        let (process, time) = (operator.process, operator.time);
        self.note(|| format!("operator {process} now has {time:?}"));
    }

    /// The manifests that an operator keeps make room for others.
    pub(super) fn evict(&mut self, number: usize) {
        let Some(operator) = self.operators.get_mut(number) else { return };
        operator.evict();
        let process = operator.process;
        self.note(|| format!("operator {process} keeps no manifest"));
    }

    /// Every operator knows the time.
    pub(super) fn know_time(&mut self) {
        self.operators.iter_mut().for_each(|operator| operator.time.held = false);
    }

    pub(super) fn wait(&mut self, time: Millis) {
        self.server.now += time;
        self.note(|| format!("{time} ms pass"));
    }

    pub(super) fn broke(&mut self, violation: Violation<Rule>) {
        self.server.broke(violation.rule, || violation.what);
    }
}

/// The settings of a schedule's operators.
fn settings(random: &mut Random) -> Settings {
    let last_resume = random.percent(50);
    Settings {
        deadline_clock: if last_resume { Clock::LastResume } else { Clock::Creation },
        deletion_propagation: if random.percent(25) {
            Propagation::Background
        } else {
            Propagation::Foreground
        },
        ttl_for_managed_elsewhere: random.percent(30),
        deadline_warning: DEFAULT_WARNING,
        maximum_hold: random.pick(&[0, 2, 20, DEFAULT_MAXIMUM]).unwrap_or(DEFAULT_MAXIMUM),
    }
}

fn title(request: &Request) -> &'static str {
    match &request.call {
        Call::Act(Action::WriteStatus(_) | Action::WriteWaiting(_)) => "a status write",
        Call::Act(Action::CreateSnapshot(_)) => "a snapshot",
        Call::Act(Action::CreateJobSet { .. }) => "a JobSet",
        Call::Act(Action::UpdateJobSet { .. }) => "an update of a JobSet",
        Call::Act(Action::SuspendJobSet { suspend: true, .. }) => "a suspension",
        Call::Act(Action::SuspendJobSet { .. }) => "a resume",
        Call::Act(Action::DeleteJobSet { .. }) => "a deletion of a JobSet",
        Call::Act(Action::DeleteTrainJob(_)) => "a deletion of a job",
        _ => "a look",
    }
}

fn brief<T>(answer: &Result<T, Refusal>) -> String {
    match answer {
        Ok(_) => "done".into(),
        Err(refusal) => format!("{refusal:?}"),
    }
}
