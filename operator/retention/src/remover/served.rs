//! A target kind, and how it is served.

use std::sync::Arc;

use trainjob_engine::shares::Operation;

use crate::config::Target;

/// A target kind, with what is sent about it.
#[derive(Debug, Clone)]
pub(super) struct Served {
    /// What the configuration says of it.
    pub(super) target: Target,
    /// A DELETE of one of its objects.
    pub(super) operation: Operation,
    /// The version in which it is served, as far as that is known.
    pub(super) version: Option<Arc<str>>,
    /// Whether it is known not to be served.
    pub(super) is_gone: bool,
    /// What the API server serves instead, if it has said last that it does not serve it.
    pub(super) absence: Option<Arc<str>>,
}
