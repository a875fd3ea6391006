//! One pass over one job, request by request, by the product's own machine.

use std::{sync::Arc, time::Duration};

use invariants::Millis;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    action::Action,
    observed::Listed,
    pass::{self, Answered, JobMemory, Next, Retry},
    priority::Priority,
};

use super::{
    decision,
    process::Operator,
    replies,
    under_way::{Fate, Pass, Planned, UnderWay},
};
use crate::{
    defect::{Defect, decide},
    server::{
        Server,
        requests::{Answer, Call, Refusal, Request},
    },
};

impl Operator {
    /// What a crash leaves under way.
    #[must_use]
    pub fn into_requests(self) -> Vec<Request> {
        let sent = |pass: Pass| match pass.under_way? {
            UnderWay::Sent(request) => Some(*request),
            UnderWay::Served(..) => None,
        };
        self.passes.into_values().filter_map(sent).collect()
    }

    pub(super) fn begin(&mut self, name: usize, server: &Server) {
        self.queue.remove(&name);
        let priority = self
            .position(name, self.clock(server))
            .map_or(Priority::Live, |position| position.priority);
        let machine = pass::Pass::new(priority);
        self.passes.insert(name, Pass { machine, planned: None, under_way: None });
    }

    pub(super) fn go_on(&mut self, name: usize, fate: Fate, server: &mut Server) {
        let Some(mut pass) = self.passes.remove(&name) else { return };
        let under_way = match pass.under_way.take() {
            Some(under_way) if fate == Fate::Later && under_way.is_check() => {
                self.goes_on_without(name, &mut pass, under_way, server);
                self.passes.insert(name, pass);
                return;
            }
            under_way => under_way,
        };
        // Everything else is waited for.
        let fate = if fate == Fate::Later { Fate::Arrives } else { fate };
        let goes_on = match under_way {
            None => self.advance(name, &mut pass, server),
            Some(UnderWay::Sent(request)) => match fate {
                Fate::Arrives | Fate::Later => {
                    let answer = server.serve(&request);
                    pass.under_way = Some(UnderWay::Served(request, answer));
                    true
                }
                Fate::Refused(refusal) => {
                    self.answered(name, &mut pass, &request, Err(refusal), server)
                }
                Fate::Lost | Fate::GivenUp => {
                    self.answered(name, &mut pass, &request, Err(Refusal::Unknown), server)
                }
            },
            Some(UnderWay::Served(request, answer)) => {
                let answer = if fate == Fate::Arrives { answer } else { Err(Refusal::Unknown) };
                self.answered(name, &mut pass, &request, answer, server)
            }
        };
        if goes_on {
            self.passes.insert(name, pass);
        }
    }

    /// Plans, or sends the next request. False when the pass is over.
    fn advance(&mut self, name: usize, pass: &mut Pass, server: &mut Server) -> bool {
        loop {
            let priority =
                self.position(name, self.clock(server)).map(|position| position.priority);
            let now = monotonic(server.now);
            let next =
                self.remember(name, pass, |machine, memory| machine.next(memory, priority, now));
            match next {
                Next::Plan => return self.plan(name, pass, server),
                Next::Call => match pass.machine.call().and_then(call) {
                    Some(call) => {
                        pass.under_way = self.send(name, pass, call, server);
                        return true;
                    }
                    None => self.done(name, pass, server.now),
                },
                Next::Over(over) => {
                    self.retry(name, over.retry, server);
                    return false;
                }
            }
        }
    }

    /// Plans what the pass does next. False when there is no job.
    fn plan(&mut self, name: usize, pass: &mut Pass, server: &mut Server) -> bool {
        let Some(mut view) = self.keys.get(name).and_then(|key| self.cache.view(key)) else {
            self.forget(name);
            return false;
        };
        let at = self.clock(server);
        if !self.initial_pods_listed {
            view.listed = Listed::TheJob;
        }
        let plan = decide(self.defect, &mut self.memory, self.process, &view, &server.settings, at);
        decision::judge(server, &view, &plan, &self.ended);
        decision::judge_time(server, &view, &plan, at);
        self.requeue_at(name, plan.next);
        let now = monotonic(server.now);
        let settings = self.cache.settings;
        pass.planned = Some(Planned { view: view.clone(), at });
        self.remember(name, pass, |machine, memory| {
            machine.planned(&view.observed(&settings), plan, memory, now);
        });
        true
    }

    /// An action that sends nothing is done.
    fn done(&mut self, name: usize, pass: &mut Pass, now: Millis) {
        self.remember(name, pass, |machine, memory| {
            machine.answered(memory, Ok(pass::Reply::Done), None, monotonic(now))
        });
    }

    /// Gives the machine what is remembered of the job that it works on; nothing is, once that is gone.
    pub(super) fn remember<T>(
        &mut self,
        name: usize,
        pass: &mut Pass,
        step: impl FnOnce(&mut pass::Pass, &mut JobMemory) -> T,
    ) -> T {
        let machine = &mut pass.machine;
        let uid = pass.planned.as_ref().map(|planned| &*planned.view.job.facts.uid);
        let scratch = &mut JobMemory::default();
        match self.keys.get(name) {
            Some(key) => self.cache.remember(key, uid, |memory| step(machine, memory)),
            None => step(machine, scratch),
        }
    }

    fn send(&self, name: usize, pass: &Pass, call: Call, server: &mut Server) -> Option<UnderWay> {
        let planned = pass.planned.as_ref()?;
        let job = Arc::clone(&planned.view.job);
        let (process, lists) = (self.process, self.cache.lists());
        let mut request = Request {
            process,
            name,
            job,
            decided: planned.at.reached().unwrap_or(Timestamp(i64::MIN)),
            call,
            lists,
            entry: 0,
        };
        request.entry = server.record_request(&request, server.now);
        Some(UnderWay::Sent(Box::new(request)))
    }

    /// The request that a pass waits for, if it is on its way.
    #[must_use]
    pub fn on_its_way(&self, name: usize) -> Option<&Request> {
        match self.passes.get(&name)?.under_way.as_ref()? {
            UnderWay::Sent(request) => Some(request),
            UnderWay::Served(..) => None,
        }
    }

    /// Takes in an answer. False when the pass is over.
    fn answered(
        &mut self,
        name: usize,
        pass: &mut Pass,
        request: &Request,
        answer: Answer,
        server: &mut Server,
    ) -> bool {
        server.record_reply(request, &answer, server.now);
        let deletion = matches!(request.call, Call::Act(Action::DeleteJobSet { .. }));
        if self.defect == Some(Defect::DeletionErrorSwallowed) && deletion && answer.is_err() {
            self.requeue_at(name, None);
            return false;
        }
        let answer = match answer {
            Ok(reply) => {
                self.take_in(request, &reply);
                Ok(replies::shown(&request.call, reply))
            }
            // The JobSet that was in the way is gone again.
            Err(Refusal::NotFound) if matches!(request.call, Call::LookAtJobSet) => {
                Ok(pass::Reply::JobSetOfName(None))
            }
            Err(refusal) => Err(replies::failure(refusal)),
        };
        let priority = self.position(name, self.clock(server)).map(|position| position.priority);
        let now = monotonic(server.now);
        let answered = self.remember(name, pass, |machine, memory| {
            machine.answered(memory, answer, priority, now)
        });
        if matches!(answered, Answered::Failed { .. } | Answered::Foreign { .. }) {
            return self.advance(name, pass, server);
        }
        true
    }

    /// Arms the next try.
    pub(super) fn retry(&mut self, name: usize, retry: Option<Retry>, server: &Server) {
        self.retries.remove(&name);
        self.armed.remove(&name);
        let Some(Retry { backoff, at_least }) = retry else { return };
        // The shell spreads waits over their upper half.
        let wait = millis((backoff / 2).max(at_least));
        let wait = if self.defect == Some(Defect::NoBackoff) { 0 } else { wait };
        if !backoff.is_zero() {
            self.armed.insert(name, server.now);
        }
        self.retries.insert(name, server.now + wait);
    }
}

/// What a call sends; nothing for an event.
fn call(call: pass::Call<'_>) -> Option<Call> {
    match call {
        pass::Call::Act(Action::RecordEvent(_) | Action::RecordOutOfMemory { .. }) => None,
        pass::Call::Act(action) => Some(Call::Act(action.clone())),
        pass::Call::Inspect(Action::CreateSnapshot(_)) => Some(Call::LookAtSnapshot),
        pass::Call::Inspect(_) => Some(Call::LookAtJobSet),
    }
}

pub(super) fn monotonic(now: Millis) -> Duration {
    Duration::from_millis(u64::try_from(now).unwrap_or(0))
}

fn millis(wait: Duration) -> Millis {
    Millis::try_from(wait.as_millis()).unwrap_or(Millis::MAX)
}
