//! What is kept of the PodGroups of one scheduler.

use std::sync::Arc;

use trainjob_core::{
    facts::{ObjectKey, PodGroupFacts},
    observed::Presence,
};
use trainjob_engine::versions::Versions;

/// The PodGroups of one scheduler, each with its version.
pub(super) type Groups = Versions<(u64, Arc<PodGroupFacts>)>;

/// A PodGroup, where the API server knows the kind and has listed it.
pub(super) type Group = Option<Option<Arc<PodGroupFacts>>>;

/// The PodGroup of this name. As long as no list of its kind is complete, it may be there unseen, so it counts as one of a
/// kind that is not known.
pub(super) fn group(groups: Option<&Groups>, key: &ObjectKey) -> Group {
    let listed = groups.filter(|groups| groups.lists() > 0);
    listed.map(|groups| groups.get(key).map(|(_, facts)| Arc::clone(facts)))
}

pub(super) fn presence(group: &Group) -> Presence<'_> {
    match group {
        None => Presence::NotServed,
        Some(None) => Presence::Absent,
        Some(Some(facts)) => Presence::There(facts),
    }
}
