//! What becomes of an object under a policy, and why, in one or two sentences.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::{
    lifecycle::v1alpha1::status::{PolicyCondition, PolicyReason},
    time::Timestamp,
};
use trainjob_retention_core::{
    breaker::{Record, Trip},
    facts::Controller,
    outcome::Bond,
    plan::{Act, Delay, Due, HoldEnd, OverrideProblem, State},
    policy::{Delete, Lifetime, Owned},
};

use super::case::Judged;
use crate::{status::SeenPolicy, words};

/// What becomes of an object as things are, whatever its policy does at the moment.
pub(super) fn verdict(judged: &Judged<'_>) -> String {
    verdict_of(judged, of_state(judged))
}

/// The same, with what keeps its policy from it at the moment, as far as the status of that says so.
pub(super) fn answer(
    judged: &Judged<'_>,
    seen: Option<&SeenPolicy>,
    namespace: &str,
    now: Timestamp,
) -> String {
    let Some(Due { at, .. }) = judged.plan.due else { return verdict(judged) };
    if matches!(judged.plan.state, State::Terminating | State::NativeTtl) {
        // Its policy has nothing to do with that any more.
        return verdict(judged);
    }
    let goes_now = judged.plan.state == State::Due && judged.plan.act != Act::Nothing;
    let due = || {
        format!(
            "{} {} {at}.",
            subject(judged),
            if at <= now { "is due since" } else { "is due at" }
        )
    };
    if let Some(obstacle) = seen.and_then(|seen| obstacle(seen, namespace)) {
        let is_plain =
            goes_now || judged.plan.state == State::Pending && judged.plan.native.is_none();
        let said = if is_plain { due() } else { of_state(judged) };
        let said = verdict_of(judged, said);
        return format!("{said} But its policy deletes nothing now: {obstacle}.");
    }
    match seen.and_then(|seen| may_wait(seen, namespace)).filter(|_| goes_now) {
        Some(wait) => verdict_of(judged, format!("{} {wait}", due())),
        None => verdict(judged),
    }
}

fn verdict_of(judged: &Judged<'_>, said: String) -> String {
    let Some(error) = &judged.unanswered else { return said };
    format!("{said} But the engine asks about another object first, and here that failed: {error}.")
}

fn of_state(judged: &Judged<'_>) -> String {
    let Judged { governed, plan, .. } = judged;
    match plan.state {
        State::Pending => pending(judged),
        State::Held => held(judged),
        State::NativeTtl => {
            let at = plan.native.map(|at| format!(" at {at}")).unwrap_or_default();
            format!(
                "Its own controller deletes it{at}, by the TTL in its own field, and no policy stops that."
            )
        }
        State::Kept => kept(judged),
        State::Owned => owned(judged),
        State::Guarded if governed.finish.guards.release => {
            "It waits until its JobSet and its Pods are gone: its deadline failed it (R13)."
                .to_owned()
        }
        State::Guarded => {
            "A guard keeps it: something archives it and is not done (R13).".to_owned()
        }
        State::NeedsOwner => needs_owner(judged),
        State::Ungrouped => {
            let Lifetime::KeepLast(keep_last) = governed.decision().lifetime() else {
                return "It is kept, because it belongs to no group.".to_owned();
            };
            let labels = keep_last.group_by().join(", ");
            format!(
                "It is kept, because it lacks one of the labels by which rule {} makes groups: {labels}.",
                plan.rule.name
            )
        }
        State::NoFinishTime => {
            "It is kept, because nothing tells when it finished (R12).".to_owned()
        }
        State::Terminating => terminating(judged),
        State::Due => due(judged),
    }
}

/// What keeps a policy from deleting it at the moment, as far as its status says that.
fn obstacle(seen: &SeenPolicy, namespace: &str) -> Option<String> {
    if let Some(not_ready) = not_ready(seen) {
        return Some(not_ready);
    }
    let trip = Record::read(&seen.status).and_then(|record| record.trip);
    if let Some(trip) = trip.filter(|it| it.stops(namespace)) {
        return Some(tripped(&trip));
    }
    let enforcing = condition(seen, PolicyCondition::Enforcing)?;
    (enforcing.status != "True").then(|| format!("{}: {}", enforcing.reason, enforcing.message))
}

/// Why a policy is not ready, if its status says that it is not, or says nothing of it yet.
pub(super) fn not_ready(seen: &SeenPolicy) -> Option<String> {
    let status = &seen.status;
    match status.observed_generation {
        Some(observed) if observed == seen.generation => {}
        Some(_) => return Some("the engine has not looked at the last edit of it yet".to_owned()),
        None => return Some("the engine has not looked at it yet".to_owned()),
    }
    let Condition { reason, message, .. } =
        condition(seen, PolicyCondition::Ready).filter(|ready| ready.status != "True")?;
    let missing = status.missing_rules.as_deref().filter(|missing| !missing.is_empty());
    Some(match missing.filter(|_| *reason == PolicyReason::Forbidden.as_str()) {
        // The message of the condition has a line for each rule to paste.
        Some(missing) => format!("{reason}: the engine may not {}", words::rights(missing)),
        None => format!("{reason}: {message}"),
    })
}

fn condition(seen: &SeenPolicy, wanted: PolicyCondition) -> Option<&Condition> {
    let mut conditions = seen.status.conditions.iter().flatten();
    conditions.find(|it| it.type_ == wanted.as_str())
}

/// Whether what is due may have to wait after an edit.
fn may_wait(seen: &SeenPolicy, namespace: &str) -> Option<String> {
    let waiting = seen.status.waiting.as_ref()?;
    let here = waiting.namespaces.iter().find(|it| it.name == namespace)?;
    let until = waiting.until.as_ref().map(Timestamp::from)?;
    let count = here.unexpected;
    let (objects, wait) = (words::objects(count), words::either(count, "waits", "wait"));
    let it_is = words::either(count, "that is this one", "this is one of them");
    Some(format!(
        "An edit has made {objects} in its namespace due, which {wait} until {until} (R42): if {it_is}, it is deleted then, else now."
    ))
}

fn tripped(trip: &Trip) -> String {
    let Trip { id, stock, .. } = trip;
    let waits = words::wait(trip.count(), *stock);
    format!("it has tripped, and {waits} for an acknowledgement of {id} (R43)")
}

/// What is deleted, as the beginning of a sentence.
fn subject(judged: &Judged<'_>) -> String {
    match (judged.governed.decision().delete(), judged.governed.object.controller()) {
        (Delete::Owner, Some(Controller { kind, name, .. })) => format!("Its owner {kind} {name}"),
        (Delete::Owner | Delete::Object, _) => "It".to_owned(),
    }
}

fn pending(judged: &Judged<'_>) -> String {
    let (subject, plan) = (subject(judged), &judged.plan);
    let Some(Due { at, .. }) = plan.due else { return format!("{subject} waits for its time.") };
    match plan.native {
        None => format!("{subject} is deleted at {at}."),
        Some(native) => format!(
            "Its own controller deletes it at {native}, by the TTL in its own field. If it is still there at {at}, the engine deletes it."
        ),
    }
}

fn held(judged: &Judged<'_>) -> String {
    let subject = subject(judged);
    let Some(Due { at, delay: Some(Delay::Hold(end)), .. }) = judged.plan.due else {
        return format!("A hold keeps it; then {subject} is deleted.");
    };
    let unreadable_ttl = judged.plan.override_problem == Some(OverrideProblem::Unreadable);
    let why = match end {
        HoldEnd::AsWished => "",
        HoldEnd::Capped => " Its hold asks for longer than it gets.",
        HoldEnd::Unreadable if unreadable_ttl => {
            " The TTL in its annotation cannot be read, so it holds as long as a hold may."
        }
        HoldEnd::Unreadable => " Its hold cannot be read, so it holds as long as a hold may.",
    };
    let subject = if subject == "It" { "it".to_owned() } else { subject };
    format!("A hold keeps it until {at}; then {subject} is deleted.{why}")
}

fn kept(judged: &Judged<'_>) -> String {
    let (governed, rule) = (&judged.governed, &judged.plan.rule.name);
    if governed.is_in_doubt() {
        return "It is kept as long as it is not known what all policies say of it (R5)."
            .to_owned();
    }
    match governed.decision().lifetime() {
        Lifetime::KeepLast(keep_last) => {
            let count = keep_last.count();
            format!("Rule {rule} keeps it: it is among the newest {count} of its group.")
        }
        Lifetime::Never | Lifetime::Ttl(_) => format!("Rule {rule} keeps it for ever."),
    }
}

fn owned(judged: &Judged<'_>) -> String {
    let Some(Controller { kind, name, .. }) = judged.governed.object.controller() else {
        return "It waits for its owner.".to_owned();
    };
    match (judged.governed.decision().delete(), judged.governed.policy.owned) {
        (Delete::Owner, _) => format!(
            "It is left alone: {kind} {name}, which would be deleted in its place, is gone or has an owner itself (R25)."
        ),
        (Delete::Object, Owned::Skip) if judged.governed.finish.bond == Bond::None => format!(
            "It is left alone: {kind} {name} controls it, and owned of the policy is Skip (R23)."
        ),
        (Delete::Object, Owned::Skip | Owned::AfterOwner | Owned::Any) => format!(
            "It waits for its owner {kind} {name}, which has not finished, as far as is known (R24)."
        ),
    }
}

fn needs_owner(judged: &Judged<'_>) -> String {
    if judged.governed.decision().delete() == Delete::Owner {
        return "It is kept: the rule deletes its controller owner, and it has none (R25)."
            .to_owned();
    }
    "It is kept: deleted alone, it would make its job run again. Only a rule with delete: Owner deletes it (R26)."
        .to_owned()
}

fn terminating(judged: &Judged<'_>) -> String {
    match judged.governed.object.terminating.get() {
        Some(since) => format!("It is being deleted, since {since}."),
        None => format!("{} is being deleted.", subject(judged)),
    }
}

fn due(judged: &Judged<'_>) -> String {
    let (subject, plan) = (subject(judged), &judged.plan);
    let since = plan.due.map(|due| format!(" since {}", due.at)).unwrap_or_default();
    match plan.act {
        Act::Nothing => {
            format!("It is due{since}, and waits until another one of its group is gone (R21).")
        }
        Act::DeletePods | Act::DeleteObject | Act::DeleteOwner | Act::Ask(_) => {
            format!("{subject} is due{since}, and is deleted now.")
        }
    }
}
