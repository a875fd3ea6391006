//! What a replica has judged of a policy (R42).

use std::collections::BTreeMap;

/// What a replica knows of a policy since it has this digest.
#[derive(Debug, Clone)]
pub struct Since {
    /// The digest.
    pub digest: String,
    /// The UIDs of the Jobs that are due under it all the time, as the watches of the replica and the answers about owners have
    /// shown them, and since when they were due when it was judged. All of them were counted then.
    pub due: BTreeMap<u64, i64>,
}

impl Since {
    /// Whether the replica has counted a Job that was due since then when the digest came into force. It may have learned of it
    /// later. Or an edit has moved the instant before the replica began, which then cannot tell that from time (R41).
    #[must_use]
    pub fn has_judged(&self, job: u64, due: i64) -> bool {
        self.due.get(&job).is_some_and(|known| *known <= due)
    }
}
