//! The conditions of a policy (`docs/retention.md`, R50).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::lifecycle::v1alpha1::status::{PolicyCondition, PolicyReason};
use trainjob_retention_core::policy::Mode;

use crate::room::{Breaker, KindState, Stored};

/// All that the conditions of a policy depend on.
#[derive(Debug, Clone)]
pub(super) struct Situation {
    /// The mode of the policy, or why it is not understood.
    pub(super) mode: Result<Mode, String>,
    /// How it is with its kind.
    pub(super) kind: KindState,
    /// Whether the kind is known not to be served.
    pub(super) is_gone: bool,
    /// How it was judged.
    pub(super) breaker: Option<Breaker>,
    /// Whether the API server's time is known.
    pub(super) is_time_known: bool,
    /// Whether bounds cross for some object.
    pub(super) limits_cross: bool,
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
    /// That of a policy whose kind is so, and maybe gone.
    pub(super) fn of(
        stored: &Stored,
        (kind, is_gone): (KindState, bool),
        breaker: Option<Breaker>,
        is_time_known: bool,
    ) -> Self {
        let mode = match stored {
            Ok(stored) => Ok(stored.policy.mode),
            Err(not_understood) => Err(not_understood.error.to_string()),
        };
        Self { mode, kind, is_gone, breaker, is_time_known, limits_cross: false }
    }

    fn ready(&self) -> (bool, PolicyReason, String) {
        match (&self.mode, self.kind, self.is_gone) {
            (Err(error), _, _) => (false, PolicyReason::NotUnderstood, error.clone()),
            (Ok(_), KindState::NotATarget, _) => (false, PolicyReason::Forbidden, not_a_target()),
            (Ok(_), _, true) => {
                let message = "the API server does not serve the kind in a version that is known";
                (false, PolicyReason::KindNotServed, message.to_owned())
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
                if self.limits_cross {
                    message.push("a minimum is above the maximum of another policy".to_owned());
                }
                (true, PolicyReason::Watching, message.join("; "))
            }
        }
    }

    fn enforcing(&self, is_ready: bool, tripped: Option<u64>) -> (bool, PolicyReason, String) {
        let no = |reason, message: &str| (false, reason, message.to_owned());
        match (&self.mode, tripped) {
            (Ok(Mode::Audit), _) => no(PolicyReason::AuditMode, "nothing is deleted in Audit"),
            _ if !is_ready => no(PolicyReason::NotReady, "see the condition Ready"),
            (_, Some(_)) => no(PolicyReason::Tripped, "see the condition Tripped"),
            _ if !self.is_time_known => {
                no(PolicyReason::ClockSuspect, "the API server's time is not known well enough")
            }
            _ => (true, PolicyReason::Enforcing, String::new()),
        }
    }
}

fn not_a_target() -> String {
    "retention.targets of the configuration does not name the kind".to_owned()
}

/// What the conditions say, in the order of [`PolicyCondition::ALL`].
pub(super) fn conditions(situation: &Situation) -> Vec<Said> {
    let tripped = situation.breaker.and_then(|breaker| breaker.tripped());
    let ready = situation.ready();
    let enforcing = situation.enforcing(ready.0, tripped);
    let tripped = match tripped {
        None => (false, PolicyReason::WithinLimits, String::new()),
        Some(due) => {
            let message = format!(
                "{due} objects are due at once, more than breaker.maxCount; an edit of the policy \
                 that leaves fewer, or allows more, ends this"
            );
            (true, PolicyReason::MassDelete, message)
        }
    };
    let forbidden = if situation.kind == KindState::NotATarget && situation.mode.is_ok() {
        (true, PolicyReason::MissingRules, not_a_target())
    } else {
        (false, PolicyReason::Allowed, String::new())
    };
    let said = [ready, enforcing, tripped, forbidden];
    let said = PolicyCondition::ALL.into_iter().zip(said);
    said.map(|(condition, (status, reason, message))| Said { condition, status, reason, message })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_say_whether_a_policy_works_and_why_not() {
        use PolicyReason as R;

        let known = KindState::Known { skipped: 0 };
        let good = Situation {
            mode: Ok(Mode::Enforce),
            kind: known,
            is_gone: false,
            breaker: Some(Breaker::judge(50, 50)),
            is_time_known: true,
            limits_cross: false,
        };
        let audit = Situation { mode: Ok(Mode::Audit), breaker: None, ..good.clone() };
        for (situation, ready, enforcing, others) in [
            (
                good.clone(),
                (true, R::Watching),
                (true, R::Enforcing),
                (R::WithinLimits, R::Allowed),
            ),
            (audit, (true, R::Watching), (false, R::AuditMode), (R::WithinLimits, R::Allowed)),
            (
                Situation { is_time_known: false, ..good.clone() },
                (true, R::Watching),
                (false, R::ClockSuspect),
                (R::WithinLimits, R::Allowed),
            ),
            (
                Situation { breaker: Some(Breaker::judge(51, 50)), ..good.clone() },
                (true, R::Watching),
                (false, R::Tripped),
                (R::MassDelete, R::Allowed),
            ),
            (
                Situation { kind: KindState::Syncing, breaker: None, ..good.clone() },
                (false, R::Syncing),
                (false, R::NotReady),
                (R::WithinLimits, R::Allowed),
            ),
            (
                Situation { kind: KindState::Syncing, is_gone: true, ..good.clone() },
                (false, R::KindNotServed),
                (false, R::NotReady),
                (R::WithinLimits, R::Allowed),
            ),
            (
                Situation { kind: KindState::NotATarget, ..good.clone() },
                (false, R::Forbidden),
                (false, R::NotReady),
                (R::WithinLimits, R::MissingRules),
            ),
            (
                Situation { mode: Err("spec.x: unknown field".to_owned()), ..good },
                (false, R::NotUnderstood),
                (false, R::NotReady),
                (R::WithinLimits, R::Allowed),
            ),
        ] {
            let said = conditions(&situation);
            let short: Vec<_> = said.iter().map(|said| (said.status, said.reason)).collect();
            let (tripped, forbidden) = others;
            let tripped = (tripped == R::MassDelete, tripped);
            let forbidden = (forbidden == R::MissingRules, forbidden);
            assert_eq!(short, [ready, enforcing, tripped, forbidden], "{situation:?}");
        }
    }
}
