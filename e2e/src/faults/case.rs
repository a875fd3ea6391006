//! One case of the loop: which life, and what goes wrong in it.
//!
//! A case is written as it is asked for on the command line:
//! `deadline/patch trainjobs status job Failed 1/before`; two faults in one life as two such names with a plus between
//! them; a brown-out as `deadline/patch trainjobs status/brown-out-500`.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::str::FromStr;

use anyhow::{Result, bail, ensure};

use super::blow::Blow;
use super::brown_out::BrownOut;
use super::scenario::Scenario;

/// One life, and what goes wrong in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The life.
    pub scenario: Scenario,
    /// What goes wrong.
    pub disturbance: Disturbance,
}

/// What goes wrong in a life.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disturbance {
    /// One fault.
    One(Blow),
    /// Two, in whatever order their calls come.
    Pair(Blow, Blow),
    /// Some calls of a kind, for a while.
    BrownOut(BrownOut),
}

impl Case {
    /// The faults.
    pub fn blows(&self) -> impl Iterator<Item = &Blow> {
        let blows = match &self.disturbance {
            Disturbance::One(blow) => [Some(blow), None],
            Disturbance::Pair(first, second) => [Some(first), Some(second)],
            Disturbance::BrownOut(_) => [None, None],
        };
        blows.into_iter().flatten()
    }

    /// The brown-out, if it is one.
    #[must_use]
    pub const fn brown_out(&self) -> Option<&BrownOut> {
        match &self.disturbance {
            Disturbance::BrownOut(brown_out) => Some(brown_out),
            Disturbance::One(_) | Disturbance::Pair(..) => None,
        }
    }

    /// How many different things are to happen.
    #[must_use]
    pub fn strikes(&self) -> usize {
        self.blows().count() + usize::from(self.brown_out().is_some())
    }

    /// Its columns in a table.
    #[must_use]
    pub fn columns(&self) -> BTreeSet<String> {
        let brown_out = self.brown_out().map(|brown_out| brown_out.how.name().to_owned());
        self.blows().map(|blow| blow.fault.column()).chain(brown_out).collect()
    }

    /// Whether the operator is told of an error, or is told nothing, at some call.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.brown_out().is_some() || self.blows().any(|blow| blow.fault.refuses())
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scenario = self.scenario;
        match &self.disturbance {
            Disturbance::One(blow) => write!(f, "{scenario}/{blow}"),
            Disturbance::Pair(first, second) => {
                write!(f, "{scenario}/{first}+{scenario}/{second}")
            }
            Disturbance::BrownOut(brown_out) => write!(f, "{scenario}/{brown_out}"),
        }
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        // The name of a call may have a plus in it, that of a fault has none.
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [scenario, call, fault] => {
                let disturbance = match fault.parse() {
                    Ok(how) => Disturbance::BrownOut(BrownOut { kind: (*call).to_owned(), how }),
                    Err(_) => Disturbance::One(blow(call, fault)?),
                };
                Ok(Self { scenario: scenario.parse()?, disturbance })
            }
            [scenario, first, middle, second, fault] => {
                let Some((first_fault, same)) = middle.split_once('+') else {
                    bail!("{text:?} is no pair: there is no plus between two cases");
                };
                ensure!(*scenario == same, "{text:?} is no pair: both faults are in one life");
                let disturbance =
                    Disturbance::Pair(blow(first, first_fault)?, blow(second, fault)?);
                Ok(Self { scenario: scenario.parse()?, disturbance })
            }
            _ => bail!("{text:?} is no case: a case is SCENARIO/CALL NUMBER/FAULT"),
        }
    }
}

fn blow(call: &str, fault: &str) -> Result<Blow> {
    Ok(Blow { call: call.parse()?, fault: fault.parse()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_round_trips_through_its_name() {
        for (name, strikes, refuses) in [
            ("deadline/patch trainjobs status job Failed 2/before", 1, false),
            ("deadline/patch trainjobs status job not-Suspended+Failed 1/409x3", 1, true),
            ("deadline/a 1/before+deadline/patch trainjobs status job a+b 2/after", 2, false),
            ("deadline/a 1/before+deadline/b 1/lost", 2, true),
            ("deadline/watch trainjobs/brown-out-hangs", 1, true),
        ] {
            let case: Case = name.parse().unwrap();
            assert_eq!(case.to_string(), name);
            assert_eq!((case.strikes(), case.refuses()), (strikes, refuses), "{name}");
        }
    }

    #[test]
    fn invalid_case_names_are_rejected() {
        for text in [
            "deadline",
            "deadline/x/before",
            "no/x 1/before",
            "deadline/x 1/never",
            "deadline/x/brown-out-404",
            "deadline/x 1/before+ttl-zero/x 1/before",
            "deadline/x 1/before/deadline/x 1/before",
        ] {
            assert!(text.parse::<Case>().is_err(), "{text}");
        }
    }
}
