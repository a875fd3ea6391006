//! What has to be known before anything is deleted, and what an edit changes.

use trainjob_retention_core::{
    breaker::{Reason, Scope, TripId},
    policy::Policy,
};

use super::*;

#[test]
fn before_everything_is_known_nothing_is_deleted() {
    let mut scene = Scene::before_the_list(vec![ttl(60)]);
    assert_eq!(scene.evaluate(at(60)), [""; 0]);
    scene.state.list_begins(Source::Target(JOBS));
    scene.state.object(JOBS, &finished("j", 7, 0), None, at(60));
    assert_eq!(scene.look("j", at(60)), Step::Idle, "the list has not ended");
    scene.state.list_ends(Source::Target(JOBS), scene.monotonic);
    assert_eq!(scene.look("j", at(60)), Step::Idle, "not evaluated");
    let held = Now::Held { likely: END.plus(60) };
    assert!(scene.state.evaluate(10, held).is_none(), "the time is not known");
    assert_eq!(scene.evaluate(at(60)), ["j"]);
    assert!(scene.deletes("j", at(60)));
}

#[test]
fn an_evaluation_queues_what_is_due_and_arms_the_timers_of_the_rest() {
    let jobs: Vec<_> = (0..7).map(|after| finished(&format!("j{after}"), 7, 10 * after)).collect();
    let mut scene = Scene::before_the_list(vec![ttl(60)]);
    scene.list(&jobs, at(85));
    let (mut queued, mut later) = (Vec::new(), Vec::new());
    while let Some(slice) = scene.state.evaluate(3, at(85)) {
        queued.extend(slice.look.into_iter().map(|(position, key)| (key, position.due)));
        later.extend(slice.later);
    }
    let due = |after: i64| (key(&format!("j{after}")), END.plus(60 + 10 * after));
    assert_eq!(queued, [0, 1, 2].map(due));
    assert_eq!(later, [3, 4, 5, 6].map(due));
}

#[test]
fn a_policy_that_audits_deletes_nothing_and_is_counted() {
    let audits = audited(60);
    let jobs = [finished("a", 7, 0), finished("b", 7, 30), held("c", 7, 600)];
    let mut scene = Scene::new(vec![audits], &jobs, at(60));
    for name in ["a", "b", "c"] {
        assert!(!scene.deletes(name, at(3_600)), "{name}");
    }
    let mut survey = Survey::default();
    while scene.state.survey(JOBS, &mut survey, 2, at(70)) {}
    let tally = survey.tally(&Uid::from("p")).unwrap();
    assert_eq!((tally.counts.finished, tally.counts.due, tally.counts.held), (3, 1, 1));
    assert_eq!((tally.would_delete.now, tally.would_delete.hour), (1, 3));
    assert_eq!(tally.rule("all"), (3, 1));
    let next: Vec<_> = tally.next().into_iter().map(|next| (next.name, next.source)).collect();
    let expected = [("a", "Policy"), ("b", "Policy"), ("c", "Hold")];
    assert_eq!(next, expected.map(|(name, source)| (name.to_owned(), source.to_owned())));
}

#[test]
fn a_policy_with_too_much_due_at_once_deletes_nothing_until_it_is_edited() {
    let jobs: Vec<_> = (0..51).map(|index| finished(&format!("j{index:02}"), 7, 0)).collect();
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(60));
    assert!(!scene.deletes("j00", at(60)));
    assert_eq!(scene.tripped(), Some(51));
    let effects = scene.set(ttl(3_600));
    assert!(effects.evaluate && !effects.watches, "{effects:?}");
    assert_eq!(scene.look("j00", at(60)), Step::Idle, "not judged yet");
    scene.evaluate(at(60));
    let waits = Step::Wait(Wait { until: Some(END.plus(3_600)), longest: None });
    assert_eq!(scene.look("j00", at(60)), waits);
    assert!(scene.deletes("j00", at(3_600)), "what comes due by time is expected");
    // At the limit.
    let mut scene = Scene::new(vec![ttl(60)], &jobs[..50], at(60));
    assert!(scene.deletes("j00", at(60)));
}

#[test]
fn an_edit_stops_what_was_about_to_be_deleted() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    assert_eq!(scene.look("j", at(60)), Step::Line);
    scene.set(audited(60));
    scene.evaluate(at(60));
    assert!(!scene.deletes("j", at(61)));
    let key = PolicyKey { kind: PolicyKind::Namespaced, namespace: "a".into(), name: "p".into() };
    let effects = scene.state.policy_gone(&key, scene.monotonic);
    assert!(effects.watches && scene.state.wanted(JOBS).is_none(), "{effects:?}");
    assert_eq!(scene.look("j", at(61)), Step::Gone, "nobody wants to know");
}

#[test]
fn labels_that_were_not_read_are_listed_before_anything_is_deleted() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    let epoch = scene.state.wanted(JOBS);
    assert!(scene.set(keep_last(1, "team")).watches);
    assert!(scene.state.wanted(JOBS) > epoch);
    scene.evaluate(at(60));
    assert_eq!(scene.look("j", at(60)), Step::Idle);
    scene.state.list_begins(Source::Target(JOBS));
    scene.set(keep_last(1, "other"));
    scene.set(keep_last(1, "team"));
    scene.state.list_ends(Source::Target(JOBS), scene.monotonic);
    scene.evaluate(at(60));
    assert_eq!(scene.look("j", at(60)), Step::Idle, "that list began before");
    scene.list(&[finished("j", 7, 0), finished("k", 7, 1)], at(60));
    scene.evaluate(at(60));
    assert!(scene.deletes("j", at(60)) && !scene.deletes("k", at(60)));
}

#[test]
fn what_a_list_does_not_show_is_gone() {
    let mut scene = Scene::new(vec![ttl(60)], &["j", "k"].map(|name| finished(name, 7, 0)), at(60));
    scene.list(&[finished("k", 7, 0)], at(60));
    assert_eq!(scene.look("j", at(60)), Step::Gone);
    assert!(scene.deletes("k", at(60)), "no other evaluation is needed");
    scene.state.kind_gone(JOBS);
    assert_eq!(scene.look("k", at(60)), Step::Gone);
}

#[test]
fn in_a_namespace_that_is_not_known_or_terminating_nothing_is_deleted() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    let metadata = Metadata {
        name: "a".to_owned(),
        deletion_timestamp: Some("2026-11-22T06:31:00Z".to_owned()),
        ..Metadata::default()
    };
    let effects = scene.state.namespace(metadata);
    assert!(effects.evaluate && effects.look.is_empty(), "{effects:?}");
    assert_eq!(scene.evaluate(at(60)), ["j"]);
    assert!(!scene.deletes("j", at(60)));
    scene.state.namespace(Metadata { name: "a".to_owned(), ..Metadata::default() });
    assert!(scene.deletes("j", at(60)));
    scene.state.namespace_gone("a");
    assert!(!scene.deletes("j", at(60)));
}

#[test]
fn an_object_that_cannot_be_read_is_counted_and_not_known() {
    let mut scene = Scene::before_the_list(vec![ttl(60)]);
    scene.list(&["{\"metadata\":7}".to_owned(), finished("j", 7, 0)], at(60));
    scene.evaluate(at(60));
    let stored = Ok(ttl(60));
    assert_eq!(scene.state.kind_of(&stored), (Some(JOBS), KindState::Known { skipped: 1 }));
    assert!(scene.deletes("j", at(60)));
}

#[test]
fn an_acknowledgement_lets_go_what_waits_once_it_is_stored() {
    let jobs: Vec<_> = (0..51).map(|index| finished(&format!("j{index:02}"), 7, 0)).collect();
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(60));
    let id = scene.state.tripped(&Uid::from("p")).unwrap().id.to_string();
    let acknowledged = StoredPolicy { acknowledged_trip: Some(id.into()), ..ttl(60) };
    scene.set(acknowledged);
    while scene.state.evaluate(100, at(70)).is_some() {}
    assert!(
        scene
            .state
            .judge(at(70), scene.monotonic)
            .iter()
            .any(|judgement| judgement.acknowledged.is_some())
    );
    while scene.state.evaluate(100, at(70)).is_some() {}
    assert!(!scene.deletes("j00", at(70)), "that it was acknowledged is not stored yet");
    scene.store(at(70));
    assert_eq!(scene.evaluate(at(70)).len(), 51, "all are queued again");
    assert!(scene.deletes("j00", at(70)));
}

#[test]
fn what_an_edit_of_labels_makes_due_waits_and_trips_if_it_is_too_much() {
    let select = json!({"selector": {"matchLabels": {"team": "y"}}});
    let policy = policy(&json!({"ttlSecondsAfterFinished": 60}), &select);
    let jobs: Vec<_> = (0..51).map(|index| finished(&format!("j{index:02}"), 7, 0)).collect();
    let relabelled = |index: usize| jobs[index].replace("\"x\"", "\"y\"").replace("\"7\"", "\"8\"");
    let mut scene = Scene::new(vec![policy], &jobs, at(3_600));
    for index in 0..50 {
        scene.see(&format!("j{index:02}"), &relabelled(index), at(3_601));
        assert!(!scene.deletes(&format!("j{index:02}"), at(3_601)), "it waits to be counted");
    }
    scene.store(at(3_601));
    assert_eq!(scene.tripped(), None);
    scene.store(at(3_721));
    assert_eq!(scene.evaluate(at(3_721)).len(), 50, "they are let go");
    for source in ClusterState::sources(JOBS) {
        scene.state.heard(source, scene.monotonic);
    }
    assert!(scene.deletes("j00", at(3_721)));

    let mut scene = Scene::new(vec![ttl(86_400)], &jobs, at(3_600));
    scene.set(ttl(86_400));
    for (index, job) in jobs.iter().enumerate() {
        let asked = "\"annotations\":{\"lifecycle.trainjob.dev/ttl-seconds-after-finished\":\"1\"},\"name\"";
        let job = job.replace("\"7\"", "\"8\"").replacen("\"name\"", asked, 1);
        scene.see(&format!("j{index:02}"), &job, at(3_601));
        scene.look(&format!("j{index:02}"), at(3_601));
    }
    scene.store(at(3_601));
    assert_eq!(scene.tripped(), None, "annotations are not allowed, so nothing is due");
}

#[test]
fn an_end_that_the_watch_brings_during_an_evaluation_is_expected() {
    let mut scene = Scene::new(vec![ttl(60)], &[], at(3_600));
    // Another policy for the kind: everything is evaluated anew.
    let mut other = audited(60);
    let policy = Policy { name: "q".into(), uid: Uid::from("q"), ..(*other.policy).clone() };
    other.policy = policy.into();
    scene.set(other);
    scene.see("j", &finished("j", 7, 0), at(3_600));
    scene.evaluate(at(3_600));
    assert!(scene.deletes("j", at(3_600)), "it waits though the watch has shown its end");
}

#[test]
fn what_comes_due_by_time_trips_nothing_however_much_it_is() {
    let jobs: Vec<_> = (0..60).map(|index| finished(&format!("j{index:02}"), 7, 0)).collect();
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(0));
    for index in 0..60 {
        assert!(scene.deletes(&format!("j{index:02}"), at(60)), "{index}");
        scene.store(at(60));
    }
    assert_eq!(scene.tripped(), None);
}

#[test]
fn a_restart_goes_on_where_the_status_says() {
    let jobs: Vec<_> = (0..60).map(|index| finished(&format!("j{index:02}"), 7, 0)).collect();
    let record = {
        let mut scene = Scene::new(vec![ttl(60)], &jobs, at(0));
        scene.look("j00", at(60));
        scene.store(at(60));
        scene.record
    };
    for (record, expected) in [(record, None), (None, Some(60))] {
        let mut scene = Scene::before_the_list(Vec::new());
        scene.record = record;
        scene.set(ttl(60));
        scene.list(&jobs, at(3_600));
        scene.evaluate(at(3_600));
        assert_eq!(scene.tripped(), expected);
        assert_eq!(scene.deletes("j00", at(3_600)), expected.is_none());
    }
}

#[test]
fn a_jump_of_the_clock_by_more_than_five_minutes_trips_what_is_due() {
    for (jump, expected) in [(0, None), (300, None), (301, Some(1)), (-301, Some(1))] {
        let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(1_000));
        scene.state.judge(at(1_000), scene.monotonic);
        scene.monotonic += Duration::from_secs(10);
        scene.state.judge(at(1_010 + jump), scene.monotonic);
        assert_eq!(scene.tripped(), expected, "by {jump}");
        assert_eq!(scene.deletes("j", at(1_010 + jump)), expected.is_none(), "by {jump}");
    }
}

#[test]
fn an_object_that_goes_or_is_held_while_all_are_counted_holds_nothing_back() {
    for is_gone in [true, false] {
        let mut scene = Scene::before_the_list(vec![ttl(60)]);
        let jobs = [finished("a", 7, -100), finished("b", 7, 0), finished("c", 7, 0)];
        scene.list(&jobs, at(10));
        // Two slices note places, and the third counts the first two objects.
        for _ in 0..3 {
            assert!(scene.state.evaluate(2, at(10)).is_some());
        }
        if is_gone {
            scene.state.object_gone(JOBS, &key("a").object);
        } else {
            scene.see("a", &held("a", 8, 10_000), at(10));
        }
        scene.evaluate(at(10));
        let through = scene.record.as_ref().map(|record| record.through);
        assert_eq!(through, Some(END.plus(10)), "gone: {is_gone}");
    }
}

#[test]
fn leave_is_lost_while_all_is_evaluated_anew() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    assert_eq!(scene.look("j", at(60)), Step::Line);
    assert_eq!(scene.state.give_leave(at(60), scene.monotonic), Ok(key("j")));
    scene.set(ttl(50));
    assert_eq!(scene.look("j", at(60)), Step::Idle);
    scene.evaluate(at(60));
    assert_eq!(scene.look("j", at(60)), Step::Line);
}

#[test]
fn an_owner_that_had_not_finished_is_asked_for_again_if_its_answer_grew_old_meanwhile() {
    let after_owner = |ttl| {
        let action = json!({"ttlSecondsAfterFinished": ttl});
        policy(&action, &json!({"owned": "AfterOwner"}))
    };
    let mut scene = Scene::new(vec![after_owner(60)], &[of_job_set("j")], at(60));
    assert!(matches!(scene.look("j", at(60)), Step::AskOwner(_)));
    scene.owner_is("j", OwnerAnswer::Found(FoundOwner::default()), at(60));
    // The look that the answer has a timer for comes while everything is evaluated, and finds nothing to do.
    scene.set(after_owner(90));
    scene.pass(61);
    assert_eq!(scene.look("j", at(121)), Step::Idle);
    assert_eq!(scene.evaluate(at(121)), ["j"]);
    assert!(matches!(scene.look("j", at(121)), Step::AskOwner(_)));
}

#[test]
fn a_look_right_after_a_jump_of_the_clock_deletes_nothing() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(0));
    scene.state.notice_time(at(4_000), scene.monotonic);
    assert!(!scene.deletes("j", at(4_000)));
    assert!(scene.tripped().is_some());
}

#[test]
fn a_policy_that_was_not_judged_before_the_clock_jumped_trips_as_soon_as_it_is() {
    let mut scene = Scene::before_the_list(vec![ttl(60)]);
    for now in [0, 4_000] {
        scene.state.notice_time(at(now), scene.monotonic);
    }
    scene.list(&[finished("j", 7, 0)], at(4_000));
    scene.evaluate(at(4_000));
    assert_eq!(scene.tripped(), Some(1));
    assert!(!scene.deletes("j", at(4_000)));
}

#[test]
fn a_jump_that_another_leader_has_told_of_and_that_was_acknowledged_is_over() {
    let digest = ttl(60).digest.to_string();
    let record = |trip| Record { digest: digest.as_str().into(), through: END.plus(4_000), trip };
    let scope = Scope::Policy { reason: Reason::ClockStep, count: 1 };
    let trip = Trip { id: TripId::from("1"), at: END.plus(4_000), stock: 1, scope };
    let mut scene = Scene::before_the_list(vec![ttl(60)]);
    for now in [0, 4_000] {
        scene.state.notice_time(at(now), scene.monotonic);
    }
    for trip in [Some(trip), None] {
        scene.record = Some(record(trip));
        scene.set(ttl(60));
    }
    scene.list(&[finished("j", 7, 0)], at(4_000));
    scene.evaluate(at(4_000));
    assert_eq!(scene.tripped(), None);
}

#[test]
fn an_end_that_the_watch_shows_late_is_expected_even_if_the_time_is_not_known_then() {
    let mut scene = Scene::new(vec![ttl(60)], &[], at(1_000));
    scene.state.surveyed(JOBS, at(1_000), scene.monotonic);
    for now in [Now::Held { likely: END.plus(1_000) }, at(1_000)] {
        scene.see("j", &finished("j", 7, 0), now);
    }
    assert!(scene.deletes("j", at(1_001)));
    assert_eq!(scene.state.unexpected(&Uid::from("p")), 0);
}
