//! What one Pod adds to the record: decided once, when it is counted (AG7).

use trainjob_api::{lifecycle::v1alpha1::record_words::DeletedReason, time::Timestamp};

use crate::{
    amounts::{Amounts, for_seconds},
    end::{Ended, ended},
    job::Job,
    pod::{Deletion, Pod},
    span::{Span, span},
    verdict::{Order, Verdict, culprit, verdict},
};

/// What a Pod adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Name of the Pod.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// Its replicated job.
    pub replicated_job: String,
    /// UID of its JobSet.
    pub job_set: String,
    /// The restart of its JobSet.
    pub restart: u64,
    /// Its node.
    pub node: Option<String>,
    /// How it ended, and why.
    pub verdict: Verdict,
    /// The time that it is charged for.
    pub span: Span,
    /// Seconds of each resource.
    pub seconds: Amounts,
    /// How often its containers were restarted in place.
    pub container_restarts: u64,
    /// The container that failed first, with its exit code.
    pub culprit: Option<(String, i32)>,
    /// What that container, or the Pod, said.
    pub message: String,
    /// Whether the Pod had no finalizer of ours, so that its end may have been missed (AM0).
    pub observed: bool,
}

/// The share of a Pod that has ended.
#[must_use]
pub fn share(pod: &Pod, order: Order, job: &Job, now: Timestamp) -> Share {
    of(pod, verdict(pod, order, job), now)
}

/// The share of a Pod that went, or whose finalizer somebody removed, as it was last seen (AG10, AM0).
#[must_use]
pub fn share_of_lost(pod: &Pod, order: Order, job: &Job, now: Timestamp) -> Share {
    if ended(pod, now) == Ended::Yes {
        return share(pod, order, job, now);
    }
    if pod.finalizer {
        return of(pod, Verdict::Deleted(DeletedReason::Unprotected), now);
    }
    share(&deleted(pod, now), order, job, now)
}

/// A Pod that went without a finalizer, so somebody deleted it.
pub(crate) fn deleted(pod: &Pod, now: Timestamp) -> Pod {
    let deletion = pod.deletion.unwrap_or(Deletion { at: now, grace: 0 });
    Pod { deletion: Some(deletion), ..pod.clone() }
}

fn of(pod: &Pod, verdict: Verdict, now: Timestamp) -> Share {
    let span = span(pod, now);
    let seconds = span.seconds();
    let culprit = culprit(pod);
    let said = culprit.map(|(_, end)| &*end.message).filter(|message| !message.is_empty());
    Share {
        pod: pod.name.to_string(),
        uid: pod.uid.to_string(),
        replicated_job: pod.template.replicated_job.to_string(),
        job_set: pod.template.job_set.to_string(),
        restart: pod.restart,
        node: pod.node.as_deref().map(Into::into),
        verdict,
        span,
        seconds: pod
            .template
            .amounts
            .iter()
            .map(|(name, amount)| (name.clone(), for_seconds(*amount, seconds)))
            .collect(),
        container_restarts: pod.containers.iter().map(|container| container.restarts).sum(),
        culprit: culprit.map(|(container, end)| (container.name.to_string(), end.exit_code)),
        message: said.unwrap_or(&pod.message).to_owned(),
        observed: !pod.finalizer,
    }
}

#[cfg(test)]
mod tests {
    use trainjob_api::lifecycle::v1alpha1::record_words::{DeletedReason as D, FailedReason as F};

    use super::*;
    use crate::{
        job::Suspension,
        pod::{Phase, State},
        testing::{at, container, ended_at, pod, waiting_after},
    };

    const RUNNING: Job = Job::Running { suspension: Suspension::Never };

    #[test]
    fn a_share_is_seconds_times_what_the_pod_requests() {
        let pod = Pod { phase: Phase::Succeeded, containers: [ended_at(700, 0)].into(), ..pod() };
        let share = share(&pod, Order::Unknown, &RUNNING, at(1_000));
        assert_eq!(share.seconds, Amounts::from([("nvidia.com/gpu".into(), 4_800)]));
        assert_eq!(
            (share.verdict, share.culprit, share.observed),
            (Verdict::Succeeded, None, false)
        );
    }

    #[test]
    fn ag10_a_pod_that_went_without_us_counts_as_it_was_last_seen() {
        let running =
            || Pod { containers: [container(State::Running(Some(at(150))))].into(), ..pod() };
        let observed = |pod: Pod| Pod { finalizer: false, ..pod };
        let ended = || Pod { phase: Phase::Failed, containers: [ended_at(700, 1)].into(), ..pod() };
        let suspended = Job::Running { suspension: Suspension::ChangedAt(at(900)) };
        for (case, pod, job, expected, end) in [
            ("ended", ended(), &RUNNING, Verdict::Failed(F::Error), 700),
            ("it ran, protected", running(), &RUNNING, Verdict::Deleted(D::Unprotected), 1_000),
            (
                "it ran, observed",
                observed(running()),
                &RUNNING,
                Verdict::Deleted(D::Stopped),
                1_000,
            ),
            (
                "it ran, observed, suspended",
                observed(running()),
                &suspended,
                Verdict::Deleted(D::Suspended),
                1_000,
            ),
            (
                "a crash loop, observed",
                observed(Pod { containers: [waiting_after(300, 1)].into(), ..pod() }),
                &RUNNING,
                Verdict::Failed(F::Error),
                1_000,
            ),
        ] {
            let share = share_of_lost(&pod, Order::Unknown, job, at(1_000));
            assert_eq!((share.verdict, share.span.end().0), (expected, end), "{case}");
        }
    }
}
