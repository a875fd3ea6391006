//! The status of policies (`docs/retention.md`, 7 and R50).
//!
//! Conditions are written at once, those of a policy that was edited as soon as its kind is evaluated, and so is what the [breaker](trainjob_retention_core::breaker) decides, because
//! deletions wait for that. The rest takes a look at all objects, so it is counted every 30 seconds at most, and written if
//! it has changed.

mod compose;
mod conditions;
mod found;
mod own_writes;
mod patch;
mod seen;
mod told;
mod written;

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    mem,
    sync::Arc,
};

use futures::{StreamExt as _, stream};
use http::HeaderValue;
use kube::{
    Client,
    api::{Patch, PatchParams},
    core::Request,
};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};
use trainjob_api::{lifecycle::v1alpha1::status::RetentionPolicyStatus, time::Timestamp};
use trainjob_core::{Now, pass::Class};
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_process::server_time::boot_time;
use trainjob_retention_core::{
    breaker::Record,
    policy::{Mode, RuleAction},
    stored::PolicyKind,
    uid::Uid,
};

use self::{
    compose::compose,
    conditions::{Missing, Situation, Stops},
    found::Found,
    patch::patch,
    written::Written,
};
pub use self::{own_writes::OwnWrites, seen::SeenPolicy};
use crate::{
    cluster_state::{KindState, PolicyKey, Stored, Survey, Tally},
    key::TargetId,
    remover::{Remover, collection},
    second::next_second,
};

/// How many objects are counted at a time; others want the state, too.
const SLICE: usize = 1_000;
/// How many statuses are written at once: the process wakes up less often than for one after the other.
const AT_ONCE: usize = 8;
/// What an answer about a policy is to have of it.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// Who writes.
const FIELD_MANAGER: &str = "trainjob-retention";

/// Writes the status of policies.
pub struct StatusWriter {
    remover: Arc<Remover>,
    client: Client,
    seen: mpsc::UnboundedReceiver<(PolicyKey, Option<Box<SeenPolicy>>)>,
    own_writes: Arc<OwnWrites>,
    policies: BTreeMap<PolicyKey, Written>,
    /// What was counted last of each kind.
    surveys: BTreeMap<TargetId, Survey>,
    /// Whether a policy was new or edited before the last look.
    was_edited: bool,
    /// What a policy finds that finds nothing.
    nothing: Tally,
}

impl StatusWriter {
    /// For the policies of a state, which `seen` names, but for versions among `own_writes`.
    #[must_use]
    pub fn new(
        remover: Arc<Remover>,
        client: Client,
        seen: mpsc::UnboundedReceiver<(PolicyKey, Option<Box<SeenPolicy>>)>,
        own_writes: Arc<OwnWrites>,
    ) -> Self {
        let (policies, surveys, nothing) = (BTreeMap::new(), BTreeMap::new(), Tally::default());
        Self { remover, client, seen, own_writes, policies, surveys, was_edited: false, nothing }
    }

    /// Writes statuses while this process leads, for ever.
    pub async fn write(mut self) -> Infallible {
        let mut evaluations = self.remover.evaluations();
        loop {
            let look = next_second();
            if let Some(edited) = self.edited(look).await {
                // Until then the conditions are those of the last generation.
                while self.is_syncing(&edited)
                    && matches!(timeout_at(look, evaluations.changed()).await, Ok(Ok(())))
                {
                }
            }
            while let Ok((key, seen)) = self.seen.try_recv() {
                self.was_edited |= self.see(&key, seen);
            }
            if self.remover.leader().holds() {
                self.write_changed().await;
            }
        }
    }

    /// Takes in what is seen of policies until `look`, or until one that is new or was edited, which it returns. Edits that
    /// follow each other are waited for until then: what each look counts costs time.
    async fn edited(&mut self, look: Instant) -> Option<PolicyKey> {
        let was_edited = mem::take(&mut self.was_edited);
        while let Ok(news) = timeout_at(look, self.seen.recv()).await {
            let Some((key, seen)) = news else {
                // Nobody tells any more: the process ends.
                sleep_until(look).await;
                break;
            };
            self.was_edited |= self.see(&key, seen);
            if self.was_edited && !was_edited {
                return Some(key);
            }
        }
        None
    }

    fn is_syncing(&self, policy: &PolicyKey) -> bool {
        let state = self.remover.state();
        state.stored(policy).is_some_and(|stored| state.kind_of(stored).1 == KindState::Syncing)
    }

    /// Takes in how a policy is; `None`: it is gone. Whether it is new or was edited.
    fn see(&mut self, key: &PolicyKey, seen: Option<Box<SeenPolicy>>) -> bool {
        let Some(seen) = seen else {
            self.policies.remove(key);
            return false;
        };
        if let Some(written) = self.policies.get_mut(key) {
            written.see(*seen)
        } else {
            self.policies.insert(key.clone(), Written::new(*seen));
            true
        }
    }

    async fn write_changed(&mut self) {
        let mut due: Vec<Found> = self.found();
        due.retain(|found| self.policies.get_mut(&found.key).is_some_and(|it| it.is_due(found)));
        let is_counted = |found: &&Found| {
            let is_known = matches!(found.situation.kind, KindState::Known { .. });
            let written = self.policies.get(&found.key);
            is_known && written.is_some_and(Written::is_to_be_counted)
        };
        let targets = due.iter().filter(is_counted).filter_map(|found| found.target);
        let targets: BTreeSet<_> = targets.collect();
        for target in &targets {
            self.count(*target).await;
        }
        let now = self.remover.clock().now().stamp();
        let mut due: BTreeMap<_, _> =
            due.into_iter().map(|found| (found.key.clone(), found)).collect();
        let Self { remover, client, own_writes, policies, surveys, nothing, .. } = self;
        let (remover, client, own_writes) = (&*remover, &*client, &*own_writes);
        let writes = policies.iter_mut().filter_map(|(key, written)| {
            let found = due.remove(key)?;
            let counted = found.target.filter(|target| targets.contains(target));
            let survey = counted.and_then(|target| surveys.get(&target));
            let tally = survey.map(|survey| {
                found.uid.as_ref().and_then(|uid| survey.tally(uid)).unwrap_or(&*nothing)
            });
            Some(async move {
                write_one((remover, client, own_writes), (&found, written), tally, now).await;
            })
        });
        stream::iter(writes).for_each_concurrent(AT_ONCE, |write| write).await;
    }

    /// All policies, and how it is with them.
    fn found(&self) -> Vec<Found> {
        let is_time_known = self.remover.clock().now().reached().is_some();
        let state = self.remover.state();
        let found = state.policies().map(|(key, stored)| {
            let (target, kind) = state.kind_of(stored);
            let is_gone = target.is_some_and(|target| self.remover.is_gone(target));
            let uid = policy_uid(stored);
            let stops = uid.map(|uid| Stops {
                tripped: state.tripped(uid).cloned(),
                waiting: state.waiting(uid),
                missing: Missing { rules: state.missing_rules(uid), pauses: state.is_paused(uid) },
            });
            let mut situation =
                Situation::of(stored, (kind, is_gone), stops.unwrap_or_default(), is_time_known);
            situation.absence = target.and_then(|target| self.remover.absence(target));
            Found {
                key: key.clone(),
                uid: uid.cloned(),
                digest: stored.as_ref().ok().map(|stored| (stored.generation, stored.digest)),
                target,
                rules: rules(stored),
                situation,
                record: uid.and_then(|uid| state.record(uid)),
                is_awaited: uid.is_some_and(|uid| state.awaits_storage(uid)),
                is_audited: stored.as_ref().is_ok_and(|it| it.policy.mode == Mode::Audit),
            }
        });
        found.collect()
    }

    /// Counts the objects of a kind, unless what was counted last still holds.
    async fn count(&mut self, target: TargetId) {
        let began = self.remover.clock().now();
        let known = self.surveys.get(&target);
        let holds = known.is_some_and(|known| self.remover.state().holds(target, known, began));
        if !holds {
            let survey = self.survey(target, began).await;
            self.surveys.insert(target, survey);
        }
        self.remover.state().surveyed(target, began, boot_time());
    }

    async fn survey(&self, target: TargetId, began: Now) -> Survey {
        let mut survey = Survey::default();
        loop {
            let has_more = self.remover.state().survey(target, &mut survey, SLICE, began);
            for (key, at) in survey.take_soon() {
                self.remover.look_at(&key, Some(at));
            }
            if !has_more {
                break;
            }
            tokio::task::yield_now().await;
        }
        survey
    }
}

/// Writes the status of a policy if there is anything new.
async fn write_one(
    (remover, client, own_writes): (&Remover, &Client, &OwnWrites),
    (found, written): (&Found, &mut Written),
    tally: Option<&Tally>,
    now: Timestamp,
) {
    if tally.is_some() {
        written.counted = Some(Instant::now());
    }
    // The survey may have moved it on.
    let record = found.uid.as_ref().and_then(|uid| remover.state().record(uid));
    let version = found.target.and_then(|target| remover.served(target)?.1);
    let mut status = compose(found, tally, version.as_deref(), &written.seen, now);
    let stores = written.stores(record.as_ref(), found);
    if stores {
        put(record.as_ref(), found.is_audited, &mut status);
    }
    if status == written.seen.status && !written.awaits(record.as_ref(), found) {
        return;
    }
    if tally.is_some() {
        // By itself that is no reason to write (R50).
        status.counted_at = Some(now.into());
    }
    match send(client, &found.key, &patch(&status, &written.seen)).await {
        Ok(version) => {
            for news in
                told::news(&written.seen.status, &status, found.situation.acknowledged.as_deref())
            {
                remover.record(told::event(&found.key, &written.seen.uid, news));
            }
            written.wrote(status, version);
            if let (true, Some(uid), Some(record)) = (stores, &found.uid, record) {
                written.stored = Some(Instant::now());
                // Only now is nothing new in it: of a record that is removed, only the watch tells. First, so that what was
                // replaced is not taken for the record of the status after this.
                own_writes.note(&found.key, &written.seen.resource_version);
                remover.state().stored_record(uid, record);
            }
        }
        Err(error) => {
            if stores {
                // It may be stored all the same. Then the watch shows it, and nothing is new; but only an answer counts.
                written.stored = None;
            }
            let PolicyKey { namespace, name, .. } = &found.key;
            let is_first = written.failed();
            // After a conflict the watch tells of the version that is there.
            if is_first && error.class() != Class::Conflict {
                tracing::warn!(%namespace, policy = %name, %error, "status not written; trying again");
            } else {
                tracing::debug!(%namespace, policy = %name, %error, "status not written");
            }
        }
    }
}

/// Puts what the breaker stores into a status. A policy in Enforce that is not judged yet keeps what is there.
fn put(record: Option<&Record>, is_audited: bool, status: &mut RetentionPolicyStatus) {
    match record {
        Some(record) => record.write(status),
        None if is_audited => Record::clear(status),
        None => {}
    }
}

fn policy_uid(stored: &Stored) -> Option<&Uid> {
    stored.as_ref().ok().map(|stored| &stored.policy.uid)
}

/// Whether a policy whose kind is so, and maybe gone, and which maybe pauses for want of a right, is `Ready`
/// (`docs/retention.md`, R50).
#[must_use]
pub fn is_ready(stored: &Stored, kind: (KindState, bool), is_paused: bool) -> bool {
    // Neither a trip nor the time makes a difference to that.
    let missing = Missing { pauses: is_paused, ..Missing::default() };
    let stops = Stops { missing, ..Stops::default() };
    let (is_ready, _, _) = Situation::of(stored, kind, stops, true).ready();
    is_ready
}

/// The names of the rules that decide, which is what the counts of rules are about.
fn rules(stored: &Stored) -> Vec<Arc<str>> {
    let Ok(stored) = stored else { return Vec::new() };
    let deciding = stored.policy.rules.iter();
    let deciding = deciding.filter(|rule| matches!(rule.action, RuleAction::Decide(_)));
    deciding.map(|rule| Arc::clone(&rule.name)).collect()
}

/// Writes a status. Returns the version that the policy has then.
async fn send(client: &Client, key: &PolicyKey, patch: &Value) -> Result<String, RequestError> {
    let of = |plural: &str| collection("lifecycle.trainjob.dev", "v1alpha1", plural);
    let policies = match key.kind {
        PolicyKind::Namespaced => of("retentionpolicies").in_namespace(&key.namespace),
        PolicyKind::Cluster => of("clusterretentionpolicies"),
    };
    let manager = Some(FIELD_MANAGER.to_owned());
    let params = PatchParams { field_manager: manager, ..PatchParams::default() };
    let request = Request::new(policies.to_string());
    let request = request.patch_subresource("status", &key.name, &params, &Patch::Merge(patch));
    let mut request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
    // What the policy then says is known, but for its version.
    let metadata = HeaderValue::from_static(METADATA_ONLY);
    request.headers_mut().insert(http::header::ACCEPT, metadata);
    let text = timed(client.request_text(request)).await?;
    Ok(seen::version(&text))
}

#[cfg(test)]
mod tests;
