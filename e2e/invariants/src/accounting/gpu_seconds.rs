//! GPU seconds, counted from the history alone.

use std::ops::RangeInclusive;

use trainjob_api::time::Timestamp;

use super::history::{AccountingHistory, PodVersion, RecordVersion};
use crate::history::Millis;

/// What this Pod adds to its record in this version: by the last version of it before that. `None`: that does not follow from
/// what is known of it.
pub(super) fn added(pod: &[&PodVersion], record: &RecordVersion) -> Option<u64> {
    let before = pod.iter().rfind(|version| version.revision < record.revision)?;
    before.charge?.gpu_seconds(record.status.as_of.as_ref().map(Timestamp::from))
}

/// The least and the most that this Pod may add, if the program may have decided by a version that was replaced less than
/// `behind` before the record was stored.
pub(super) fn may_add(
    pod: &[&PodVersion],
    record: &RecordVersion,
    behind: Millis,
) -> Option<RangeInclusive<u64>> {
    let last = added(pod, record)?;
    let as_of = record.status.as_of.as_ref().map(Timestamp::from);
    let older = pod.windows(2).filter_map(|pair| {
        let [version, next] = pair else { return None };
        let recent = next.revision < record.revision && record.at - next.at < behind;
        version.charge.filter(|_| recent)?.gpu_seconds(as_of)
    });
    Some(older.fold(last..=last, |range, it| {
        let (lowest, highest) = range.into_inner();
        lowest.min(it)..=highest.max(it)
    }))
}

/// The least and the most GPU seconds of all Pods of a TrainJob that had our finalizer, each as it was before the version of
/// the record that counted it, or as a watch that is `behind` had still shown it.
///
/// # Errors
///
/// A Pod was not counted, or what it is charged for is not known; it is named.
pub fn gpu_seconds(
    history: &AccountingHistory,
    job: &str,
    behind: Millis,
) -> Result<RangeInclusive<u64>, String> {
    let records = history.by_record();
    let versions = || records.values().flatten().filter(|version| version.job == job);
    let mut sum = 0..=0_u64;
    for (uid, pod) in history.by_pod() {
        let Some(first) = pod.first().filter(|first| first.job == job) else { continue };
        let counts = |version: &&&RecordVersion| version.status.settling.iter().any(|it| it == uid);
        let counted = versions().filter(counts).min_by_key(|version| version.revision);
        let counted = counted.ok_or_else(|| format!("{} was not counted", first.name))?;
        let added = may_add(&pod, counted, behind);
        let added = added.ok_or_else(|| format!("it is not known what {} costs", first.name))?;
        sum = sum.start().saturating_add(*added.start())..=sum.end().saturating_add(*added.end());
    }
    Ok(sum)
}
