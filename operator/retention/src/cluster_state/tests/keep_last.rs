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
fn what_the_end_of_a_hold_lets_go_is_expected_even_if_its_timer_comes_after_a_survey() {
    let mut scene = with_one_held("Enforce");
    scene.pass(880);
    scene.would_delete(at(900));
    scene.state.surveyed(JOBS, at(900), scene.monotonic);
    scene.look("b", at(900));
    scene.evaluate(at(900));
    assert_eq!(scene.state.unexpected(&Uid::from("p")), 0);
    assert!(scene.deletes("a", at(900)));
}

#[test]
fn a_policy_in_audit_shows_what_the_end_of_a_hold_would_let_go() {
    let mut scene = with_one_held("Audit");
    assert_eq!(scene.would_delete(at(599)), 0);
    assert_eq!(scene.look("b", at(599)), until(600), "its timer");
    scene.look("b", at(600));
    assert_eq!(scene.would_delete(at(600)), 1);
}

/// The last of each team stays, and whatever is older than ten minutes goes. Owned Jobs go after their owner.
fn last_of_each_team() -> StoredPolicy {
    let keep_last = json!({"count": 1, "groupBy": ["team"], "maximumAgeSeconds": 600});
    policy(&json!({"keepLast": keep_last}), &json!({"owned": "AfterOwner"}))
}

/// The names of the objects that are to be looked at.
fn looked_at(effects: &Effects) -> Vec<String> {
    effects.look.iter().map(|key| key.object.name.to_string()).collect()
}

impl Scene {
    /// The object is gone, as the watch shows. Returns what is to be looked at.
    fn gone(&mut self, name: &str) -> Vec<String> {
        looked_at(&self.state.object_gone(JOBS, &key(name).object))
    }
}

#[test]
fn one_that_waits_for_its_turn_has_it_however_many_others_of_its_group_cannot_go() {
    let kept = |index: i64| of_job_set_after(&format!("kept{index}"), index);
    let mut jobs: Vec<_> = (0..9).chain([12]).map(kept).collect();
    jobs.extend([finished("a", 7, 9), finished("b", 7, 10), finished("newest", 7, 13)]);
    let mut scene = Scene::new(vec![last_of_each_team()], &jobs, at(20));
    for index in (0..9).chain([12]) {
        let running = OwnerAnswer::Found(FoundOwner::default());
        scene.owner_is(&format!("kept{index}"), running, at(20));
    }
    assert!(scene.deletes("a", at(20)));
    assert_eq!(scene.look("b", at(20)), Step::Wait(Wait::default()), "not its turn");
    scene.reply("a", Reply::Accepted);
    assert!(scene.gone("a").contains(&"b".to_owned()));
    assert!(scene.deletes("b", at(20)));
}

#[test]
fn whoever_does_not_take_its_turn_passes_it_on() {
    let owned = (1..=9).chain([11]).map(|it| of_job_set_after(&format!("owned{it}"), it));
    let mut jobs: Vec<_> = owned.collect();
    jobs.extend([finished("a", 7, 0), finished("b", 7, 10), finished("newest", 7, 12)]);
    let mut scene = Scene::new(vec![last_of_each_team()], &jobs, at(20));
    // What is due is queued once more after the first record.
    scene.evaluate(at(20));
    assert!(scene.deletes("a", at(20)));
    for index in 1..=9 {
        let name = format!("owned{index}");
        scene.owner_is(&name, OwnerAnswer::Gone, at(20));
        assert!(matches!(scene.look(&name, at(20)), Step::Wait(_)), "not its turn");
    }
    assert!(matches!(scene.look("b", at(20)), Step::Wait(_)), "not its turn");
    // The answers are old by then.
    scene.pass(61);
    scene.reply("a", Reply::Accepted);
    let next = scene.gone("a");
    assert!(!next.contains(&"b".to_owned()), "there are others before it: {next:?}");
    for name in next.iter().filter(|name| name.starts_with("owned")) {
        assert!(matches!(scene.look(name, at(81)), Step::AskOwner(_)), "{name}");
    }
    assert!(scene.evaluate(at(81)).contains(&"b".to_owned()));
    assert!(scene.deletes("b", at(81)));
}

#[test]
fn one_that_waits_for_its_turn_and_is_kept_then_goes_when_it_is_too_old() {
    let jobs = [finished("a", 7, 0), finished("b", 7, 10), finished("c", 7, 20)];
    let mut scene = Scene::new(vec![last_of_each_team()], &jobs, at(30));
    assert!(scene.deletes("a", at(30)));
    assert!(matches!(scene.look("b", at(30)), Step::Wait(_)), "not its turn");
    assert!(scene.gone("c").contains(&"b".to_owned()));
    assert_eq!(scene.look("b", at(30)), until(610));
}

#[test]
fn a_deletion_that_was_planned_and_not_sent_holds_up_no_other() {
    let jobs = [finished("a", 7, 0), finished("b", 7, 10), finished("c", 7, 20)];
    let mut scene = Scene::new(vec![last_of_each_team()], &jobs, at(30));
    assert!(scene.deletes("a", at(30)), "and no place is free to send it");
    assert!(matches!(scene.look("b", at(30)), Step::Wait(_)), "not its turn");
    scene.monotonic += Duration::from_mins(5);
    let soon = Some(Duration::from_secs(1));
    assert_eq!(
        scene.look("a", at(330)),
        Step::Wait(Wait { until: None, longest: soon }),
        "no watch is live"
    );
    scene.pass(0);
    assert!(scene.deletes("b", at(330)));
}
