//! Pods that go before their Jobs.

use trainjob_retention_core::{pod_label::PodLabelValue, policy::Phases};

use super::*;

/// Pods go after a minute, Jobs after an hour.
fn pods_first() -> StoredPolicy {
    let rule = json!({"name": "all", "pods": {"ttlSecondsAfterFinished": 60},
        "action": {"ttlSecondsAfterFinished": 3_600}});
    policy(&json!({}), &json!({"rules": [rule]}))
}

/// Knows these Jobs at this time; the list of Pods shows Pods of those.
fn scene(jobs: &[&str], with_pods: &[&str], now: Now) -> Scene {
    let mut scene = Scene::before_the_list(vec![pods_first()]);
    let jobs: Vec<_> = jobs.iter().map(|name| finished(name, 7, 0)).collect();
    scene.list(&jobs, now);
    assert!(scene.evaluate(now).is_empty(), "Pods are not listed yet");
    scene.list_pods(with_pods);
    scene.evaluate(now);
    scene
}

impl Scene {
    fn list_pods(&mut self, with_pods: &[&str]) {
        let lists = self.state.pods_to_list();
        let [list] = lists[..] else { panic!("{lists:?}") };
        assert!(self.state.pods_to_list().is_empty(), "it is under way");
        let mut hints = PodHints::default();
        for name in with_pods {
            hints.add(PodLabelValue::Uid, "a", &format!("uid of {name}"));
        }
        self.state.pods_listed(&list, Some(&hints));
    }

    fn pods(&mut self, name: &str, deleted: u32, left: PodsLeft) -> PodsReplied {
        let (uid, reply) = (Uid::from(&*format!("uid of {name}")), PodsReply { deleted, left });
        self.state.pods_replied(&key(name), &uid, reply, self.monotonic)
    }

    fn deletes_pods(&mut self, name: &str, now: Now) -> bool {
        matches!(self.step(name, now), Step::DeletePods(_))
    }
}

#[test]
fn pods_go_at_their_time_and_the_object_at_its_own() {
    let mut scene = scene(&["j"], &["j"], at(0));
    assert_eq!(
        scene.look("j", at(0)),
        Step::Wait(Wait { until: Some(END.plus(60)), longest: None })
    );
    let Step::DeletePods(deletion) = scene.step("j", at(60)) else { panic!() };
    assert_eq!((deletion.of.due.at, &*deletion.of.rule), (END.plus(60), "all"));
    let replied = scene.pods("j", 3, PodsLeft::None);
    assert_eq!((replied.told, replied.wait), (3, None));
    let waits = Step::Wait(Wait { until: Some(END.plus(3_600)), longest: None });
    assert_eq!(scene.look("j", at(61)), waits);
    assert!(scene.deletes("j", at(3_600)));
}

#[test]
fn pods_go_only_as_long_as_the_same_ones_are_to_go() {
    let mut scene = scene(&["j"], &["j"], at(0));
    let Step::DeletePods(deletion) = scene.step("j", at(60)) else { panic!() };
    let may = |scene: &mut Scene, deletion: &PodsDeletion| {
        let monotonic = scene.monotonic;
        scene.state.may_delete_pods(&key("j"), deletion, at(60), monotonic)
    };
    assert!(may(&mut scene, &deletion));
    let (mut ended, mut other) = (deletion.clone(), deletion.clone());
    ended.pods.stage.phases = match ended.pods.stage.phases {
        Phases::All => Phases::Terminal,
        Phases::Terminal => Phases::All,
    };
    other.of.uid = Uid::from("another");
    assert!(!may(&mut scene, &ended), "of other phases");
    assert!(!may(&mut scene, &other), "of another object");
    assert!(may(&mut scene, &deletion), "to ask changes nothing");
}

#[test]
fn a_start_long_after_pods_went_trips_nothing_and_asks_for_none() {
    let names: Vec<_> = (0..60).map(|index| format!("j{index:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut scene = Scene::before_the_list(vec![pods_first()]);
    let jobs: Vec<_> = names.iter().map(|name| finished(name, 7, 0)).collect();
    scene.list(&jobs, at(2_000));
    scene.list_pods(&names[..2]);
    assert_eq!(scene.evaluate(at(2_000)), ["j00", "j01"]);
    assert_eq!(scene.tripped(), None);
    assert!(scene.deletes_pods("j00", at(2_000)) && !scene.deletes_pods("j02", at(2_000)));
    // With Pods they are as many objects that an edit has made due.
    let mut scene = Scene::before_the_list(vec![pods_first()]);
    scene.list(&jobs, at(2_000));
    scene.list_pods(&names);
    scene.evaluate(at(2_000));
    assert_eq!(scene.tripped(), Some(60));
    assert!(!scene.deletes_pods("j00", at(2_000)));
}

#[test]
fn what_ends_after_the_list_began_may_have_pods() {
    let mut scene = Scene::before_the_list(vec![pods_first()]);
    scene.list(&[finished("j", 7, 0)], at(0));
    let list = scene.state.pods_to_list()[0];
    scene.see("k", &finished("k", 7, 0), at(0));
    scene.state.pods_listed(&list, Some(&PodHints::default()));
    scene.evaluate(at(0));
    assert!(!scene.deletes_pods("j", at(60)) && scene.deletes_pods("k", at(60)));
    scene.pods("k", 1, PodsLeft::None);
    assert!(!scene.deletes_pods("k", at(61)));
    scene.see("k", &finished("k", 8, 20), at(62));
    assert!(scene.deletes_pods("k", at(80)), "it has ended again");
}

#[test]
fn pods_that_may_not_go_are_asked_for_again_in_growing_times() {
    let mut scene = scene(&["j"], &["j"], at(0));
    for minutes in [1, 2, 4, 8, 16, 30, 30] {
        let wait = Some(Duration::from_mins(minutes));
        assert!(scene.deletes_pods("j", at(60)), "{minutes}");
        assert_eq!(scene.pods("j", 0, PodsLeft::Later).wait, wait);
        let rests = Step::Wait(Wait { until: Some(END.plus(3_600)), longest: wait });
        assert_eq!(scene.look("j", at(60)), rests);
        scene.pass(minutes * 60);
    }
    assert_eq!(scene.pods("j", 0, PodsLeft::Later).wait, Some(Duration::from_mins(30)));
    assert!(scene.deletes("j", at(3_600)), "its own time does not wait for that");
}

#[test]
fn pods_of_one_object_go_in_steps_and_are_told_of_once() {
    let mut scene = scene(&["j"], &["j"], at(0));
    for _ in 0..3 {
        assert!(scene.deletes_pods("j", at(60)));
        let replied = scene.pods("j", 20, PodsLeft::Due);
        assert_eq!((replied.told, &*replied.effects.look), (0, &[key("j")][..]));
    }
    assert!(scene.deletes_pods("j", at(60)));
    let replied = scene.pods("j", 2, PodsLeft::Unknown(Reply::Failed));
    assert_eq!((replied.told, replied.wait), (0, Some(Duration::from_secs(1))));
    scene.pass(1);
    assert!(scene.deletes_pods("j", at(60)));
    assert_eq!(scene.pods("j", 5, PodsLeft::None).told, 67);
}

#[test]
fn each_pod_counts_for_the_rate() {
    let limited = json!({"deletesPerSecond": 10, "rules": [{"name": "all",
        "pods": {"ttlSecondsAfterFinished": 60}, "action": {"ttlSecondsAfterFinished": 3_600}}]});
    let mut scene = Scene::before_the_list(vec![policy(&json!({}), &limited)]);
    scene.list(&[finished("j", 7, 0), finished("k", 7, 0)], at(0));
    scene.list_pods(&["j", "k"]);
    scene.evaluate(at(0));
    assert_eq!(scene.look("k", at(60)), Step::Line);
    assert!(scene.state.give_leave(at(60), scene.monotonic).is_ok());
    scene.pods("k", 20, PodsLeft::None);
    assert_eq!(scene.look("j", at(60)), Step::Line);
    let wait = scene.state.give_leave(at(60), scene.monotonic).unwrap_err().unwrap();
    assert!((1_900..=2_100).contains(&wait.as_millis()), "{wait:?}");
}

#[test]
fn pods_are_listed_anew_when_the_right_is_given_again_and_by_a_new_leader() {
    let mut scene = scene(&["j"], &[], at(0));
    scene.pass(60);
    let right =
        Right { resource: Resource { group: "".into(), name: "pods".into() }, verb: Verb::List };
    for is_allowed in [false, true] {
        scene.state.right_answered(&right, Some(is_allowed), scene.monotonic);
    }
    assert!(scene.evaluate(at(1)).is_empty());
    scene.list_pods(&["j"]);
    scene.evaluate(at(1));
    assert!(scene.deletes_pods("j", at(60)));

    scene.state.stand_by();
    assert!(scene.state.take_over().evaluate);
    scene.list_pods(&[]);
    scene.evaluate(at(61));
    assert!(!scene.deletes_pods("j", at(61)));
}
