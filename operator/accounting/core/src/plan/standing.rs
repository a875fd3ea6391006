//! How each Pod of a record stands.

use std::collections::{BTreeMap, HashSet};

use trainjob_api::{lifecycle::v1alpha1::record::TrainJobRecordStatus, time::Timestamp};

use crate::{
    end::{Ended, ended},
    pod::Pod,
    tracked::{Presence, Tracked},
};

/// How a Pod stands to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It goes on, until an instant at which it may have ended.
    Open(Option<Timestamp>),
    /// It has ended and is not counted.
    Ended,
    /// It went, or lost the finalizer, and is not counted.
    Lost,
    /// It is counted, and has to be released.
    Counted,
    /// It is counted, and is being released.
    Releasing,
    /// It is not counted, and is being let go (AH2).
    Going,
    /// Nothing has to be done about it.
    Done,
}

/// How this Pod stands.
pub(super) fn standing(tracked: &Tracked, settling: &HashSet<&str>, now: Timestamp) -> Standing {
    let Tracked { pod, presence, .. } = tracked;
    let counted = settling.contains(&*pod.uid);
    match presence {
        Presence::Gone if counted || pod.accounted => Standing::Done,
        Presence::Stripped if pod.accounted => Standing::Done,
        // It is there, so it gets the annotation before its UID is cleared.
        Presence::Stripped if counted => Standing::Counted,
        Presence::Gone | Presence::Stripped => Standing::Lost,
        Presence::Releasing if counted || pod.accounted => Standing::Releasing,
        Presence::Releasing => Standing::Going,
        Presence::Released => Standing::Done,
        // AG4: somebody put the finalizer back.
        Presence::Here if pod.accounted && pod.finalizer => Standing::Counted,
        Presence::Here if pod.accounted => Standing::Done,
        Presence::Here if counted => Standing::Counted,
        Presence::Here => match ended(pod, now) {
            Ended::No => Standing::Open(None),
            Ended::At(at) => Standing::Open(Some(at)),
            Ended::Yes => Standing::Ended,
        },
    }
}

/// Whether somebody waits for this Pod to go.
pub(super) const fn is_waited_for(tracked: &Tracked) -> bool {
    match tracked.presence {
        Presence::Gone => true,
        Presence::Here | Presence::Stripped | Presence::Releasing | Presence::Released => {
            tracked.pod.deletion.is_some()
        }
    }
}

/// How many Pods went unseen, at least: for each attempt, the open ones that the version tells of, less those in the
/// list that were created before it was written (AG11). `listed` is a list that was made after the version was read.
#[must_use]
pub fn unwatched<'a>(
    status: &TrainJobRecordStatus,
    listed: impl IntoIterator<Item = &'a Pod>,
) -> u64 {
    let settling = settling(status);
    let as_of = status.as_of.as_ref().map(Timestamp::from);
    let mut open = BTreeMap::<(&str, u64), u64>::new();
    for pod in listed {
        let told_of = as_of.is_some_and(|as_of| pod.created_at <= as_of);
        if told_of && !pod.accounted && !settling.contains(&*pod.uid) {
            *open.entry(attempt(pod)).or_default() += 1;
        }
    }
    let mut told = BTreeMap::<(&str, u64), u64>::new();
    for attempt in status.replicated_jobs.iter().flat_map(|job| &job.attempts) {
        let job_set = status.job_sets.iter().find(|it| it.ordinal == attempt.job_set);
        let uid = job_set.map_or("", |job_set| job_set.uid.as_str());
        *told.entry((uid, attempt.restart)).or_default() += attempt.sums.pods.active;
    }
    let gone = told
        .iter()
        .map(|(key, active)| active.saturating_sub(open.get(key).copied().unwrap_or_default()));
    gone.sum()
}

fn attempt(pod: &Pod) -> (&str, u64) {
    (&pod.template.job_set, pod.restart)
}

/// It is asked about every Pod of the record.
pub(super) fn settling(status: &TrainJobRecordStatus) -> HashSet<&str> {
    status.settling.iter().map(String::as_str).collect()
}
