//! The rules, and what it is to break one.

use std::fmt;

use crate::history::Millis;

/// What must hold in every run. S: nothing bad happens, at no revision; L: what is due happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// No early delete. A TrainJob is deleted by its TTL only if the very version named in the request
    /// was finished, had a TTL, was ours to delete, and its TTL had passed, by whole seconds, and no hold kept it.
    S1,
    /// Identity. Every change names the UID of what it changes, and what is changed is a TrainJob that
    /// is ours or the child of one; what is created names its TrainJob as its controller.
    S2,
    /// Terminal is final. Never both `Complete` and `Failed`, never neither again, never another reason
    /// or time; nothing new is made for a job that was known to have finished.
    S3,
    /// No resurrection. After a deadline has failed a job nothing is made for it; after any end, nor for
    /// a job that is being deleted, nothing is resumed.
    S4,
    /// No early deadline. `DeadlineExceeded` is stored only when the deadline of the version before it
    /// had passed, by the configured clock, and not when its JobSet was known to have ended.
    S5,
    /// At most one. A TrainJob has at most one JobSet, and one ConfigMap of a name, at a time.
    S6,
    /// Durable before destroy. When a JobSet is deleted, the end of its job that calls for it is stored.
    S7,
    /// User edits win. A write that depends on what an object says names its version, and takes effect
    /// only on that version.
    S8,
    /// RBAC. Nothing is asked for outside the declared rules, no Secret is read, and no child is in
    /// another namespace than its job.
    S9,
    /// Bounded pressure. Few requests at a time, no hot loop, `Retry-After` is honoured, and no write
    /// that changes nothing.
    S10,
    /// Monotone status. Times of transitions and generations never go back, no generation is observed
    /// before it exists, and a deletion never ends but in absence.
    S11,
    /// Every TTL that is due leads to absence, of the job and of its children.
    L1,
    /// Every deadline that is due leads to `DeadlineExceeded`, and to no JobSet and no running Pod.
    L2,
    /// Quiescence. What is settled is not written again.
    L3,
    /// A watch that is stalled is replaced within ten seconds.
    L4,
    /// Fairness. An object whose every write fails delays no other.
    L5,
    /// Convergence. A disturbed run ends as the undisturbed one; see [`Outcome`](crate::Outcome).
    L6,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 17] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::S8,
        Self::S9,
        Self::S10,
        Self::S11,
        Self::L1,
        Self::L2,
        Self::L3,
        Self::L4,
        Self::L5,
        Self::L6,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::S1 => "no early delete",
            Self::S2 => "identity",
            Self::S3 => "terminal is final",
            Self::S4 => "no resurrection",
            Self::S5 => "no early deadline",
            Self::S6 => "at most one child",
            Self::S7 => "durable before destroy",
            Self::S8 => "user edits win",
            Self::S9 => "RBAC",
            Self::S10 => "bounded pressure",
            Self::S11 => "monotone status",
            Self::L1 => "every TTL ends in absence",
            Self::L2 => "every deadline ends in release",
            Self::L3 => "quiescence",
            Self::L4 => "watches are replaced",
            Self::L5 => "fairness",
            Self::L6 => "convergence",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} {}", self.title())
    }
}

/// A rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// By what became of this object: kind, namespace and name.
    pub object: String,
    /// When.
    pub at: Millis,
    /// How, as the rest of a sentence that begins with the object.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, object, at, what } = self;
        write!(f, "{rule}: {object} {what} (at {at})")
    }
}
