//! Logging (signatures first; to be completed).
use tracing::{level_filters::LevelFilter, subscriber::SetGlobalDefaultError};

/// What a log line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    Text,
}

/// How to log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What a log line looks like.
    pub format: Format,
    /// The least important level that is written.
    pub level: LevelFilter,
}

impl Default for Options {
    fn default() -> Self {
        Self { format: Format::default(), level: LevelFilter::INFO }
    }
}

/// Starts logging to stderr, for the whole process.
///
/// # Errors
///
/// If logging has been started before.
pub fn init(_options: Options) -> Result<(), SetGlobalDefaultError> {
    Ok(())
}
