//! When something is due, and why then.

use trainjob_api::time::Timestamp;

/// When something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// From then on.
    pub at: Timestamp,
    /// What gave the value.
    pub source: Source,
    /// What moved it, at last.
    pub delay: Option<Delay>,
}

/// What gave the value that makes an object due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The rule, by an age.
    Policy,
    /// The rule, by the number of newer objects.
    Count,
    /// The annotation of the object.
    Annotation,
    /// The kind's own TTL.
    OwnTtl,
    /// The maximum of a cluster policy.
    Maximum,
}

/// What moved the time of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// Its owner finished later.
    Owner,
    /// A hold.
    Hold(HoldEnd),
}

/// What ends a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEnd {
    /// The instant it names.
    AsWished,
    /// It names a later instant than it may.
    Capped,
    /// The wish cannot be read, so it holds as long as it may.
    Unreadable,
}
