//! A brown-out: for a while, some calls of a kind fail or hang, as chance has it; then it is over.
//!
//! A kind of call is a verb and a resource, such as `patch trainjobs status`, watches too.

use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use explorer::random::Random;

use super::purpose::kind;
use crate::faults::proxy::{Call, Fault, Injection, Proxy};

/// How long it lasts, from the first call of its kind.
const LASTS: Duration = Duration::from_secs(4);

/// So many calls in a hundred are befallen, and the first in any case.
const CHANCE: usize = 60;

/// Seconds that a 429 says to wait.
const RETRY_AFTER: u32 = 1;

/// The beginning of its name.
const NAME: &str = "brown-out-";

/// Which calls, and what happens to them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BrownOut {
    /// The kind of the calls.
    pub kind: String,
    /// What happens to them.
    pub how: How,
}

/// What happens to a call in a brown-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It fails: 500.
    Fails,
    /// It is told to come later: 429.
    Throttled,
    /// It is carried out, but instead of an answer the connection breaks.
    Lost,
    /// Nothing comes of it until the brown-out is over; then it goes on, if anybody still waits for it.
    Hangs,
}

impl How {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fails, Self::Throttled, Self::Lost, Self::Hangs];

    /// Its name, which is that of its column in a table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fails => "500",
            Self::Throttled => "429",
            Self::Lost => "lost",
            Self::Hangs => "hangs",
        }
    }

    const fn fault(self) -> Fault {
        match self {
            Self::Fails => Fault::Answer { status: 500, retry_after: None },
            Self::Throttled => Fault::Answer { status: 429, retry_after: Some(RETRY_AFTER) },
            Self::Lost => Fault::DropReply,
            Self::Hangs => Fault::HoldRequest,
        }
    }
}

/// One that waits for its first call, or is under way.
pub(super) struct UnderWay(Injection);

impl UnderWay {
    /// Prepares it. The same name befalls the same calls, if they come in the same order.
    pub(super) fn prepare(proxy: &Proxy, brown_out: &BrownOut, name: &str) -> Self {
        let wanted = brown_out.kind.clone();
        let chance = Mutex::new(chance(name));
        let matches = move |call: &Call| {
            kind(call.verb, &call.resource, &call.subresource) == wanted && next(&chance)
        };
        Self(proxy.inject(matches, 1..=usize::MAX, brown_out.how.fault()))
    }

    /// Whether it has befallen a call.
    pub(super) fn has_struck(&self) -> bool {
        self.0.befallen() > 0
    }

    /// Ends it in time. Never returns.
    pub(super) async fn run(&self) -> Result<()> {
        while self.0.reached().await.is_err() {}
        tokio::time::sleep(LASTS).await;
        self.0.remove();
        std::future::pending().await
    }
}

/// Whether each call of the kind is befallen, from the second on.
fn chance(name: &str) -> Chance {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    Chance { random: Random::new(hasher.finish()), first: true }
}

struct Chance {
    random: Random,
    first: bool,
}

fn next(chance: &Mutex<Chance>) -> bool {
    let mut chance = chance.lock().unwrap_or_else(PoisonError::into_inner);
    let first = std::mem::take(&mut chance.first);
    first || chance.random.percent(CHANCE)
}

impl Display for BrownOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{NAME}{}", self.kind, self.how.name())
    }
}

impl FromStr for How {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = |how: &Self| text.strip_prefix(NAME) == Some(how.name());
        let how = Self::ALL.into_iter().find(known);
        how.with_context(|| format!("no brown-out is called {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_call_is_befallen_and_of_the_others_the_same_each_time() {
        let befallen = |name: &str| -> Vec<bool> {
            let chance = Mutex::new(chance(name));
            (0..200).map(|_| next(&chance)).collect()
        };
        let (one, other) =
            (befallen("deadline/a/brown-out-500"), befallen("deadline/b/brown-out-500"));
        assert_eq!(one, befallen("deadline/a/brown-out-500"));
        assert_ne!(one, other);
        assert!(one[0] && other[0]);
        let count = one.iter().filter(|it| **it).count();
        assert!((90..150).contains(&count), "{count}");
    }
}
