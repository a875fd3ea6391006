//! What the breaker makes of owners, which are asked for now and then (`docs/retention.md`, R24 and R41).

use super::*;

const NAMES: [&str; 3] = ["j0", "j1", "j2"];

/// Jobs go after their owner. An edit may let one go at once.
fn after_owner() -> StoredPolicy {
    let change = json!({"owned": "AfterOwner", "breaker": {"maxCount": 1}});
    policy(&json!({"ttlSecondsAfterFinished": 60}), &change)
}

fn jobs() -> [String; 3] {
    NAMES.map(of_job_set)
}

fn ended(seconds: i64) -> OwnerAnswer {
    let finished = Some(END.plus(seconds));
    OwnerAnswer::Found(FoundOwner { finished, ..FoundOwner::default() })
}

const RUNS: OwnerAnswer =
    OwnerAnswer::Found(FoundOwner { finished: None, owned: false, terminating: false, hold: None });

impl Scene {
    /// All jobs are looked at, and their owners asked for.
    fn ask(&mut self, now: Now) {
        for name in NAMES {
            assert!(matches!(self.look(name, now), Step::AskOwner(_)), "{name}");
        }
        self.store(now);
    }

    /// All owners are so, and the looks that have asked for them go on.
    fn answer_all(&mut self, answer: OwnerAnswer, now: Now) {
        for name in NAMES {
            self.owner_is(name, answer, now);
            self.look(name, now);
        }
        self.store(now);
    }

    /// How many jobs may be deleted, and how many wait because an edit may have made them due.
    fn deletable(&mut self, now: Now) -> (usize, u64) {
        let deletable = NAMES.into_iter().filter(|name| self.deletes(name, now)).count();
        (deletable, self.state.unexpected(&Uid::from("p")))
    }

    /// So many seconds pass, and everything was looked at by then.
    fn is_looked_at(&mut self, seconds: u64, now: Now) {
        self.pass(seconds);
        self.state.surveyed(JOBS, now, self.monotonic);
    }
}

#[test]
fn owner_of_whom_there_is_no_answer_is_asked_for_less_often_each_time() {
    let mut scene = Scene::new(vec![after_owner()], &jobs(), at(0));
    let waits = |scene: &mut Scene| -> Vec<_> {
        let wait = |_| scene.state.ask_failed(&key("j0")).map(|wait| wait.as_secs());
        (0..7).map_while(wait).collect()
    };
    assert_eq!(waits(&mut scene), [10, 20, 40, 80, 160, 300, 300]);
    scene.owner_is("j0", RUNS, at(60));
    assert_eq!(waits(&mut scene)[0], 10);
    assert_eq!(scene.state.ask_failed(&key("gone")), None);
}

#[test]
fn end_of_an_owner_is_expected_however_late_it_is_asked_for() {
    for answer in [ended(300), OwnerAnswer::Gone] {
        let mut scene = Scene::new(vec![after_owner()], &jobs(), at(0));
        scene.ask(at(60));
        scene.answer_all(RUNS, at(60));
        scene.is_looked_at(1_740, at(1_800));
        scene.ask(at(1_800));
        assert_eq!(scene.state.unexpected(&Uid::from("p")), 0, "it is asked whether they are due");
        scene.answer_all(answer, at(1_800));
        assert_eq!(scene.tripped(), None, "{answer:?}");
        assert_eq!(scene.deletable(at(1_800)), (3, 0), "{answer:?}");
    }
}

#[test]
fn what_was_counted_while_the_time_was_not_known_is_told_to_the_breaker_before_all_was_looked_at() {
    let mut scene = Scene::new(vec![after_owner()], &jobs(), at(0));
    let mut surveyed = |now: Now| {
        let mut survey = Survey::default();
        while scene.state.survey(JOBS, &mut survey, 2, now) {}
        scene.state.holds(JOBS, &survey, now)
    };
    assert!(!surveyed(Now::Held { likely: END.plus(100) }), "it is to be counted again");
    assert!(surveyed(at(300)));
    scene.is_looked_at(300, at(300));
    scene.ask(at(300));
    scene.answer_all(ended(0), at(300));
    assert_eq!(scene.tripped(), None);
    assert_eq!(scene.deletable(at(300)), (3, 0));
}

#[test]
fn an_owner_that_is_asked_for_again_is_as_it_was_until_the_answer_is_there() {
    let mut scene = Scene::new(vec![after_owner()], &jobs(), at(0));
    scene.ask(at(60));
    scene.answer_all(ended(300), at(60));
    assert_eq!(scene.deletable(at(300)), (3, 0));
    scene.is_looked_at(600, at(600));
    scene.ask(at(600));
    let through = scene.record.as_ref().map(|record| record.through);
    assert_eq!(through, Some(END.plus(300)), "they are due since the end of their owner");
}

#[test]
fn answer_about_the_owner_of_another_object_of_the_name_says_nothing() {
    let mut scene = Scene::new(vec![after_owner()], &jobs(), at(0));
    scene.ask(at(60));
    let mut other: Value = serde_json::from_str(&of_job_set("j0")).unwrap();
    other["metadata"]["uid"] = json!("uid of another");
    other["metadata"]["ownerReferences"][0]["uid"] = json!("v");
    scene.see("j0", &other.to_string(), at(61));
    scene.owner_is("j0", ended(60), at(61));
    assert!(matches!(scene.look("j0", at(61)), Step::AskOwner(_)));
}

#[test]
fn end_of_an_owner_that_is_told_while_everything_is_evaluated_is_expected() {
    let mut scene = Scene::new(vec![after_owner()], &jobs(), at(0));
    scene.ask(at(60));
    scene.answer_all(RUNS, at(60));
    scene.is_looked_at(1_740, at(1_800));
    scene.ask(at(1_800));
    let faster = policy(
        &json!({"ttlSecondsAfterFinished": 60}),
        &json!({"owned": "AfterOwner", "breaker": {"maxCount": 1}, "deletesPerSecond": 7}),
    );
    scene.set(faster);
    assert_eq!(scene.look("j0", at(1_800)), Step::Idle, "not evaluated");
    scene.answer_all(ended(300), at(1_800));
    scene.evaluate(at(1_800));
    assert_eq!((scene.tripped(), scene.state.unexpected(&Uid::from("p"))), (None, 0));
}

#[test]
fn hold_that_is_removed_from_an_owner_which_goes_instead_is_an_edit_though_it_has_ended() {
    let rules = json!([{
        "name": "all", "delete": "Owner", "action": {"ttlSecondsAfterFinished": 60},
    }]);
    let change = json!({"owned": "Any", "rules": rules, "breaker": {"maxCount": 1}});
    let mut scene = Scene::new(vec![policy(&Value::Null, &change)], &jobs(), at(0));
    scene.ask(at(60));
    let hold = Some(HoldWish::Until(END.plus(9_000)));
    scene.answer_all(OwnerAnswer::Found(FoundOwner { hold, ..FoundOwner::default() }), at(60));
    scene.is_looked_at(1_740, at(1_800));
    scene.ask(at(1_800));
    scene.answer_all(ended(300), at(1_800));
    assert_eq!(scene.deletable(at(1_800)), (0, 3));
    scene.store(at(1_800));
    assert_eq!(scene.tripped(), Some(3));
}

#[test]
fn after_a_restart_nothing_is_counted_before_its_owner_was_asked_for() {
    let through = 9_000;
    for (answer, expected) in [
        (RUNS, (0, 0)),
        // The last leader may have asked for them half an hour before what it stored.
        (ended(through - 1_800 - 120), (3, 0)),
        (ended(through - 1_800 - 121), (0, 3)),
        (OwnerAnswer::Gone, (0, 3)),
    ] {
        let mut scene = Scene::before_the_list(vec![after_owner()]);
        let digest = after_owner().digest.to_string().into();
        scene.record = Some(Record { digest, through: END.plus(through), trip: None });
        scene.set(after_owner());
        scene.list(&jobs(), at(through));
        scene.evaluate(at(through));
        scene.ask(at(through));
        assert_eq!((scene.tripped(), scene.deletable(at(through))), (None, (0, 0)));
        scene.answer_all(answer, at(through));
        assert_eq!(scene.deletable(at(through)), expected, "{answer:?}");
        scene.store(at(through));
        assert_eq!(scene.tripped(), Some(expected.1).filter(|count| *count > 0), "{answer:?}");
    }
}

#[test]
fn under_a_new_digest_an_object_counts_as_due_until_its_owner_was_asked_for() {
    let mut scene = Scene::new(vec![after_owner()], &jobs(), at(60));
    assert_eq!(scene.tripped(), Some(3));
    scene.ask(at(60));
    scene.answer_all(RUNS, at(60));
    assert_eq!(scene.deletable(at(60)), (0, 0));
    scene.store(at(60));
    assert_eq!(scene.tripped(), None);
}
