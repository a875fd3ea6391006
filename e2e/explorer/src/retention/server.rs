//! The API server: what it stores, in which order that changed, and what it answers.

use std::{collections::BTreeMap, sync::Arc};

use trainjob_retention_core::{
    breaker::Record,
    finished::Definitions,
    stored::{self, PolicyKind},
};

use super::{
    objects::{Job, Namespace, Policy},
    rules::{JobId, Owners, PolicyId, View},
};

/// How many kinds of things are watched.
pub const SOURCES: usize = 4;
/// The policies of namespaces.
pub const POLICIES: usize = 0;
/// The policies of the cluster.
pub const CLUSTER_POLICIES: usize = 1;
/// The namespaces.
pub const NAMESPACES: usize = 2;
/// The Jobs.
pub const JOBS: usize = 3;

/// Something that a watch shows.
#[derive(Debug, Clone)]
pub enum Change {
    /// A policy, in this version; `None`: it is gone.
    Policy(PolicyId, Option<Arc<Policy>>),
    /// A namespace.
    Namespace(usize, Option<Namespace>),
    /// A Job.
    Job(JobId, Option<Arc<Job>>),
}

/// What a DELETE came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// It was accepted; this is what was there.
    Accepted(Arc<Job>),
    /// There is nothing of the name.
    Missing,
    /// The UID or the version is another one.
    Conflict,
}

/// What a DELETE asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The UID, as a precondition.
    pub uid: Option<String>,
    /// The version, as a precondition.
    pub version: Option<String>,
}

/// The API server.
#[derive(Debug, Default)]
pub struct Server {
    /// Its clock, in milliseconds.
    pub now: i64,
    /// How far that has moved against a clock that nobody sets, in milliseconds.
    pub stepped: i64,
    /// What it stores.
    pub view: View,
    /// The owners of Jobs.
    pub owners: Owners,
    /// Whether the program has the right to delete Jobs.
    pub may_delete: bool,
    /// What changed, by what a watch is about.
    pub logs: [Vec<Change>; SOURCES],
    /// The digests of the policies, as the program writes them.
    pub digests: BTreeMap<u64, Arc<str>>,
    version: u64,
    uids: u64,
}

impl Server {
    /// An empty one, whose clock shows so many milliseconds.
    #[must_use]
    pub fn new(now: i64) -> Self {
        Self { now, may_delete: true, ..Self::default() }
    }

    /// The time in seconds, as it stores it.
    #[must_use]
    pub const fn seconds(&self) -> i64 {
        self.now.div_euclid(1_000)
    }

    /// A time that nobody sets, in milliseconds.
    #[must_use]
    pub const fn monotonic(&self) -> i64 {
        self.now - self.stepped
    }

    /// A UID that was never given.
    pub const fn new_uid(&mut self) -> u64 {
        self.uids += 1;
        self.uids
    }

    const fn new_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn log(&mut self, source: usize, change: Change) {
        if let Some(log) = self.logs.get_mut(source) {
            log.push(change);
        }
    }

    /// Stores a Job, in a new version. What is being deleted is gone without its finalizer.
    pub fn put_job(&mut self, mut job: Job) {
        let id = job.key();
        job.version = self.new_version();
        if job.terminating && !job.finalizer {
            self.view.jobs.remove(&id);
            return self.log(JOBS, Change::Job(id, None));
        }
        let job = Arc::new(job);
        self.view.jobs.insert(id, Arc::clone(&job));
        self.log(JOBS, Change::Job(id, Some(job)));
    }

    /// Changes a Job, if it is there.
    pub fn edit_job(&mut self, id: JobId, edit: impl FnOnce(&mut Job)) {
        let Some(job) = self.view.jobs.get(&id) else { return };
        let mut changed = (**job).clone();
        edit(&mut changed);
        if changed != **job {
            self.put_job(changed);
        }
    }

    /// Deletes a Job, as anybody may.
    pub fn remove_job(&mut self, id: JobId) {
        self.edit_job(id, |job| job.terminating = true);
    }

    /// Answers a DELETE of the program.
    pub fn delete_job(&mut self, id: JobId, fence: &Fence) -> Deleted {
        let Some(job) = self.view.jobs.get(&id).cloned() else { return Deleted::Missing };
        let is =
            |asked: &Option<String>, there: String| asked.as_ref().is_none_or(|it| *it == there);
        if !is(&fence.uid, format!("u{:08}", job.uid))
            || !is(&fence.version, job.version.to_string())
        {
            return Deleted::Conflict;
        }
        self.remove_job(id);
        Deleted::Accepted(job)
    }

    /// Stores a namespace, or that it is gone with all that was in it.
    pub fn put_namespace(&mut self, index: usize, namespace: Option<Namespace>) {
        if let Some(namespace) = &namespace {
            self.view.namespaces.insert(index, namespace.clone());
        } else {
            self.view.namespaces.remove(&index);
            let jobs = self.view.jobs.range((index, 0)..=(index, u32::MAX));
            for id in jobs.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.view.jobs.remove(&id);
                self.log(JOBS, Change::Job(id, None));
            }
            let policies: Vec<_> = self.view.policies.keys().copied().collect();
            for id in policies.into_iter().filter(|(own, _)| *own == Some(index)) {
                self.remove_policy(id);
            }
        }
        self.log(NAMESPACES, Change::Namespace(index, namespace));
    }

    fn put_policy(&mut self, mut policy: Policy) -> u64 {
        let id = (policy.namespace, policy.name);
        policy.version = self.new_version();
        let version = policy.version;
        let policy = Arc::new(policy);
        let source = source_of(policy.kind());
        self.view.policies.insert(id, Arc::clone(&policy));
        self.log(source, Change::Policy(id, Some(policy)));
        version
    }

    /// Stores a policy whose spec was written.
    pub fn write_policy(&mut self, mut policy: Policy) {
        policy.generation += 1;
        let read = stored::read(policy.kind(), &policy.text(), &mut Definitions::default());
        let digest = read.map_or_else(|_| String::new(), |stored| stored.digest.to_string());
        self.digests.insert(policy.uid, digest.into());
        self.put_policy(policy);
    }

    /// Changes what a policy says.
    pub fn edit_policy(&mut self, id: PolicyId, edit: impl FnOnce(&mut Policy)) {
        let Some(policy) = self.view.policies.get(&id) else { return };
        let mut changed = (**policy).clone();
        edit(&mut changed);
        if changed.spec != policy.spec {
            self.write_policy(changed);
        } else if changed != **policy {
            self.put_policy(changed);
        }
    }

    /// Deletes a policy.
    pub fn remove_policy(&mut self, id: PolicyId) {
        if let Some(policy) = self.view.policies.remove(&id) {
            self.log(source_of(policy.kind()), Change::Policy(id, None));
        }
    }

    /// Stores what a status says for the breaker, if the policy is still that one in that version. The new version.
    pub fn store_record(
        &mut self,
        id: PolicyId,
        (uid, version): (u64, Option<u64>),
        record: Option<Record>,
    ) -> Option<u64> {
        let policy = self.view.policies.get(&id)?;
        if policy.uid != uid || version.is_some_and(|version| version != policy.version) {
            return None;
        }
        let mut changed = (**policy).clone();
        changed.record = record;
        Some(self.put_policy(changed))
    }
}

/// Which watch shows the policies of a kind.
#[must_use]
pub const fn source_of(kind: PolicyKind) -> usize {
    match kind {
        PolicyKind::Namespaced => POLICIES,
        PolicyKind::Cluster => CLUSTER_POLICIES,
    }
}
