//! What policies find is remembered of each object, and found anew when anything changes that it depends on.

use trainjob_api::lifecycle::v1alpha1::status::{Counts, NextDeletion, WouldDelete};

use super::{numbers::counted, *};

/// What the policy `p` finds: counts, what each rule matches, what would be deleted, and what goes next.
type Finds = (Counts, (u64, u64), WouldDelete, Vec<NextDeletion>);

fn finds(scene: &mut Scene, now: Now) -> Finds {
    let mut survey = Survey::default();
    while scene.state.survey(JOBS, &mut survey, 3, now) {}
    let nothing = Tally::default();
    let tally = survey.tally(&Uid::from("p")).unwrap_or(&nothing);
    (tally.counts, tally.rule("all"), tally.would_delete, tally.next())
}

/// What was found before counts as long as it holds. Sees that it is the same as what is found anew, in the metrics, too.
fn found(scene: &mut Scene, now: i64, what: &str) -> Counts {
    let remembered = finds(scene, at(now));
    let numbers = counted(scene, at(now));
    scene.state.kinds[0].surveys.forget_found();
    assert_eq!(numbers, counted(scene, at(now)), "{what}");
    assert_eq!(remembered, finds(scene, at(now)), "{what}");
    remembered.0
}

fn jobs() -> Vec<String> {
    (0..9).map(|after| finished(&format!("j{after}"), 7, 10 * after)).collect()
}

#[test]
fn what_was_found_is_found_anew_when_time_or_an_edit_changes_it() {
    let mut scene = Scene::new(vec![ttl(60)], &jobs(), at(0));
    assert_eq!(found(&mut scene, 0, "nothing is due").due, 0);
    for (now, due) in [(59, 0), (60, 1), (75, 2), (76, 2), (140, 9)] {
        assert_eq!(found(&mut scene, now, "time passes").due, due, "at {now}");
    }
    assert_eq!(found(&mut scene, 60, "the clock goes back").due, 1);
    scene.see("j0", &held("j0", 8, 600), at(60));
    assert_eq!(found(&mut scene, 60, "a hold").held, 1);
    scene.set(ttl(65));
    scene.evaluate(at(60));
    assert_eq!(found(&mut scene, 65, "an edit of the policy").due, 0);
    scene.state.object_gone(JOBS, &key("j1").object);
    assert_eq!(found(&mut scene, 65, "one is gone").finished, 8);
    scene.state.namespace_gone("a");
    assert_eq!(found(&mut scene, 65, "the namespace is gone").finished, 0);
}

#[test]
fn what_was_found_is_found_anew_when_another_object_or_an_answer_changes_it() {
    let mut scene = Scene::new(vec![keep_last(3, "team")], &jobs(), at(100));
    assert_eq!(found(&mut scene, 100, "three are kept").due, 6);
    scene.state.object_gone(JOBS, &key("j8").object);
    assert_eq!(found(&mut scene, 100, "the newest is gone").due, 5);
    scene.see("k", &finished("k", 9, 90), at(101));
    scene.see("l", &finished("l", 9, 95), at(101));
    assert_eq!(found(&mut scene, 101, "newer ones have come").due, 7);

    let owned = policy(&json!({"ttlSecondsAfterFinished": 60}), &json!({"owned": "AfterOwner"}));
    let mut scene = Scene::new(vec![owned], &[of_job_set("j")], at(70));
    assert_eq!(found(&mut scene, 70, "its owner is not known").owned, 1);
    scene.owner_is("j", OwnerAnswer::Gone, at(70));
    assert_eq!(found(&mut scene, 70, "its owner is gone").due, 1);
    let running = FoundOwner::default();
    scene.owner_is("j", OwnerAnswer::Found(running), at(70));
    assert_eq!(found(&mut scene, 70, "its owner runs").owned, 1);
}

#[test]
fn what_has_to_be_looked_at_soon_is_told_and_again_if_its_timer_was_lost() {
    let week = 7 * 86_400;
    let mut scene = Scene::new(vec![ttl(week)], &[finished("j", 7, 0)], at(0));
    let mut soon = |now: i64| {
        let mut survey = Survey::default();
        scene.state.survey(JOBS, &mut survey, 10, at(now));
        survey.take_soon()
    };
    let due = || vec![(key("j"), END.plus(week))];
    assert_eq!(soon(0), [], "days before");
    assert_eq!(soon(week - SOON - 1), []);
    assert_eq!(soon(week - SOON), due());
    assert_eq!(soon(week - 1), due());
    assert_eq!(soon(week + 1), due(), "it may not have been looked at");
    assert_eq!(soon(week + 31), [], "told once");
}

#[test]
fn a_record_that_says_no_more_than_the_time_queues_nothing_again() {
    let mut scene = Scene::new(vec![ttl(60)], &jobs(), at(70));
    assert_eq!(scene.evaluate(at(70)), ["j0", "j1"], "the first record lets objects go");
    scene.state.surveyed(JOBS, at(70), scene.monotonic);
    scene.store(at(90));
    assert_eq!(scene.evaluate(at(90)), [""; 0], "another minute has passed");
}

#[test]
fn what_its_own_controller_deletes_before_is_told_with_that_time() {
    let mut own: Value = serde_json::from_str(&finished("j", 7, 0)).unwrap();
    own["spec"] = json!({"ttlSecondsAfterFinished": 60});
    let mut scene = Scene::new(vec![ttl(10)], &[own.to_string(), finished("k", 7, 0)], at(0));
    let (.., next) = finds(&mut scene, at(0));
    let told: Vec<_> = next.iter().map(|next| (&*next.name, next.native_at.clone())).collect();
    assert_eq!(told, [("k", None), ("j", Some(END.plus(60).into()))]);
}

#[test]
fn objects_whose_wishes_cannot_be_read_are_counted_in_audit_too() {
    let unreadable = |name: &str| {
        let mut object: Value = serde_json::from_str(&finished(name, 7, 0)).unwrap();
        object["metadata"]["annotations"] =
            json!({"lifecycle.trainjob.dev/hold-until": "tomorrow"});
        object.to_string()
    };
    for policy in [audited(60), ttl(60)] {
        let jobs = [finished("a", 7, 0), unreadable("c"), unreadable("b")];
        let mut scene = Scene::new(vec![policy], &jobs, at(0));
        for round in ["found anew", "remembered"] {
            let mut survey = Survey::default();
            while scene.state.survey(JOBS, &mut survey, 1, at(0)) {}
            let found = survey.tally(&Uid::from("p")).unwrap().unreadable.clone();
            assert_eq!(found, Some(Unreadable { count: 2, first: key("b").object }), "{round}");
        }
    }
}

#[test]
fn numbers_hold_until_anything_changes_an_instant_comes_or_minutes_have_passed() {
    let counted = |scene: &mut Scene, now: i64, count: usize| {
        let mut survey = Survey::default();
        while scene.state.survey(JOBS, &mut survey, count, at(now)) {}
        survey
    };
    let hour = 3_600;
    let new = || Scene::new(vec![ttl(hour)], &jobs(), at(100));
    let mut scene = new();
    let survey = counted(&mut scene, 100, 3);
    for (now, expected) in [(99, false), (100, true), (399, true), (400, false)] {
        assert_eq!(scene.state.holds(JOBS, &survey, at(now)), expected, "at {now}");
    }
    assert!(!scene.state.holds(JOBS, &Survey::default(), at(100)), "nothing was counted");
    let survey = counted(&mut scene, hour - 1, 3);
    assert!(scene.state.holds(JOBS, &survey, at(hour - 1)));
    assert!(!scene.state.holds(JOBS, &survey, at(hour)), "one is due");

    let changes: [fn(&mut Scene) -> Effects; 5] = [
        |scene| scene.see("k", &finished("k", 9, 90), at(100)),
        |scene| scene.state.object_gone(JOBS, &key("j1").object),
        |scene| scene.see("j0", &held("j0", 8, 600), at(100)),
        |scene| scene.state.namespace_gone("a"),
        |scene| scene.set(ttl(65)),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut scene = new();
        let survey = counted(&mut scene, 100, 3);
        change(&mut scene);
        assert!(!scene.state.holds(JOBS, &survey, at(100)), "change {index}");
        // The same between two slices.
        let mut scene = new();
        let mut survey = Survey::default();
        assert!(scene.state.survey(JOBS, &mut survey, 3, at(100)));
        change(&mut scene);
        while scene.state.survey(JOBS, &mut survey, 3, at(100)) {}
        assert!(!scene.state.holds(JOBS, &survey, at(100)), "change {index} between slices");
    }
}
