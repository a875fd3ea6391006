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

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no reason: one word, in which a * can only be the last character")]
pub struct PatternError(String);

impl ReasonPattern {
    /// Reads a pattern as policies have it: a `*` at the end stands for any text, none included.
    ///
    /// # Errors
    ///
    /// If there is a `*` anywhere else, which might mean something one day, or no reason could be meant: the text is empty,
    /// or more than one word.
    pub fn parse(pattern: &str) -> Result<Self, PatternError> {
        let before = pattern.strip_suffix('*').unwrap_or(pattern);
        if pattern.is_empty() || before.contains(|c: char| c == '*' || c.is_whitespace()) {
            return Err(PatternError(pattern.to_owned()));
        }
        Ok(pattern.into())
    }

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
    fn a_policy_has_one_word_with_a_star_at_its_end_at_most() {
        for pattern in ["Evicted", "Evicted*", "*", "a"] {
            assert_eq!(ReasonPattern::parse(pattern), Ok(pattern.into()));
        }
        for pattern in ["", "*Limit", "a**", "Back off", " "] {
            assert_eq!(ReasonPattern::parse(pattern), Err(PatternError(pattern.to_owned())));
        }
    }

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
