//! Which Pods are released, and when (AG2, AG4).

use std::time::Duration;

use super::{
    super::{
        Action,
        pace::{GOES_WITHIN, RELEASES, SETTLING_AT_EASE},
    },
    complete, ended, planned, running, seen, status, stored, words,
};
use crate::{
    pod::Pod,
    tracked::{Presence, Tracked},
};

#[test]
fn ag2_at_most_so_many_releases_are_under_way() {
    let uids: Vec<_> = (0..RELEASES + 12).map(|n| format!("p{n}")).collect();
    let mut stored = stored(&[], 0);
    status(&mut stored).settling.clone_from(&uids);
    let mut pods: Vec<_> = uids.iter().map(|uid| ended(uid, 1)).collect();
    pods[0].presence = Presence::Releasing;
    let releases = planned(stored, &pods, &running()).actions.len();
    assert_eq!(releases, RELEASES - 1);
}

#[test]
fn ag2_a_counted_pod_without_a_finalizer_may_go_by_itself_before_it_is_annotated() {
    let observed = |uid: &str, ago| {
        let tracked = ended(uid, ago);
        Tracked { pod: Pod { finalizer: false, ..tracked.pod.clone() }, ..tracked }
    };
    let crowd: Vec<_> = (0..SETTLING_AT_EASE).map(|n| observed(&format!("p{n}"), 1)).collect();
    let crowd = |more: Option<Tracked>| crowd.iter().cloned().chain(more).collect::<Vec<_>>();
    let limit = GOES_WITHIN.as_secs();
    for (case, pods, job, released) in [
        ("it has just ended", vec![observed("a", 1)], running(), 0),
        ("it has not gone", vec![observed("a", limit)], running(), 1),
        ("it has a finalizer", vec![ended("a", 1)], running(), 1),
        ("its job is over", vec![observed("a", 1)], complete(), 1),
        ("there is room for others", crowd(None), running(), 0),
        ("there is none", crowd(Some(observed("a", 1))), running(), RELEASES),
    ] {
        let uids: Vec<_> = pods.iter().map(|it| &*it.pod.uid).collect();
        let plan = planned(stored(&uids, 0), &pods, &job);
        let releases = plan.actions.iter().filter(|it| matches!(it, Action::Release(_))).count();
        assert_eq!(releases, released, "{case}");
        assert!(released > 0 || plan.after <= Some(GOES_WITHIN), "{case}: {:?}", plan.after);
    }
    let waits = planned(stored(&["a"], 0), &[observed("a", 1)], &running()).after;
    assert_eq!(waits, Some(Duration::from_secs(limit - 1)));
}

#[test]
fn ag4_a_finalizer_that_was_put_back_is_released_and_not_counted() {
    let back = seen(Pod { accounted: true, ..ended("a", 1).pod }, 1);
    assert_eq!(words(&planned(stored(&[], 0), &[back], &running())), ["release a"]);
}
