//! What the annotation [`HOLD_ANNOTATION`] asks for.
//!
//! An annotation may have any text, and nobody checks it when it is written. One that names no time most likely asks for
//! a hold all the same, so it is a value of its own and not an error (`docs/retention.md`, R30; `docs/semantics.md`, T11).

use std::collections::BTreeMap;

use super::HOLD_ANNOTATION;
use crate::time::Timestamp;

/// A hold that an object asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldWish {
    /// Until this instant.
    Until(Timestamp),
    /// It is no instant.
    Unreadable,
}

impl HoldWish {
    /// Reads the annotations of an object; `None` without the annotation.
    #[must_use]
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let text = annotations.get(HOLD_ANNOTATION)?;
        Some(Timestamp::parse(text).map_or(Self::Unreadable, Self::Until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_an_instant() {
        let until = |seconds| HoldWish::Until(Timestamp(seconds));
        for (text, expected) in [
            ("2026-11-22T06:30:00Z", until(1_795_329_000)),
            ("2026-11-22T06:30:00.9+00:00", until(1_795_329_000)),
            ("2026-11-22T07:30:00+01:00", until(1_795_329_000)),
            ("1960-01-01T00:00:00Z", until(-315_619_200)),
            ("9999-12-30T00:00:00Z", until(253_402_128_000)),
            ("2026-11-22", HoldWish::Unreadable),
            ("2026-11-22T06:30:00", HoldWish::Unreadable),
            ("1795329000", HoldWish::Unreadable),
            ("tomorrow", HoldWish::Unreadable),
            ("", HoldWish::Unreadable),
        ] {
            let annotations = [(HOLD_ANNOTATION.to_owned(), text.to_owned())].into();
            assert_eq!(HoldWish::read(&annotations), Some(expected), "{text}");
        }
    }

    #[test]
    fn another_annotation_holds_nothing() {
        let annotations = [("lifecycle.trainjob.dev/hold".to_owned(), "yes".to_owned())].into();
        assert_eq!(HoldWish::read(&annotations), None);
    }
}
