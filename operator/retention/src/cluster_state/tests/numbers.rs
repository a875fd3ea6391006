//! What metrics say of the Jobs.

use trainjob_retention_core::plan::State;

use super::*;

/// The numbers of all Jobs.
pub(super) fn counted(scene: &mut Scene, now: Now) -> Numbers {
    let mut numbers = Numbers::default();
    while scene.state.count(JOBS, &mut numbers, 2, now) {}
    numbers
}

#[test]
fn objects_are_counted_once_by_state_and_those_that_are_late_by_how_much() {
    let jobs = [
        finished("a", 7, 0),
        finished("b", 7, 10),
        finished("c", 7, 500),
        held("d", 7, 3_600),
        held("e", 7, 80),
    ];
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(0));
    for (now, states, due_longest, held_longest) in [
        (30, vec![(State::Pending, 3), (State::Held, 2)], 0, 0),
        (75, vec![(State::Pending, 1), (State::Due, 2), (State::Held, 2)], 15, 15),
        (90, vec![(State::Pending, 1), (State::Due, 3), (State::Held, 1)], 30, 30),
    ] {
        let numbers = counted(&mut scene, at(now));
        assert_eq!(numbers.states, states.into_iter().collect(), "at {now}");
        assert_eq!(numbers.due_longest, due_longest, "at {now}");
        assert_eq!(numbers.held_longest, held_longest, "at {now}");
    }
    assert_eq!(counted(&mut scene, at(90)).would_delete, [(Uid::from("p"), 3)].into());
}

#[test]
fn policy_in_audit_would_delete_and_governs_nothing() {
    let mut scene = Scene::new(vec![audited(60)], &[finished("a", 7, 0)], at(60));
    let numbers = counted(&mut scene, at(60));
    assert_eq!(numbers.would_delete, [(Uid::from("p"), 1)].into());
    assert!(numbers.states.is_empty(), "{:?}", numbers.states);
}

#[test]
fn nothing_is_counted_before_the_kind_is_known() {
    let mut scene = Scene::before_the_list(vec![ttl(60)]);
    scene.list(&[finished("a", 7, 0)], at(60));
    assert!(counted(&mut scene, at(60)).states.is_empty(), "not evaluated");
    scene.evaluate(at(60));
    assert_eq!(counted(&mut scene, at(60)).states, [(State::Due, 1)].into());
}
