//! The Pods that may have to be released: deleted ones with our finalizer.

use std::{
    collections::{HashMap, HashSet},
    mem,
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
    pod: Due,
    /// Whether its release was asked for, and may have been granted.
    asked: bool,
}

/// A Pod that is to be released now, or was.
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

    /// The list is complete: there are no others. Returns those that were released meanwhile.
    pub(super) fn list_ends(&mut self) -> Vec<Due> {
        let Some(listed) = self.listed.take() else { return Vec::new() };
        let vanished = self.known.extract_if(|uid, _| !listed.contains(uid));
        vanished.filter_map(|(_, candidate)| candidate.asked.then_some(candidate.pod)).collect()
    }

    /// The watch shows a Pod. Returns it if it was released.
    pub(super) fn saw(&mut self, stored: &StoredPod, now: Now) -> Option<Due> {
        let pod = Pod::read(stored)?;
        if pod.deletion.is_none() || !pod.finalizer {
            // What is annotated was counted, by a leader that came back.
            return self.released(&pod.uid).filter(|_| !pod.accounted);
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(Arc::clone(&pod.uid));
        }
        if let Some(candidate) = self.known.get_mut(&pod.uid) {
            candidate.pod.tracked.saw(pod, now);
            return None;
        }
        let namespace = stored.metadata.namespace.clone().unwrap_or_default();
        let (uid, tracked) = (Arc::clone(&pod.uid), Tracked::new(pod, now));
        self.known.insert(uid, Candidate { pod: Due { namespace, tracked }, asked: false });
        None
    }

    /// The watch shows that a Pod went, in its last version. Returns it if it was released and not counted.
    pub(super) fn gone(&mut self, stored: &StoredPod) -> Option<Due> {
        let is_counted = Pod::read(stored).is_some_and(|pod| pod.accounted);
        self.released(stored.metadata.uid.as_deref()?).filter(|_| !is_counted)
    }

    /// The release of a Pod is asked for. Returns whether it may have been granted already; `None`: nothing is left to do about
    /// the Pod, and nothing is to be sent.
    pub(super) fn asked(&mut self, uid: &str) -> Option<bool> {
        self.known.get_mut(uid).map(|candidate| mem::replace(&mut candidate.asked, true))
    }

    /// Nothing is left to do about a Pod. Returns it once if its release was asked for, and not refused: by the answer, or by
    /// the watch, whichever comes first.
    pub(super) fn released(&mut self, uid: &str) -> Option<Due> {
        let candidate = self.known.remove(uid)?;
        candidate.asked.then_some(candidate.pod)
    }

    /// A Pod could not be released, or nobody knows: it is tried again later.
    pub(super) fn failed(&mut self, uid: &str, is_refused: bool, clock: Duration) {
        if let Some(candidate) = self.known.get_mut(uid) {
            candidate.asked &= !is_refused;
            candidate.pod.tracked.release_failed(clock, Duration::ZERO);
        }
    }

    /// The Pods to release now, if the Lease has been seen to stand still since `still_since`. Those of namespaces in which none
    /// has failed come first, and those that have failed come last.
    pub(super) fn due(&mut self, now: Now, still_since: Duration, after: Duration) -> Vec<Due> {
        let has_failed = |pod: &Due| pod.tracked.backoff.has_failed();
        let all = self.known.values().map(|candidate| &candidate.pod);
        let troubled: HashSet<_> =
            all.filter(|pod| has_failed(pod)).map(|pod| pod.namespace.clone()).collect();
        let mut due = Vec::new();
        for candidate in self.known.values_mut() {
            let Due { namespace, tracked } = &mut candidate.pod;
            if ended(&tracked.pod, now.server) != Ended::Yes {
                continue;
            }
            let seen = *tracked.ended_seen.get_or_insert(now.clock);
            match sweep(now.clock, still_since, seen, after) {
                Sweep::Release if tracked.backoff.wait(now.clock).is_zero() => {
                    due.push(Due { namespace: namespace.clone(), tracked: tracked.clone() });
                }
                Sweep::Release | Sweep::Leave | Sweep::At(_) => {}
            }
        }
        due.sort_by_key(|pod| (troubled.contains(&pod.namespace), has_failed(pod)));
        due
    }

    /// How many have ended and are held, and for how long the first of them.
    pub(super) fn held(&self, clock: Duration) -> (usize, Duration) {
        let seen = self.known.values().filter_map(|candidate| candidate.pod.tracked.ended_seen);
        seen.fold((0, Duration::ZERO), |(held, longest), seen| {
            (held + 1, longest.max(clock.saturating_sub(seen)))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainjob_api::{
        lifecycle::v1alpha1::{
            ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
        },
        time::Timestamp,
    };

    use super::*;

    /// Shows that a Pod is released.
    type Shows<'a> = &'a dyn Fn(&mut Candidates) -> Option<Due>;

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
        candidates.failed("due", true, Duration::from_mins(2));
        assert_eq!(due(&mut candidates, 120, 0), Vec::<String>::new(), "it waits for its next try");
        assert_eq!(due(&mut candidates, 121, 0), ["due"]);
        assert!(candidates.released("due").is_none(), "nobody asked");
        assert_eq!(due(&mut candidates, 130, 0), Vec::<String>::new());
    }

    #[test]
    fn namespaces_in_which_some_failed_come_last_and_what_failed_at_the_end() {
        let mut candidates = Candidates::default();
        for (uid, namespace) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")] {
            let mut pod = pod(uid, "Failed", true, &[ACCOUNTING_FINALIZER]);
            pod.metadata.namespace = Some(namespace.into());
            candidates.saw(&pod, at(0));
        }
        due(&mut candidates, 120, 0);
        for uid in ["a1", "c2"] {
            candidates.failed(uid, true, Duration::from_mins(2));
        }
        let due = due(&mut candidates, 130, 0);
        assert_eq!(due[0], "b1");
        let mut failed = [&*due[3], &*due[4]];
        failed.sort_unstable();
        assert_eq!((due.len(), failed), (5, ["a1", "c2"]));
    }

    #[test]
    fn pod_that_is_released_is_told_of_once_whoever_shows_it() {
        let held = pod("p1", "Failed", true, &[ACCOUNTING_FINALIZER]);
        let free = pod("p1", "Failed", true, &[]);
        let answers = |candidates: &mut Candidates| candidates.released("p1");
        let watch = |candidates: &mut Candidates| candidates.saw(&free, at(1));
        let goes = |candidates: &mut Candidates| candidates.gone(&held);
        let lists = |candidates: &mut Candidates| {
            candidates.list_begins();
            candidates.list_ends().pop()
        };
        let ways: [Shows<'_>; 4] = [&answers, &watch, &goes, &lists];
        for (number, shows) in ways.into_iter().enumerate() {
            for (is_refused, is_told) in [(None, true), (Some(false), true), (Some(true), false)] {
                let mut candidates = Candidates::default();
                candidates.saw(&held, at(0));
                assert_eq!(candidates.asked("p1"), Some(false));
                if let Some(is_refused) = is_refused {
                    candidates.failed("p1", is_refused, Duration::ZERO);
                }
                assert_eq!(shows(&mut candidates).is_some(), is_told, "{number} {is_refused:?}");
                assert!(candidates.released("p1").is_none(), "{number}: told twice");
                assert_eq!(candidates.asked("p1"), None, "{number}: nothing is left to ask for");
            }
        }
    }

    #[test]
    fn pod_that_a_leader_that_came_back_has_counted_is_not_told_of() {
        let mut counted = pod("p1", "Failed", true, &[]);
        let annotations = [(ACCOUNTED_ANNOTATION.to_owned(), "p1".to_owned())];
        counted.metadata.annotations = Some(annotations.into());
        let watch = |candidates: &mut Candidates| candidates.saw(&counted, at(1));
        let goes = |candidates: &mut Candidates| candidates.gone(&counted);
        let ways: [Shows<'_>; 2] = [&watch, &goes];
        for shows in ways {
            let mut candidates = Candidates::default();
            candidates.saw(&pod("p1", "Failed", true, &[ACCOUNTING_FINALIZER]), at(0));
            candidates.asked("p1");
            assert!(shows(&mut candidates).is_none() && candidates.asked("p1").is_none());
        }
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
