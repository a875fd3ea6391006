//! Numbers of the API within their bounds.

use super::error::{At, StoredError};
use crate::{policy::PolicyError, seconds::Seconds};

/// A length of time that the field of this path has.
pub(super) fn seconds(field: &str, value: u32) -> Result<Seconds, StoredError> {
    let most = Seconds::MAX.get();
    let value = i64::from(value);
    Seconds::new(value).ok_or(PolicyError::OutOfBounds { value, least: 0, most }).at(field)
}
