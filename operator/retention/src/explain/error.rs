//! Why there is no explanation.

use thiserror::Error;
use trainjob_engine::error::RequestError;
use trainjob_process::{client::ClientError, config::ConfigError};

/// Why there is no explanation.
#[derive(Debug, Error)]
pub(super) enum ExplainError {
    /// There is no runtime.
    #[error("cannot begin: {0}")]
    Runtime(#[from] std::io::Error),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Nothing can count requests.
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// There is no client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The API server did not answer a question.
    #[error("cannot read {what}: {source}")]
    Read {
        /// What was asked for.
        what: String,
        /// Why not.
        source: RequestError,
    },
    /// The kind is no target.
    #[error("{kind} is none of the kinds that policies may be about, which are {known}")]
    NoTarget {
        /// The kind.
        kind: String,
        /// The targets of the configuration.
        known: String,
    },
    /// The object is not of the form that its kind has.
    #[error("{what} cannot be read, so the engine leaves it alone: {source}")]
    Unreadable {
        /// The object.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The API server does not serve the kind.
    #[error("there is no kind {kind}: {absence}")]
    NotServed {
        /// The kind.
        kind: String,
        /// What the API server serves instead.
        absence: String,
    },
    /// There is nothing to explain.
    #[error("there is no {0}")]
    NoObject(String),
}
