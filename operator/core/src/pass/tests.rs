mod learned;
mod priority;

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde_json::json;
use trainjob_api::{JobSet, TrainJob, v1alpha1::GROUP};

use super::*;
use crate::{
    action::{StatusWrite, Urgency},
    build::{SecretClaim, SecretContent},
    event::Event,
    facts::{JobFacts, JobSetFacts},
    mark::Marking,
    observed::{NameConflict, Reading, Readings, Settings},
    running_pods::{PodCheck, RunningPods},
    text::Text,
};

const UID: &str = "U";
const START: Duration = Duration::from_secs(1_000);

fn facts(finished: bool) -> JobFacts {
    let end = json!([{"type": "Complete", "status": "True", "reason": "AllJobsCompleted",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status = if finished { json!({"conditions": end}) } else { json!({}) };
    let job: TrainJob = serde_json::from_value(json!({
        "metadata": {"namespace": "ns", "name": "job", "uid": UID, "resourceVersion": "1"},
        "spec": {"runtimeRef": {"name": "r"}},
        "status": status,
    }))
    .unwrap();
    JobFacts::of(&job)
}

fn job_set(uid: &str, owner: &str, version: u64, generation: i64) -> JobSetFacts {
    let owner = json!([{"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "TrainJob",
        "name": "job", "uid": owner, "controller": true}]);
    JobSetFacts::of(
        &serde_json::from_value(json!({"metadata": {
            "uid": uid, "resourceVersion": version.to_string(), "generation": generation,
            "ownerReferences": owner,
        }}))
        .unwrap(),
    )
}

fn config_map(owner: &str, text: &str) -> ConfigMap {
    let owner = json!([{"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "TrainJob",
        "name": "job", "uid": owner, "controller": true}]);
    let metadata =
        json!({"name": "files", "uid": "F", "resourceVersion": "3", "ownerReferences": owner});
    serde_json::from_value(json!({"metadata": metadata, "data": {"file": text}})).unwrap()
}

fn create_job_set() -> Action {
    let job_set = Text::of(&JobSet::default()).unwrap();
    Action::CreateJobSet { job_set, marking: Marking::Off }
}

fn read(config_map: ConfigMap) -> Reply {
    Reply::ConfigMap(Box::new(Reading::Found(config_map)))
}

fn counts() -> Action {
    Action::WriteStatus(StatusWrite {
        uid: UID.into(),
        resource_version: "1".into(),
        conditions: None,
        jobs_status: Some(Vec::new()),
        urgency: Urgency::Coalesced,
        deadline_due: None,
    })
}

fn plan(actions: Vec<Action>) -> Plan {
    Plan { actions, ..Plan::default() }
}

/// A job, and what is remembered of it.
#[derive(Default)]
struct Scene {
    memory: JobMemory,
    finished: bool,
}

impl Scene {
    fn next(&mut self, pass: &mut Pass, now: Duration) -> Next {
        pass.next(&mut self.memory, None, now)
    }

    fn planned(&self, pass: &mut Pass, plan: Plan, now: Duration) {
        let (job, readings) = (facts(self.finished), self.memory.readings());
        let settings = Settings::default();
        let observed = Observed::of(&job, &readings, &settings);
        pass.planned(&observed, plan, &self.memory, now);
    }

    /// A pass that waits for the answer to the first action of a plan.
    fn acting(&mut self, actions: Vec<Action>) -> Pass {
        let mut pass = Pass::new(Priority::Live);
        assert_eq!(self.next(&mut pass, START), Next::Plan);
        self.planned(&mut pass, plan(actions), START);
        assert_eq!(self.next(&mut pass, START), Next::Call);
        pass
    }

    fn answered(&mut self, pass: &mut Pass, answer: Result<Reply, Failure>) -> Answered {
        pass.answered(&mut self.memory, answer, None, START)
    }

    fn settled(&mut self, plan: Plan) -> Option<Retry> {
        let mut pass = Pass::new(Priority::Live);
        assert_eq!(self.next(&mut pass, START), Next::Plan);
        self.planned(&mut pass, plan, START);
        match self.next(&mut pass, START) {
            Next::Over(Over { end: End::Settled, retry }) => retry,
            other => panic!("not settled: {other:?}"),
        }
    }
}

const fn failed(class: Class) -> Result<Reply, Failure> {
    Err(Failure { class, reached: true })
}

#[test]
fn actions_are_carried_out_in_their_order_and_then_the_job_is_planned_again() {
    let mut scene = Scene::default();
    let told = Action::RecordEvent(Event::CreationFailed("why".into()));
    let mut pass = scene.acting(vec![Action::ReadSnapshot, Action::ReadJobSet, told.clone()]);
    for action in [Action::ReadSnapshot, Action::ReadJobSet, told] {
        assert_eq!(scene.next(&mut pass, START), Next::Call);
        assert_eq!(pass.call(), Some(Call::Act(&action)));
        assert_eq!(scene.answered(&mut pass, Ok(Reply::Done)), Answered::Done);
    }
    assert_eq!(scene.next(&mut pass, START), Next::Plan);
}

#[test]
fn plan_with_nothing_to_do_settles_the_job_and_documents_are_forgotten() {
    let mut scene = Scene::default();
    let mut pass = scene.acting(vec![Action::ReadSnapshot]);
    scene.answered(&mut pass, Ok(read(config_map(UID, "a"))));
    assert_ne!(scene.memory.readings().snapshot, Reading::NotRead);
    assert_eq!(scene.settled(plan(vec![])), None);
    assert_eq!(scene.memory, JobMemory::default());
}

#[test]
fn job_that_waits_for_what_nothing_watches_is_asked_for_again_and_again() {
    let mut scene = Scene::default();
    let waiting = || Plan { waiting: Some(Waiting::Release), ..Plan::default() };
    for backoff in [100, 200, 400] {
        scene.memory.readings.pods = Reading::Found(RunningPods::unnamed());
        let retry = scene.settled(waiting()).unwrap();
        assert_eq!(retry, Retry { backoff: Duration::from_millis(backoff), ..Retry::default() });
        assert_eq!(scene.memory.readings().pods, Reading::NotRead);
    }
    assert_eq!(scene.settled(Plan { waiting: Some(Waiting::JobSet), ..Plan::default() }), None);
}

#[test]
fn job_is_left_for_another_pass_after_eight_rounds() {
    let mut scene = Scene::default();
    let mut pass = Pass::new(Priority::Live);
    for _ in 0..ROUNDS {
        assert_eq!(scene.next(&mut pass, START), Next::Plan);
        scene.planned(&mut pass, plan(vec![Action::ReadSnapshot]), START);
        scene.answered(&mut pass, Ok(read(config_map(UID, "a"))));
    }
    let Next::Over(Over { end: End::Postponed, retry: Some(retry) }) = scene.next(&mut pass, START)
    else {
        panic!("it goes on");
    };
    assert_eq!(retry.backoff, Duration::from_millis(100));
    assert_eq!(scene.memory.readings().snapshot, Reading::NotRead, "it is old by then");
}

#[test]
fn counts_are_written_at_most_every_quarter_of_a_second() {
    let mut scene = Scene::default();
    let mut pass = scene.acting(vec![counts()]);
    assert_eq!(scene.answered(&mut pass, Ok(Reply::Done)), Answered::Done);
    for (after, postponed) in [(0, Some(250)), (100, Some(150)), (249, Some(1)), (250, None)] {
        let now = START + Duration::from_millis(after);
        let mut pass = Pass::new(Priority::Live);
        scene.next(&mut pass, now);
        scene.planned(&mut pass, plan(vec![counts()]), now);
        let next = scene.next(&mut pass, now);
        let retry = postponed
            .map(|wait| Retry { at_least: Duration::from_millis(wait), ..Retry::default() });
        let settled = Next::Over(Over { end: End::Settled, retry });
        let expected = if postponed.is_some() { settled } else { Next::Call };
        assert_eq!(next, expected, "after {after} ms");
    }
}

#[test]
fn object_in_the_way_is_judged_by_its_owner_and_by_what_it_says() {
    let wanted = || config_map(UID, "a");
    let files = || Action::CreateConfigMap(Box::new(wanted()));
    let foreign = |kind, name: &str| Some(NameConflict::Foreign { kind, name: name.into() });
    let outdated = NameConflict::Outdated {
        name: "files".into(),
        uid: "F".into(),
        resource_version: "3".into(),
    };
    let claim: SecretClaim = secret();
    let probe =
        || Action::ProbeSecret { claim: Box::new(claim.clone()), witness: Some("files".into()) };
    for (what, action, there, answered, expected) in [
        ("own files", files(), read(wanted()), Answered::Done, None),
        (
            "own files from before a change",
            files(),
            read(config_map(UID, "b")),
            Answered::Continued,
            Some(outdated),
        ),
        (
            "files of somebody else",
            files(),
            read(config_map("V", "a")),
            Answered::Continued,
            foreign("ConfigMap", "files"),
        ),
        (
            "files that are gone again",
            files(),
            Reply::ConfigMap(Box::new(Reading::Absent)),
            Answered::Continued,
            None,
        ),
        ("own Secret", probe(), read(wanted()), Answered::Done, None),
        (
            "Secret without a witness",
            probe(),
            Reply::ConfigMap(Box::new(Reading::Absent)),
            Answered::Continued,
            foreign("Secret", "keys"),
        ),
    ] {
        let mut scene = Scene::default();
        let mut pass = scene.acting(vec![action.clone()]);
        let exists = scene.answered(&mut pass, failed(Class::Exists));
        assert_eq!(exists, Answered::Continued, "{what}");
        assert_eq!(scene.next(&mut pass, START), Next::Call, "{what}");
        assert_eq!(pass.call(), Some(Call::Inspect(&action)), "{what}");
        assert_eq!(scene.answered(&mut pass, Ok(there)), answered, "{what}");
        assert_eq!(scene.memory.readings().name_conflict, expected, "{what}");
        assert_eq!(scene.next(&mut pass, START), Next::Plan, "{what}");
    }
}

fn secret() -> SecretClaim {
    let metadata = ObjectMeta { name: Some("keys".into()), ..ObjectMeta::default() };
    SecretClaim { metadata, content: SecretContent::SshKeys }
}

#[test]
fn what_was_read_of_an_outdated_config_map_is_forgotten_whatever_becomes_of_its_deletion() {
    for answer in [Ok(Reply::Done), failed(Class::Conflict)] {
        let mut scene = Scene::default();
        let taken = NameConflict::Terminating { name: "files".into() };
        scene.memory.readings.name_conflict = Some(taken);
        let mut pass = scene.acting(vec![Action::DeleteConfigMap {
            name: "files".into(),
            uid: "F".into(),
            resource_version: "3".into(),
        }]);
        scene.answered(&mut pass, answer);
        assert_eq!(scene.memory.readings().name_conflict, None);
    }
}

#[test]
fn secret_that_exists_is_the_jobs_own_once_its_name_was_free() {
    let mut scene = Scene::default();
    let mut pass = scene.acting(vec![Action::CreateSecret(Box::new(secret()))]);
    assert_eq!(scene.answered(&mut pass, failed(Class::Exists)), Answered::Done);
}

#[test]
fn jobset_in_the_way_is_planned_with_if_it_is_the_jobs_own_and_fails_the_pass_if_not() {
    for (what, there, expected) in [
        ("own", Some(job_set("J", UID, 5, 1)), Answered::Continued),
        ("gone again", None, Answered::Continued),
        ("of somebody else", Some(job_set("J", "V", 5, 1)), Answered::Foreign { tell: false }),
    ] {
        let mut scene = Scene::default();
        let mut pass = scene.acting(vec![create_job_set()]);
        scene.answered(&mut pass, failed(Class::Exists));
        let answer = Ok(Reply::JobSetOfName(there.map(Box::new)));
        assert_eq!(scene.answered(&mut pass, answer), expected, "{what}");
        let failed = matches!(expected, Answered::Foreign { .. });
        assert_eq!(pass.failed_action().is_some(), failed, "{what}");
    }
}

#[test]
fn failure_ends_the_pass_and_says_when_to_try_again() {
    let seconds = Duration::from_secs;
    for (class, backoff, at_least) in [
        (Class::Transient, Duration::from_millis(100), Duration::ZERO),
        (Class::Conflict, Duration::from_millis(100), Duration::ZERO),
        (Class::Throttled(seconds(7)), Duration::from_millis(100), seconds(7)),
        (Class::Throttled(seconds(99)), Duration::from_millis(100), seconds(30)),
        (Class::NamespaceGoing, Duration::from_millis(100), seconds(30)),
        (Class::KindUndiscovered, seconds(2), Duration::ZERO),
    ] {
        let mut scene = Scene::default();
        let mut pass = scene.acting(vec![Action::ReadSnapshot, Action::ReadJobSet]);
        let answered = scene.answered(&mut pass, failed(class));
        assert_eq!(answered, Answered::Failed { tell: false }, "{class:?}");
        let retry = Some(Retry { backoff, at_least });
        let over = Next::Over(Over { end: End::Failed, retry });
        assert_eq!(scene.next(&mut pass, START), over, "{class:?}");
        assert_eq!(pass.failed_action(), Some(&Action::ReadSnapshot), "{class:?}");
    }
}

#[test]
fn throttled_job_is_not_worked_on_until_its_wait_is_over_whatever_happens_to_it() {
    let mut scene = Scene::default();
    let mut pass = scene.acting(vec![Action::ReadSnapshot]);
    scene.answered(&mut pass, failed(Class::Throttled(Duration::from_secs(7))));
    let mut pass = Pass::new(Priority::Live);
    let at_least = Duration::from_secs(6);
    let retry = Some(Retry { at_least, ..Retry::default() });
    let wait = Next::Over(Over { end: End::Postponed, retry });
    assert_eq!(scene.next(&mut pass, START + Duration::from_secs(1)), wait);
    let mut pass = Pass::new(Priority::Live);
    assert_eq!(scene.next(&mut pass, START + Duration::from_secs(7)), Next::Plan);
}

#[test]
fn digest_of_a_jobset_is_known_until_somebody_else_changes_it() {
    for (what, shown, replied, known) in [
        ("nothing", (10, 1), None, true),
        ("its status", (12, 1), None, true),
        ("its spec", (12, 2), None, false),
        ("our own change, seen before its reply came", (12, 2), Some((12, 2)), true),
        ("our own change, and then another", (13, 3), Some((12, 2)), false),
    ] {
        let mut memory = JobMemory::default();
        let first = job_set("J", UID, 10, 1);
        memory.job_set_shown(None, &first, true, ShownBy::Watch);
        memory.spec_applied(7, None);
        let before = memory.readings().edited;
        let second = job_set("J", UID, shown.0, shown.1);
        memory.job_set_shown(Some(&first), &second, shown.0 > 10, ShownBy::Watch);
        if let Some((version, generation)) = replied {
            let reply = job_set("J", UID, version, generation);
            memory.job_set_shown(Some(&second), &reply, false, ShownBy::Reply);
        }
        assert_eq!(memory.readings().applied_spec_hash, known.then_some(7), "{what}");
        // A plan that was made before does not know better.
        memory.spec_applied(8, before);
        assert_eq!(memory.readings().applied_spec_hash, known.then_some(8), "{what}");
        // One that was made since does.
        memory.spec_applied(9, memory.readings().edited);
        assert_eq!(memory.readings().applied_spec_hash, Some(9), "{what}");
    }
}

#[test]
fn jobset_that_is_gone_or_replaced_takes_what_was_read_of_it_along() {
    let first = job_set("J", UID, 10, 1);
    let known = || {
        let mut memory = JobMemory::default();
        memory.spec_applied(7, None);
        memory.pods_checked(PodCheck::default());
        memory
    };
    let mut replaced = known();
    replaced.job_set_shown(Some(&first), &job_set("K", UID, 11, 1), true, ShownBy::Watch);
    assert_eq!(replaced, JobMemory::default());
    for (owner, finished, needs_existence_check) in
        [(UID, false, true), (UID, true, false), ("V", false, false)]
    {
        let mut memory = known();
        memory.job_set_gone(&job_set("J", owner, 10, 1), &facts(finished));
        let readings = Readings { needs_existence_check, ..Readings::default() };
        assert_eq!(memory.readings(), readings, "{owner} {finished}");
    }
}

#[test]
fn answer_that_nobody_waits_for_changes_nothing() {
    let mut scene = Scene::default();
    let mut pass = scene.acting(vec![Action::ReadSnapshot]);
    scene.answered(&mut pass, failed(Class::Transient));
    let over = scene.next(&mut pass, START);
    assert_eq!(scene.answered(&mut pass, Ok(Reply::Done)), Answered::Continued);
    assert_eq!(scene.next(&mut pass, START), over);
}
