//! The status of a policy, of what is found of it and what its status said before.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::{
    lifecycle::v1alpha1::status::{
        PolicyCondition, PolicyReason, RetentionPolicyStatus, RuleStatus,
    },
    time::Timestamp,
};

use super::{
    conditions::{Said, conditions},
    found::Found,
    seen::SeenPolicy,
};
use crate::cluster_state::{KindState, Tally};

/// The status of a policy.
pub(super) fn compose(
    found: &Found,
    tally: Option<&Tally>,
    version: Option<&str>,
    seen: &SeenPolicy,
    now: Timestamp,
) -> RetentionPolicyStatus {
    let mut situation = found.situation.clone();
    situation.stuck = tally.map_or(0, |tally| tally.stuck);
    situation.limits_cross = tally.is_some_and(|tally| tally.limits_cross);
    situation.unreadable = tally.and_then(|tally| tally.unreadable.clone());
    let mut said = conditions(&situation);
    let before = seen.status.conditions.as_deref().unwrap_or_default();
    if tally.is_none() {
        keep_counted(&mut said, before);
    }
    let mut status = RetentionPolicyStatus {
        observed_generation: Some(seen.generation),
        observed_digest: observed_digest(found, seen),
        served_version: version.map(str::to_owned),
        waiting: situation.waiting_objects(),
        missing_rules: Some(situation.missing.rules).filter(|missing| !missing.is_empty()),
        conditions: Some(dated(said, before, seen.generation, now)),
        ..seen.status.clone()
    };
    if !matches!(situation.kind, KindState::Known { .. }) {
        // Numbers of a kind that is not known would be wrong.
        (status.counts, status.rules, status.would_delete, status.next) = (None, None, None, None);
        status.counted_at = None;
    } else if let Some(tally) = tally {
        let rule = |name: &Arc<str>| {
            let (matched, due) = tally.rule(name);
            RuleStatus { name: name.to_string(), matched, due }
        };
        status.counts = Some(tally.counts);
        status.rules = Some(found.rules.iter().map(rule).collect());
        status.would_delete = Some(tally.would_delete);
        status.next = Some(tally.next());
    }
    status
}

/// The digest of the generation that the status is about. What is not understood keeps the one that was read of it before.
fn observed_digest(found: &Found, seen: &SeenPolicy) -> Option<String> {
    match found.digest {
        Some((generation, digest)) if generation == seen.generation => Some(digest.to_string()),
        Some(_) | None => {
            let is_same = seen.status.observed_generation == Some(seen.generation);
            seen.status.observed_digest.clone().filter(|_| is_same)
        }
    }
}

/// What `Ready` says of objects stays until they are counted again.
fn keep_counted(said: &mut [Said], before: &[Condition]) {
    let ready = said.iter_mut().find(|said| said.condition == PolicyCondition::Ready);
    let Some(ready) = ready.filter(|ready| ready.reason == PolicyReason::Watching) else { return };
    if let Some(before) = before.iter().find(|before| ready.is(before)) {
        ready.message.clone_from(&before.message);
    }
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

#[cfg(test)]
mod tests;
