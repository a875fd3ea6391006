//! S6: at most one child.

use std::collections::HashMap;

use crate::{
    history::{Object, State},
    index::Index,
    violation::{Rule, Violation},
};

/// S6. Of the JobSets of a job, and of its other children of one kind and name, the next appears only after the
/// one before it is gone.
pub(super) fn at_most_one_child(index: &Index<'_>) -> Vec<Violation> {
    // Until which revision the latest child in a place is there.
    let mut taken: HashMap<(&str, &str, &str), u64> = HashMap::new();
    let mut found = Vec::new();
    for life in &index.lives {
        let (first, end) = (life.first(), life.end());
        let Some(place) = place(&first.object) else { continue };
        let until = end.map_or(u64::MAX, |end| end.revision);
        let before = taken.insert(place, until);
        if before.is_some_and(|before| before > first.revision) {
            let what = "was created while there was another one of the same TrainJob".into();
            found.push(Index::broken(Rule::S6, &first.object, first.at, what));
        }
    }
    found
}

/// Where there may be only one: kind, owner and name.
fn place(object: &Object) -> Option<(&str, &str, &str)> {
    let owner = object.owner.as_deref()?;
    match &object.state {
        State::JobSet(_) => Some(("jobsets", owner, "")),
        State::ConfigMap => Some(("configmaps", owner, &object.name)),
        State::Other(kind) => Some((kind, owner, &object.name)),
        State::TrainJob(_)
        | State::Pod { .. }
        | State::Target(_)
        | State::Policy(_)
        | State::Namespace(_) => None,
    }
}
