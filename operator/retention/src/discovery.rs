//! Which version of a kind is read (`docs/retention.md`, R11 and R48).
//!
//! The API server says which versions of a group there are, in its order of preference, and which kinds each has. Of a
//! kind that is built in, only versions are read whose ends are known.
//!
//! An API server that starts knows no custom resources for a moment. So a kind is taken for gone only if the API server has
//! said so twice, ten seconds apart; until then, what is known of it is kept.

mod absence;
pub mod ask;
pub mod kind;

use std::{sync::Arc, time::Duration};

use trainjob_retention_core::kind::BuiltIn;

/// How far apart the API server has to say twice that a kind is not there.
const CERTAIN: Duration = Duration::from_secs(10);
/// How often it is asked while it is not there, or while nobody knows.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How often it is asked whether it prefers another version.
const RECONSIDER: Duration = Duration::from_mins(5);

/// What the API server says of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It serves it, in this version at best.
    Served(Arc<str>),
    /// It does not serve it, or in no version that is known; says what it serves instead.
    Absent(Arc<str>),
}

/// What is known of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// Nothing yet.
    Unknown,
    /// It is served in this version.
    At(Arc<str>),
    /// It is not served.
    Not,
}

/// What follows from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// It is served in another version than before, or again: everything known of it has to be listed anew.
    Version,
    /// It is gone: what was known of it is forgotten.
    Gone,
}

/// What is known of a kind, and whether it is doubted.
#[derive(Debug, Clone)]
pub struct Discovery {
    served: Served,
    /// Since when the API server says that it is not there. Times are of a clock that nobody sets.
    absent_since: Option<Duration>,
}

impl Default for Discovery {
    fn default() -> Self {
        Self { served: Served::Unknown, absent_since: None }
    }
}

impl Discovery {
    /// What is known.
    #[must_use]
    pub const fn served(&self) -> &Served {
        &self.served
    }

    /// Takes in an answer, of the moment `now`.
    pub fn told(&mut self, answer: &Answer, now: Duration) -> Change {
        match answer {
            Answer::Served(version) => {
                self.absent_since = None;
                if matches!(&self.served, Served::At(known) if known == version) {
                    return Change::None;
                }
                self.served = Served::At(Arc::clone(version));
                Change::Version
            }
            Answer::Absent(_) => {
                let since = *self.absent_since.get_or_insert(now);
                let is_certain = now.saturating_sub(since) >= CERTAIN;
                if !is_certain || self.served == Served::Not {
                    return Change::None;
                }
                self.served = Served::Not;
                Change::Gone
            }
        }
    }

    /// How long it is until the next question, if nothing happens before.
    #[must_use]
    pub const fn next(&self) -> Duration {
        match (&self.served, self.absent_since) {
            (Served::At(_), None) => RECONSIDER,
            _ => ASK_AGAIN,
        }
    }
}

/// The versions of a group that may be read, in the order in which they are looked at: the preferred one first.
#[must_use]
pub fn candidates<'a>(
    kind: Option<BuiltIn>,
    preferred: Option<&'a str>,
    versions: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let known = |version: &&str| kind.is_none_or(|kind| kind.versions().contains(version));
    let mut candidates: Vec<_> = preferred.into_iter().filter(known).collect();
    for version in versions.filter(known) {
        if !candidates.contains(&version) {
            candidates.push(version);
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn absent() -> Answer {
        Answer::Absent("it has no such group".into())
    }

    fn served(version: &str) -> Answer {
        Answer::Served(version.into())
    }

    #[test]
    fn a_kind_is_gone_only_if_that_was_said_twice_ten_seconds_apart() {
        let mut kind = Discovery::default();
        for (second, answer, change, next) in [
            (0, absent(), Change::None, ASK_AGAIN),
            (9, absent(), Change::None, ASK_AGAIN),
            (10, absent(), Change::Gone, ASK_AGAIN),
            (20, absent(), Change::None, ASK_AGAIN),
            (30, served("v1"), Change::Version, RECONSIDER),
            (40, served("v1"), Change::None, RECONSIDER),
            (50, absent(), Change::None, ASK_AGAIN),
            (55, served("v1"), Change::None, RECONSIDER),
            (56, absent(), Change::None, ASK_AGAIN),
            (65, absent(), Change::None, ASK_AGAIN),
            (66, absent(), Change::Gone, ASK_AGAIN),
            (67, served("v2"), Change::Version, RECONSIDER),
            (68, served("v1"), Change::Version, RECONSIDER),
        ] {
            assert_eq!(kind.told(&answer, at(second)), change, "at {second}: {answer:?}");
            assert_eq!(kind.next(), next, "at {second}");
        }
    }

    #[test]
    fn what_is_known_of_a_kind_is_kept_while_its_absence_is_doubtful() {
        let mut kind = Discovery::default();
        kind.told(&served("v1"), at(0));
        kind.told(&absent(), at(1));
        assert_eq!(kind.served(), &Served::At("v1".into()));
        kind.told(&absent(), at(11));
        assert_eq!(kind.served(), &Served::Not);
    }

    #[test]
    fn the_preferred_version_is_read_if_its_ends_are_known() {
        let workload = Some(BuiltIn::Workload);
        for (kind, preferred, versions, expected) in [
            (workload, "v1beta1", vec!["v1beta1", "v1beta2"], vec!["v1beta1", "v1beta2"]),
            (workload, "v1beta2", vec!["v1beta1", "v1beta2"], vec!["v1beta2", "v1beta1"]),
            (workload, "v1", vec!["v1", "v1beta2"], vec!["v1beta2"]),
            (workload, "v1", vec!["v1"], vec![]),
            (None, "v1", vec!["v2", "v1"], vec!["v1", "v2"]),
        ] {
            let found = candidates(kind, Some(preferred), versions.iter().copied());
            assert_eq!(found, expected, "{kind:?} {preferred} {versions:?}");
        }
        assert_eq!(candidates(None, None, ["v1"].into_iter()), ["v1"]);
    }
}
