//! What outlives a leader: the part of a policy's status that the breaker reads after a restart (R40).

use std::{collections::BTreeMap, fmt, sync::Arc};

use trainjob_api::time::Timestamp;

use super::object::DueObject;

/// What the status stores for the breaker. All of it is written together.
///
/// A policy in `Audit` has none: its status is cleared of it, so that `Enforce` is judged anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// `status.digest`: the digest that the rest is about.
    pub digest: Arc<str>,
    /// `status.enforcedThrough`: all that was due until then was handed on, and nothing expected that is still there was
    /// due earlier.
    pub through: Timestamp,
    /// `status.trip`.
    pub trip: Option<Trip>,
}

impl Record {
    /// Whether it has to be stored at once, because a decision changed and not only the time (R40).
    #[must_use]
    pub fn is_urgent(&self, stored: Option<&Self>) -> bool {
        stored.is_none_or(|stored| stored.digest != self.digest || stored.trip != self.trip)
    }
}

/// A stop until somebody acknowledges it (R42).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trip {
    /// What an acknowledgement has to name.
    pub id: TripId,
    /// When its objects were counted.
    pub at: Timestamp,
    /// Of how many finished objects that the policy governs.
    pub stock: u64,
    /// Where it deletes nothing, and how many objects wait there.
    pub scope: Scope,
}

/// Where a policy has tripped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everywhere.
    Policy {
        /// Why.
        reason: Reason,
        /// How many objects wait.
        count: u64,
    },
    /// In these namespaces, and how many objects wait in each. There are ten at most.
    Namespaces(BTreeMap<Arc<str>, u64>),
}

/// Why a policy has tripped as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Too much became due at once.
    MassDelete,
    /// The clock jumped.
    ClockStep,
}

impl Trip {
    /// Whether nothing may be deleted in this namespace.
    #[must_use]
    pub fn stops(&self, namespace: &str) -> bool {
        match &self.scope {
            Scope::Policy { .. } => true,
            Scope::Namespaces(namespaces) => namespaces.contains_key(namespace),
        }
    }

    /// Why.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self.scope {
            Scope::Policy { reason, .. } => reason,
            Scope::Namespaces(_) => Reason::MassDelete,
        }
    }

    /// How many objects wait, in all of its namespaces: `status.trip.unexpected`.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.scope {
            Scope::Policy { count, .. } => *count,
            Scope::Namespaces(namespaces) => namespaces.values().sum(),
        }
    }

    /// Whether an object may be one of those that were counted. After a start nobody can tell more.
    pub(super) fn may_count(&self, object: &DueObject) -> bool {
        object.due <= self.at && self.stops(&object.namespace)
    }
}

/// Which trip: `7-3f9c0a12-1767520802` for generation 7 of the policy, its digest, and a number.
///
/// The number is the time of the trip, or a later one if that was used. So the annotation of an earlier trip, which stays
/// on the policy, never fits a later one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TripId(Arc<str>);

impl TripId {
    pub(super) fn new(generation: i64, digest: &str, number: Timestamp) -> Self {
        Self(format!("{generation}-{digest}-{}", number.0).into())
    }

    /// As it is written in the status and in the annotation.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TripId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for TripId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
