//! What is deleted, when and how.

use super::*;

const WAITS_FOR_GOOD: Step = Step::Wait(Wait { until: None, longest: None });

#[test]
fn an_object_is_deleted_from_its_due_instant_on_with_its_uid_and_version() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(0));
    assert_eq!(scene.look("j", at(59)), until(60));
    let Step::Delete(deletion) = scene.step("j", at(60)) else { panic!() };
    assert_eq!((&deletion.uid, &*deletion.resource_version), (&Uid::from("uid of j"), "7"));
    assert_eq!(deletion.propagation, Propagation::Background);
    assert_eq!(
        (&*deletion.policy.name, &*deletion.rule, deletion.due.at),
        ("p", "all", END.plus(60))
    );
    assert_eq!(deletion.owner, None);
}

#[test]
fn nothing_is_deleted_while_the_time_is_not_known() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(0));
    let held = Now::Held { likely: END.plus(3_600) };
    let until_known = Step::Wait(Wait { until: Some(Timestamp(0)), longest: None });
    assert_eq!(scene.look("j", held), until_known);
    assert!(scene.deletes("j", at(60)));
    assert_eq!(scene.look("j", held), until_known, "with leave");
    assert_eq!(scene.state.give_leave(held, scene.monotonic), Err(None));
}

#[test]
fn a_newer_version_is_what_is_planned_on_right_before_the_request() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    assert_eq!(scene.look("j", at(60)), Step::Line);
    scene.see("j", &held("j", 8, 600), at(60));
    assert_eq!(scene.look("j", at(61)), until(600), "held");
    scene.see("j", &finished("j", 9, 0), at(62));
    let Step::Delete(deletion) = scene.step("j", at(62)) else { panic!() };
    assert_eq!(&*deletion.resource_version, "9");
    let unfinished = r#"{"metadata":{"name":"j","namespace":"a","uid":"uid of j"},"status":{}}"#;
    scene.see("j", unfinished, at(63));
    assert_eq!(scene.look("j", at(63)), Step::Gone);
}

#[test]
fn what_the_api_server_answers_says_when_it_is_tried_again() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (replies, expected) in [
        (vec![Reply::Accepted], vec![None]),
        (vec![Reply::Conflict; 3], vec![seconds(1); 3]),
        (vec![Reply::Throttled(Duration::from_secs(7))], vec![seconds(7)]),
        (vec![Reply::Throttled(Duration::from_mins(10))], vec![seconds(30)]),
        (vec![Reply::Missing, Reply::Failed], vec![seconds(1), seconds(2)]),
        (vec![Reply::Failed; 11], [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map(seconds).into()),
    ] {
        let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
        for (reply, expected) in replies.into_iter().zip(expected) {
            assert!(scene.deletes("j", at(60)), "before {reply:?}");
            assert_eq!(scene.reply("j", reply), expected, "{reply:?}");
            let Some(wait) = expected else { continue };
            let rests = Step::Wait(Wait { until: None, longest: Some(wait) });
            assert_eq!(scene.step("j", at(60)), rests, "whatever is news");
            scene.monotonic += wait;
            for source in ClusterState::sources(JOBS) {
                scene.state.heard(source, scene.monotonic);
            }
        }
    }
}

#[test]
fn a_deletion_that_was_accepted_is_not_sent_again() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    assert!(scene.deletes("j", at(60)));
    scene.reply("j", Reply::Accepted);
    assert_eq!(scene.look("j", at(3_600)), WAITS_FOR_GOOD);
    let terminating = finished("j", 8, 0).replacen(
        "\"name\"",
        "\"deletionTimestamp\":\"2026-11-22T06:31:00Z\",\"name\"",
        1,
    );
    scene.see("j", &terminating, at(61));
    assert_eq!(scene.look("j", at(3_600)), WAITS_FOR_GOOD, "it is terminating");
    scene.state.object_gone(JOBS, &key("j").object);
    assert_eq!(scene.look("j", at(3_600)), Step::Gone);
}

#[test]
fn without_live_watches_nothing_is_sent() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    scene.monotonic += Duration::from_secs(91);
    let sources = ClusterState::sources(JOBS);
    let waits = Step::Wait(Wait { until: None, longest: Some(Duration::from_secs(1)) });
    for silent in sources {
        for source in sources.into_iter().filter(|source| *source != silent) {
            scene.state.heard(source, scene.monotonic);
        }
        assert_eq!(scene.step("j", at(200)), waits, "{silent:?} is silent");
        scene.monotonic += Duration::from_secs(91);
    }
    for source in sources {
        scene.state.heard(source, scene.monotonic);
    }
    assert!(scene.deletes("j", at(200)));
}

#[test]
fn one_of_a_group_is_deleted_at_a_time_the_oldest_first() {
    let jobs = [3, 1, 2, 4].map(|after| finished(&format!("j{after}"), 7, after));
    let mut scene = Scene::new(vec![keep_last(2, "team")], &jobs, at(60));
    assert!(scene.deletes("j1", at(60)));
    assert!(!scene.deletes("j2", at(60)), "the watch has not shown it");
    assert!(!scene.deletes("j3", at(60)) && !scene.deletes("j4", at(60)));
    scene.reply("j1", Reply::Accepted);
    assert!(!scene.deletes("j2", at(60)));
    let effects = scene.state.object_gone(JOBS, &key("j1").object);
    assert!(effects.look.contains(&key("j2")), "{effects:?}");
    assert!(scene.deletes("j2", at(60)));
    scene.reply("j2", Reply::Accepted);
    scene.state.object_gone(JOBS, &key("j2").object);
    assert!(!scene.deletes("j3", at(60)) && !scene.deletes("j4", at(60)));
    let effects = scene.see("j5", &finished("j5", 7, 5), at(61));
    assert!(effects.look.contains(&key("j3")), "{effects:?}");
    assert!(scene.deletes("j3", at(61)));
}

#[test]
fn a_deletion_that_was_refused_does_not_hold_up_its_group() {
    let jobs = [1, 2, 3].map(|after| finished(&format!("j{after}"), 7, after));
    let mut scene = Scene::new(vec![keep_last(1, "team")], &jobs, at(60));
    assert!(scene.deletes("j1", at(60)));
    assert!(!scene.deletes("j2", at(60)), "not its turn");
    let uid = Uid::from("uid of j1");
    let (wait, effects) = scene.state.replied(&key("j1"), &uid, Reply::Failed, scene.monotonic);
    assert_eq!((wait, effects.look.contains(&key("j2"))), (Some(Duration::from_secs(1)), true));
    assert!(scene.deletes("j2", at(60)));
}

#[test]
fn an_owner_is_asked_for_again_after_a_while_that_grows() {
    let policy = policy(&json!({"ttlSecondsAfterFinished": 60}), &json!({"owned": "AfterOwner"}));
    let mut scene = Scene::new(vec![policy], &[of_job_set("j")], at(60));
    let unfinished = OwnerAnswer::Found(FoundOwner::default());
    for minutes in [1, 2, 4, 8, 16, 30, 30] {
        assert!(matches!(scene.look("j", at(60)), Step::AskOwner(_)), "{minutes}");
        scene.owner_is("j", unfinished, at(60));
        let longest = Some(Duration::from_mins(minutes));
        assert_eq!(scene.look("j", at(60)), Step::Wait(Wait { until: None, longest }));
        scene.monotonic += Duration::from_mins(minutes);
    }
    for source in ClusterState::sources(JOBS) {
        scene.state.heard(source, scene.monotonic);
    }
    let ended = FoundOwner { finished: Some(END.plus(90)), ..FoundOwner::default() };
    scene.owner_is("j", OwnerAnswer::Found(ended), at(60));
    assert_eq!(scene.look("j", at(60)), until(90), "not before its owner's end");
    assert!(scene.deletes("j", at(90)));
    scene.monotonic += Duration::from_mins(1);
    assert!(matches!(scene.look("j", at(150)), Step::AskOwner(_)), "answers hold for a minute");
}
