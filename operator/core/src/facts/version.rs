//! How old what is known of an object is.

/// A resource version as a number (comparable: KEP-5504). One that is no number counts as 0.
pub(crate) fn version_number(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(0)
}
