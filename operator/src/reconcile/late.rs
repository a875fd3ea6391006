//! Answers that come when nobody waits for them any more.

use std::{sync::Arc, time::Duration};

use trainjob_core::{
    action::Action,
    facts::JobFacts,
    pass::{Call, Late, Pass, Reply},
    priority::{Priority, QueuePosition},
    running_pods::PodCheck,
};
use trainjob_engine::{
    answer::LateAnswer, clock::monotonic, controller::Controller, error::RequestError,
};

use super::{Planned, Reconciler};

impl Reconciler {
    /// Waits for the answer to the call of a pass beside everything else.
    pub(super) fn await_late(
        self: &Arc<Self>,
        planned: &Planned,
        pass: &Pass,
        call: Call<'_>,
        answer: LateAnswer<PodCheck>,
    ) {
        let (Some(asked), Call::Act(action)) = (pass.asked(), call) else { return };
        let (reconciler, job) = (Arc::clone(self), planned.job.clone());
        let (priority, action) = (pass.priority(), action.clone());
        tokio::spawn(async move {
            let answer = answer.come().await;
            reconciler.came_late(&job.facts, priority, &action, asked, answer);
        });
    }

    /// Takes in a late answer. Whatever it is, the job is planned again or tried again.
    fn came_late(
        &self,
        job: &JobFacts,
        worked_in: Priority,
        action: &Action,
        asked: Duration,
        answer: Result<PodCheck, RequestError>,
    ) {
        let (reply, error) = match answer {
            Ok(found) => (Ok(Reply::Pods(found)), None),
            Err(error) => (Err(error.failure()), Some(error)),
        };
        let (key, shown) = (&job.key, reply.clone().ok());
        let priority = self.priority(key).unwrap_or(worked_in);
        let late = self.cache.remember(key, Some(&job.uid), |memory| {
            memory.late_answer(asked, reply, priority, monotonic())
        });
        match (late, shown, error) {
            (Late::Known, Some(shown), _) => {
                self.done(job, action, &shown);
                self.wake(key.clone(), QueuePosition::LIVE);
            }
            (Late::Failed { retry, tell }, _, Some(error)) => {
                self.failed(job, worked_in, action, &error, tell);
                self.arm(key, Some(retry));
            }
            _ => {}
        }
    }
}
