//! The check for the running Pods of a job: one at a time, and its answer is used whenever it comes.
//!
//! The namespace of a job may have very many Pods, and an API server that lists them slowly would be asked in vain again
//! and again if only quick answers counted. So whoever drives a pass may stop waiting ([`Reply::Later`]) and gives the
//! answer to the [memory](JobMemory::late_answer) when it comes. Until then no other check of the job begins.
//!
//! An answer is about the JobSet that was known when it was asked for. Once that is gone or replaced, it says nothing.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{
    call::Reply,
    memory::JobMemory,
    pod_list::PodList,
    retry::{Failure, Retry},
};
use crate::{
    action::Action, facts::ObjectKey, observed::Reading, priority::Priority,
    running_pods::PodCheck, running_pods::RunningPods,
};

/// What a late answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// Nothing any more.
    Outdated,
    /// It is known now: the job is to be planned again.
    Known,
    /// The call has failed.
    Failed {
        /// When the job is tried again.
        retry: Retry,
        /// Whether the failure is worth telling the users of the job.
        tell: bool,
    },
}

impl JobMemory {
    /// Takes the late answer to the check that was begun at `asked`. `priority` is where the job belongs now.
    pub fn late_answer(
        &mut self,
        asked: Duration,
        answer: Result<Reply, Failure>,
        priority: Priority,
        now: Duration,
    ) -> Late {
        if self.pod_check != Some(asked) {
            return Late::Outdated;
        }
        self.pod_check = None;
        match answer {
            Ok(Reply::Pods(check)) => {
                self.pods_checked(check);
                Late::Known
            }
            Ok(_) => Late::Outdated,
            Err(failure) => {
                let at_least = self.retries.put_off(failure.class, priority, now);
                let retry = self.retries.again(priority, at_least);
                let check = Action::CheckPods { except_job_set: None, name_them: false };
                Late::Failed { retry, tell: self.retries.note_failure(failure, Some(&check)) }
            }
        }
    }

    /// A list of the running Pods of all JobSets is asked for, while there is no JobSet. It is the check of this job, too.
    pub const fn pod_list_asked(&mut self, asked: Duration) {
        self.pod_check = Some(asked);
    }

    /// Whether a check for its Pods is under way.
    #[must_use]
    pub const fn checks_pods(&self) -> bool {
        self.pod_check.is_some()
    }

    /// Takes in what the list that was asked for at `asked` shows of the job with this key. What it leaves open is asked
    /// for by the job's own check.
    pub fn pods_listed(&mut self, asked: Duration, list: &PodList, job: &ObjectKey) {
        if self.pod_check != Some(asked) {
            return;
        }
        self.pod_check = None;
        self.readings.pods = match list.runs(job) {
            Some(true) => Reading::Found(RunningPods::unnamed()),
            Some(false) => Reading::Absent,
            None => return,
        };
    }

    /// What a check has found.
    pub(super) fn pods_checked(&mut self, check: PodCheck) {
        self.readings.pods = check.running.map_or(Reading::Absent, Reading::Found);
        self.readings.stray_pod = check.stray;
    }

    /// The answer to a check that was begun at `asked` is there, or will not come. Whether it is still about the JobSet
    /// that is known.
    pub(super) fn end_pod_check(&mut self, asked: Option<Duration>) -> bool {
        self.pod_check.take().is_some_and(|under_way| Some(under_way) == asked)
    }

    /// What was seen of Pods says nothing any more.
    pub(super) fn forget_pods(&mut self) {
        self.readings.pods = Reading::NotRead;
        self.readings.stray_pod = None;
        self.pod_check = None;
    }
}
