//! What watches tell a replica: lists, changes in their order, and signs of life.

use std::sync::Arc;

use trainjob_retention::cluster_state::Source;
use trainjob_retention_core::{
    breaker::Record,
    metadata::Metadata,
    stored::{self, PolicyKind, StoredPolicy},
};

use super::{Process, TARGET, written::Written};
use crate::retention::{
    defect::Defect,
    objects::{self, Job, Policy, object_key},
    rules::{JobId, PolicyId},
    server::{CLUSTER_POLICIES, Change, JOBS, NAMESPACES, POLICIES, SOURCES, Server},
};

/// What a watch is about, by its index.
const fn source(index: usize) -> Source {
    match index {
        POLICIES => Source::Policies(PolicyKind::Namespaced),
        CLUSTER_POLICIES => Source::Policies(PolicyKind::Cluster),
        NAMESPACES => Source::Namespaces,
        _ => Source::Target(TARGET),
    }
}

impl Process {
    /// Whether a watch has anything to tell.
    #[must_use]
    pub fn lags(&self, index: usize, server: &Server) -> bool {
        let position = self.position(index);
        let wanted = self.state.wanted(TARGET);
        let length = server.logs.get(index).map_or(0, Vec::len);
        let is_watched = index != JOBS || wanted.is_some();
        let is_old = index == JOBS && self.epoch != wanted;
        is_watched && (is_old || position.is_none_or(|position| position < length))
    }

    /// Whether a watch that is not silent has anything to tell.
    #[must_use]
    pub fn may_tell(&self, index: usize, server: &Server) -> bool {
        !self.is_frozen(index, server) && self.lags(index, server)
    }

    fn position(&self, index: usize) -> Option<usize> {
        self.positions.get(index).copied().flatten()
    }

    /// Whether a watch is silent.
    #[must_use]
    pub fn is_frozen(&self, index: usize, server: &Server) -> bool {
        self.frozen_until.get(index).is_some_and(|until| server.monotonic() < *until)
    }

    /// Tells the next of a watch, or a list if there is no watch yet.
    pub fn deliver(&mut self, index: usize, server: &Server) {
        let wanted = self.state.wanted(TARGET);
        if self.is_frozen(index, server) || index == JOBS && wanted.is_none() {
            return;
        }
        let is_old = index == JOBS && self.epoch != wanted;
        let Some(position) = self.position(index).filter(|_| !is_old) else {
            return self.list(index, server);
        };
        let change = server.logs.get(index).and_then(|log| log.get(position)).cloned();
        if let Some(change) = change {
            self.see(change, false, server);
            self.set_position(index, Some(position + 1));
            self.note_due(server);
        }
        self.hear(index, server);
    }

    /// The watch has broken off: everything is listed anew.
    pub fn relist(&mut self, index: usize) {
        self.set_position(index, None);
    }

    /// The kind is not served for a moment: nothing that is known of Jobs counts.
    pub fn lose_kind(&mut self) {
        self.state.kind_gone(TARGET);
        self.view.jobs.clear();
        self.owners.clear();
        self.accepted.clear();
        self.set_position(JOBS, None);
    }

    fn set_position(&mut self, index: usize, to: Option<usize>) {
        if let Some(position) = self.positions.get_mut(index) {
            *position = to;
        }
    }

    fn hear(&mut self, index: usize, server: &Server) {
        let monotonic = self.monotonic(server);
        self.state.heard(source(index), monotonic);
        if let Some(heard) = self.heard.get_mut(index) {
            *heard = Some(server.monotonic());
        }
    }

    /// A bookmark of each watch that has told everything.
    pub fn bookmarks(&mut self, server: &Server) {
        for index in 0..SOURCES {
            if self.has(Defect::SilenceIgnored) {
                let monotonic = self.monotonic(server);
                self.state.heard(source(index), monotonic);
            }
            let is_watching = self.position(index).is_some() && !self.lags(index, server);
            if is_watching && !self.is_frozen(index, server) {
                self.hear(index, server);
            }
        }
    }

    fn list(&mut self, index: usize, server: &Server) {
        self.state.list_begins(source(index));
        self.forget_unlisted(index, server);
        for change in everything(index, server) {
            self.see(change, true, server);
        }
        if index == JOBS {
            self.epoch = self.state.wanted(TARGET);
        }
        self.set_position(index, server.logs.get(index).map(Vec::len));
        let monotonic = self.monotonic(server);
        let effects = self.state.list_ends(source(index), monotonic);
        if effects.evaluate {
            self.counts_anew(server);
        }
        self.forget_right();
        self.hear(index, server);
        self.apply(effects);
    }

    fn forget_unlisted(&mut self, index: usize, server: &Server) {
        let there = &server.view;
        match index {
            JOBS => {
                self.view.jobs.retain(|id, _| there.jobs.contains_key(id));
                let jobs = &self.view.jobs;
                self.accepted.retain(|uid| jobs.values().any(|job| job.uid == *uid));
            }
            NAMESPACES => self.view.namespaces.retain(|id, _| there.namespaces.contains_key(id)),
            _ => {
                let stays =
                    |id: &PolicyId| source_of(id) != index || there.policies.contains_key(id);
                self.view.policies.retain(|id, _| stays(id));
                // Whoever writes statuses is told of deletions only.
            }
        }
    }

    fn see(&mut self, change: Change, listed: bool, server: &Server) {
        match change {
            Change::Policy(id, Some(policy)) => self.see_policy(id, &policy, server),
            Change::Policy(id, None) => self.lose_policy(id, server),
            Change::Namespace(index, namespace) => self.see_namespace(index, namespace),
            Change::Job(id, Some(job)) => self.see_job(id, job, listed, server),
            Change::Job(id, None) => self.lose_job(id),
        }
    }

    fn see_policy(&mut self, id: PolicyId, policy: &Arc<Policy>, server: &Server) {
        let mut text = policy.text();
        if self.has(Defect::AuditIgnored) {
            text = text.replace(r#""mode":"Audit""#, r#""mode":"Enforce""#);
        }
        let mut stored = stored::read(policy.kind(), &text, &mut self.definitions);
        let digest = stored.as_ref().map(|stored| stored.digest.to_string()).unwrap_or_default();
        if let Ok(stored) = &mut stored {
            self.mislead(stored, policy);
        }
        let forgets = self.has(Defect::TripForgotten);
        let record = policy.record.clone();
        let record = record.map(|it| Record { trip: it.trip.filter(|_| !forgets), ..it });
        self.view.policies.insert(id, Arc::clone(policy));
        self.note_policy(policy, digest, server);
        let monotonic = self.monotonic(server);
        let effects = self.state.policy(policy.key(), stored, record, monotonic);
        self.apply(effects);
        Written::see(&mut self.written, id, policy);
        self.forget_right();
    }

    /// What a wrong program would read.
    fn mislead(&self, stored: &mut StoredPolicy, policy: &Policy) {
        let trip = policy.record.as_ref().and_then(|record| record.trip.as_ref());
        if let (true, Some(trip)) = (self.has(Defect::AnyAcknowledgement), trip) {
            stored.acknowledged_trip = Some(trip.id.as_str().into());
        }
    }

    /// What the judge has to know of when it knew what.
    fn note_policy(&mut self, policy: &Policy, digest: String, server: &Server) {
        self.note_digest(policy, digest, server);
        let rate = policy.spec.rate;
        if self.rates.get(&policy.uid).is_none_or(|(known, _)| *known != rate) {
            self.rates.insert(policy.uid, (rate, server.monotonic()));
        }
        if !policy.spec.enforces || policy.spec.unknown {
            self.stepped.remove(&policy.uid);
        }
    }

    /// A right that no policy needs is not asked about, and so not known to be missing (R51).
    pub(super) fn forget_right(&mut self) {
        if self.view.policies.values().all(|policy| policy.spec.unknown) {
            self.lacks_right = false;
        }
    }

    fn lose_policy(&mut self, id: PolicyId, server: &Server) {
        let Some(policy) = self.view.policies.remove(&id) else { return };
        self.written.remove(&id);
        self.stepped.remove(&policy.uid);
        if !self.has(Defect::PolicyStays) {
            let monotonic = self.monotonic(server);
            let effects = self.state.policy_gone(&policy.key(), monotonic);
            self.apply(effects);
        }
        self.forget_right();
    }

    fn see_namespace(&mut self, index: usize, namespace: Option<objects::Namespace>) {
        let Some(name) = objects::NAMESPACES.get(index) else { return };
        let effects = match &namespace {
            None => self.state.namespace_gone(name),
            Some(namespace) => {
                let is_going = namespace.terminating && !self.has(Defect::TerminatingIgnored);
                let metadata = Metadata {
                    name: (*name).to_owned(),
                    labels: [("env".to_owned(), namespace.env.to_string())].into(),
                    deletion_timestamp: is_going.then(|| "2026-11-22T06:00:00Z".to_owned()),
                    ..Metadata::default()
                };
                self.state.namespace(metadata)
            }
        };
        self.apply(effects);
        match namespace {
            Some(namespace) => self.view.namespaces.insert(index, namespace),
            None => self.view.namespaces.remove(&index),
        };
    }

    fn see_job(&mut self, id: JobId, job: Arc<Job>, listed: bool, server: &Server) {
        let hold = job.hold.filter(|_| !self.has(Defect::HoldIgnored));
        let text = Job { hold, ..(*job).clone() }.text();
        let (now, key) = (self.now(server), object_key(id));
        let named = (!listed && !self.has(Defect::EndsUnexpected)).then_some(&key);
        let effects = self.state.object(TARGET, &text, named, now);
        self.apply(effects);
        let uid = job.uid;
        if job.end.is_none() {
            // Nothing rests of an object that goes on: it ends anew.
            self.failed.remove(&uid);
        }
        if let Some(old) = self.view.jobs.insert(id, job).filter(|old| old.uid != uid) {
            self.accepted.remove(&old.uid);
        }
    }

    fn lose_job(&mut self, id: JobId) {
        if let Some(job) = self.view.jobs.remove(&id) {
            self.accepted.remove(&job.uid);
        }
        if !self.has(Defect::GoneForgotten) {
            let effects = self.state.object_gone(TARGET, &object_key(id));
            self.apply(effects);
        }
    }
}

const fn source_of(id: &PolicyId) -> usize {
    if id.0.is_some() { POLICIES } else { CLUSTER_POLICIES }
}

fn everything(index: usize, server: &Server) -> Vec<Change> {
    match index {
        JOBS => {
            let jobs = server.view.jobs.iter();
            jobs.map(|(id, job)| Change::Job(*id, Some(Arc::clone(job)))).collect()
        }
        NAMESPACES => {
            let namespaces = server.view.namespaces.iter();
            namespaces.map(|(index, it)| Change::Namespace(*index, Some(it.clone()))).collect()
        }
        _ => {
            let policies = server.view.policies.iter().filter(|(id, _)| source_of(id) == index);
            policies.map(|(id, it)| Change::Policy(*id, Some(Arc::clone(it)))).collect()
        }
    }
}
