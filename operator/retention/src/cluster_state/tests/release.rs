//! TrainJobs that their deadline failed.

use trainjob_retention_core::plan::Release;

use super::*;

fn train_job() -> Target {
    let (api_group, kind) = ("trainer.kubeflow.org".to_owned(), "TrainJob".to_owned());
    Target { api_group, kind, resource: "trainjobs".to_owned(), pods: false, owner_delete: false }
}

/// A policy for TrainJobs.
fn governing(action: &Value) -> StoredPolicy {
    let target = json!({"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob"});
    policy(action, &json!({"target": target}))
}

/// A TrainJob that has ended so many seconds after the others, with this condition and reason.
fn ended(name: &str, after: i64, condition: &str, reason: &str) -> String {
    let mut object: Value = serde_json::from_str(&finished(name, 7, after)).unwrap();
    object["status"]["conditions"][0]["type"] = json!(condition);
    object["status"]["conditions"][0]["reason"] = json!(reason);
    object.to_string()
}

fn failed_by_deadline(name: &str, after: i64) -> String {
    ended(name, after, "Failed", "DeadlineExceeded")
}

fn scene(policy: StoredPolicy, jobs: &[String], now: Now) -> Scene {
    let mut scene = Scene::about(&train_job(), vec![policy]);
    scene.list(jobs, now);
    scene.evaluate(now);
    scene
}

fn uid(name: &str) -> Uid {
    Uid::from(format!("uid of {name}").as_str())
}

impl Scene {
    fn release(&mut self, name: &str, uid: &Uid, answer: Release, now: Now) -> Effects {
        self.state.release_answered(&key(name), uid, answer, now, self.monotonic)
    }

    fn pass_a_minute(&mut self) {
        self.monotonic += Duration::from_mins(1);
        for source in ClusterState::sources(JOBS) {
            self.state.heard(source, self.monotonic);
        }
    }
}

#[test]
fn a_train_job_that_its_deadline_failed_is_deleted_once_it_is_released() {
    let policy = governing(&json!({"ttlSecondsAfterFinished": 60}));
    let mut scene = scene(policy, &[failed_by_deadline("j", 0)], at(60));
    assert_eq!(scene.look("j", at(60)), Step::AskRelease(uid("j")));
    scene.release("j", &uid("another"), Release::Done, at(60));
    assert_eq!(scene.look("j", at(60)), Step::AskRelease(uid("j")), "another of the name");

    scene.release("j", &uid("j"), Release::Pending, at(60));
    let again = Step::Wait(Wait { until: None, longest: Some(Duration::from_mins(1)) });
    assert_eq!(scene.look("j", at(60)), again);
    scene.pass_a_minute();
    assert_eq!(scene.look("j", at(120)), Step::AskRelease(uid("j")));
    scene.release("j", &uid("j"), Release::Done, at(120));
    assert!(scene.deletes("j", at(120)));
}

#[test]
fn a_train_job_that_failed_otherwise_waits_for_no_release() {
    let policy = governing(&json!({"ttlSecondsAfterFinished": 60}));
    let mut scene = scene(policy, &[ended("j", 0, "Failed", "JobsFailed")], at(60));
    assert!(scene.deletes("j", at(60)));
}

#[test]
fn a_released_train_job_takes_a_place_among_those_that_are_kept() {
    let policy = governing(&json!({"keepLast": {"count": 1, "groupBy": ["team"]}}));
    let jobs = [ended("a", 0, "Complete", "AllJobsCompleted"), failed_by_deadline("b", 10)];
    let mut scene = Scene::about(&train_job(), vec![policy]);
    scene.list(&jobs, at(60));
    assert_eq!(scene.evaluate(at(60)), ["b"], "it is asked whether it is released");
    assert!(!scene.deletes("a", at(60)));
    let effects = scene.release("b", &uid("b"), Release::Done, at(60));
    assert!(effects.look.contains(&key("a")), "{effects:?}");
    assert!(scene.deletes("a", at(60)));
    assert!(!scene.deletes("b", at(60)));
}
