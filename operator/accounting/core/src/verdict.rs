//! Why a Pod ended (AE2): the rows of the table in `docs/accounting.md`, 4, in their order; the first that fits decides.
//!
//! It is decided once, when the Pod is counted. What this process saw goes before the generations that kubelets write
//! since 1.34, and those before exit codes: a rank that catches SIGTERM often exits with 1.

use trainjob_api::lifecycle::v1alpha1::record_words::{Class, DeletedReason, FailedReason};

use crate::{
    job::Job,
    pod::{Container, ContainerEnd, Phase, Pod, State},
};

/// The exit code of a process that SIGTERM ended.
const TERMINATED: i32 = 143;
/// The exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;
const OUT_OF_MEMORY: &str = "OOMKilled";
/// Within so many seconds of the start of a container its Job has learnt of it and deleted the Pod.
const JOB_SEES_RESTART: i64 = 10;

/// In which order this process saw a Pod end and be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// It saw both at once, or none.
    #[default]
    Unknown,
    /// It saw it terminal while nobody had deleted it.
    EndedFirst,
    /// It saw it deleted while it was not terminal.
    DeletedFirst,
}

/// How a Pod ended, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It did its work.
    Succeeded,
    /// It failed.
    Failed(FailedReason),
    /// Somebody stopped it.
    Deleted(DeletedReason),
}

/// The row of the table that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// The verdict is there.
    Decided(Verdict),
    /// Row 7: somebody stopped it, and the TrainJob says why. It is read anew before that is asked.
    Stopped,
}

impl Verdict {
    /// The class.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::Succeeded => Class::Succeeded,
            Self::Failed(_) => Class::Failed,
            Self::Deleted(_) => Class::Deleted,
        }
    }

    /// The reason, as the record has it. A success has none.
    #[must_use]
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Succeeded => None,
            Self::Failed(reason) => Some(reason.as_str()),
            Self::Deleted(reason) => Some(reason.as_str()),
        }
    }

    /// Whether the work of the Pod was lost (AW2).
    #[must_use]
    pub const fn is_wasted(self) -> bool {
        match self {
            Self::Failed(_) | Self::Deleted(DeletedReason::Suspended) => true,
            Self::Succeeded
            | Self::Deleted(
                DeletedReason::NeverScheduled
                | DeletedReason::Deadline
                | DeletedReason::Stopped
                | DeletedReason::Unprotected,
            ) => false,
        }
    }
}

/// Which row fits a Pod that has ended.
#[must_use]
pub fn row(pod: &Pod, order: Order) -> Row {
    if pod.phase == Phase::Succeeded {
        return Row::Decided(Verdict::Succeeded);
    }
    let failed = |reason| Row::Decided(Verdict::Failed(reason));
    if let Some(reason) = disrupted(pod).or_else(|| refused(pod)) {
        return failed(reason);
    }
    if pod.node.is_none() {
        return Row::Decided(Verdict::Deleted(DeletedReason::NeverScheduled));
    }
    if pod.containers.iter().any(|it| was_dead(pod, it)) || !stopped(pod, order) {
        return failed(by_container(pod));
    }
    Row::Stopped
}

/// The verdict, with what the TrainJob says where that is asked.
#[must_use]
pub fn verdict(pod: &Pod, order: Order, job: &Job) -> Verdict {
    match row(pod, order) {
        Row::Decided(verdict) => verdict,
        Row::Stopped if job.deadline_exceeded() => Verdict::Deleted(DeletedReason::Deadline),
        Row::Stopped if job.suspension().is_after(pod.created_at) => {
            Verdict::Deleted(DeletedReason::Suspended)
        }
        Row::Stopped => Verdict::Deleted(DeletedReason::Stopped),
    }
}

/// The container that failed first; of several, the first in the spec.
#[must_use]
pub fn culprit(pod: &Pod) -> Option<(&Container, &ContainerEnd)> {
    let ends = pod.containers.iter().filter_map(|it| Some((it, own_end(pod, it)?)));
    ends.filter(|(_, end)| end.failed()).min_by_key(|(_, end)| end.at)
}

/// Row 2.
fn disrupted(pod: &Pod) -> Option<FailedReason> {
    Some(match pod.disruption.as_ref()?.reason.as_ref() {
        "PreemptionByScheduler" => FailedReason::Preempted,
        "TerminationByKubelet" => FailedReason::Evicted,
        "EvictionByEvictionAPI" => FailedReason::Drained,
        "DeletionByTaintManager" | "DeletionByPodGC" => FailedReason::NodeLost,
        "DeletionByDeviceTaintManager" => FailedReason::DeviceTaint,
        _ => FailedReason::Disrupted,
    })
}

/// Row 3.
fn refused(pod: &Pod) -> Option<FailedReason> {
    match pod.reason.as_ref() {
        "" => None,
        "Evicted" | "Terminated" => Some(FailedReason::Evicted),
        "Preempting" => Some(FailedReason::Preempted),
        "NodeLost" => Some(FailedReason::NodeLost),
        "DeadlineExceeded" => Some(FailedReason::Deadline),
        _ if pod.containers.iter().any(Container::has_started) => None,
        _ => Some(FailedReason::Rejected),
    }
}

/// Row 5: it had failed and, when the deletion came, did not run, or had just been started again.
fn was_dead(pod: &Pod, container: &Container) -> bool {
    let had_failed = container.last_end.as_deref().is_some_and(ContainerEnd::failed);
    let is_dead = match container.state {
        State::Waiting | State::EndedUnseen => true,
        State::Running(_) | State::Ended(_) => had_just_begun(pod, container),
    };
    had_failed && is_dead
}

/// Whether it was started again just before the deletion. A Job whose limit of failures is exceeded deletes its Pod when it
/// learns of the restart that is one too many (F3).
fn had_just_begun(pod: &Pod, container: &Container) -> bool {
    let (began, end) = match &container.state {
        State::Ended(end) => (end.began, Some(end.at)),
        State::Running(began) => (*began, pod.deletion.map(|deletion| deletion.at)),
        State::Waiting | State::EndedUnseen => (None, None),
    };
    let longest = pod.grace_period.saturating_add(JOB_SEES_RESTART);
    began.zip(end).is_some_and(|(began, end)| end.since(began) <= longest)
}

/// The last end of a container that its Pod's deletion has not caused, where that can be told.
fn own_end<'a>(pod: &Pod, container: &'a Container) -> Option<&'a ContainerEnd> {
    if pod.deletion.is_some() && was_dead(pod, container) {
        return container.last_end.as_deref();
    }
    container.last_real_end()
}

/// Rows 6 to 8: whether it ended because it was deleted, and not before.
fn stopped(pod: &Pod, order: Order) -> bool {
    if pod.deletion.is_none() {
        return false;
    }
    if !pod.is_terminal() {
        return true;
    }
    match (order, pod.generations) {
        (Order::EndedFirst, _) => false,
        (Order::DeletedFirst, _) => true,
        (Order::Unknown, Some(generations)) => generations.observed >= generations.current,
        (Order::Unknown, None) => pod.containers.iter().all(only_signals),
    }
}

/// Whether a container failed by no more than a signal that a deletion sends.
fn only_signals(container: &Container) -> bool {
    container.last_real_end().is_none_or(|end| {
        !end.failed()
            || end.exit_code == TERMINATED
            || end.exit_code == KILLED && &*end.reason != OUT_OF_MEMORY
    })
}

fn by_container(pod: &Pod) -> FailedReason {
    match culprit(pod) {
        Some((_, end)) if &*end.reason == OUT_OF_MEMORY => FailedReason::OOMKilled,
        Some(_) => FailedReason::Error,
        None => FailedReason::Unknown,
    }
}

#[cfg(test)]
mod tests;
