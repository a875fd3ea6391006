//! Flows whose deletions fail.

use super::*;

/// The Job of this name in another namespace.
fn elsewhere(name: &str) -> String {
    let text = finished(name, 7, 0).replace("uid of", "uid elsewhere of");
    text.replace("\"namespace\":\"a\"", "\"namespace\":\"b\"")
}

#[test]
fn others_of_the_flow_wait_without_a_place_in_the_line_until_a_probe_succeeds() {
    let jobs = ["j", "k", "l"].map(|name| finished(name, 7, 0));
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(60));
    assert_eq!(scene.look("k", at(60)), Step::Line);
    scene.fail_five_times("j");
    let waits = Step::Wait(Wait::default());
    for name in ["k", "l"] {
        assert_eq!(scene.look(name, at(60)), waits, "{name}");
    }
    assert_eq!(scene.state.give_leave(at(60), scene.monotonic), Err(None), "nobody is in line");
    assert_eq!(scene.state.backing_off(), 1);

    let all = ["j", "k", "l"].map(str::to_owned);
    scene.pass(1);
    scene.store(at(61));
    assert!(scene.evaluate(at(61)).ends_with(&all), "the flow may be probed");
    assert!(scene.deletes("k", at(61)), "this is the probe");
    assert_eq!(scene.look("l", at(61)), waits);
    scene.reply("k", Reply::Accepted);
    assert!(scene.evaluate(at(62)).ends_with(&all));
    assert!(scene.deletes("l", at(62)));
    assert_eq!(scene.state.backing_off(), 0);
}

#[test]
fn probe_whose_object_is_gone_before_its_answer_is_read_ends_the_backoff_too() {
    let jobs = ["j", "k", "l"].map(|name| finished(name, 7, 0));
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(60));
    scene.fail_five_times("j");
    scene.pass(1);
    scene.store(at(61));
    scene.evaluate(at(61));
    assert!(scene.deletes("k", at(61)), "this is the probe");
    scene.state.object_gone(JOBS, &key("k").object);
    scene.reply("k", Reply::Accepted);
    assert_eq!(scene.state.backing_off(), 0);
    assert!(scene.evaluate(at(62)).contains(&"l".to_owned()));
    assert!(scene.deletes("l", at(62)));
}

/// Some that nothing lets go would keep all others from being tried.
#[test]
fn object_whose_deletion_has_failed_goes_behind_the_backlog() {
    let jobs = [finished("j", 7, 0), finished("k", 7, 10)];
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(600));
    let goes_first = |scene: &mut Scene, expected| {
        for name in ["j", "k"] {
            assert_eq!(scene.look(name, at(600)), Step::Line, "{name}");
        }
        assert_eq!(scene.state.give_leave(at(600), scene.monotonic), Ok(key(expected)));
        assert!(matches!(scene.look(expected, at(600)), Step::Delete(_)));
    };
    goes_first(&mut scene, "j");
    scene.reply("j", Reply::Failed);
    scene.pass(1);
    goes_first(&mut scene, "k");
}

#[test]
fn another_namespace_of_the_kind_goes_on() {
    let mut jobs = vec![finished("j", 7, 0)];
    jobs.push(elsewhere("j"));
    let mut scene = Scene::about(&job(), vec![]);
    let anywhere = json!({"spec": {"target": {"apiGroup": "batch", "kind": "Job"}, "mode": "Enforce",
        "deletesPerSecond": 0, "rules": [{"name": "all", "action": {"ttlSecondsAfterFinished": 60}}]},
        "metadata": {"name": "p", "uid": "p", "generation": 1,
            "creationTimestamp": "2026-11-22T06:00:00Z"}});
    let text = anywhere.to_string();
    let stored = stored::read(PolicyKind::Cluster, &text, &mut Definitions::default()).unwrap();
    let key = PolicyKey { kind: PolicyKind::Cluster, namespace: "".into(), name: "p".into() };
    scene.state.policy(key, Ok(stored), None, scene.monotonic);
    scene.state.namespace(Metadata { name: "b".to_owned(), ..Metadata::default() });
    scene.list(&jobs, at(60));
    scene.evaluate(at(60));
    scene.fail_five_times("j");
    assert_eq!(scene.state.backing_off(), 1);
    let other = ObjectKey::new("b", "j");
    let other = Key { target: JOBS, object: other };
    assert_eq!(scene.state.look(&other, at(60), scene.monotonic), Step::Line);
    assert_eq!(scene.state.give_leave(at(60), scene.monotonic), Ok(other.clone()));
    assert!(matches!(scene.state.look(&other, at(60), scene.monotonic), Step::Delete(_)));
}

#[test]
fn denied_flow_is_probed_after_one_two_four_and_more_seconds() {
    let names: Vec<_> = (0..12).map(|number| format!("j{number:02}")).collect();
    let jobs: Vec<_> = names.iter().map(|name| finished(name, 7, 0)).collect();
    let mut scene = Scene::new(vec![ttl(60)], &jobs, at(60));
    let mut sent = Vec::new();
    for second in 0..40 {
        let now = at(60 + second);
        scene.store(now);
        scene.evaluate(now);
        for name in &names {
            scene.look(name, now);
        }
        let mut leave = Vec::new();
        while let Ok(key) = scene.state.give_leave(now, scene.monotonic) {
            leave.push(key.object.name.to_string());
        }
        for name in leave {
            if matches!(scene.look(&name, now), Step::Delete(_)) {
                sent.push(second);
                scene.reply(&name, Reply::Failed);
            }
        }
        scene.pass(1);
    }
    assert_eq!(sent, [0, 0, 0, 0, 0, 1, 3, 7, 15, 31]);
}

impl Scene {
    /// The deletion of an object that is due fails five times in a row, each as soon as it is tried again.
    fn fail_five_times(&mut self, name: &str) {
        for wait in [0, 1, 2, 4, 8] {
            self.pass(wait);
            assert!(self.deletes_next(name, at(60)), "after {wait} s");
            self.reply(name, Reply::Failed);
        }
    }

    /// Whether it is deleted, whoever else gets leave before it.
    fn deletes_next(&mut self, name: &str, now: Now) -> bool {
        let mut step = self.look(name, now);
        while step == Step::Line && self.state.give_leave(now, self.monotonic).is_ok() {
            step = self.look(name, now);
        }
        matches!(step, Step::Delete(_))
    }
}
