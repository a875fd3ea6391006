//! The operator's configuration (signatures first; to be completed).
use crate::health::Endpoints;
use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
};
use trainjob_core::observed::Settings;
mod error;
mod flags;
pub use error::ConfigError;
pub use flags::{Flags, FlagsError};

/// What the operator uses, complete and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What decisions depend on.
    pub settings: Settings,
    /// How many TrainJobs are worked on at the same time; 64 unless configured.
    pub concurrency: NonZeroUsize,
    /// The limit of requests to the API server; `None`: no limit.
    pub rate_limit: Option<Rate>,
    /// Where health is served; `None`: nowhere.
    pub health_address: Option<SocketAddr>,
    /// The paths health is served under.
    pub health_endpoints: Endpoints,
    /// The limit of Normal events; `None`: none are written.
    pub normal_events: Option<Rate>,
    /// What to tell the user once, one line each.
    pub warnings: Vec<String>,
}

/// A token bucket: a rate and how far ahead of it a burst may get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Tokens a second; finite and greater than 0.
    pub per_second: f64,
    /// Tokens a full bucket holds.
    pub burst: NonZeroU32,
}

/// Reads the configuration that `flags` name.
///
/// # Errors
///
/// If the file cannot be read or says something that is not allowed.
pub fn load(_flags: &Flags) -> Result<Config, ConfigError> {
    Ok(Config {
        settings: Settings::default(),
        concurrency: NonZeroUsize::MIN.saturating_add(63),
        rate_limit: None,
        health_address: Some(SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 8081))),
        health_endpoints: Endpoints::default(),
        normal_events: Some(Rate { per_second: 5.0, burst: NonZeroU32::MIN.saturating_add(49) }),
        warnings: Vec::new(),
    })
}
