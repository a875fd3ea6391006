//! What an object asks for by annotations: a time to live of its own, and a hold.
//!
//! A wish that cannot be read asks for something all the same, most likely for being kept. So it is remembered as
//! unreadable and keeps the object as long as a hold may (`docs/retention.md`, R30).

use std::collections::BTreeMap;

pub use trainjob_api::lifecycle::v1alpha1::{HOLD_ANNOTATION, TTL_ANNOTATION, hold::HoldWish};

use crate::seconds::Seconds;

/// A TTL that an object asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtlWish {
    /// So many seconds. A number beyond the range of the field stands for its end.
    Seconds(Seconds),
    /// It is no number, or negative.
    Unreadable,
}

/// All that an object asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wishes {
    /// A TTL.
    pub ttl: Option<TtlWish>,
    /// A hold.
    pub hold: Option<HoldWish>,
}

impl Wishes {
    /// Reads annotations.
    #[must_use]
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        Self {
            ttl: annotations.get(TTL_ANNOTATION).map(|text| ttl(text)),
            hold: HoldWish::read(annotations),
        }
    }
}

fn ttl(text: &str) -> TtlWish {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return TtlWish::Unreadable;
    }
    let seconds = text.parse().ok().and_then(Seconds::new);
    TtlWish::Seconds(seconds.unwrap_or(Seconds::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_a_number_of_seconds() {
        let seconds = |seconds| Seconds::new(seconds).map(TtlWish::Seconds);
        let unreadable = Some(TtlWish::Unreadable);
        for (text, expected) in [
            ("0", seconds(0)),
            ("60", seconds(60)),
            ("0060", seconds(60)),
            ("2147483647", seconds(2_147_483_647)),
            ("2147483648", seconds(2_147_483_647)),
            ("99999999999999999999999999", seconds(2_147_483_647)),
            ("-1", unreadable),
            ("+1", unreadable),
            ("7d", unreadable),
            ("1e3", unreadable),
            (" 60", unreadable),
            ("", unreadable),
            ("٣", unreadable),
        ] {
            let annotations = [(TTL_ANNOTATION.to_owned(), text.to_owned())].into();
            let wishes = Wishes { ttl: expected, hold: None };
            assert_eq!(Wishes::read(&annotations), wishes, "{text}");
        }
    }

    #[test]
    fn a_hold_is_read_beside_a_ttl() {
        let annotations = [(TTL_ANNOTATION, "60"), (HOLD_ANNOTATION, "tomorrow")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
        let ttl = Seconds::new(60).map(TtlWish::Seconds);
        let hold = Some(HoldWish::Unreadable);
        assert_eq!(Wishes::read(&annotations), Wishes { ttl, hold });
    }

    #[test]
    fn other_annotations_ask_for_nothing() {
        let annotations = [("lifecycle.trainjob.dev/hold".to_owned(), "yes".to_owned())].into();
        assert_eq!(Wishes::read(&annotations), Wishes::default());
    }
}
