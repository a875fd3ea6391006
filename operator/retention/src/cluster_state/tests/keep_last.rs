//! What a rule keeps by number, when others of the group come to count or stop to.

use super::*;

/// The newest of each team stays. `a` is the older one, and `b` is held for ten minutes.
fn with_one_held(mode: &str) -> Scene {
    let keep_last = json!({"keepLast": {"count": 1, "groupBy": ["team"]}});
    let stored = policy(&keep_last, &json!({"mode": mode}));
    Scene::new(vec![stored], &[finished("a", 7, 0), held("b", 8, 600)], at(20))
}

impl Scene {
    fn would_delete(&mut self, now: Now) -> u64 {
        let mut survey = Survey::default();
        while self.state.survey(JOBS, &mut survey, 1, now) {}
        survey.tally(&Uid::from("p")).map_or(0, |tally| tally.would_delete.now)
    }
}

#[test]
fn an_object_takes_its_place_when_its_hold_ends_so_that_an_older_one_goes() {
    let mut scene = with_one_held("Enforce");
    assert_eq!(scene.look("a", at(599)), Step::Wait(Wait::default()));
    assert_eq!(scene.look("b", at(599)), until(600));
    scene.pass(580);
    scene.look("b", at(600));
    assert!(scene.evaluate(at(600)).contains(&"a".to_owned()));
    assert!(scene.deletes("a", at(600)));
    assert!(!scene.deletes("b", at(600)), "the newest");
}

#[test]
fn a_hold_that_ends_while_all_is_evaluated_is_not_missed() {
    let keep_last = keep_last(1, "team");
    let mut scene = Scene::before_the_list(vec![keep_last]);
    scene.list(&[finished("a", 7, 0), held("b", 8, 600)], at(599));
    // Places are noted, and what is due is counted.
    for _ in 0..2 {
        assert_eq!(scene.state.evaluate(10, at(599)), Some(Slice::default()));
    }
    assert!(scene.evaluate(at(600)).contains(&"a".to_owned()));
    assert!(scene.deletes("a", at(600)));
}

#[test]
fn what_the_end_of_a_hold_lets_go_is_expected_because_time_did_it() {
    let mut scene = with_one_held("Enforce");
    scene.pass(579);
    scene.state.surveyed(JOBS, at(599), scene.monotonic);
    scene.look("b", at(600));
    scene.evaluate(at(600));
    assert_eq!(scene.state.unexpected(&Uid::from("p")), 0);
    assert!(scene.deletes("a", at(600)));
}

#[test]
fn a_policy_in_audit_shows_what_the_end_of_a_hold_would_let_go() {
    let mut scene = with_one_held("Audit");
    assert_eq!(scene.would_delete(at(599)), 0);
    assert_eq!(scene.look("b", at(599)), until(600), "its timer");
    scene.look("b", at(600));
    assert_eq!(scene.would_delete(at(600)), 1);
}
