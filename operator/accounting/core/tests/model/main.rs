//! Random runs of a small cluster with one record: two processes that may both believe that they lead, requests that are
//! lost, delayed past their successors or answered in vain, watches that are behind or begin anew, crashes, and people who
//! remove and put back finalizers. At the end everything comes to rest, with a crash wherever that could matter.
//!
//! A [process](process) drives the product's own [`Keeper`](trainjob_accounting_core::keeper::Keeper); the
//! [world](world) is API server, kubelets, people and network; the [rules](rules) judge every stored version, every
//! released Pod and the end by A1 to A9 and A11 (`docs/accounting.md`, 10). [Defects](defect) show that each of these
//! is found when it is broken. The core has no request that could break A10 or A12, and A13 is about templates.
//!
//! `SIMULATED_CLUSTERS=100000 cargo test -p trainjob-accounting-core --test model` takes longer. What fails is said with
//! its seed; `SIMULATED_FROM=<seed> SIMULATED_CLUSTERS=1` runs it again.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod defect;
mod process;
mod random;
mod rules;
mod world;

use std::{
    env,
    hash::{BuildHasher as _, RandomState},
};

use self::{defect::Defect, world::World};

/// So many clusters are simulated, the same each time, unless `SIMULATED_CLUSTERS` asks for others.
const FIXED: u64 = 1_500;
/// In so many clusters every defect is found.
const ENOUGH: u64 = 1_000;
/// How many clusters that fail are told at most.
const FAILURES_TOLD: usize = 10;
/// How many of its last steps are shown of a cluster that fails.
const STEPS_SHOWN: usize = 60;

#[test]
fn every_pod_is_counted_once() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let count = number("SIMULATED_CLUSTERS");
    let first = match (number("SIMULATED_FROM"), count) {
        (Some(from), _) => from,
        (None, None) => 0,
        (None, Some(count)) => RandomState::new().hash_one(count),
    };
    let count = count.unwrap_or(FIXED);
    println!("again with: SIMULATED_FROM={first} SIMULATED_CLUSTERS={count}");
    let seeds = (0..count).map(|number| first.wrapping_add(number));
    let failures: Vec<_> = seeds.filter_map(failure).take(FAILURES_TOLD).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// What is wrong with the cluster of a seed, and what happened there at last; `None`: nothing.
fn failure(seed: u64) -> Option<String> {
    let world = World::new(seed, None).run();
    if world.violations().is_empty() {
        return None;
    }
    let (steps, violations) = (world.steps(), world.violations().join("\n  "));
    let shown = steps[steps.len().saturating_sub(STEPS_SHOWN)..].join("\n  ");
    Some(format!("seed {seed}:\n  {shown}\nseed {seed}:\n  {violations}"))
}

/// The rules find what they are there for: with each defect some cluster breaks the rule, and which one is said.
#[test]
fn every_seeded_defect_breaks_its_rule() {
    let breaks = |seed, defect, rule: &str| {
        let world = World::new(seed, Some(defect)).run();
        world.violations().iter().any(|it| it.split(':').next() == Some(rule))
    };
    let missed = Defect::ALL
        .iter()
        .filter(|(defect, rule)| !(0..ENOUGH).any(|seed| breaks(seed, *defect, rule)));
    assert_eq!(missed.collect::<Vec<_>>(), Vec::<&(Defect, &str)>::new());
}

#[test]
fn clusters_are_full_of_accidents() {
    let mut seen = [0; 8];
    for seed in 0..100 {
        for (seen, number) in seen.iter_mut().zip(World::new(seed, None).run().accidents()) {
            *seen += number;
        }
    }
    let names = "crashes, stores, refused stores, lost requests, lost replies, late requests, \
                 Pods that went uncounted, Pods that were let go";
    assert!(seen.iter().all(|number| *number > 10), "{names}: {seen:?}");
}
