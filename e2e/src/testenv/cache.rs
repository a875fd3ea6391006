//! The user's cache directory, where what is expensive to make and safe to lose is kept.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// `$XDG_CACHE_HOME/trainjob-operator`, by default `~/.cache/trainjob-operator`.
pub(crate) fn directory() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME")
        .or_else(|| Some(set("HOME")?.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: nowhere to keep binaries")?;
    Ok(cache.join("trainjob-operator"))
}
