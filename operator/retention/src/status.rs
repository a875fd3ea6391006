//! The status of policies (`docs/retention.md`, 7 and R50).
//!
//! Conditions are written at once. The rest takes a look at all objects, so it is counted every 30 seconds at most, and
//! written if it has changed.

mod conditions;

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Client,
    api::{Patch, PatchParams},
    core::Request,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use trainjob_api::{
    lifecycle::v1alpha1::status::{RetentionPolicyStatus, RuleStatus},
    time::Timestamp,
};
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_retention_core::{
    metadata::Metadata, policy::RuleAction, stored::PolicyKind, uid::Uid,
};

use self::conditions::{Said, Situation, conditions};
use crate::{
    feed::PolicySeen,
    key::TargetId,
    remover::{Remover, collection},
    room::{KindState, PolicyKey, Stored, Survey, Tally},
};

/// How often the numbers are counted and written, at most.
const COUNTED_EVERY: Duration = Duration::from_secs(30);
/// How often it is looked whether a condition has changed.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);
/// How many objects are counted at a time; others want the room, too.
const SLICE: usize = 1_000;
/// Who writes.
const FIELD_MANAGER: &str = "trainjob-retention";

/// Writes the status of policies.
pub struct StatusWriter {
    remover: Arc<Remover>,
    client: Client,
    seen: mpsc::UnboundedReceiver<PolicySeen>,
    policies: BTreeMap<PolicyKey, Written>,
}

/// A policy, as far as its status is written.
#[derive(Debug)]
struct Written {
    uid: String,
    generation: i64,
    status: RetentionPolicyStatus,
    counted: Option<Instant>,
}

/// What is read of a policy.
#[derive(Deserialize)]
struct Shown {
    metadata: Metadata,
    #[serde(default)]
    status: RetentionPolicyStatus,
}

/// A policy as the room has it.
struct Found {
    key: PolicyKey,
    uid: Option<Uid>,
    target: Option<TargetId>,
    rules: Vec<Arc<str>>,
    situation: Situation,
}

impl StatusWriter {
    /// For the policies of a room, which `seen` names.
    #[must_use]
    pub fn new(
        remover: Arc<Remover>,
        client: Client,
        seen: mpsc::UnboundedReceiver<PolicySeen>,
    ) -> Self {
        Self { remover, client, seen, policies: BTreeMap::new() }
    }

    /// Writes statuses while this process leads, for ever.
    pub async fn write(mut self) -> Infallible {
        loop {
            sleep(LOOKED_AT_EVERY).await;
            while let Ok((key, text)) = self.seen.try_recv() {
                self.see(key, text.as_deref());
            }
            if self.remover.leader().holds() {
                self.write_changed().await;
            }
        }
    }

    fn see(&mut self, key: PolicyKey, text: Option<&str>) {
        let shown = text.and_then(|text| serde_json::from_str::<Shown>(text).ok());
        let Some(Shown { metadata, status }) = shown else {
            self.policies.remove(&key);
            return;
        };
        let before =
            self.policies.get(&key).filter(|before| before.generation == metadata.generation);
        let counted = before.and_then(|before| before.counted);
        let written =
            Written { uid: metadata.uid, generation: metadata.generation, status, counted };
        self.policies.insert(key, written);
    }

    async fn write_changed(&mut self) {
        let mut due: Vec<Found> = self.found();
        due.retain(|found| {
            let Some(written) = self.policies.get(&found.key) else { return false };
            let is_time = written.counted.is_none_or(|counted| counted.elapsed() >= COUNTED_EVERY);
            let said = conditions(&found.situation);
            is_time || !is_said(&said, written.status.conditions.as_deref().unwrap_or_default())
        });
        let targets: BTreeSet<_> = due.iter().filter_map(|found| found.target).collect();
        let now = self.remover.clock().now().stamp();
        let mut surveys = BTreeMap::new();
        for target in targets {
            surveys.insert(target, self.survey(target, now).await);
        }
        for found in due {
            let survey = found.target.and_then(|target| surveys.get(&target));
            let tally = survey.zip(found.uid.as_ref()).and_then(|(survey, uid)| survey.tally(uid));
            self.write_one(&found, tally, now).await;
        }
    }

    /// All policies, and how it is with them.
    fn found(&self) -> Vec<Found> {
        let is_time_known = self.remover.clock().now().reached().is_some();
        let room = self.remover.room();
        let found = room.policies().map(|(key, stored)| {
            let (target, kind) = room.kind_of(stored);
            let is_gone = target.is_some_and(|target| self.remover.is_gone(target));
            let breaker = policy_uid(stored).and_then(|uid| room.breaker(uid)).copied();
            Found {
                key: key.clone(),
                uid: policy_uid(stored).cloned(),
                target,
                rules: rules(stored),
                situation: Situation::of(stored, (kind, is_gone), breaker, is_time_known),
            }
        });
        found.collect()
    }

    async fn survey(&self, target: TargetId, now: Timestamp) -> Survey {
        let mut survey = Survey::default();
        while self.remover.room().survey(target, &mut survey, SLICE, now) {
            tokio::task::yield_now().await;
        }
        survey
    }

    async fn write_one(&mut self, found: &Found, tally: Option<&Tally>, now: Timestamp) {
        let Some(written) = self.policies.get_mut(&found.key) else { return };
        written.counted = Some(Instant::now());
        let version = found.target.and_then(|target| self.remover.served(target)?.1);
        let status = compose(found, tally, version.as_deref(), written, now);
        if status == written.status {
            return;
        }
        let patch = patch(&status, written);
        match send(&self.client, &found.key, &patch).await {
            Ok(()) => written.status = status,
            Err(error) => {
                tracing::debug!(policy = %found.key.name, %error, "status not written");
            }
        }
    }
}

fn policy_uid(stored: &Stored) -> Option<&Uid> {
    stored.as_ref().ok().map(|stored| &stored.policy.uid)
}

/// The names of the rules that decide, which is what the counts of rules are about.
fn rules(stored: &Stored) -> Vec<Arc<str>> {
    let Ok(stored) = stored else { return Vec::new() };
    let deciding = stored.policy.rules.iter();
    let deciding = deciding.filter(|rule| matches!(rule.action, RuleAction::Decide(_)));
    deciding.map(|rule| Arc::clone(&rule.name)).collect()
}

/// The status of a policy.
fn compose(
    found: &Found,
    tally: Option<&Tally>,
    version: Option<&str>,
    written: &Written,
    now: Timestamp,
) -> RetentionPolicyStatus {
    let mut situation = found.situation.clone();
    situation.limits_cross = tally.is_some_and(|tally| tally.limits_cross);
    let said = conditions(&situation);
    let before = written.status.conditions.as_deref().unwrap_or_default();
    let mut status = RetentionPolicyStatus {
        observed_generation: Some(written.generation),
        served_version: version.map(str::to_owned),
        conditions: Some(dated(said, before, written.generation, now)),
        ..written.status.clone()
    };
    // Numbers of a kind that is not known would be wrong.
    if matches!(situation.kind, KindState::Known { .. }) {
        let none = Tally::default();
        let tally = tally.unwrap_or(&none);
        let rule = |name: &Arc<str>| {
            let (matched, due) = tally.rules.get(name).copied().unwrap_or_default();
            RuleStatus { name: name.to_string(), matched, due }
        };
        status.counts = Some(tally.counts);
        status.rules = Some(found.rules.iter().map(rule).collect());
        status.would_delete = Some(tally.would_delete);
        status.next = Some(tally.next());
    } else {
        (status.counts, status.rules, status.would_delete, status.next) = (None, None, None, None);
    }
    status
}

/// Whether conditions say this already.
fn is_said(said: &[Said], stored: &[Condition]) -> bool {
    said.len() == stored.len() && said.iter().zip(stored).all(|(said, stored)| said.is(stored))
}

/// Conditions with the times since when they are so.
fn dated(said: Vec<Said>, before: &[Condition], generation: i64, now: Timestamp) -> Vec<Condition> {
    let dated = said.into_iter().map(|said| {
        let same = before.iter().find(|before| {
            before.type_ == said.condition.as_str() && before.status == said.status_text()
        });
        Condition {
            type_: said.condition.as_str().to_owned(),
            status: said.status_text().to_owned(),
            reason: said.reason.as_str().to_owned(),
            last_transition_time: same
                .map_or_else(|| now.into(), |same| same.last_transition_time.clone()),
            message: said.message,
            observed_generation: Some(generation),
        }
    });
    dated.collect()
}

/// A merge patch to this status. It names the UID, so that it is refused for another policy of the name.
fn patch(status: &RetentionPolicyStatus, written: &Written) -> Value {
    let mut fields = json!(status);
    if let (Some(fields), Value::Object(before)) = (fields.as_object_mut(), json!(written.status)) {
        for name in before.into_iter().map(|(name, _)| name) {
            // In a merge patch, null removes the field.
            fields.entry(name).or_insert(Value::Null);
        }
    }
    json!({"metadata": {"uid": written.uid}, "status": fields})
}

async fn send(client: &Client, key: &PolicyKey, patch: &Value) -> Result<(), RequestError> {
    let path = |plural: &str| collection("lifecycle.trainjob.dev", "v1alpha1", plural);
    let path = match key.kind {
        PolicyKind::Namespaced => path("retentionpolicies").in_namespace(&key.namespace),
        PolicyKind::Cluster => path("clusterretentionpolicies"),
    };
    let manager = Some(FIELD_MANAGER.to_owned());
    let params = PatchParams { field_manager: manager, ..PatchParams::default() };
    let request = Request::new(path.to_string());
    let request = request.patch_subresource("status", &key.name, &params, &Patch::Merge(patch));
    let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
    timed(client.request_text(request)).await.map(drop)
}
