//! One pass over one job, request by request: look, ask the core, carry out, look again.

use invariants::Millis;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Action, Plan,
    action::{StatusWrite, Urgency, Waiting},
    lane::Lane,
    observed::Reading,
};

use super::{Operator, View, decision, longest_throttle, replies::is_foreign};
use crate::{
    defect::{Defect, decide},
    server::{
        Server,
        requests::{Answer, Call, Refusal, Request},
    },
};

/// Counts of one job are written at most this often.
const COUNTS_EVERY: Millis = 250;
/// A pass that needs more rounds goes on later.
const ROUNDS: usize = 8;

/// A pass that is under way.
#[derive(Debug)]
pub(super) struct Pass {
    lane: Lane,
    rounds: usize,
    round: Option<Round>,
}

/// One round of a pass: one plan and how far it is carried out.
#[derive(Debug)]
struct Round {
    view: View,
    plan: Plan,
    decided: Timestamp,
    postponed: Option<Millis>,
    /// The next action.
    next: usize,
    /// A look at the object whose name is taken comes first.
    look: Option<Call>,
    under_way: Option<UnderWay>,
}

/// A request that the pass waits for.
#[derive(Debug)]
enum UnderWay {
    Sent(Box<Request>),
    Served(Box<Request>, Answer),
}

/// What becomes of the request, or the answer, that a pass waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It does not, and the operator notices.
    Lost,
    /// The operator gives it up; the request may arrive later.
    GivenUp,
    /// Something on the way refuses it.
    Refused(Refusal),
}

impl Operator {
    /// What a crash leaves under way.
    #[must_use]
    pub fn into_requests(self) -> Vec<Request> {
        let rounds = self.passes.into_values().filter_map(|pass| pass.round?.under_way);
        let sent = |under_way| match under_way {
            UnderWay::Sent(request) => Some(*request),
            UnderWay::Served(..) => None,
        };
        rounds.filter_map(sent).collect()
    }

    pub(super) fn begin(&mut self, name: usize, server: &Server) {
        self.queue.remove(&name);
        let lane = self.place(name, self.clock(server)).map_or(Lane::Live, |place| place.lane);
        self.passes.insert(name, Pass { lane, rounds: 0, round: None });
    }

    pub(super) fn go_on(&mut self, name: usize, fate: Fate, server: &mut Server) {
        let Some(mut pass) = self.passes.remove(&name) else { return };
        let goes_on = match pass.round.take() {
            None => self.look(name, &mut pass, server),
            Some(round) => self.carry_out(name, &mut pass, round, fate, server),
        };
        if goes_on {
            self.passes.insert(name, pass);
        }
    }

    /// Begins a round. False when there is no job.
    fn look(&mut self, name: usize, pass: &mut Pass, server: &mut Server) -> bool {
        let Some(key) = self.key(name) else { return false };
        let Some(view) = self.cache.view(&key) else {
            self.forget(name);
            return false;
        };
        let place = self.place(name, self.clock(server));
        pass.lane = place.map_or(pass.lane, |place| place.lane.min(pass.lane));
        if let Some(until) = self.told_to_wait(name, pass.lane, server.now) {
            self.retries.insert(name, until);
            return false;
        }
        if pass.rounds == ROUNDS {
            self.forget_objects(name, &view, false);
            self.retry(name, pass.lane, 0, server);
            return false;
        }
        pass.rounds += 1;
        let decided = self.clock(server);
        let mut plan =
            decide(self.defect, &mut self.memory, self.process, &view, &server.settings, decided);
        decision::judge(server, &view, &plan, &self.ended);
        self.alarm(name, plan.next);
        let postponed = self.postpone_counts(name, &mut plan, server.now);
        pass.round =
            Some(Round { view, plan, decided, postponed, next: 0, look: None, under_way: None });
        true
    }

    fn postpone_counts(&self, name: usize, plan: &mut Plan, now: Millis) -> Option<Millis> {
        let counts = |action: &Action| {
            matches!(action, Action::WriteStatus(StatusWrite { urgency: Urgency::Coalesced, .. }))
        };
        if !plan.actions.iter().any(counts) {
            return None;
        }
        let last = self.progress.get(&name)?.counts_written?;
        let wait = Some(last + COUNTS_EVERY - now).filter(|wait| *wait > 0)?;
        plan.actions.retain(|action| !counts(action));
        Some(wait)
    }

    /// One step of a round. False when the pass is over.
    fn carry_out(
        &mut self,
        name: usize,
        pass: &mut Pass,
        mut round: Round,
        fate: Fate,
        server: &mut Server,
    ) -> bool {
        match round.under_way.take() {
            None => match Self::next_call(&mut round) {
                Some(call) => {
                    round.under_way = Some(self.send(name, &round, call, server));
                    pass.round = Some(round);
                    true
                }
                None => self.end_round(name, pass, round, server),
            },
            Some(UnderWay::Sent(request)) => {
                let answer = match fate {
                    Fate::Arrives => {
                        let answer = server.serve(&request);
                        round.under_way = Some(UnderWay::Served(request, answer));
                        pass.round = Some(round);
                        return true;
                    }
                    Fate::Refused(refusal) => Err(refusal),
                    Fate::Lost | Fate::GivenUp => Err(Refusal::Unknown),
                };
                self.answered(name, pass, round, &request, answer, server)
            }
            Some(UnderWay::Served(request, answer)) => {
                let lost = !matches!(fate, Fate::Arrives);
                let answer = if lost { Err(Refusal::Unknown) } else { answer };
                self.answered(name, pass, round, &request, answer, server)
            }
        }
    }

    fn next_call(round: &mut Round) -> Option<Call> {
        if let Some(look) = round.look.take() {
            return Some(look);
        }
        // These are nothing that a pass waits for.
        while let Some(Action::Tell(_) | Action::TellOutOfMemory { .. }) =
            round.plan.actions.get(round.next)
        {
            round.next += 1;
        }
        round.plan.actions.get(round.next).cloned().map(Call::Act)
    }

    fn send(&self, name: usize, round: &Round, call: Call, server: &mut Server) -> UnderWay {
        let job = std::sync::Arc::clone(&round.view.job);
        let decided = round.decided;
        let (process, lists) = (self.process, self.cache.lists());
        let mut request = Request { process, name, job, decided, call, lists, entry: 0 };
        request.entry = server.record_request(&request, server.now + self.skew);
        UnderWay::Sent(Box::new(request))
    }

    /// The request that a pass waits for, if it is on its way.
    #[must_use]
    pub fn on_its_way(&self, name: usize) -> Option<&Request> {
        match &self.passes.get(&name)?.round.as_ref()?.under_way {
            Some(UnderWay::Sent(request)) => Some(request),
            _ => None,
        }
    }

    fn answered(
        &mut self,
        name: usize,
        pass: &mut Pass,
        mut round: Round,
        request: &Request,
        answer: Answer,
        server: &mut Server,
    ) -> bool {
        server.record_reply(request, &answer, server.now + self.skew);
        let swallowed = self.defect == Some(Defect::DeletionErrorSwallowed)
            && matches!(request.call, Call::Act(Action::DeleteJobSet { .. }))
            && answer.is_err();
        match answer {
            _ if swallowed => round.next = round.plan.actions.len(),
            // The name is taken: by whom?
            Err(Refusal::Exists) => {
                let snapshot = matches!(request.call, Call::Act(Action::CreateSnapshot(_)));
                let look = if snapshot { Call::LookAtSnapshot } else { Call::LookAtJobSet };
                round.look = Some(look);
            }
            Err(refusal) => {
                // A JobSet that is gone again: the job is planned again.
                if matches!(request.call, Call::LookAtJobSet) && refusal == Refusal::NotFound {
                    return true;
                }
                return self.failed(name, pass, &round, request, refusal, server);
            }
            Ok(reply) => {
                self.take_in(request, &reply);
                match &request.call {
                    Call::LookAtSnapshot => return true,
                    Call::LookAtJobSet => {
                        let foreign = is_foreign(request, &reply);
                        return !foreign
                            || self.failed(name, pass, &round, request, Refusal::Denied, server);
                    }
                    Call::Act(action) => {
                        self.done(name, action, server.now);
                        round.next += 1;
                    }
                }
            }
        }
        if swallowed {
            self.alarm(name, None);
            return false;
        }
        pass.round = Some(round);
        true
    }

    fn done(&mut self, name: usize, action: &Action, now: Millis) {
        if let Action::WriteStatus(StatusWrite { jobs_status: Some(_), .. }) = action {
            self.progress.entry(name).or_default().counts_written = Some(now);
        }
    }

    /// All actions have succeeded. False when there is nothing more to do.
    fn end_round(&mut self, name: usize, pass: &Pass, round: Round, server: &Server) -> bool {
        let Round { view, plan, postponed, .. } = round;
        let rendered = plan.rendered.filter(|digest| view.readings.rendered != Some(*digest));
        let idle = plan.actions.iter().all(|action| matches!(action, Action::Tell(_)));
        if let Some(digest) = rendered {
            self.forget_objects(name, &view, false);
            self.cache.rendered(&view, digest);
            return true;
        }
        if !idle {
            return true;
        }
        self.forget_objects(name, &view, false);
        if plan.waiting.as_ref().is_some_and(Waiting::must_ask_again) {
            self.read(name, &view, |readings| readings.pods = Reading::NotRead);
            self.retry(name, pass.lane, 0, server);
            return false;
        }
        self.retries.remove(&name);
        if let Some(wait) = postponed {
            self.retries.insert(name, server.now + wait);
        }
        let progress = self.progress.entry(name).or_default();
        (progress.failures, progress.armed) = (0, None);
        false
    }

    fn failed(
        &mut self,
        name: usize,
        pass: &Pass,
        round: &Round,
        request: &Request,
        refusal: Refusal,
        server: &Server,
    ) -> bool {
        let unsure = matches!(
            request.call,
            Call::LookAtJobSet | Call::Act(Action::CreateJobSet(_) | Action::UpdateJobSet(_))
        );
        self.forget_objects(name, &round.view, unsure);
        let at_least = match refusal {
            Refusal::Throttled(wait) => {
                let told = Some((server.now, wait));
                self.progress.entry(name).or_default().told_to_wait = told;
                wait.min(longest_throttle(pass.lane))
            }
            _ => 0,
        };
        let lane = self.place(name, self.clock(server)).map_or(pass.lane, |place| place.lane);
        self.retry(name, lane, at_least, server);
        false
    }

    fn forget_objects(&mut self, name: usize, view: &View, unsure: bool) {
        self.read(name, view, |readings| {
            readings.snapshot = Reading::NotRead;
            readings.job_set = None;
            readings.rendered = readings.rendered.filter(|_| !unsure);
        });
    }

    fn read(
        &mut self,
        name: usize,
        view: &View,
        change: impl FnOnce(&mut trainjob_core::observed::Readings),
    ) {
        if let Some(key) = self.keys.get(name) {
            self.cache.read(key, &view.job.facts.uid, change);
        }
    }
}
