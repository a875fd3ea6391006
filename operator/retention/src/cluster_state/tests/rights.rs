//! Which rights are asked about, and what becomes of a policy that lacks one.

use super::*;

/// The right to do this with the Jobs of all namespaces.
fn jobs(verb: Verb) -> Right {
    right("batch", "jobs", verb)
}

fn after_owner(seconds: i64) -> StoredPolicy {
    policy(&json!({"ttlSecondsAfterFinished": seconds}), &json!({"owned": "AfterOwner"}))
}

impl Scene {
    fn refuse(&mut self, name: &str, right: Right) {
        self.state.refused(&key(name), vec![right], self.monotonic);
    }
}

#[test]
fn a_policy_needs_rights_about_its_target_and_about_pods_that_go_earlier() {
    let pods = json!({"rules": [{
        "name": "all", "pods": {"ttlSecondsAfterFinished": 10},
        "action": {"ttlSecondsAfterFinished": 60},
    }]});
    let target = [Verb::List, Verb::Watch, Verb::Delete].map(jobs);
    let of_pods = [Verb::List, Verb::Delete].map(|verb| right("", "pods", verb));
    for (change, expected) in
        [(json!({}), target.to_vec()), (pods, [&of_pods[..], &target[..]].concat())]
    {
        let policy = policy(&json!({"ttlSecondsAfterFinished": 60}), &change);
        let mut scene = Scene::new(vec![policy], &[], at(0));
        assert_eq!(scene.review(&[]), expected, "{change}");
    }
}

#[test]
fn rights_are_asked_about_at_each_new_digest() {
    let mut scene = Scene::new(vec![ttl(60)], &[], at(0));
    for (policy, questions) in
        [(ttl(60), 3), (ttl(60), 0), (ttl(61), 3), (audited(61), 0), (ttl(60), 3)]
    {
        scene.set(policy);
        assert_eq!(scene.review(&[]).len(), questions);
    }
}

#[test]
fn a_missing_right_is_asked_about_every_thirty_seconds_until_it_is_given() {
    let mut scene = Scene::new(vec![ttl(60)], &[], at(0));
    let delete = jobs(Verb::Delete);
    scene.review(slice::from_ref(&delete));
    for (seconds, answer, asked, missing) in [
        (29, Some(false), false, true),
        (1, Some(false), true, true),
        (30, None, true, true),
        (4, Some(false), false, true),
        (1, Some(true), true, false),
        (3_600, Some(true), false, false),
    ] {
        scene.pass(seconds);
        let to_ask = scene.state.rights_to_ask(scene.monotonic);
        assert_eq!(
            to_ask,
            if asked { vec![delete.clone()] } else { vec![] },
            "{seconds} {answer:?}"
        );
        for right in to_ask {
            scene.state.right_answered(&right, answer, scene.monotonic);
        }
        assert_eq!(!scene.missing().is_empty(), missing, "{seconds} {answer:?}");
    }
}

#[test]
fn the_answers_about_a_resource_are_one_rule() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(0));
    scene.review(&[jobs(Verb::Watch), jobs(Verb::Delete)]);
    assert_eq!(scene.missing(), ["watch,delete batch/jobs"]);
    scene.refuse("j", right("jobset.x-k8s.io", "jobsets", Verb::Get));
    scene.review(&[right("jobset.x-k8s.io", "jobsets", Verb::Get)]);
    assert_eq!(scene.missing(), ["watch,delete batch/jobs", "get jobset.x-k8s.io/jobsets"]);
}

#[test]
fn a_refused_request_asks_about_its_right_at_most_every_two_seconds() {
    let mut scene = Scene::new(vec![ttl(60)], &[finished("j", 7, 0)], at(60));
    scene.review(&[]);
    scene.pass(10);
    for (seconds, asked) in [(0, true), (0, false), (1, false), (1, true)] {
        scene.pass(seconds);
        scene.refuse("j", jobs(Verb::Delete));
        let expected = if asked { vec![jobs(Verb::Delete)] } else { vec![] };
        assert_eq!(scene.review(&[]), expected);
    }
    // Somebody else refuses it.
    assert!(scene.deletes("j", at(60)));
}

#[test]
fn a_refused_watch_asks_whether_it_is_allowed() {
    let mut scene = Scene::new(vec![ttl(60)], &[], at(0));
    scene.review(&[]);
    scene.pass(10);
    scene.state.watch_refused(JOBS, scene.monotonic);
    assert_eq!(scene.review(&[jobs(Verb::List)]), [jobs(Verb::List), jobs(Verb::Watch)]);
    assert_eq!(scene.missing(), ["list batch/jobs"]);
}

#[test]
fn a_policy_without_a_right_pauses_until_it_is_given_and_does_not_trip() {
    let names: Vec<_> = (0..60).map(|index| format!("j{index:02}")).collect();
    let jobs_there: Vec<_> = names.iter().map(|name| finished(name, 7, 0)).collect();
    let mut scene = Scene::new(vec![ttl(60)], &jobs_there, at(0));
    scene.review(&[jobs(Verb::Delete)]);
    for name in &names {
        assert_eq!(scene.look(name, at(60)), Step::Idle, "{name}");
    }
    scene.pass(30);
    scene.store(at(90));
    let (change, effects) =
        scene.state.right_answered(&jobs(Verb::Delete), Some(true), scene.monotonic);
    assert_eq!((change, effects.evaluate), (RightChange::Given, true));
    assert_eq!(scene.evaluate(at(90)), names);
    assert_eq!(scene.tripped(), None);
    assert!(scene.deletes("j00", at(90)));
}

#[test]
fn leave_to_be_deleted_is_lost_in_a_pause() {
    let jobs_there = [finished("in-line", 7, 0), finished("with-leave", 7, 0)];
    let mut scene = Scene::new(vec![ttl(60)], &jobs_there, at(60));
    assert_eq!(scene.look("with-leave", at(60)), Step::Line);
    assert_eq!(scene.state.give_leave(at(60), scene.monotonic), Ok(key("with-leave")));
    assert_eq!(scene.look("in-line", at(60)), Step::Line);
    scene.review(&[jobs(Verb::Delete)]);
    for name in ["in-line", "with-leave"] {
        assert_eq!(scene.look(name, at(60)), Step::Idle, "{name}");
    }
    assert_eq!(scene.state.give_leave(at(60), scene.monotonic), Err(None));
    scene.pass(30);
    scene.review(&[]);
    for name in ["in-line", "with-leave"] {
        assert!(scene.deletes(name, at(60)), "{name}");
    }
}

#[test]
fn rights_about_owners_are_learned_from_refused_requests_and_forgotten_at_a_new_digest() {
    let jobs_there = [of_job_set("j"), finished("k", 7, 0)];
    let mut scene = Scene::new(vec![after_owner(60)], &jobs_there, at(60));
    assert_eq!(scene.review(&[]).len(), 3);
    assert!(matches!(scene.look("j", at(60)), Step::AskOwner(_)));
    let get = right("jobset.x-k8s.io", "jobsets", Verb::Get);
    scene.state.owner_refused(&key("j"), slice::from_ref(&get), at(60), scene.monotonic);
    assert_eq!(scene.review(slice::from_ref(&get)), slice::from_ref(&get));
    assert_eq!(scene.missing(), ["get jobset.x-k8s.io/jobsets"]);
    assert!(!scene.state.is_paused(&Uid::from("p")), "anybody may give an object such an owner");
    assert!(scene.deletes("k", at(60)));
    scene.set(after_owner(30));
    assert_eq!(scene.missing(), Vec::<String>::new());
    scene.evaluate(at(60));
    assert!(matches!(scene.look("j", at(60)), Step::AskOwner(_)));
}
