//! Patterns for reasons.

use std::sync::Arc;

/// Which reasons are meant: one, or all that begin alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasonPattern {
    /// This one.
    Exactly(Arc<str>),
    /// All that begin so.
    StartingWith(Arc<str>),
}

impl ReasonPattern {
    /// Whether a reason is meant.
    #[must_use]
    pub fn matches(&self, reason: &str) -> bool {
        match self {
            Self::Exactly(text) => **text == *reason,
            Self::StartingWith(start) => reason.starts_with(&**start),
        }
    }
}

impl From<&str> for ReasonPattern {
    /// Reads a pattern: a `*` at the end stands for any text, none included; anywhere else it stands for itself.
    fn from(pattern: &str) -> Self {
        match pattern.strip_suffix('*') {
            Some(start) => Self::StartingWith(start.into()),
            None => Self::Exactly(pattern.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_at_the_end_stands_for_any_text() {
        for (pattern, reason, expected) in [
            ("Evicted", "Evicted", true),
            ("Evicted", "EvictedByPreemption", false),
            ("Evicted", "", false),
            ("Evicted*", "Evicted", true),
            ("Evicted*", "EvictedByPreemption", true),
            ("Evicted*", "evicted", false),
            ("*", "", true),
            ("*", "Any", true),
            ("*Limit", "BackoffLimit", false),
            ("*Limit", "*Limit", true),
            ("", "", true),
            ("", "Any", false),
        ] {
            let matches = ReasonPattern::from(pattern).matches(reason);
            assert_eq!(matches, expected, "{pattern} {reason}");
        }
    }
}
