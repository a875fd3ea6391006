//! GPU seconds, counted from the history alone.

use trainjob_api::time::Timestamp;

use super::history::{AccountingHistory, PodVersion, RecordVersion};

/// What this Pod adds to its record in this version: by the last version of it before that. `None`: that does not follow from
/// what is known of it.
pub(super) fn added(pod: &[&PodVersion], record: &RecordVersion) -> Option<u64> {
    let before = pod.iter().rfind(|version| version.revision < record.revision)?;
    before.charge?.gpu_seconds(record.status.as_of.as_ref().map(Timestamp::from))
}

/// The GPU seconds of all Pods of a TrainJob that had our finalizer, each as it was before the version of the record that counted it.
///
/// # Errors
///
/// A Pod was not counted, or what it is charged for is not known; it is named.
pub fn gpu_seconds(history: &AccountingHistory, job: &str) -> Result<u64, String> {
    let records = history.by_record();
    let versions = || records.values().flatten().filter(|version| version.job == job);
    let mut sum = 0_u64;
    for (uid, pod) in history.by_pod() {
        let Some(first) = pod.first().filter(|first| first.job == job) else { continue };
        let counts = |version: &&&RecordVersion| version.status.settling.iter().any(|it| it == uid);
        let counted = versions().filter(counts).min_by_key(|version| version.revision);
        let counted = counted.ok_or_else(|| format!("{} was not counted", first.name))?;
        let added = added(&pod, counted);
        let added = added.ok_or_else(|| format!("it is not known what {} costs", first.name))?;
        sum = sum.saturating_add(added);
    }
    Ok(sum)
}
