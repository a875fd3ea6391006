//! Objects that differ from a sample in a few places.

use std::fmt::{Display, Write as _};

/// The text of a sample, cut at what differs from object to object.
#[derive(Debug, Clone)]
pub(super) struct Template<S> {
    pieces: Vec<(String, S)>,
    end: String,
}

impl<S: Copy> Template<S> {
    /// Cuts a text wherever one of these is in it.
    pub(super) fn new(text: &str, slots: &[(&str, S)]) -> Self {
        let (mut pieces, mut rest) = (Vec::new(), text);
        let next = |rest: &str| {
            let found =
                slots.iter().filter_map(|(mark, slot)| Some((rest.find(mark)?, mark.len(), *slot)));
            // Of two that begin at the same place, the longer one is meant.
            found.min_by_key(|(at, length, _)| (*at, usize::MAX - length))
        };
        while let Some((at, length, slot)) = next(rest) {
            let (before, after) = rest.split_at(at);
            pieces.push((before.to_owned(), slot));
            rest = after.get(length..).unwrap_or_default();
        }
        Self { pieces, end: rest.to_owned() }
    }

    /// The text with something else in these places.
    pub(super) fn fill<T: Display>(&self, of: impl Fn(S) -> T) -> String {
        let mut text = String::new();
        for (before, slot) in &self.pieces {
            // Writing to a string cannot fail.
            let _ = write!(text, "{before}{}", of(*slot));
        }
        text + &self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_marked_is_replaced_and_nothing_else() {
        let text = r#"{"name":"sample","uid":"u-1","owner":{"name":"sample","uid":"u-12"}}"#;
        let template = Template::new(text, &[("sample", 0), ("u-1", 1), ("u-12", 2)]);
        let filled = template.fill(|slot| ["job-7", "uid-7", "uid-8"][slot]);
        let expected = r#"{"name":"job-7","uid":"uid-7","owner":{"name":"job-7","uid":"uid-8"}}"#;
        assert_eq!(filled, expected);
        assert_eq!(Template::new(text, &[("absent", 0)]).fill(|_| ""), text);
    }
}
