//! What must hold of each Pod, and of what the program wrote: A2, A3, A8 and A10.

use std::collections::BTreeMap;

use super::{
    Terms,
    history::{AccountingHistory, PodVersion, RecordVersion, Written},
    violation::{Invariant, Violation},
};

/// The fields of a Pod that a release writes.
const RELEASE: [&str; 3] = [
    "metadata.$deleteFromPrimitiveList/finalizers",
    "metadata.annotations.lifecycle.trainjob.dev/accounted",
    "metadata.uid",
];

pub(super) fn check(history: &AccountingHistory, terms: &Terms) -> Vec<Violation> {
    let mut found = Vec::new();
    let (pods, records) = (history.by_pod(), history.by_record());
    for (uid, versions) in &pods {
        if !terms.excused.contains(*uid) {
            found.extend(released_early(versions, &records));
        }
        found.extend(held_too_long(versions, history, terms));
    }
    for versions in records.values() {
        found.extend(cleared_early(versions, &pods));
    }
    for (at, written) in &history.written {
        let (object, what) = match written {
            Written::Pod(fields) if fields.iter().all(|it| RELEASE.contains(&it.as_str())) => {
                continue;
            }
            Written::Pod(fields) => ("a Pod", format!("was to be changed in {fields:?}")),
            Written::Other(request) => ("something", format!("was to be changed: {request}")),
            Written::Status { .. } => continue,
        };
        found.push(Violation { invariant: Invariant::A10, object: object.into(), at: *at, what });
    }
    found
}

fn broken(invariant: Invariant, pod: &PodVersion, what: String) -> Violation {
    Violation { invariant, object: format!("Pod {}", pod.name), at: pod.at, what }
}

/// A2: the version in which a Pod is released, or gone, comes after one of its record that counts it.
fn released_early(
    versions: &[&PodVersion],
    records: &BTreeMap<&str, Vec<&RecordVersion>>,
) -> Option<Violation> {
    let mut pairs = versions.windows(2);
    let [before, after] = pairs.find_map(|pair| match pair {
        [before, after] if before.finalizer && (after.gone || !after.finalizer) => {
            Some([before, after])
        }
        _ => None,
    })?;
    let counts = |version: &&&RecordVersion| {
        version.job == before.job
            && version.revision < after.revision
            && version.status.settling.contains(&before.uid)
    };
    let is_counted = records.values().flatten().any(|version| counts(&version));
    let what = "was released before a stored version had counted it".to_owned();
    (!is_counted).then(|| broken(Invariant::A2, after, what))
}

/// A3.
fn cleared_early(
    versions: &[&RecordVersion],
    pods: &BTreeMap<&str, Vec<&PodVersion>>,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for pair in versions.windows(2) {
        let [before, after] = pair else { continue };
        let cleared = before.status.settling.iter();
        for uid in cleared.filter(|uid| !after.gone && !after.status.settling.contains(uid)) {
            let mut known = pods.get(uid.as_str()).into_iter().flatten();
            let last = known.rfind(|version| version.revision < after.revision);
            if let Some(pod) = last.filter(|pod| pod.finalizer && !pod.gone) {
                let what = format!("was cleared from {} while it was held", after.name);
                found.push(broken(Invariant::A3, pod, what));
            }
        }
    }
    found
}

/// A8, of how long a Pod is held.
fn held_too_long(
    versions: &[&PodVersion],
    history: &AccountingHistory,
    terms: &Terms,
) -> Option<Violation> {
    let is_held = |it: &&&PodVersion| it.ended && it.deleted && it.finalizer && !it.gone;
    let held = versions.iter().find(is_held)?;
    let later = versions.iter().filter(|it| it.revision > held.revision);
    let free = later.clone().find(|it| it.gone || !it.finalizer);
    let until = free.map_or(history.end, |it| it.at);
    let held_for = until.saturating_sub(held.at);
    let what = format!("was held for {held_for} ms");
    (held_for > terms.longest_hold).then(|| broken(Invariant::A8, held, what))
}
