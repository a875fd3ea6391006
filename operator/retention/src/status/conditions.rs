//! The conditions of a policy (`docs/retention.md`, R50).

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

use crate::cluster_state::{KindState, Stored, Unreadable};

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
    /// What waits for an acknowledgement.
    pub(super) tripped: Option<Trip>,
    /// What waits without one.
    pub(super) waiting: Option<breaker::WaitingObjects>,
    /// The RBAC rules that the engine lacks for it.
    pub(super) missing: Vec<MissingRule>,
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
    pub(super) missing: Vec<MissingRule>,
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
            tripped,
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
                (false, PolicyReason::KindNotServed, message.to_owned())
            }
            (Ok(_), _, false) if !self.missing.is_empty() => {
                (false, PolicyReason::Forbidden, "see the condition Forbidden".to_owned())
            }
            (Ok(_), KindState::Syncing, false) => {
                let message = "not all objects of the kind are known yet";
                (false, PolicyReason::Syncing, message.to_owned())
            }
            (Ok(_), KindState::Known { skipped }, false) => {
                let mut message = Vec::new();
                if skipped > 0 {
                    message.push(format!("{skipped} objects cannot be read and are left alone"));
                }
                if self.stuck > 0 {
                    let stuck = self.stuck;
                    message
                        .push(format!("{stuck} objects have been terminating for over 10 minutes"));
                }
                if self.limits_cross {
                    message.push("a minimum is above the maximum of another policy".to_owned());
                }
                message.extend(self.unreadable.as_ref().map(unreadable));
                (true, PolicyReason::Watching, message.join("; "))
            }
        }
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
    format!("{count} objects ask for a hold or a TTL that cannot be read, such as {first}")
}

fn how_long(waiting: &breaker::WaitingObjects) -> String {
    let (count, until) = (waiting.count(), waiting.until);
    format!("{count} objects that an edit has made due wait until {until}, and are deleted then")
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
        Some(trip) => (true, trip_reason(trip), how_to_acknowledge(trip)),
    };
    let forbidden = match (&situation.mode, situation.kind) {
        (Ok(_), KindState::NotATarget) => (true, PolicyReason::MissingRules, not_a_target()),
        (Ok(_), _) if !situation.missing.is_empty() => {
            (true, PolicyReason::MissingRules, to_paste(&situation.missing))
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

fn how_to_acknowledge(trip: &Trip) -> String {
    format!(
        "{} of {} objects wait; to allow them, set the annotation {ACKNOWLEDGE_ANNOTATION} to {}",
        trip.count(),
        trip.stock,
        trip.id
    )
}

/// Whether conditions say this already.
pub(super) fn is_said(said: &[Said], stored: &[Condition]) -> bool {
    said.len() == stored.len() && said.iter().zip(stored).all(|(said, stored)| said.is(stored))
}

#[cfg(test)]
impl Situation {
    /// That of a policy in Enforce whose kind is known, and with which nothing is wrong.
    pub(super) const fn good() -> Self {
        Self {
            mode: Ok(Mode::Enforce),
            kind: KindState::Known { skipped: 0 },
            is_gone: false,
            tripped: None,
            waiting: None,
            missing: Vec::new(),
            is_time_known: true,
            stuck: 0,
            limits_cross: false,
            unreadable: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use trainjob_api::time::Timestamp;
    use trainjob_core::facts::ObjectKey;
    use trainjob_retention_core::breaker::TripId;

    use super::*;

    fn trip(scope: Scope) -> Trip {
        Trip { id: TripId::from("7-d-1"), at: Timestamp(1), stock: 60, scope }
    }

    /// The reasons of all conditions, each behind its status.
    fn short(situation: &Situation) -> Vec<String> {
        let sign = |status| if status { '+' } else { '-' };
        let said = conditions(situation);
        said.iter().map(|said| format!("{}{}", sign(said.status), said.reason.as_str())).collect()
    }

    #[test]
    fn conditions_say_whether_a_policy_works_and_why_not() {
        let everywhere = Scope::Policy { reason: Reason::MassDelete, count: 51 };
        let somewhere = Scope::Namespaces([("a".into(), 51)].into());
        let clock = Scope::Policy { reason: Reason::ClockStep, count: 51 };
        let good = Situation::good();
        let syncing = Situation { kind: KindState::Syncing, ..good.clone() };
        let with = |scope| Situation { tripped: Some(trip(scope)), ..good.clone() };
        let missing = vec![MissingRule {
            api_groups: vec!["batch".to_owned()],
            resources: vec!["jobs".to_owned()],
            verbs: vec!["delete".to_owned()],
        }];
        let not_understood = Err("spec.x: unknown field".to_owned());
        for (situation, expected) in [
            (good.clone(), "+Watching +Enforcing -WithinLimits -Allowed"),
            (
                Situation { mode: Ok(Mode::Audit), ..good.clone() },
                "+Watching -AuditMode -WithinLimits -Allowed",
            ),
            (
                Situation { is_time_known: false, ..good.clone() },
                "+Watching -ClockSuspect -WithinLimits -Allowed",
            ),
            (with(everywhere), "+Watching -Tripped +MassDelete -Allowed"),
            (with(somewhere), "+Watching +Enforcing +MassDelete -Allowed"),
            (with(clock), "+Watching -Tripped +ClockStep -Allowed"),
            (syncing.clone(), "-Syncing -NotReady -WithinLimits -Allowed"),
            (
                Situation { is_gone: true, ..syncing.clone() },
                "-KindNotServed -NotReady -WithinLimits -Allowed",
            ),
            (
                Situation { missing: missing.clone(), ..good.clone() },
                "-Forbidden -NotReady -WithinLimits +MissingRules",
            ),
            (
                Situation { missing: missing.clone(), ..syncing.clone() },
                "-Forbidden -NotReady -WithinLimits +MissingRules",
            ),
            (
                Situation { missing, is_gone: true, ..good.clone() },
                "-KindNotServed -NotReady -WithinLimits +MissingRules",
            ),
            (
                Situation { kind: KindState::NotATarget, ..good.clone() },
                "-Forbidden -NotReady -WithinLimits +MissingRules",
            ),
            (
                Situation { mode: not_understood, ..good },
                "-NotUnderstood -NotReady -WithinLimits -Allowed",
            ),
        ] {
            assert_eq!(short(&situation).join(" "), expected, "{situation:?}");
        }
    }

    #[test]
    fn what_waits_and_what_cannot_be_read_is_said_though_the_policy_works() {
        let namespaces = (0..12_u64).map(|index| (format!("n{index:02}").into(), index + 1));
        let waiting =
            breaker::WaitingObjects { until: Timestamp(60), namespaces: namespaces.collect() };
        let object = |name: &str| ObjectKey { namespace: "a".into(), name: name.into() };
        let situation = Situation {
            waiting: Some(waiting),
            unreadable: Some(Unreadable { count: 2, first: object("j") }),
            ..Situation::good()
        };
        let said = conditions(&situation);
        let messages: Vec<_> = said.iter().map(|said| said.message.as_str()).collect();
        let expected = [
            "2 objects ask for a hold or a TTL that cannot be read, such as a/j",
            "78 objects that an edit has made due wait until 1970-01-01T00:01:00Z, and are deleted then",
            "",
            "",
        ];
        assert_eq!(messages, expected);
        let waiting = situation.waiting_objects().unwrap();
        let named: Vec<_> =
            waiting.namespaces.iter().map(|it| (&*it.name, it.unexpected)).collect();
        assert_eq!((waiting.unexpected, named.len()), (78, 10));
        assert_eq!(named.first(), Some(&("n11", 12)));
    }

    #[test]
    fn rules_are_shown_as_they_are_pasted() {
        let rule = |resource: &str| MissingRule {
            api_groups: vec![String::new()],
            resources: vec![resource.to_owned()],
            verbs: vec!["list".to_owned(), "delete".to_owned()],
        };
        let expected = "the engine needs in all namespaces:\n\
            - {\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"list\",\"delete\"]}\n\
            - {\"apiGroups\":[\"\"],\"resources\":[\"jobs\"],\"verbs\":[\"list\",\"delete\"]}";
        assert_eq!(to_paste(&[rule("pods"), rule("jobs")]), expected);
    }
}
