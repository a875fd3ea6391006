//! The Pods that may have to be released: deleted ones with our finalizer.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod as StoredPod;
use trainjob_accounting_core::{
    clock::Now,
    end::{Ended, ended},
    holding::{Sweep, sweep},
    pod::Pod,
    tracked::Tracked,
};

/// Deleted Pods with our finalizer.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    known: HashMap<Arc<str>, Candidate>,
    /// UIDs in a list that is being delivered.
    listed: Option<HashSet<Arc<str>>>,
}

#[derive(Debug)]
struct Candidate {
    namespace: String,
    tracked: Tracked,
}

/// A Pod that is to be released now.
#[derive(Debug, Clone)]
pub(super) struct Due {
    pub(super) namespace: String,
    pub(super) tracked: Tracked,
}

impl Candidates {
    /// The watch begins with a list.
    pub(super) fn list_begins(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// The list is complete: there are no others.
    pub(super) fn list_ends(&mut self) {
        if let Some(listed) = self.listed.take() {
            self.known.retain(|uid, _| listed.contains(uid));
        }
    }

    /// The watch shows a Pod.
    pub(super) fn saw(&mut self, stored: &StoredPod, now: Now) {
        let Some(pod) = Pod::read(stored) else { return };
        if pod.deletion.is_none() || !pod.finalizer {
            self.known.remove(&pod.uid);
            return;
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(Arc::clone(&pod.uid));
        }
        if let Some(candidate) = self.known.get_mut(&pod.uid) {
            return candidate.tracked.saw(pod, now);
        }
        let namespace = stored.metadata.namespace.clone().unwrap_or_default();
        let (uid, tracked) = (Arc::clone(&pod.uid), Tracked::new(pod, now));
        self.known.insert(uid, Candidate { namespace, tracked });
    }

    /// The watch shows that a Pod went.
    pub(super) fn gone(&mut self, stored: &StoredPod) {
        if let Some(uid) = &stored.metadata.uid {
            self.known.remove(uid.as_str());
        }
    }

    /// Nothing is left to do about a Pod.
    pub(super) fn released(&mut self, uid: &str) {
        self.known.remove(uid);
    }

    /// A Pod could not be released: it is tried again later.
    pub(super) fn failed(&mut self, uid: &str, clock: Duration) {
        if let Some(candidate) = self.known.get_mut(uid) {
            candidate.tracked.release_failed(clock, Duration::ZERO);
        }
    }

    /// The Pods to release now, if the Lease has been seen to stand still since `still_since`. Namespaces take turns, and
    /// what failed comes last: where one webhook hangs, others do not wait for it.
    pub(super) fn due(&mut self, now: Now, still_since: Duration, after: Duration) -> Vec<Due> {
        let (mut due, mut turns) = (Vec::new(), HashMap::<_, usize>::new());
        for Candidate { namespace, tracked } in self.known.values_mut() {
            if ended(&tracked.pod, now.server) != Ended::Yes {
                continue;
            }
            let seen = *tracked.ended_seen.get_or_insert(now.clock);
            match sweep(now.clock, still_since, seen, after) {
                Sweep::Release if tracked.backoff.wait(now.clock).is_zero() => {
                    let turn = turns.entry(namespace.clone()).or_default();
                    let order = (tracked.backoff.has_failed(), *turn);
                    *turn += 1;
                    let pod = Due { namespace: namespace.clone(), tracked: tracked.clone() };
                    due.push((order, pod));
                }
                Sweep::Release | Sweep::Leave | Sweep::At(_) => {}
            }
        }
        due.sort_by_key(|(order, _)| *order);
        due.into_iter().map(|(_, pod)| pod).collect()
    }

    /// How many have ended and are held, and for how long the first of them.
    pub(super) fn held(&self, clock: Duration) -> (usize, Duration) {
        let seen = self.known.values().filter_map(|candidate| candidate.tracked.ended_seen);
        seen.fold((0, Duration::ZERO), |(held, longest), seen| {
            (held + 1, longest.max(clock.saturating_sub(seen)))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainjob_api::{
        lifecycle::v1alpha1::{ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL},
        time::Timestamp,
    };

    use super::*;

    const AFTER: Duration = Duration::from_mins(2);

    fn at(seconds: u64) -> Now {
        Now { server: Timestamp(1_795_329_000), clock: Duration::from_secs(seconds) }
    }

    fn pod(uid: &str, phase: &str, is_deleted: bool, finalizers: &[&str]) -> StoredPod {
        let deleted = is_deleted.then_some("2026-11-22T06:10:00Z");
        serde_json::from_value(json!({
            "metadata": {
                "name": format!("pod-{uid}"), "namespace": "a", "uid": uid,
                "creationTimestamp": "2026-11-22T06:00:00Z",
                "deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30,
                "labels": {TRAIN_JOB_NAME_LABEL: "llm", TRAIN_JOB_UID_LABEL: "u1"},
                "finalizers": finalizers,
            },
            "spec": {"nodeName": "n1", "containers": []},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    fn due(candidates: &mut Candidates, seconds: u64, lease: u64) -> Vec<String> {
        let lease = Duration::from_secs(lease);
        let due = candidates.due(at(seconds), lease, AFTER);
        due.into_iter().map(|due| due.tracked.pod.uid.to_string()).collect()
    }

    #[test]
    fn ah7_only_pods_that_somebody_waits_for_are_released_and_only_without_a_leader() {
        let ours = &[ACCOUNTING_FINALIZER][..];
        let mut candidates = Candidates::default();
        for pod in [
            pod("due", "Failed", true, ours),
            pod("kept", "Failed", false, ours),
            pod("runs", "Running", true, ours),
            pod("foreign", "Failed", true, &["example.com/other"]),
        ] {
            candidates.saw(&pod, at(0));
        }
        assert_eq!(due(&mut candidates, 500, 441), Vec::<String>::new(), "a leader lives");
        assert_eq!(due(&mut candidates, 119, 0), Vec::<String>::new(), "too early");
        assert_eq!(due(&mut candidates, 120, 0), ["due"]);
        candidates.failed("due", Duration::from_mins(2));
        assert_eq!(due(&mut candidates, 120, 0), Vec::<String>::new(), "it waits for its next try");
        assert_eq!(due(&mut candidates, 121, 0), ["due"]);
        candidates.released("due");
        assert_eq!(due(&mut candidates, 130, 0), Vec::<String>::new());
    }

    #[test]
    fn namespaces_take_turns_and_what_failed_comes_last() {
        let mut candidates = Candidates::default();
        let mut deleted = |uid: &str, namespace: &str| {
            let mut pod = pod(uid, "Failed", true, &[ACCOUNTING_FINALIZER]);
            pod.metadata.namespace = Some(namespace.into());
            candidates.saw(&pod, at(0));
        };
        for number in 0..9 {
            deleted(&format!("many-{number}"), "hangs");
        }
        deleted("failed", "other");
        deleted("alone", "another");
        due(&mut candidates, 120, 0);
        candidates.failed("failed", Duration::from_mins(2));
        let due = due(&mut candidates, 130, 0);
        assert!(due[..2].contains(&"alone".to_owned()), "{due:?}");
        assert_eq!((due.len(), due.last().map(String::as_str)), (11, Some("failed")));
    }

    #[test]
    fn what_a_list_does_not_show_is_gone() {
        let mut candidates = Candidates::default();
        let held = pod("p1", "Failed", true, &[ACCOUNTING_FINALIZER]);
        candidates.saw(&held, at(0));
        assert_eq!(candidates.held(Duration::from_secs(9)), (1, Duration::from_secs(9)));
        candidates.list_begins();
        candidates.list_ends();
        assert_eq!(candidates.held(Duration::from_secs(9)), (0, Duration::ZERO));
        candidates.saw(&held, at(10));
        candidates.gone(&held);
        assert_eq!(candidates.held(Duration::from_secs(19)).0, 0);
    }
}
