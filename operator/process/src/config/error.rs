//! What can be wrong with a configuration, each in one line.

use std::{fmt, io, path::PathBuf};

use thiserror::Error;

/// Why there is no configuration. The message is one line.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read, or is not UTF-8.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file says something that is not allowed.
    #[error("{}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        problem: Problem,
    },
    /// A flag says something that is not allowed.
    #[error("{flag}: {problem}")]
    InvalidFlag {
        /// The flag, with its dashes.
        flag: &'static str,
        /// What is wrong in it.
        problem: Problem,
    },
}

/// What is wrong with a field, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The field's path, with dots; empty if it is no field but the whole.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

impl Problem {
    /// What is wrong with the field of this path.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.field.is_empty() { "" } else { ": " };
        // Both may repeat what the file says: that must not make a second line.
        for c in [&self.field, separator, &self.message].into_iter().flat_map(str::chars) {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        Ok(())
    }
}
