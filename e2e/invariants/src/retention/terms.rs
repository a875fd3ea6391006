//! What judging a run of the retention engine depends on.

use std::collections::BTreeSet;

use crate::history::Millis;

/// What judging a run of the retention engine depends on.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How old the state may be that the engine decides on: the time an event takes to reach it.
    pub staleness: Millis,
    /// How long something that is due may take, faults and repairs included.
    pub allowance: Millis,
    /// How many deletions may be under way at the same time.
    pub in_flight: usize,
    /// From when until when nothing may be deleted, as while the clock is suspect.
    pub pauses: Vec<(Millis, Millis)>,
    /// The namespaces that are excluded unless a policy is in them.
    pub excluded: BTreeSet<String>,
}

impl Default for Terms {
    /// Those of an undisturbed engine with its default configuration on a busy machine.
    fn default() -> Self {
        let excluded = ["kube-system", "kube-public", "kube-node-lease", "trainjob-retention"];
        Self {
            staleness: 2_000,
            allowance: 30_000,
            in_flight: 32,
            pauses: Vec::new(),
            excluded: excluded.map(str::to_owned).into(),
        }
    }
}
