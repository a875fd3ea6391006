//! What an open Pod takes.

use std::time::Duration;

use super::*;
use crate::{
    pod::{Container, State, Template},
    testing::{at, pod, template},
};

const NOW: Now = Now { server: at(1_000), clock: Duration::from_secs(7) };

/// As it is read anew with each event: nothing of it is shared.
fn read(uid: &str, replicated_job: &str, containers: &[&str]) -> Pod {
    let container_names = ["node".into()].into();
    let replicated_job = replicated_job.into();
    let state = State::Running(Some(at(200)));
    let container = |name: &&str| {
        let state = state.clone();
        Container { name: (*name).into(), restarts: 0, state, last_end: None }
    };
    Pod {
        uid: uid.into(),
        template: Arc::new(Template { replicated_job, container_names, ..template() }),
        containers: containers.iter().map(container).collect(),
        ..pod()
    }
}

fn known<'p>(pods: &'p Pods, uid: &str) -> &'p Pod {
    &pods.get(uid).unwrap().pod
}

/// 100,000 of them are to fit into 150 MB, with their texts, their records and everything else.
#[test]
fn a_pod_is_small() {
    assert!(size_of::<Known>() <= 288, "{}", size_of::<Known>());
    assert!(size_of::<Container>() <= 48, "{}", size_of::<Container>());
}

#[test]
fn a_pod_that_somebody_holds_again_before_its_release_is_answered_is_held() {
    for (shown_with_it, expected) in [(4, Presence::Released), (6, Presence::Here)] {
        let mut pods = Pods::default();
        pods.watched(3, read("p1", "node", &[]), NOW);
        pods.get_mut("p1").unwrap().presence = Presence::Releasing;
        pods.watched(shown_with_it, Pod { accounted: true, ..read("p1", "node", &[]) }, NOW);
        pods.released("p1", 5);
        assert_eq!(pods.get("p1").unwrap().presence, expected, "{shown_with_it}");
    }
}

#[test]
fn pods_of_a_replicated_job_share_what_they_have_in_common() {
    let mut pods = Pods::default();
    pods.watched(2, read("p1", "launcher", &[]), NOW);
    pods.watched(3, read("p2", "node", &[]), NOW);
    pods.watched(4, read("p3", "node", &[]), NOW);
    pods.watched(5, read("p2", "node", &["node", "other"]), NOW);
    pods.listed(6, vec![(6, read("p4", "node", &["node"]))], Forget::Nothing, NOW);
    let first = known(&pods, "p2");
    let name = &first.template.container_names[0];
    assert!(Arc::ptr_eq(&first.containers[0].name, name));
    assert_eq!(&*first.containers[1].name, "other", "one that the spec does not name");
    for uid in ["p3", "p4"] {
        assert!(Arc::ptr_eq(&known(&pods, uid).template, &first.template), "{uid}");
    }
    assert!(Arc::ptr_eq(&known(&pods, "p4").containers[0].name, name));
    assert!(!Arc::ptr_eq(&known(&pods, "p1").template, &first.template));
}

#[test]
fn the_uid_of_a_pod_is_kept_once_however_many_versions_are_seen() {
    let mut pods = Pods::default();
    pods.watched(2, read("p1", "node", &[]), NOW);
    pods.watched(3, read("p1", "launcher", &[]), NOW);
    let (uid, newest) = pods.known.first_key_value().unwrap();
    assert_eq!(newest.version, 3);
    assert!(Arc::ptr_eq(uid, &newest.tracked.pod.uid));
}
