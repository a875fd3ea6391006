//! What stops a mass deletion that nobody meant (`docs/retention.md`, R42), as far as it is here.
//!
//! This is the one place that is asked whether an object that is due may be deleted. A policy that is new, edited or set to
//! Enforce is judged once all its objects are evaluated, and before the first of them is deleted. If more than `maxCount`
//! are due then, the policy deletes nothing until it is edited. So does a policy at a start of the program: what was
//! enforced before is not stored yet.

use trainjob_retention_core::policies::Governed;

/// The breaker of a policy, since it was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    due: u64,
    max_count: u64,
}

/// Why an object that is due may not be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The policy has tripped.
    Tripped,
}

impl Breaker {
    /// Judges a policy by the number of objects that are due at once.
    #[must_use]
    pub const fn judge(due: u64, max_count: u64) -> Self {
        Self { due, max_count }
    }

    /// Whether this object may be deleted, which is due.
    ///
    /// # Errors
    ///
    /// Why not.
    pub const fn may_delete(&self, _object: &Governed<'_, '_>) -> Result<(), Hold> {
        if self.due > self.max_count { Err(Hold::Tripped) } else { Ok(()) }
    }

    /// How many objects wait, if the policy has tripped.
    #[must_use]
    pub const fn tripped(&self) -> Option<u64> {
        if self.due > self.max_count { Some(self.due) } else { None }
    }
}
