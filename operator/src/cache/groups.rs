//! What is kept of the PodGroups of one scheduler.

use std::sync::Arc;

use trainjob_core::{facts::PodGroupFacts, observed::Presence};
use trainjob_engine::versions::Versions;

/// The PodGroups of one scheduler.
pub(super) type Groups = Versions<Arc<PodGroupFacts>>;

/// A PodGroup, where the API server knows the kind.
pub(super) type Group = Option<Option<Arc<PodGroupFacts>>>;

pub(super) fn presence(group: &Group) -> Presence<'_> {
    match group {
        None => Presence::NotServed,
        Some(None) => Presence::Absent,
        Some(Some(facts)) => Presence::There(facts),
    }
}
