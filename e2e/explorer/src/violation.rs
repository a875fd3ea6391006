//! What a schedule may show to be wrong.

use std::fmt::{self, Debug};

/// One of the rules `R` was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<R> {
    /// Which.
    pub rule: R,
    /// How.
    pub what: String,
}

impl<R: Debug> fmt::Display for Violation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}
