//! Whether a deletion was to be expected: kept with each object that is due, under the policy that governs it.

use std::sync::Arc;

use trainjob_api::time::Timestamp;

/// How it stands with an object that is due (R41).
///
/// It is of one stage. Where the Pods of an object go before the object, the stage is the last that is due: as long as
/// only the Pods are, theirs, and then the object's, which covers what is left of the Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was expected, or was let go.
    Expected,
    /// An edit made it due, and it waits to be counted.
    Waiting {
        /// Since when it is known.
        since: Timestamp,
    },
    /// It is one of a backlog that a start found a little too large, and waits to be let go with the rest.
    Doubtful {
        /// When that start was.
        since: Timestamp,
    },
}

/// An object that is due.
#[derive(Debug, Clone, Copy)]
pub struct Due<'a> {
    /// Its namespace.
    pub namespace: &'a Arc<str>,
    /// Since when it is due.
    pub due: Timestamp,
    /// How it stands.
    pub standing: Standing,
}

/// An object that was looked at and is due.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Since when it is due.
    pub due: Timestamp,
    /// How it stood before; `None` if it was not due then, in this stage and under this policy.
    pub before: Option<Standing>,
    /// Why it was looked at.
    pub news: News,
}

/// Why an object was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The watch brought its end: it was known to be unfinished, or not at all.
    ///
    /// An object that a list shows, or a watch that selects by what an edit can change, may have ended long ago.
    End,
    /// Anything else: its timer, an edit, a list.
    Other,
}
