//! Lives, told step by step as a recorder and a proxy would have noted them.

use std::collections::BTreeSet;

use invariants::{
    Answer, Change, Clock, Condition, History, Job, JobSet, Millis, Object, Request, Rule, State,
    check,
};
use trainjob_api::time::Timestamp;

/// A history in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scenario {
    pub(crate) history: History,
    revision: u64,
}

pub(crate) fn condition(kind: &str, holds: bool, reason: &str, since: i64) -> Condition {
    let (kind, reason) = (kind.to_owned(), reason.to_owned());
    Condition { kind, holds, reason, since: Timestamp(since), observed_generation: None }
}

pub(crate) fn object(
    uid: &str,
    name: &str,
    owner: Option<&str>,
    created: i64,
    state: State,
) -> Object {
    Object {
        namespace: "ns".into(),
        name: name.into(),
        uid: uid.into(),
        created: Timestamp(created),
        deleting: None,
        generation: 1,
        finalizers: Vec::new(),
        owner: owner.map(Into::into),
        state,
    }
}

/// A request of process 1 that has an answer 5 ms later.
pub(crate) fn request(sent: Millis, verb: &str, resource: &str, name: &str) -> Request {
    let code = if verb == "create" { 201 } else { 200 };
    let group = match resource {
        "trainjobs" => "trainer.kubeflow.org",
        "jobsets" => "jobset.x-k8s.io",
        _ => "",
    };
    Request {
        process: 1,
        sent,
        ended: sent + 5,
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        subresource: String::new(),
        namespace: "ns".into(),
        name: name.into(),
        uid: None,
        version: None,
        owner: None,
        suspend: None,
        answer: Answer { code: Some(code), served: Some(code), retry_after: None, version: None },
    }
}

impl Scenario {
    /// A process starts a second before second 1,000, and watches until second 1,060.
    pub(crate) fn new() -> Self {
        let mut scenario = Self::default();
        for sent in (999_000..=1_060_000).step_by(8_000) {
            scenario.history.requests.push(request(sent, "watch", "trainjobs", ""));
        }
        scenario.history.end = 1_060_000;
        scenario
    }

    /// Somebody stores this.
    pub(crate) fn store(&mut self, at: Millis, object: Object) -> u64 {
        self.revision += 1;
        self.history.changes.push(Change { revision: self.revision, at, object, gone: false });
        self.revision
    }

    /// The last version of an object.
    pub(crate) fn last(&self, uid: &str) -> Object {
        self.history.changes.iter().rfind(|it| it.object.uid == uid).unwrap().object.clone()
    }

    pub(crate) fn version(&self, uid: &str) -> u64 {
        self.history.changes.iter().rfind(|it| it.object.uid == uid).unwrap().revision
    }

    /// Somebody changes an object.
    pub(crate) fn change(&mut self, at: Millis, uid: &str, change: impl Fn(&mut Object)) -> u64 {
        let mut object = self.last(uid);
        change(&mut object);
        self.store(at, object)
    }

    /// Somebody changes a TrainJob.
    pub(crate) fn edit(&mut self, at: Millis, uid: &str, edit: impl Fn(&mut Job)) -> u64 {
        self.change(at, uid, |object| edit(job(object)))
    }

    /// An object is gone.
    pub(crate) fn gone(&mut self, at: Millis, uid: &str) {
        self.revision += 1;
        let (revision, object) = (self.revision, self.last(uid));
        self.history.changes.push(Change { revision, at, object, gone: true });
    }

    /// A user creates a TrainJob in second 1,000.
    pub(crate) fn create_job(&mut self, uid: &str, wants: Job) {
        self.store(1_000_000, object(uid, "job", None, 1_000, State::TrainJob(wants)));
    }

    /// The operator creates a child.
    pub(crate) fn create(&mut self, at: Millis, child: Object) {
        let mut create = request(at, "create", child.state.plural(), &child.name);
        create.owner.clone_from(&child.owner);
        create.namespace.clone_from(&child.namespace);
        create.answer.version = Some(self.store(at + 2, child));
        self.history.requests.push(create);
    }

    /// The operator creates snapshot and JobSet.
    pub(crate) fn create_children(&mut self, at: Millis, job: &str, job_set: &str) {
        let snapshot = format!("snapshot-of-{job}");
        self.create(at, object(&snapshot, "job-rt", Some(job), at / 1_000, State::ConfigMap));
        self.create_job_set(at + 10, job, job_set);
    }

    pub(crate) fn create_job_set(&mut self, at: Millis, job: &str, uid: &str) {
        let suspend = self.last(job).job_suspends();
        let state = State::JobSet(JobSet { suspend, ..JobSet::default() });
        self.create(at, object(uid, "job", Some(job), at / 1_000, state));
        let last = self.history.requests.last_mut().unwrap();
        last.suspend = Some(suspend);
    }

    /// The operator writes the status.
    pub(crate) fn write_status(&mut self, at: Millis, uid: &str, write: impl Fn(&mut Job)) {
        let mut patch = request(at, "patch", "trainjobs", &self.last(uid).name);
        patch.subresource = "status".into();
        patch.uid = Some(uid.into());
        patch.version = Some(self.version(uid));
        patch.answer.version = Some(self.edit(at + 2, uid, write));
        self.history.requests.push(patch);
    }

    pub(crate) fn finish(&mut self, at: Millis, uid: &str, kind: &str, reason: &str) {
        let end = condition(kind, true, reason, at / 1_000);
        self.write_status(at, uid, |job| job.conditions.push(end.clone()));
    }

    /// The operator suspends or resumes a JobSet.
    pub(crate) fn suspend(&mut self, at: Millis, uid: &str, suspend: bool) {
        let mut patch = request(at, "patch", "jobsets", "job");
        patch.uid = Some(uid.into());
        patch.version = Some(self.version(uid));
        patch.suspend = Some(suspend);
        patch.answer.version = Some(self.change(at + 2, uid, |it| job_set(it).suspend = suspend));
        self.history.requests.push(patch);
    }

    /// The operator deletes a TrainJob (with its version) or a JobSet (without), in the foreground.
    pub(crate) fn delete(&mut self, at: Millis, uid: &str) {
        let object = self.last(uid);
        let mut delete = request(at, "delete", object.state.plural(), &object.name);
        delete.uid = Some(uid.into());
        let is_job = matches!(object.state, State::TrainJob(_));
        delete.version = is_job.then(|| self.version(uid));
        delete.answer.version = Some(self.terminate(at + 2, uid));
        self.history.requests.push(delete);
    }

    /// Somebody deletes an object in the foreground.
    pub(crate) fn terminate(&mut self, at: Millis, uid: &str) -> u64 {
        self.change(at, uid, |object| {
            object.deleting = Some(Timestamp(at / 1_000));
            object.finalizers.push("foregroundDeletion".into());
        })
    }

    /// The JobSet reports its end.
    pub(crate) fn end_job_set(&mut self, at: Millis, uid: &str, kind: &str) {
        let end = condition(kind, true, "Over", at / 1_000);
        self.change(at, uid, |it| job_set(it).conditions.push(end.clone()));
    }

    /// The one request with this verb and resource.
    pub(crate) fn asked(&mut self, verb: &str, resource: &str) -> &mut Request {
        let mut requests = self.history.requests.iter_mut();
        requests.find(|it| it.verb == verb && it.resource == resource).unwrap()
    }

    /// The rules that this scenario breaks, each with how.
    pub(crate) fn broken(mut self) -> (BTreeSet<Rule>, Vec<String>) {
        self.history.requests.sort_by_key(|request| request.sent);
        let found = check(&self.history);
        (found.iter().map(|it| it.rule).collect(), found.iter().map(ToString::to_string).collect())
    }
}

trait Suspends {
    fn job_suspends(&self) -> bool;
}

impl Suspends for Object {
    fn job_suspends(&self) -> bool {
        matches!(&self.state, State::TrainJob(job) if job.suspend)
    }
}

pub(crate) fn job(object: &mut Object) -> &mut Job {
    let State::TrainJob(job) = &mut object.state else { panic!("no TrainJob") };
    job
}

pub(crate) fn job_set(object: &mut Object) -> &mut JobSet {
    let State::JobSet(job_set) = &mut object.state else { panic!("no JobSet") };
    job_set
}

/// A job runs in second 1,000, completes in second 1,002, and lives for ten more.
pub(crate) fn finished() -> Scenario {
    let mut scenario = Scenario::new();
    scenario.create_job("job", Job { ttl: Some(10), ..Job::default() });
    scenario.create_children(1_000_100, "job", "set");
    scenario.end_job_set(1_002_000, "set", "Completed");
    scenario.finish(1_002_010, "job", "Complete", "Over");
    scenario
}

/// Its TTL deletes it.
pub(crate) fn complete() -> Scenario {
    let mut scenario = finished();
    scenario.delete(1_012_003, "job");
    vanish(&mut scenario, 1_012_100);
    scenario
}

/// The garbage collector takes the children, and then the job.
pub(crate) fn vanish(scenario: &mut Scenario, at: Millis) {
    scenario.terminate(at, "set");
    scenario.gone(at + 10, "set");
    scenario.gone(at + 20, "snapshot-of-job");
    scenario.gone(at + 30, "job");
}

/// A job runs in second 1,000 and may do so until second 1,010.
pub(crate) fn running() -> Scenario {
    let mut scenario = Scenario::new();
    scenario.create_job("job", Job { deadline: Some(10), ttl: Some(10), ..Job::default() });
    scenario.create_children(1_000_100, "job", "set");
    scenario
        .store(1_001_000, object("pod", "pod", Some("set"), 1_001, State::Pod { running: true }));
    scenario
}

/// Its deadline fails it, and its JobSet is deleted.
pub(crate) fn exceeded() -> Scenario {
    let mut scenario = running();
    scenario.finish(1_010_004, "job", "Failed", "DeadlineExceeded");
    scenario.delete(1_010_010, "set");
    scenario
}

/// It is released.
pub(crate) fn released() -> Scenario {
    let mut scenario = exceeded();
    scenario.gone(1_010_900, "pod");
    scenario.gone(1_011_000, "set");
    scenario
}

/// Its TTL deletes it.
pub(crate) fn deadline() -> Scenario {
    let mut scenario = released();
    scenario.delete(1_020_005, "job");
    scenario.gone(1_020_100, "snapshot-of-job");
    scenario.gone(1_020_110, "job");
    scenario
}

/// A job is created suspended, resumed in second 1,005 and completes in second 1,008.
pub(crate) fn resumed(clock: Clock) -> Scenario {
    let mut scenario = Scenario::new();
    scenario.history.terms.clock = clock;
    let wants = Job { suspend: true, deadline: Some(20), ..Job::default() };
    scenario.create_job("job", wants);
    scenario.create_children(1_000_100, "job", "set");
    let suspended = condition("Suspended", true, "Suspended", 1_000);
    scenario.write_status(1_000_120, "job", |job| job.conditions = vec![suspended.clone()]);
    scenario.edit(1_005_000, "job", |job| job.suspend = false);
    let resumed = condition("Suspended", false, "Resumed", 1_005);
    scenario.write_status(1_005_010, "job", |job| job.conditions = vec![resumed.clone()]);
    scenario.suspend(1_005_020, "set", false);
    scenario
}

/// A job is deleted by its user while it runs, and another one of the same name is created.
pub(crate) fn recreated() -> Scenario {
    let mut scenario = running();
    scenario.terminate(1_003_000, "job");
    scenario.gone(1_003_010, "pod");
    vanish(&mut scenario, 1_003_100);
    let mut again = object("job-2", "job", None, 1_004, State::TrainJob(Job::default()));
    again.generation = 1;
    scenario.store(1_004_000, again);
    scenario.create_children(1_004_010, "job-2", "set-2");
    scenario
}
