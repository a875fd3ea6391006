//! How a run ended, for comparison with a run of the same scenario in which nothing went wrong (L6).
//!
//! Masked, because two undisturbed runs differ in them: UIDs, versions, times, namespaces; Pods, whose
//! names and number are made up by controllers; counts in a status; conditions of a JobSet that tell of
//! its way rather than of its end; and of a job that is gone, conditions that tell of its way.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Change, Condition, History, Object, State};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// What is there at the end, by kind and name: type, status and reason of its conditions.
    left: BTreeMap<String, BTreeSet<String>>,
    /// How each TrainJob ended, by name, in the order of creation.
    ends: BTreeMap<String, Vec<BTreeSet<String>>>,
    /// How many objects were created, by kind and name.
    created: BTreeMap<String, usize>,
    /// How many objects were deleted, by kind and name.
    deleted: BTreeMap<String, usize>,
}

impl Outcome {
    /// The outcome of this run, as far as TrainJobs, what belongs to them, and objects under retention policies are concerned.
    #[must_use]
    pub fn of(history: &History) -> Self {
        let mut last: BTreeMap<&str, &Change> = BTreeMap::new();
        let mut births = Vec::new();
        for change in history.changes.iter().filter(|change| counts(&change.object)) {
            if last.insert(&change.object.uid, change).is_none() {
                births.push(change.object.uid.as_str());
            }
        }
        let mut outcome = Self::default();
        for change in births.iter().filter_map(|uid| last.get(uid)) {
            outcome.count(change);
        }
        outcome
    }

    fn count(&mut self, last: &Change) {
        let name = format!("{} {}", last.object.state.plural(), last.object.name);
        *self.created.entry(name.clone()).or_default() += 1;
        if matches!(last.object.state, State::TrainJob(_)) {
            let end = brief(last.object.conditions(), ends_something);
            self.ends.entry(last.object.name.clone()).or_default().push(end);
        }
        if last.gone {
            *self.deleted.entry(name).or_default() += 1;
        } else {
            let whole = matches!(last.object.state, State::TrainJob(_));
            let conditions = brief(last.object.conditions(), |kind| whole || ends_something(kind));
            self.left.insert(name, conditions);
        }
    }

    /// Everything in which this outcome, the expected one, and the `other` differ.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = compare("left", &self.left, &other.left);
        all.extend(compare("ended", &self.ends, &other.ends));
        all.extend(compare("created", &self.created, &other.created));
        all.extend(compare("deleted", &self.deleted, &other.deleted));
        all
    }
}

/// What belongs to nobody that we know, such as the ConfigMap that each namespace has, says nothing.
const fn counts(object: &Object) -> bool {
    match object.state {
        State::TrainJob(_) | State::Target(_) => true,
        State::Pod { .. } | State::Policy(_) | State::Namespace(_) => false,
        State::JobSet(_) | State::ConfigMap | State::Other(_) => object.owner.is_some(),
    }
}

fn ends_something(kind: &str) -> bool {
    matches!(kind, "Complete" | "Completed" | "Failed")
}

fn brief(conditions: &[Condition], counts: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let those = conditions.iter().filter(|condition| counts(&condition.kind));
    those.map(|it| format!("{}={} ({})", it.kind, it.holds, it.reason)).collect()
}

fn compare<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<String, T>,
    found: &BTreeMap<String, T>,
) -> Vec<String> {
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let told = |value: Option<&T>| value.map_or_else(|| "none".into(), |it| format!("{it:?}"));
    let differs = names.into_iter().filter(|name| expected.get(*name) != found.get(*name));
    differs
        .map(|name| {
            let (expected, found) = (told(expected.get(name)), told(found.get(name)));
            format!("{name}: {what} {found} instead of {expected}")
        })
        .collect()
}
