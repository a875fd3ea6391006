//! Checks for Pods that a pass has gone on without: their answers come late, one after the other.

use std::time::Duration;

use trainjob_core::{
    pass::{self, Answered},
    priority::Priority,
};

use super::{
    pass::monotonic,
    process::Operator,
    replies,
    under_way::{Fate, LateCheck, Pass, UnderWay},
};
use crate::server::{
    Server,
    requests::{Answer, Refusal, Request},
};

impl Operator {
    /// The pass over a name goes on without the answer to its check.
    pub(super) fn goes_on_without(
        &mut self,
        name: usize,
        pass: &mut Pass,
        under_way: UnderWay,
        server: &Server,
    ) {
        let priority = self.position(name, self.clock(server)).map(|position| position.priority);
        let (asked, worked_in) = (pass.machine.asked(), pass.machine.priority());
        let answered = self.remember(name, pass, |machine, memory| {
            machine.answered(memory, Ok(pass::Reply::Later), priority, monotonic(server.now))
        });
        debug_assert_eq!(answered, Answered::Done, "a check that takes long is no failure");
        if let Some(asked) = asked {
            self.late.push(LateCheck { name, asked, worked_in, under_way });
        }
    }

    /// How many checks are under way that no pass waits for.
    #[must_use]
    pub const fn late_checks(&self) -> usize {
        self.late.len()
    }

    /// Goes on with one of them, which meets this fate.
    pub(super) fn go_on_late(&mut self, number: usize, fate: Fate, server: &mut Server) {
        if number >= self.late.len() {
            return;
        }
        let LateCheck { name, asked, worked_in, under_way } = self.late.remove(number);
        let arrives = matches!(fate, Fate::Arrives | Fate::Later);
        let (request, answer) = match (under_way, fate) {
            (UnderWay::Sent(request), Fate::Refused(refusal)) => (request, Err(refusal)),
            (UnderWay::Sent(request), _) if arrives => {
                let answer = server.serve(&request);
                let under_way = UnderWay::Served(request, answer);
                self.late.insert(number, LateCheck { name, asked, worked_in, under_way });
                return;
            }
            (UnderWay::Served(request, answer), _) if arrives => (request, answer),
            (UnderWay::Sent(request) | UnderWay::Served(request, _), _) => {
                (request, Err(Refusal::Unknown))
            }
        };
        server.record_reply(&request, &answer, server.now);
        self.came_late((name, asked, worked_in), &request, answer, server);
    }

    /// Takes in a late answer. Whatever it is, the job is planned again or tried again.
    fn came_late(
        &mut self,
        (name, asked, worked_in): (usize, Duration, Priority),
        request: &Request,
        answer: Answer,
        server: &Server,
    ) {
        let answer = answer.map(|reply| replies::shown(&request.call, reply));
        let answer = answer.map_err(replies::failure);
        let priority = self.position(name, self.clock(server));
        let priority = priority.map_or(worked_in, |position| position.priority);
        let job = &request.job.facts;
        let late = self.cache.remember(&job.key, Some(&job.uid), |memory| {
            memory.late_answer(asked, answer, priority, monotonic(server.now))
        });
        match late {
            pass::Late::Known => {
                self.queue.insert(name);
            }
            pass::Late::Failed { retry, .. } => self.retry(name, Some(retry), server),
            pass::Late::Outdated => {}
        }
    }
}
