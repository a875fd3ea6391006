//! L5: fairness.

use std::collections::BTreeMap;

use crate::{
    history::{Millis, Object},
    index::Index,
    rules::identity::is_work,
    violation::Rule,
};

/// From how many failures on, without any success, an object counts as poisoned.
const POISONED: usize = 3;

/// The rule that lateness breaks: L5 if somebody else's writes kept failing between `due` and `at`,
/// else what is `usual`.
pub(super) fn rule_of_delay(
    index: &Index<'_>,
    object: &Object,
    (due, at): (Millis, Millis),
    usual: Rule,
) -> Rule {
    let mut others: BTreeMap<(&str, &str), Failures> = BTreeMap::new();
    let here = (object.namespace.as_str(), object.name.as_str());
    for request in index.history.requests.iter().filter(|request| is_work(request)) {
        let there = (request.namespace.as_str(), request.name.as_str());
        if there == here {
            continue;
        }
        let failures = others.entry(there).or_default();
        failures.count += 1;
        failures.all &= request.answer.code.is_none_or(|code| code >= 400);
        failures.meanwhile |= (due..=at).contains(&request.sent);
    }
    let poisoned = |it: &Failures| it.all && it.meanwhile && it.count >= POISONED;
    if others.values().any(poisoned) { Rule::L5 } else { usual }
}

struct Failures {
    count: usize,
    all: bool,
    meanwhile: bool,
}

impl Default for Failures {
    fn default() -> Self {
        Self { count: 0, all: true, meanwhile: false }
    }
}
