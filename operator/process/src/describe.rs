//! What the API server says when it refuses something.

use kube::core::Status;

/// The API server's own words, or its code and reason where it has none.
#[must_use]
pub fn describe(status: &Status) -> String {
    if status.message.is_empty() {
        format!("HTTP {} {}", status.code, status.reason)
    } else {
        status.message.clone()
    }
}
