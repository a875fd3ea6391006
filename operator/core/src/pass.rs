//! One pass over one job, as a state machine without input and output.
//!
//! A pass plans and carries out the plan, again and again until there is nothing to do, because what a reply shows may
//! allow the next action at once. Between the passes the machine keeps what it learned in a [`JobMemory`].
//!
//! Whoever drives it observes the job, sends the calls and waits for the answers:
//!
//! ```text
//!            ┌──────────── next ────────────┐
//!            ▼              │               ▼
//!   Plan: observe, plan,    ▼      Over: arm the retry
//!   then `planned`     Call: send it,
//!                      then `answered`
//! ```
//!
//! The operator drives it over the network, the explorer and the convergence tests in memory. So what is explored is
//! what ships. Time is the driver's: [`plan`](fn@crate::plan) gets the wall clock, everything here a monotonic one.

mod call;
mod counted;
mod existing;
mod give_way;
mod learn;
mod memories;
mod memory;
mod pod_check;
mod pod_list;
mod pod_list_use;
mod postpone;
mod retry;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::{
    call::{Call, Reply},
    memories::Memories,
    memory::{JobMemory, ShownBy},
    pod_check::Late,
    pod_list::PodList,
    pod_list_use::PodListUse,
    retry::{Class, Failure, Retry},
};
use self::{
    existing::{Existing, exists, inspected, must_inspect},
    learn::learn,
    postpone::postpone,
    retry::Retries,
};
use crate::{
    action::{Action, Plan, Waiting},
    observed::Observed,
    priority::Priority,
    undiscovered::{self, Reaction},
};

/// A pass that needs more rounds goes on later, so that no job keeps a worker for ever.
const ROUNDS: usize = 8;

/// A pass over one job.
#[derive(Debug)]
pub struct Pass {
    priority: Priority,
    rounds: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The job is to be observed and planned.
    Observe,
    /// A plan is carried out.
    Act(Round),
    /// The pass is over; the round in which it failed.
    Over(Over, Option<Round>),
}

/// One plan, and how far it is carried out.
#[derive(Debug)]
struct Round {
    uid: String,
    finished: bool,
    plan: Plan,
    /// These two as they were read when this was planned: see [`Readings`](crate::observed::Readings).
    applied_spec_hash: Option<u64>,
    edited: Option<u64>,
    postponed: Option<Duration>,
    next: usize,
    inspects: bool,
    /// When the check for Pods was begun, if that is the call.
    asked: Option<Duration>,
}

/// What a pass needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The job as it is known now, and a plan for it: see [`Pass::planned`].
    Plan,
    /// An answer to [`Pass::call`]: see [`Pass::answered`].
    Call,
    /// Nothing more.
    Over(Over),
}

/// How a pass ended, and when the job is looked at again without news of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// How it ended.
    pub end: End,
    /// When the next pass begins; `None`: when something about the job changes or its plan's instant comes.
    pub retry: Option<Retry>,
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// There is nothing left to do for now.
    Settled,
    /// A request failed.
    Failed,
    /// The job was told to wait, or took too many rounds.
    Postponed,
}

/// What an answer means for the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The action is done.
    Done,
    /// The pass goes on: with another call, or with another plan.
    Continued,
    /// The pass is over, because the call failed.
    Failed {
        /// Whether the failure is worth telling the users of the job.
        tell: bool,
    },
    /// The pass is over, because the name of the JobSet is taken by somebody else's.
    Foreign {
        /// Whether that is worth telling the users of the job.
        tell: bool,
    },
}

impl Pass {
    /// A pass that begins.
    #[must_use]
    pub const fn new(priority: Priority) -> Self {
        Self { priority, rounds: 0, state: State::Observe }
    }

    /// The priority of its work.
    #[must_use]
    pub const fn priority(&self) -> Priority {
        self.priority
    }

    /// What it needs next. `priority` is where the job belongs now, if there is one.
    pub fn next(
        &mut self,
        memory: &mut JobMemory,
        priority: Option<Priority>,
        now: Duration,
    ) -> Next {
        // The deadline may have come due meanwhile, also while the job waited to be planned.
        self.priority = priority.map_or(self.priority, |priority| priority.min(self.priority));
        if let State::Act(round) = &mut self.state {
            if let Some(action) = round.plan.actions.get(round.next) {
                if matches!(action, Action::CheckPods { .. }) {
                    round.asked = Some(now);
                    memory.pod_check = Some(now);
                }
                return Next::Call;
            }
            self.end_round(memory);
        }
        if let State::Over(over, _) = &self.state {
            return Next::Over(*over);
        }
        if let Some(at_least) = memory.retries.throttled(self.priority, now) {
            return self.postpone(Retry { at_least, ..Retry::default() });
        }
        if self.rounds == ROUNDS {
            memory.forget_documents();
            let retry = memory.retries.again(self.priority, Duration::ZERO);
            return self.postpone(retry);
        }
        self.rounds += 1;
        Next::Plan
    }

    fn postpone(&mut self, retry: Retry) -> Next {
        let over = Over { end: End::Postponed, retry: Some(retry) };
        self.state = State::Over(over, None);
        Next::Over(over)
    }

    /// Takes the plan that was made for the job as it was `observed`.
    pub fn planned(
        &mut self,
        observed: &Observed<'_>,
        mut plan: Plan,
        memory: &JobMemory,
        now: Duration,
    ) {
        let postponed = postpone(&mut plan, memory, now);
        self.state = State::Act(Round {
            uid: observed.job.uid.clone(),
            finished: observed.job.finished.is_some(),
            plan,
            applied_spec_hash: observed.readings.applied_spec_hash,
            edited: observed.readings.edited,
            postponed,
            next: 0,
            inspects: false,
            asked: None,
        });
    }

    /// The call that an answer is waited for.
    #[must_use]
    pub fn call(&self) -> Option<Call<'_>> {
        let State::Act(round) = &self.state else { return None };
        let action = round.action()?;
        Some(if round.inspects { Call::Inspect(action) } else { Call::Act(action) })
    }

    /// When the check for Pods was begun that an answer is waited for: by that a
    /// [late answer](JobMemory::late_answer) is known.
    #[must_use]
    pub const fn asked(&self) -> Option<Duration> {
        match &self.state {
            State::Act(round) => round.asked,
            State::Observe | State::Over(..) => None,
        }
    }

    /// The action that ended a pass that has failed.
    #[must_use]
    pub fn failed_action(&self) -> Option<&Action> {
        match &self.state {
            State::Over(_, Some(round)) => round.action(),
            State::Over(_, None) | State::Observe | State::Act(_) => None,
        }
    }

    /// Takes the answer to the [call](Self::call). `priority` is where the job belongs now, if there is one.
    ///
    /// An answer that nobody waits for any more changes nothing.
    pub fn answered(
        &mut self,
        memory: &mut JobMemory,
        answer: Result<Reply, Failure>,
        priority: Option<Priority>,
        now: Duration,
    ) -> Answered {
        if self.call().is_none() {
            return Answered::Continued;
        }
        let State::Act(mut round) = std::mem::replace(&mut self.state, State::Observe) else {
            return Answered::Continued;
        };
        let Some(action) = round.plan.actions.get(round.next) else {
            return Answered::Continued;
        };
        if matches!(action, Action::DeleteConfigMap { .. }) {
            // Whatever became of it, what was read of it is old.
            memory.readings.name_conflict = None;
        }
        let mut answer = answer;
        let checked = matches!(action, Action::CheckPods { .. });
        // What a check has found of another JobSet's Pods is not taken in.
        if checked && !matches!(answer, Ok(Reply::Later)) && !memory.end_pod_check(round.asked) {
            answer = answer.map(|_| Reply::Done);
        }
        let existing = match answer {
            Ok(reply) if round.inspects => inspected(action, &round.uid, reply, memory),
            Ok(reply) => {
                learn(action, &round.uid, reply, memory, now);
                Existing::AsWanted
            }
            Err(Failure { class: Class::Exists, .. }) if must_inspect(action) => {
                round.inspects = true;
                self.state = State::Act(round);
                return Answered::Continued;
            }
            Err(Failure { class: Class::Exists, .. }) => exists(action, memory),
            Err(failure) => {
                let tell = self.fail(round, memory, failure, priority, now);
                return Answered::Failed { tell };
            }
        };
        match existing {
            Existing::AsWanted => {
                round.next += 1;
                round.inspects = false;
                self.state = State::Act(round);
                Answered::Done
            }
            Existing::Noted => Answered::Continued,
            Existing::Foreign => {
                let failure = Failure { class: Class::Denied, reached: true };
                let tell = self.fail(round, memory, failure, priority, now);
                Answered::Foreign { tell }
            }
        }
    }

    /// Ends the pass; tells whether the failure is worth telling of.
    fn fail(
        &mut self,
        round: Round,
        memory: &mut JobMemory,
        failure: Failure,
        priority: Option<Priority>,
        now: Duration,
    ) -> bool {
        memory.forget_documents();
        // A JobSet whose creation or update got no answer may have been changed all the same.
        let unsure = matches!(
            round.action(),
            Some(Action::CreateJobSet { .. } | Action::UpdateJobSet { .. })
        );
        memory.readings.applied_spec_hash = memory.readings.applied_spec_hash.filter(|_| !unsure);
        // That the job cannot say what it waits for, or that something else fails, must not keep it waiting.
        let asks_again = round.plan.waiting.as_ref().is_some_and(Waiting::must_ask_again);
        if asks_again || matches!(round.action(), Some(Action::WriteWaiting(_))) {
            memory.forget_pods();
        }
        if asks_again {
            memory.readings.name_conflict = None;
        }
        let (retry, tell) = if let Some(retry) = waits_out(memory, failure.class, now) {
            (retry, false)
        } else {
            let at_least = memory.retries.put_off(failure.class, self.priority, now);
            // Stopping is tried again sooner, if that is what it is now.
            let retry = memory.retries.again(priority.unwrap_or(self.priority), at_least);
            (retry, memory.retries.note_failure(failure, round.action()))
        };
        self.state = State::Over(Over { end: End::Failed, retry: Some(retry) }, Some(round));
        tell
    }

    /// All actions are done: the job is planned again, unless there was nothing to do.
    fn end_round(&mut self, memory: &mut JobMemory) {
        let State::Act(round) = std::mem::replace(&mut self.state, State::Observe) else { return };
        let applied_spec_hash =
            round.plan.applied_spec_hash.filter(|digest| round.applied_spec_hash != Some(*digest));
        if let Some(digest) = applied_spec_hash {
            memory.spec_applied(digest, round.edited);
        } else if round.plan.actions.iter().all(|action| matches!(action, Action::RecordEvent(_))) {
            let retry = self.settle(&round, memory);
            self.state = State::Over(Over { end: End::Settled, retry }, None);
        }
    }

    /// There is nothing to do for now: what was read is forgotten, but for what later passes build on.
    fn settle(&self, round: &Round, memory: &mut JobMemory) -> Option<Retry> {
        memory.forget_documents();
        if round.plan.waiting.as_ref().is_some_and(Waiting::must_ask_again) {
            memory.forget_pods();
            memory.readings.name_conflict = None;
            return Some(memory.retries.again(self.priority, Duration::ZERO));
        }
        // A check that is under way may fail yet, once more.
        if !memory.checks_pods() {
            memory.retries = Retries::default();
        }
        if round.finished && round.postponed.is_none() {
            memory.counts_written = None;
        }
        round.postponed.map(|at_least| Retry { at_least, ..Retry::default() })
    }
}

impl Round {
    /// The action whose turn it is.
    fn action(&self) -> Option<&Action> {
        self.plan.actions.get(self.next)
    }
}

/// When to try again, where the failure is waited out and nobody is told yet.
fn waits_out(memory: &mut JobMemory, class: Class, now: Duration) -> Option<Retry> {
    if class != Class::KindUndiscovered {
        return None;
    }
    match undiscovered::react(memory.retries.undiscovered(now)) {
        Reaction::Retry(backoff) => Some(Retry { backoff, ..Retry::default() }),
        Reaction::Tell => None,
    }
}
