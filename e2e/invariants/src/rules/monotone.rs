//! S11: monotone status.

use crate::{
    history::Object,
    index::Index,
    violation::{Rule, Violation},
};

/// S11, of every version of a TrainJob and the one before it.
pub(super) fn status_never_goes_back(index: &Index<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for life in index.jobs() {
        let ahead = life.versions.iter().find_map(|it| Some((*it, ahead(&it.object)?)));
        let back = life.versions.windows(2).find_map(|pair| match pair {
            [before, after] if before.gone => Some((*after, "is there again".to_owned())),
            [before, after] => Some((*after, back(&before.object, &after.object)?)),
            _ => None,
        });
        found.extend(
            ahead
                .into_iter()
                .chain(back)
                .map(|(change, what)| Index::broken(Rule::S11, &change.object, change.at, what)),
        );
    }
    found
}

fn ahead(object: &Object) -> Option<String> {
    let observed = object.conditions().iter().filter_map(|it| it.observed_generation).max()?;
    (object.generation > 0 && observed > object.generation)
        .then(|| format!("has observed generation {observed} of {}", object.generation))
}

fn back(before: &Object, after: &Object) -> Option<String> {
    if before.deleting.is_some() && after.deleting.is_none() {
        return Some("is no longer being deleted".into());
    }
    if after.generation < before.generation {
        return Some(format!("has generation {}, after {}", after.generation, before.generation));
    }
    let mut pairs = before
        .conditions()
        .iter()
        .filter_map(|old| Some((old, after.conditions().iter().find(|new| new.kind == old.kind)?)));
    let (old, new) = pairs.find(|(old, new)| new.since < old.since)?;
    Some(format!("changed {} at {}, after {}", old.kind, new.since, old.since))
}
