//! How fast a record is written (AG9).

use std::time::Duration;

use trainjob_api::lifecycle::v1alpha1::record::SETTLING;

/// Releases of one record that may be under way or wait to be sent. More than are sent at once, so that there are some
/// between two looks at a record with many Pods; not so many that other records of the namespace wait long.
pub(super) const RELEASES: usize = 128;
/// For how long a counted Pod without a finalizer is given to go by itself before it is annotated: nobody waits for it, and the
/// Pods of an attempt that failed go within seconds (AG2).
pub(super) const GOES_WITHIN: Duration = Duration::from_secs(30);
/// With more UIDs than this in `settling` none is given that time, so that there is room for those that end next.
pub(super) const SETTLING_AT_EASE: usize = SETTLING / 2;
/// For how long a deleted Pod waits for others that were deleted with it (AG9).
pub(super) const GATHER: Duration = Duration::from_millis(100);
/// The same for one without a finalizer, for which nobody waits (AG9).
pub(super) const GATHER_UNHELD: Duration = Duration::from_secs(1);
/// The shortest time between two stores of a record (AG9).
pub(super) const BETWEEN_STORES: Duration = Duration::from_millis(250);
/// After this long, released UIDs are cleared by a write of their own.
pub(super) const CLEAR_AFTER: Duration = Duration::from_secs(2);
/// How old `active` may be, in seconds.
pub(super) const ACTIVE_AGE: i64 = 30;
/// A batch is stored once it is as large as this.
pub(super) const BATCH: usize = SETTLING;
