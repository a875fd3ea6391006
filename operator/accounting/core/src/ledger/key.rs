//! Which attempt.

use trainjob_api::lifecycle::v1alpha1::record::Attempt;

/// An attempt: the ordinal of its JobSet, and the restart of that.
pub(super) type Key = (u64, u64);

/// That of an entry.
pub(super) const fn key_of(attempt: &Attempt) -> Key {
    (attempt.job_set, attempt.restart)
}
