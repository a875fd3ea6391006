//! L4: watches are replaced.

use std::collections::BTreeMap;

use crate::{
    history::{Millis, Request},
    index::Index,
    violation::{Rule, Violation},
};

/// How long a watch may go on without being replaced: 90 seconds, and one to do it.
const LONGEST: Millis = 91_000;

/// L4. A watch that delivers nothing cannot be told from one that is frozen, so each is replaced after
/// a while, as long as its process lives. Judged where watches are part of the record.
pub(super) fn stalled_watches_are_replaced(index: &Index<'_>) -> Vec<Violation> {
    let mut last_sign: BTreeMap<u32, Millis> = BTreeMap::new();
    let mut begun: BTreeMap<(u32, &str), Vec<Millis>> = BTreeMap::new();
    for Request { process, sent, verb, resource, .. } in &index.history.requests {
        let sign = last_sign.entry(*process).or_insert(*sent);
        *sign = (*sent).max(*sign);
        if verb == "watch" {
            begun.entry((*process, resource)).or_default().push(*sent);
        }
    }
    let mut found = Vec::new();
    for ((process, resource), mut times) in begun {
        times.extend(last_sign.get(&process));
        times.sort_unstable();
        let stall = times.windows(2).find_map(|pair| match pair {
            [one, next] if next - one > LONGEST => Some((*one, next - one)),
            _ => None,
        });
        found.extend(stall.map(|(at, gap)| Violation {
            rule: Rule::L4,
            object: format!("{resource} as process {process} watches them"),
            at,
            what: format!("were not watched anew for {gap} ms"),
        }));
    }
    found
}
