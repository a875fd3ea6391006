//! What users are told of Jobs.

use trainjob_core::recreation::Origin;
use trainjob_retention_core::plan::Notice;

use super::*;

impl Scene {
    /// What is told of this Job when it is looked at.
    fn told(&mut self, name: &str, now: Now) -> Vec<What> {
        self.look(name, now);
        let news = self.state.take_news().into_iter();
        let told = news.map(|news| {
            assert_eq!((&news.key, &*news.policy.name), (&key(name), "p"));
            news.what
        });
        told.collect()
    }
}

/// A Job that has been terminating since the others ended.
fn terminating(name: &str) -> String {
    let mut object: Value = serde_json::from_str(&finished(name, 8, 0)).unwrap();
    object["metadata"]["deletionTimestamp"] = json!(END.to_string());
    object.to_string()
}

#[test]
fn a_hold_is_told_once_and_again_when_it_is_edited() {
    let until = |seconds| What::Notice(Notice::Held { until: END.plus(seconds) });
    let mut scene = Scene::new(vec![ttl(60)], &[held("j", 7, 9_000)], at(0));
    let waits = Step::Wait(Wait { until: Some(END.plus(60)), longest: None });
    assert_eq!(scene.look("j", at(0)), waits, "there is something to tell then");
    assert_eq!(scene.told("j", at(59)), []);
    assert_eq!(scene.told("j", at(60)), [until(9_000)]);
    assert_eq!(scene.told("j", at(61)), []);
    scene.see("j", &held("j", 8, 9_000), at(62));
    assert_eq!(scene.told("j", at(62)), [], "nothing about it has changed");
    scene.see("j", &held("j", 9, 8_000), at(63));
    assert_eq!(scene.told("j", at(63)), [until(8_000)]);
    let ends = What::Notice(Notice::HoldEnding { until: END.plus(8_000) });
    assert_eq!(scene.told("j", at(4_400)), [ends]);
    assert_eq!(scene.told("j", at(8_000)), []);
}

#[test]
fn a_start_tells_what_is_recent_and_nothing_that_another_process_has_told() {
    for (now, queued) in [(100, vec!["j"]), (3_660, vec!["j"]), (3_661, vec![])] {
        let mut scene = Scene::before_the_list(vec![ttl(60)]);
        scene.list(&[held("j", 7, 90_000)], at(now));
        assert_eq!(scene.evaluate(at(now)), queued, "at {now}");
        assert_eq!(scene.told("j", at(now)).len(), queued.len(), "at {now}");
    }
}

#[test]
fn an_object_that_is_terminating_for_ten_minutes_is_told_and_counted() {
    let mut scene = Scene::new(vec![ttl(60)], &[terminating("j"), finished("k", 7, 0)], at(0));
    let stuck = |scene: &mut Scene, now| {
        let mut numbers = Numbers::default();
        scene.state.count(JOBS, &mut numbers, 10, now);
        numbers.stuck
    };
    assert_eq!((scene.told("j", at(599)), stuck(&mut scene, at(599))), (vec![], 0));
    let notice = What::Notice(Notice::StuckTerminating { since: END });
    assert_eq!((scene.told("j", at(600)), stuck(&mut scene, at(600))), (vec![notice], 1));
    assert_eq!((scene.told("j", at(700)), stuck(&mut scene, at(700))), (vec![], 1));
}

#[test]
fn a_name_that_is_deleted_and_made_again_three_times_is_a_loop() {
    let mut scene = Scene::new(vec![ttl(0)], &[], at(0));
    for round in 0..4_i64 {
        let now = at(round * 10);
        // Created by whoever makes it again, in the second in which the one before was deleted.
        let text = finished("j", 7, round * 10).replace("uid of j", &format!("u{round}"));
        let text = text.replace("2026-11-22T06:00:00Z", &END.plus(round * 10).to_string());
        let text = text.replace("\"team\":\"x\"", "\"app.kubernetes.io/instance\":\"train\"");
        scene.see("j", &text, now);
        scene.store(now);
        let told = scene.state.take_news().into_iter().map(|news| news.what);
        let origin = Origin::Instance { name: "train".to_owned() };
        let expected = if round == 3 { vec![What::RecreateLoop(origin)] } else { vec![] };
        assert_eq!(told.collect::<Vec<_>>(), expected, "{round}");
        assert!(scene.deletes("j", now), "nothing is held back: {round}");
        let uid = Uid::from(&*format!("u{round}"));
        scene.state.replied(&key("j"), &uid, Reply::Accepted, scene.monotonic);
        assert_eq!(scene.state.loops(END.plus(round * 10)), usize::from(round == 3));
        if round < 3 {
            scene.state.object_gone(JOBS, &key("j").object);
        }
        scene.pass(10);
    }
    let mut survey = Survey::default();
    scene.state.survey(JOBS, &mut survey, 10, at(40));
    assert_eq!(survey.tally(&Uid::from("p")).unwrap().counts.recreated, 1);
}
