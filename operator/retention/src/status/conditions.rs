//! The conditions of a policy (`docs/retention.md`, R50).

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::{
    ACKNOWLEDGE_ANNOTATION,
    status::{MissingRule, PolicyCondition, PolicyReason, TrippedNamespace, WaitingObjects},
};
use trainjob_retention_core::{
    breaker::{self, Reason, Scope, Trip},
    policy::Mode,
};

use crate::{
    cluster_state::{KindState, Stored, Unreadable},
    words,
};

/// How many namespaces a status names in which objects wait.
const NAMESPACES: usize = 10;

/// All that the conditions of a policy depend on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Situation {
    /// The mode of the policy, or why it is not understood.
    pub(super) mode: Result<Mode, String>,
    /// How it is with its kind.
    pub(super) kind: KindState,
    /// Whether the kind is known not to be served.
    pub(super) is_gone: bool,
    /// What the API server serves instead, if it has said last that it does not serve it.
    pub(super) absence: Option<Arc<str>>,
    /// What waits for an acknowledgement.
    pub(super) tripped: Option<Trip>,
    /// The trip that the annotation of the policy names.
    pub(super) acknowledged: Option<Arc<str>>,
    /// What waits without one.
    pub(super) waiting: Option<breaker::WaitingObjects>,
    /// The RBAC rules that the engine lacks for it.
    pub(super) missing: Missing,
    /// Whether the API server's time is known.
    pub(super) is_time_known: bool,
    /// How many objects have been terminating for more than ten minutes.
    pub(super) stuck: u64,
    /// Whether bounds cross for some object.
    pub(super) limits_cross: bool,
    /// The objects that ask for something in words that cannot be read.
    pub(super) unreadable: Option<Unreadable>,
}

/// What the breaker and the rights of a policy say of it.
#[derive(Debug, Default)]
pub(super) struct Stops {
    pub(super) tripped: Option<Trip>,
    pub(super) waiting: Option<breaker::WaitingObjects>,
    pub(super) missing: Missing,
}

/// The RBAC rules that the engine lacks for a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Missing {
    pub(super) rules: Vec<MissingRule>,
    /// Whether the policy pauses for one of them.
    pub(super) pauses: bool,
}

/// What a condition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) condition: PolicyCondition,
    pub(super) status: bool,
    pub(super) reason: PolicyReason,
    pub(super) message: String,
}

impl Said {
    pub(super) const fn status_text(&self) -> &'static str {
        if self.status { "True" } else { "False" }
    }

    /// Whether a stored condition says the same; its message may say more.
    pub(super) fn is(&self, stored: &Condition) -> bool {
        stored.type_ == self.condition.as_str()
            && stored.status == self.status_text()
            && stored.reason == self.reason.as_str()
    }
}

impl Situation {
    /// That of a policy whose kind is so, and maybe gone, and that this stops.
    pub(super) fn of(
        stored: &Stored,
        (kind, is_gone): (KindState, bool),
        Stops { tripped, waiting, missing }: Stops,
        is_time_known: bool,
    ) -> Self {
        let mode = match stored {
            Ok(stored) => Ok(stored.policy.mode),
            Err(not_understood) => Err(not_understood.error.to_string()),
        };
        Self {
            mode,
            kind,
            is_gone,
            absence: None,
            tripped,
            acknowledged: stored.as_ref().ok().and_then(|it| it.acknowledged_trip.clone()),
            waiting,
            missing,
            is_time_known,
            stuck: 0,
            limits_cross: false,
            unreadable: None,
        }
    }

    pub(super) fn ready(&self) -> (bool, PolicyReason, String) {
        match (&self.mode, self.kind, self.is_gone) {
            (Err(error), _, _) => (false, PolicyReason::NotUnderstood, error.clone()),
            (Ok(_), KindState::NotATarget, _) => (false, PolicyReason::Forbidden, not_a_target()),
            (Ok(_), _, true) => {
                let message = "the API server does not serve the kind in a version that is known";
                (false, PolicyReason::KindNotServed, self.absence_or(message))
            }
            (Ok(_), _, false) if self.missing.pauses => {
                (false, PolicyReason::Forbidden, "see the condition Forbidden".to_owned())
            }
            (Ok(_), KindState::Syncing, false) => {
                let message = "not all objects of the kind are known yet";
                (false, PolicyReason::Syncing, self.absence_or(message))
            }
            (Ok(_), KindState::Known { skipped }, false) => {
                let mut message = Vec::new();
                if skipped > 0 {
                    let (objects, are) =
                        (words::objects(skipped), words::either(skipped, "is", "are"));
                    message.push(format!("{objects} cannot be read and {are} left alone"));
                }
                if self.stuck > 0 {
                    let (objects, have) =
                        (words::objects(self.stuck), words::either(self.stuck, "has", "have"));
                    message.push(format!("{objects} {have} been terminating for over 10 minutes"));
                }
                if self.limits_cross {
                    message.push("a minimum is above the maximum of another policy".to_owned());
                }
                message.extend(self.unreadable.as_ref().map(unreadable));
                (true, PolicyReason::Watching, message.join("; "))
            }
        }
    }

    /// What the API server serves instead of the kind, or this.
    fn absence_or(&self, message: &str) -> String {
        self.absence.as_deref().unwrap_or(message).to_owned()
    }

    fn enforcing(&self, is_ready: bool) -> (bool, PolicyReason, String) {
        let no = |reason, message: &str| (false, reason, message.to_owned());
        // A trip of some namespaces stops nothing elsewhere.
        let stopped = |trip: &&Trip| matches!(trip.scope, Scope::Policy { .. });
        match (&self.mode, self.tripped.as_ref().filter(stopped)) {
            (Ok(Mode::Audit), _) => no(PolicyReason::AuditMode, "nothing is deleted in Audit"),
            _ if !is_ready => no(PolicyReason::NotReady, "see the condition Ready"),
            (_, Some(_)) => no(PolicyReason::Tripped, "see the condition Tripped"),
            _ if !self.is_time_known => {
                no(PolicyReason::ClockSuspect, "the API server's time is not known well enough")
            }
            _ => {
                let message = self.waiting.as_ref().map(how_long).unwrap_or_default();
                (true, PolicyReason::Enforcing, message)
            }
        }
    }

    /// What waits without an acknowledgement, as the status has it.
    pub(super) fn waiting_objects(&self) -> Option<WaitingObjects> {
        let waiting = self.waiting.as_ref()?;
        let mut counts: Vec<_> = waiting.namespaces.iter().collect();
        // The largest first; among equals the order of names stays.
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let named = counts
            .into_iter()
            .take(NAMESPACES)
            .map(|(name, count)| TrippedNamespace { name: name.to_string(), unexpected: *count });
        let (unexpected, until) = (waiting.count(), Some(waiting.until.into()));
        Some(WaitingObjects { unexpected, until, namespaces: named.collect() })
    }
}

fn unreadable(Unreadable { count, first }: &Unreadable) -> String {
    let (objects, ask) = (words::objects(*count), words::either(*count, "asks", "ask"));
    let first = if *count == 1 { format!(": {first}") } else { format!(", such as {first}") };
    format!("{objects} {ask} for a hold or a TTL that cannot be read{first}")
}

fn how_long(waiting: &breaker::WaitingObjects) -> String {
    let (count, until) = (waiting.count(), waiting.until);
    let (wait, are) = (words::either(count, "waits", "wait"), words::either(count, "is", "are"));
    let objects = words::objects(count);
    format!("{objects} that an edit has made due {wait} until {until}, and {are} deleted then")
}

fn not_a_target() -> String {
    "retention.targets of the configuration does not name the kind".to_owned()
}

/// What to add to a `ClusterRole`. JSON is YAML, too.
fn to_paste(missing: &[MissingRule]) -> String {
    let rules: Vec<_> = missing.iter().map(|rule| format!("- {}", json!(rule))).collect();
    format!("the engine needs in all namespaces:\n{}", rules.join("\n"))
}

/// What the conditions say, in the order of [`PolicyCondition::ALL`].
pub(super) fn conditions(situation: &Situation) -> Vec<Said> {
    let ready = situation.ready();
    let enforcing = situation.enforcing(ready.0);
    let tripped = match &situation.tripped {
        None => (false, PolicyReason::WithinLimits, String::new()),
        Some(trip) => {
            (true, trip_reason(trip), how_to_acknowledge(trip, situation.acknowledged.as_deref()))
        }
    };
    let forbidden = match (&situation.mode, situation.kind) {
        (Ok(_), KindState::NotATarget) => (true, PolicyReason::MissingRules, not_a_target()),
        (Ok(_), _) if !situation.missing.rules.is_empty() => {
            (true, PolicyReason::MissingRules, to_paste(&situation.missing.rules))
        }
        _ => (false, PolicyReason::Allowed, String::new()),
    };
    let said = [ready, enforcing, tripped, forbidden];
    let said = PolicyCondition::ALL.into_iter().zip(said);
    said.map(|(condition, (status, reason, message))| Said { condition, status, reason, message })
        .collect()
}

const fn trip_reason(trip: &Trip) -> PolicyReason {
    match trip.reason() {
        Reason::MassDelete => PolicyReason::MassDelete,
        Reason::ClockStep => PolicyReason::ClockStep,
    }
}

/// How to let go what waits. `acknowledged` is what the annotation says now.
fn how_to_acknowledge(trip: &Trip, acknowledged: Option<&str>) -> String {
    let (id, count) = (&trip.id, trip.count());
    let (waits, them) = (words::wait(count, trip.stock), words::either(count, "it", "them"));
    let wrong = acknowledged.filter(|named| **named != *id.as_str()).map(|named| {
        let named = words::quoted(named);
        format!("; now it is {named}, which is not the id of this trip")
    });
    let wrong = wrong.unwrap_or_default();
    format!("{waits}; to allow {them}, set the annotation {ACKNOWLEDGE_ANNOTATION} to {id}{wrong}")
}

/// Whether conditions say this already.
pub(super) fn is_said(said: &[Said], stored: &[Condition]) -> bool {
    // Whoever acknowledges a trip waits for what is said of it; other messages come with the next count.
    let is_said = |said: &Said, stored: &Condition| {
        let is_read = said.condition != PolicyCondition::Tripped || said.message == stored.message;
        said.is(stored) && is_read
    };
    said.len() == stored.len()
        && said.iter().zip(stored).all(|(said, stored)| is_said(said, stored))
}

#[cfg(test)]
impl Situation {
    /// That of a policy in Enforce whose kind is known, and with which nothing is wrong.
    pub(super) const fn good() -> Self {
        Self {
            mode: Ok(Mode::Enforce),
            kind: KindState::Known { skipped: 0 },
            is_gone: false,
            absence: None,
            tripped: None,
            acknowledged: None,
            waiting: None,
            missing: Missing { rules: Vec::new(), pauses: false },
            is_time_known: true,
            stuck: 0,
            limits_cross: false,
            unreadable: None,
        }
    }
}

#[cfg(test)]
mod tests;
