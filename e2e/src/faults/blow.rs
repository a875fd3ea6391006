//! One blow: which call of a life, and what happens to that call.

use std::fmt::{self, Display};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// Every status that a call is answered with in place of the API server.
pub const STATUSES: [u16; 8] = [409, 403, 404, 422, 429, 500, 503, 504];

/// How often in a row an error comes.
pub const TIMES: [usize; 2] = [1, 3];

/// Again and again, until the life is about to end.
pub const EVER: usize = usize::MAX;

/// One fault at one call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blow {
    /// The call.
    pub call: Nth,
    /// What happens to it.
    pub fault: InjectedFault,
}

/// A call, by what it is for: independent calls may change their order from run to run, but the n-th of
/// its kind is the same in each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nth {
    /// What it is for; see [`purpose`](super::purpose::purpose).
    pub purpose: String,
    /// Which one with this purpose it is, from 1.
    pub number: usize,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InjectedFault {
    /// The operator is killed, and another one started.
    Kill(Moment),
    /// The call, and those of its purpose that follow, so many in all, get this status and never reach
    /// the API server.
    Answer {
        /// The HTTP status.
        status: u16,
        /// How many.
        times: usize,
    },
    /// So many calls in a row are carried out, but instead of an answer the connection breaks.
    Lose {
        /// How many.
        times: usize,
    },
    /// So many calls in a row get no answer and are not carried out, until whoever asks gives up.
    Hang {
        /// How many.
        times: usize,
    },
    /// The call is kept until another program acts, too, as one does that takes the first for dead. Both live on.
    Second,
}

/// When the operator is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the call reaches the API server, which it never does.
    Before,
    /// After the API server has carried it out, before the answer reaches the operator.
    Between,
    /// After the answer has reached the operator.
    After,
}

impl InjectedFault {
    /// Those that every program gets over as if nothing had happened, the kills first.
    pub fn all() -> impl Iterator<Item = Self> {
        let kills = [Moment::Before, Moment::Between, Moment::After].map(Self::Kill);
        let answers =
            STATUSES.iter().flat_map(|&status| TIMES.map(|times| Self::Answer { status, times }));
        let losses = TIMES.map(|times| Self::Lose { times });
        kills.into_iter().chain(answers).chain(losses)
    }

    /// Those that last, or that take a second program: whoever holds what others wait for has to let go in time.
    pub fn lasting() -> impl Iterator<Item = Self> {
        let answers = STATUSES.map(|status| Self::Answer { status, times: EVER });
        let silence = [1, EVER].map(|times| Self::Hang { times });
        answers.into_iter().chain([Self::Lose { times: EVER }]).chain(silence).chain([Self::Second])
    }

    /// How many calls it is in the way of.
    #[must_use]
    pub const fn times(self) -> usize {
        match self {
            Self::Kill(_) | Self::Second => 1,
            Self::Answer { times, .. } | Self::Lose { times } | Self::Hang { times } => times,
        }
    }

    /// Whether the program is killed.
    #[must_use]
    pub const fn kills(self) -> bool {
        matches!(self, Self::Kill(_))
    }

    /// Whether it ends only because somebody ends it.
    #[must_use]
    pub const fn is_endless(self) -> bool {
        self.times() == EVER
    }

    /// Whether the program is told of an error, or is told nothing.
    #[must_use]
    pub const fn refuses(self) -> bool {
        !matches!(self, Self::Kill(_) | Self::Second)
    }

    /// Its column in a table: how often something comes in a row makes no difference there.
    #[must_use]
    pub fn column(self) -> String {
        match self {
            Self::Kill(_) | Self::Second => self.to_string(),
            Self::Answer { status, .. } => status.to_string(),
            Self::Lose { .. } => "lost".to_owned(),
            Self::Hang { .. } => "hangs".to_owned(),
        }
    }
}

impl Blow {
    /// Whether both mean the same call, if each comes as often as it says: only one of them can strike it.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let last = |blow: &Self| blow.call.number.saturating_add(blow.fault.times() - 1);
        self.call.purpose == other.call.purpose
            && self.call.number <= last(other)
            && other.call.number <= last(self)
    }
}

impl Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.call, self.fault)
    }
}

impl Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.purpose, self.number)
    }
}

impl Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, times) = match self {
            Self::Kill(Moment::Before) => return f.write_str("before"),
            Self::Kill(Moment::Between) => return f.write_str("between"),
            Self::Kill(Moment::After) => return f.write_str("after"),
            Self::Answer { status, times } => (status.to_string(), *times),
            Self::Second => return f.write_str("second"),
            Self::Lose { times } => ("lost".to_owned(), *times),
            Self::Hang { times } => ("hangs".to_owned(), *times),
        };
        match times {
            1 => write!(f, "{what}"),
            EVER => write!(f, "{what}-ever"),
            _ => write!(f, "{what}x{times}"),
        }
    }
}

impl FromStr for Blow {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((call, fault)) = text.split_once('/') else {
            bail!("{text:?} is no blow: it is CALL NUMBER/FAULT");
        };
        Ok(Self { call: call.parse()?, fault: fault.parse()? })
    }
}

impl FromStr for Nth {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (purpose, number) = text.rsplit_once(' ').context("a call is PURPOSE NUMBER")?;
        let number = number.parse().with_context(|| format!("{number:?} is no number"))?;
        Ok(Self { purpose: purpose.to_owned(), number })
    }
}

impl FromStr for InjectedFault {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::all().chain(Self::lasting()).find(|fault| fault.to_string() == text);
        known.with_context(|| format!("nothing that can happen to a call is called {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_33_faults_of_a_call_round_trips_through_its_name() {
        let call = Nth { purpose: "patch trainjobs status job Failed".to_owned(), number: 2 };
        let mut written = Vec::new();
        for fault in InjectedFault::all().chain(InjectedFault::lasting()) {
            let blow = Blow { call: call.clone(), fault };
            assert_eq!(blow.to_string().parse::<Blow>().unwrap(), blow);
            written.push(blow.to_string());
        }
        assert_eq!(written.len(), 3 + 2 * (STATUSES.len() + 1) + STATUSES.len() + 4);
        assert_eq!(written[0], "patch trainjobs status job Failed 2/before");
        assert_eq!(written[4], "patch trainjobs status job Failed 2/409x3");
    }

    #[test]
    fn blows_meet_where_both_are_meant_for_one_call() {
        let blow = |text: &str| text.parse::<Blow>().unwrap();
        for (one, other, meet) in [
            ("a 1/409", "a 1/before", true),
            ("a 1/409x3", "a 3/before", true),
            ("a 1/409x3", "a 4/before", false),
            ("a 1/409", "a 2/409x3", false),
            ("a 1/409x3", "b 1/409x3", false),
            ("a 2/409-ever", "a 9/before", true),
            ("a 2/409-ever", "a 1/before", false),
        ] {
            assert_eq!(blow(one).meets(&blow(other)), meet, "{one} {other}");
            assert_eq!(blow(other).meets(&blow(one)), meet, "{other} {one}");
        }
    }
}
