//! Flux.

pub(super) mod build;
mod config;
pub(super) mod validate;

/// The init container that installs it.
const INSTALLER: &str = "flux-installer";
