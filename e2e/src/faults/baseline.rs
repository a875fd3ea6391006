//! Baseline runs: undisturbed lives, and the calls that the operator makes in them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use futures::future::try_join_all;

use super::blow::{Blow, InjectedFault, Nth};
use super::brown_out::{BrownOut, How};
use super::case::{Case, Disturbance};
use super::ground::Ground;
use super::judge::{Reference, Rules};
use super::life::{Life, Made};
use super::purpose::{is_coalesced, kind};
use super::retention;
use super::scenario::{Program, Scenario};
use crate::testenv::operator::rbac_rules;

/// How often each life is lived undisturbed.
pub(super) const TIMES: usize = 3;

/// What is known of a scenario before anything is disturbed.
#[derive(Debug)]
pub(super) struct Baseline {
    /// The scenario.
    pub(super) scenario: Scenario,
    /// What disturbed lives are compared with.
    pub(super) reference: Reference,
    calls: BTreeMap<Nth, Presence>,
    kinds: BTreeSet<String>,
}

/// Whether a call comes in every life. Counts are written together when they change quickly, and what
/// was decided on a version that has just changed is asked for again: not all such calls do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It does.
    Always,
    /// It did in some, or in none that was seen.
    Sometimes,
}

impl Baseline {
    /// Lives a scenario a few times, all at once.
    pub(super) async fn record(ground: &Ground, scenario: Scenario) -> Result<Self> {
        let lives = (0..TIMES).map(|_| ground.live(scenario, None));
        let lives = try_join_all(lives).await?;
        let rules = match scenario.program() {
            Program::Operator => Rules::Operator(rbac_rules()?),
            Program::Retention => Rules::Retention(retention::terms()),
            Program::Accounting => Rules::Accounting,
        };
        let reference = Reference::of(&lives, rules).with_context(|| scenario.to_string())?;
        Ok(Self { scenario, reference, calls: calls(&lives), kinds: kinds(&lives) })
    }

    /// How many different calls came in one life or another.
    #[must_use]
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Everything that can happen to each call.
    pub(super) fn cases(&self) -> impl Iterator<Item = Case> {
        let holds_pods = self.scenario.program() == Program::Accounting;
        self.calls.keys().flat_map(move |call| {
            let lasting = InjectedFault::lasting().filter(move |_| holds_pods);
            InjectedFault::all().chain(lasting).map(|fault| Case {
                scenario: self.scenario,
                disturbance: Disturbance::One(Blow { call: call.clone(), fault }),
            })
        })
    }

    /// A brown-out of each kind of call, in every way.
    pub(super) fn brown_outs(&self) -> impl Iterator<Item = Case> {
        self.kinds.iter().flat_map(|kind| {
            How::ALL.map(|how| Case {
                scenario: self.scenario,
                disturbance: Disturbance::BrownOut(BrownOut { kind: kind.clone(), how }),
            })
        })
    }

    /// Whether a call comes in every life.
    #[must_use]
    pub(super) fn presence(&self, call: &Nth) -> Presence {
        self.calls.get(call).copied().unwrap_or(Presence::Sometimes)
    }
}

fn calls(lives: &[Life]) -> BTreeMap<Nth, Presence> {
    let mut known = BTreeMap::new();
    for call in lives.iter().flat_map(|life| numbered(&life.calls)) {
        // One that was not done is made again, so it is those that were done that are the same each time.
        let always = !is_coalesced(&call.purpose)
            && lives.iter().all(|life| call.number <= done(life, &call.purpose));
        known.insert(call, if always { Presence::Always } else { Presence::Sometimes });
    }
    known
}

fn kinds(lives: &[Life]) -> BTreeSet<String> {
    let requests = lives.iter().flat_map(|life| &life.history.requests);
    requests.map(|it| kind(&it.verb, &it.resource, &it.subresource)).collect()
}

/// How many calls with this purpose were done.
fn done(life: &Life, purpose: &str) -> usize {
    life.calls.iter().filter(|call| call.done && call.purpose == purpose).count()
}

/// Numbers each call among those with the same purpose.
fn numbered(calls: &[Made]) -> Vec<Nth> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    calls
        .iter()
        .map(|call| {
            let number = counts.entry(&call.purpose).or_insert(0);
            *number += 1;
            Nth { purpose: call.purpose.clone(), number: *number }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(calls: &[(&str, bool)]) -> Life {
        let made = |&(purpose, done): &(&str, bool)| Made { purpose: purpose.to_owned(), done };
        Life { calls: calls.iter().map(made).collect(), ..Life::default() }
    }

    #[test]
    fn calls_are_numbered_by_purpose_and_come_always_if_as_many_were_done_each_time() {
        let lives = [
            life(&[
                ("a", true),
                ("b", true),
                ("a", true),
                ("b", true),
                ("c", false),
                ("c", true),
                ("counts", true),
            ]),
            life(&[
                ("counts", true),
                ("b", true),
                ("a", true),
                ("c", false),
                ("a", true),
                ("c", true),
            ]),
        ];
        let known = calls(&lives);
        let known: Vec<_> = known.iter().map(|(call, it)| (call.to_string(), *it)).collect();
        let expected = [
            ("a 1", Presence::Always),
            ("a 2", Presence::Always),
            ("b 1", Presence::Always),
            ("b 2", Presence::Sometimes),
            ("c 1", Presence::Always),
            ("c 2", Presence::Sometimes),
            ("counts 1", Presence::Sometimes),
        ];
        assert_eq!(known, expected.map(|(call, presence)| (call.to_owned(), presence)));
    }
}
