//! What happened, as the history that all instruments share.

use std::hash::{DefaultHasher, Hash, Hasher};

use invariants::{Change, Condition, Job, JobSet, Object, Request as Entry, State};
use json_patch::{AddOperation, Patch, PatchOperation, ReplaceOperation};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1 as meta};
use trainjob_api::time::Timestamp;
use trainjob_core::{action::Action, facts::controlling_train_job, observed::Reading};

use super::{
    Server,
    requests::{Answer, Call, Refusal, Reply, Request},
};
use crate::objects::{StoredJob, StoredJobSet, conditions, hold};

fn object(metadata: &meta::ObjectMeta, owner: Option<String>, state: State) -> Object {
    let instant = |time: Option<&meta::Time>| time.map(Timestamp::from);
    Object {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        created: instant(metadata.creation_timestamp.as_ref()).unwrap_or_default(),
        deleting: instant(metadata.deletion_timestamp.as_ref()),
        generation: metadata.generation.unwrap_or_default(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
        owner,
        state,
    }
}

fn brief(conditions: &[meta::Condition]) -> Vec<Condition> {
    let brief = |condition: &meta::Condition| Condition {
        kind: condition.type_.clone(),
        holds: condition.status == "True",
        reason: condition.reason.clone(),
        since: Timestamp::from(&condition.last_transition_time),
        observed_generation: condition.observed_generation,
    };
    conditions.iter().map(brief).collect()
}

impl Server {
    fn record(&mut self, revision: u64, object: Object, gone: bool) {
        self.history.changes.push(Change { revision, at: self.now, object, gone });
    }

    pub(super) fn record_job(&mut self, revision: u64, job: &StoredJob, gone: bool) {
        let StoredJob { manifest, facts, .. } = job;
        let mut counts = DefaultHasher::new();
        facts.jobs_status.hash(&mut counts);
        let state = State::TrainJob(Job {
            suspend: facts.suspend,
            deadline: manifest.spec.active_deadline_seconds,
            ttl: manifest.spec.ttl_seconds_after_finished.map(i64::from),
            hold: hold(manifest),
            managed_elsewhere: facts.managed_elsewhere,
            remote_copy: facts.remote_copy,
            conditions: brief(conditions(manifest)),
            counts: if facts.jobs_status.is_empty() { 0 } else { counts.finish() },
        });
        self.record(revision, object(&manifest.metadata, None, state), gone);
    }

    pub(super) fn record_job_set(&mut self, revision: u64, job_set: &StoredJobSet, gone: bool) {
        let StoredJobSet { object: stored, facts } = job_set;
        let status = stored.status.as_ref();
        let state = State::JobSet(JobSet {
            suspend: facts.suspended,
            conditions: status.map(|status| brief(&status.conditions)).unwrap_or_default(),
        });
        self.record(revision, object(&stored.metadata, facts.train_job_uid.clone(), state), gone);
    }

    pub(super) fn record_snapshot(&mut self, revision: u64, config_map: &ConfigMap, gone: bool) {
        let owner = controlling_train_job(&config_map.metadata).map(|owner| owner.uid.clone());
        let mut object = object(&config_map.metadata, owner, State::ConfigMap);
        object.uid = format!("{}-of-{}", object.name, object.owner.as_deref().unwrap_or("nobody"));
        object.created = self.second();
        self.record(revision, object, gone);
    }

    pub(super) fn record_pod(&mut self, name: usize, job_set: &str, running: bool) {
        let revision = self.next_revision();
        let Some(key) = self.slots.get(name).map(|slot| slot.key.clone()) else { return };
        let pod = Object {
            namespace: key.namespace.to_string(),
            name: format!("{}-{job_set}", key.name),
            uid: format!("pod-of-{job_set}"),
            created: self.second(),
            deleting: None,
            generation: 0,
            finalizers: Vec::new(),
            owner: Some(job_set.to_owned()),
            state: State::Pod { running },
        };
        self.record(revision, pod, !running);
    }

    /// Writes down that a process starts: it lists the jobs.
    pub fn record_start(&mut self, process: u32, at: invariants::Millis) {
        let served = Some(200);
        self.history.requests.push(Entry {
            sent: at,
            ended: at,
            answer: invariants::Answer { code: served, served, retry_after: None, version: None },
            ..blank(process, "list", JOBS)
        });
    }

    /// Writes down that a request is sent; returns where.
    pub fn record_request(&mut self, request: &Request, sent: invariants::Millis) -> usize {
        let mut entry = entry(request);
        (entry.sent, entry.ended) = (sent, sent);
        self.history.requests.push(entry);
        self.history.requests.len() - 1
    }

    pub(super) fn record_answer(&mut self, request: &Request, answer: &Answer) {
        let version = match answer {
            Ok(Reply::Job(Some(job))) => job.facts.resource_version.parse().ok(),
            Ok(Reply::JobSet(Some(job_set))) => job_set.facts.resource_version.parse().ok(),
            _ => None,
        };
        let created = matches!(
            request.call,
            Call::Act(Action::CreateJobSet { .. } | Action::CreateSnapshot(_))
        );
        let code = match answer {
            Ok(Reply::Snapshot(found)) if **found == Reading::Absent => Some(404),
            Ok(_) if created => Some(201),
            Ok(_) => Some(200),
            Err(refusal) => code(*refusal),
        };
        if let Some(entry) = self.history.requests.get_mut(request.entry) {
            (entry.answer.served, entry.answer.version) = (code, version);
        }
    }

    /// Writes down what the operator learned of its request. How long it was told to wait is left out:
    /// a deadline waits for a part of it, and the next job of the name for none.
    pub fn record_reply(&mut self, request: &Request, answer: &Answer, ended: invariants::Millis) {
        if let Some(entry) = self.history.requests.get_mut(request.entry) {
            entry.ended = ended;
            entry.answer.code = match answer {
                Ok(_) => entry.answer.served,
                Err(refusal) => code(*refusal),
            };
        }
    }
}

fn entry(request: &Request) -> Entry {
    let key = &request.job.facts.key;
    let (verb, group, resource) = names(&request.call);
    let mut entry = Entry {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        ..blank(request.process, verb, (group, resource))
    };
    if let Call::Act(action) = &request.call {
        describe(&mut entry, action);
    }
    if resource == "configmaps" {
        entry.name = trainjob_core::build::snapshot::name(&key.name);
    } else if resource == "pods" {
        entry.name = String::new();
    }
    entry
}

fn blank(process: u32, verb: &str, (group, resource): (&str, &str)) -> Entry {
    Entry {
        process,
        sent: 0,
        ended: 0,
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
        uid: None,
        version: None,
        owner: None,
        suspend: None,
        answer: invariants::Answer { code: None, served: None, retry_after: None, version: None },
    }
}

const fn code(refusal: Refusal) -> Option<u16> {
    match refusal {
        Refusal::Conflict | Refusal::Exists => Some(409),
        Refusal::NotFound => Some(404),
        Refusal::Throttled(_) => Some(429),
        Refusal::Denied => Some(403),
        Refusal::Unknown => None,
    }
}

const JOB_SETS: (&str, &str) = ("jobset.x-k8s.io", "jobsets");
const JOBS: (&str, &str) = ("trainer.kubeflow.org", "trainjobs");
const RUNTIMES: (&str, &str) = ("trainer.kubeflow.org", "clustertrainingruntimes");
const POD_GROUPS: (&str, &str) = ("scheduling.x-k8s.io", "podgroups");
const CONFIG_MAPS: (&str, &str) = ("", "configmaps");

const fn names(call: &Call) -> (&'static str, &'static str, &'static str) {
    let (verb, (group, resource)) = match call {
        Call::LookAtSnapshot | Call::Act(Action::ReadSnapshot) => ("get", CONFIG_MAPS),
        Call::LookAtJobSet | Call::Act(Action::ReadJobSet) => ("get", JOB_SETS),
        Call::Act(Action::ReadTrainJob) => ("get", JOBS),
        Call::Act(Action::ReadRuntime(_)) => ("get", RUNTIMES),
        Call::Act(
            Action::CheckPods { .. } | Action::RecordEvent(_) | Action::RecordOutOfMemory { .. },
        ) => ("list", ("", "pods")),
        Call::Act(Action::WriteStatus(_) | Action::WriteWaiting(_)) => ("patch", JOBS),
        Call::Act(Action::CreateSnapshot(_) | Action::CreateConfigMap(_)) => {
            ("create", CONFIG_MAPS)
        }
        Call::Act(Action::DeleteConfigMap { .. }) => ("delete", CONFIG_MAPS),
        Call::Act(Action::ProbeSecret { .. } | Action::CreateSecret(_)) => {
            ("create", ("", "secrets"))
        }
        Call::Act(Action::CreatePodGroup(_)) => ("create", POD_GROUPS),
        Call::Act(Action::UpdatePodGroup { .. }) => ("patch", POD_GROUPS),
        Call::Act(Action::DeletePodGroup { .. }) => ("delete", POD_GROUPS),
        Call::Act(Action::CreateJobSet { .. }) => ("create", JOB_SETS),
        Call::Act(Action::UpdateJobSet { .. } | Action::SuspendJobSet { .. }) => {
            ("patch", JOB_SETS)
        }
        Call::Act(Action::DeleteJobSet { .. }) => ("delete", JOB_SETS),
        Call::Act(Action::DeleteTrainJob(_)) => ("delete", JOBS),
    };
    (verb, group, resource)
}

/// The `spec.suspend` that a patch sets.
fn suspension(patch: &Patch) -> Option<bool> {
    let sets = |operation: &PatchOperation| match operation {
        PatchOperation::Add(AddOperation { path, value })
        | PatchOperation::Replace(ReplaceOperation { path, value }) => {
            value.as_bool().filter(|_| path.as_str() == "/spec/suspend")
        }
        _ => None,
    };
    patch.0.iter().find_map(sets)
}

fn describe(entry: &mut Entry, action: &Action) {
    let owner = |metadata| controlling_train_job(metadata).map(|owner| owner.uid.clone());
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    match action {
        Action::WriteStatus(write) => {
            entry.subresource = "status".into();
            (entry.uid, entry.version) = (some(&write.uid), write.resource_version.parse().ok());
        }
        Action::WriteWaiting(write) => {
            entry.subresource = "status".into();
            (entry.uid, entry.version) = (some(&write.uid), write.resource_version.parse().ok());
        }
        Action::CreateSnapshot(config_map) | Action::CreateConfigMap(config_map) => {
            entry.owner = owner(&config_map.metadata);
        }
        Action::CreateJobSet { job_set, .. } => {
            let job_set = job_set.read().unwrap_or_default();
            entry.owner = owner(&job_set.metadata);
            entry.suspend = job_set.spec.suspend;
        }
        Action::UpdateJobSet { uid, resource_version, patch } => {
            (entry.uid, entry.version) = (some(uid), resource_version.parse().ok());
            entry.suspend = patch.read().ok().and_then(|patch| suspension(&patch));
        }
        Action::SuspendJobSet { uid, resource_version, suspend } => {
            (entry.uid, entry.version) = (some(uid), resource_version.parse().ok());
            entry.suspend = Some(*suspend);
        }
        Action::CreateSecret(claim) => entry.owner = owner(&claim.metadata),
        Action::CreatePodGroup(group) => entry.owner = owner(&group.metadata),
        Action::UpdatePodGroup { uid, resource_version, .. }
        | Action::DeleteConfigMap { uid, resource_version, .. } => {
            (entry.uid, entry.version) = (some(uid), resource_version.parse().ok());
        }
        Action::DeleteJobSet { uid, reason } => {
            let version = reason.resource_version();
            (entry.uid, entry.version) = (some(uid), version.and_then(|it| it.parse().ok()));
        }
        Action::DeletePodGroup { uid, .. } => entry.uid = some(uid),
        Action::DeleteTrainJob(deletion) => {
            entry.uid = some(&deletion.uid);
            entry.version = deletion.resource_version.parse().ok();
        }
        Action::ProbeSecret { .. }
        | Action::ReadTrainJob
        | Action::ReadRuntime(_)
        | Action::ReadSnapshot
        | Action::ReadJobSet
        | Action::CheckPods { .. }
        | Action::RecordEvent(_)
        | Action::RecordOutOfMemory { .. } => {}
    }
}
