//! What is printed about an object.

use std::fmt::Write as _;

use trainjob_retention_core::{
    facts::{Facts, Finish},
    outcome::Outcome,
    plan::{Delay, Due, HoldEnd, OverrideProblem, State},
    policies::Opinion,
    policy::{Mode, Policy},
    wish::{HOLD_ANNOTATION, TTL_ANNOTATION},
};

use super::{
    case::{Case, Judged},
    verdict::{self, verdict},
};
use crate::{cluster_state::source_name, words};

/// The page about an object that this policy governs, if any does, and that these audit.
pub(super) fn of(case: &Case, governing: Option<&Judged<'_>>, audited: &[Judged<'_>]) -> String {
    let Case { kind, key, now, .. } = case;
    let mut sections = vec![format!("{} {key}, at {now}", kind.kind), answer(case, governing)];
    let details = governing.map(details).or_else(|| case.facts.as_ref().map(bare_details));
    let lines = details.unwrap_or_default();
    if !lines.is_empty() {
        sections.push(columns(&lines));
    }
    for judged in audited {
        let reference = judged.governed.policy.reference();
        let would = format!("{}{}", verdict(judged), as_written(case, judged));
        sections.push(format!("If {reference} enforced: {would}"));
        sections.push(columns(&details_of(judged, &lines)));
    }
    sections.push(opinions(case));
    if !case.is_configured {
        let note = "Without --config it is not known which kinds are targets of the engine and which namespaces it excludes.";
        sections.push(note.to_owned());
    }
    sections.join("\n\n") + "\n"
}

fn answer(case: &Case, governing: Option<&Judged<'_>>) -> String {
    let Some(facts) = &case.facts else {
        return "It has not finished, so no policy deletes it.".to_owned();
    };
    let Some(judged) = governing else { return ungoverned(case, facts) };
    let seen = case.seen.get(&judged.governed.policy.uid);
    let mut answer = verdict::answer(judged, seen, &case.key.namespace, case.now);
    answer.push_str(&as_written(case, judged));
    if !case.finalizers.is_empty() && facts.terminating.get().is_some() {
        let _ = write!(answer, " Finalizers keep it: {}.", case.finalizers.join(", "));
    }
    answer
}

/// The words that hold an object because they cannot be read, and words that can be.
fn as_written(case: &Case, judged: &Judged<'_>) -> String {
    let plan = &judged.plan;
    let Some(Due { at, delay: Some(Delay::Hold(HoldEnd::Unreadable)), .. }) = plan.due else {
        return String::new();
    };
    let (annotation, right) = if plan.override_problem == Some(OverrideProblem::Unreadable) {
        (TTL_ANNOTATION, "a number of seconds such as 604800".to_owned())
    } else {
        (HOLD_ANNOTATION, format!("a time such as {at}"))
    };
    let written = case.annotations.get(annotation).filter(|_| plan.state == State::Held);
    let said = written.map(|it| format!(" It says {}, and not {right}.", words::quoted(it)));
    said.unwrap_or_default()
}

/// Why no policy governs an object that has finished.
fn ungoverned(case: &Case, facts: &Facts) -> String {
    let opinions = case.policies.opinions(&case.namespace, facts);
    let mut enforcing = opinions.iter().filter(|(policy, _)| policy.mode == Mode::Enforce);
    if facts.remote_copy {
        return "MultiKueue made it, and its manager deletes it: policies leave it alone."
            .to_owned();
    }
    if case.namespace.terminating {
        return "Its namespace is being deleted, and it with that.".to_owned();
    }
    if let Some((policy, _)) = enforcing.find(|(_, opinion)| *opinion == Opinion::Unfinished) {
        let reference = policy.reference();
        return format!("It stays: by finished of {reference} it has not finished.");
    }
    let kind = &case.kind;
    let excluded = if case.namespace.excluded {
        ", and its namespace is excluded, so a cluster policy has to name it (R37)"
    } else {
        ""
    };
    format!("It stays: of the policies for {kind} none in Enforce decides about it{excluded}.")
}

/// Lines of two columns.
type Lines = Vec<(&'static str, String)>;

fn details(judged: &Judged<'_>) -> Lines {
    let governed = &judged.governed;
    let by = format!("{}, by rule {}", governed.policy.reference(), governed.rule.name);
    let mut lines = finish(governed.finish);
    lines.push(("governed by", by));
    lines.extend(times(judged));
    lines
}

/// Of one in Audit: its end only if this does not say that already.
fn details_of(judged: &Judged<'_>, said: &Lines) -> Lines {
    let mut lines = finish(judged.governed.finish);
    lines.retain(|line| !said.contains(line));
    lines.push(("rule", judged.governed.rule.name.to_string()));
    lines.extend(times(judged));
    lines
}

/// Of an object that no policy governs.
fn bare_details(facts: &Facts) -> Lines {
    facts.finishes.first().map(finish).unwrap_or_default()
}

fn finish(finish: &Finish) -> Lines {
    let outcome = match finish.outcome {
        Outcome::Succeeded => "Succeeded",
        Outcome::Failed => "Failed",
        Outcome::Other => "Other",
        Outcome::Deactivated => "Deactivated",
    };
    let at = finish.time.get().map_or_else(|| "unknown".to_owned(), |time| time.to_string());
    let reason =
        if finish.reason.is_empty() { String::new() } else { format!(", {}", finish.reason) };
    vec![("finished", format!("{at}, {outcome}{reason}"))]
}

fn times(judged: &Judged<'_>) -> Lines {
    let (governed, plan) = (&judged.governed, &judged.plan);
    let mut lines = Lines::new();
    if let Some(due) = plan.due {
        lines.push(("due", format!("{}, by {}", due.at, source_name(due))));
        let unheld = plan.due_unheld.filter(|unheld| *unheld != due.at);
        lines.extend(unheld.map(|unheld| ("without a hold", unheld.to_string())));
    }
    lines.extend(plan.native.map(|native| ("by its own TTL", native.to_string())));
    lines.extend(plan.pods_due.map(|due| ("its Pods", due.at.to_string())));
    let controller = governed.object.controller();
    lines.extend(controller.map(|it| ("controlled by", format!("{} {}", it.kind, it.name))));
    lines
}

fn columns(lines: &Lines) -> String {
    let lines: Vec<_> =
        lines.iter().map(|(name, said)| format!("  {:<16}{said}", format!("{name}:"))).collect();
    lines.join("\n")
}

fn opinions(case: &Case) -> String {
    let kind = &case.kind;
    let not_ready = |policy: &Policy| {
        let why = case.seen.get(&policy.uid).and_then(verdict::not_ready);
        why.map(|why| format!("; it is not ready: {why}")).unwrap_or_default()
    };
    let mut lines: Vec<_> = match &case.facts {
        // Of an object that has not finished they say nothing.
        None => {
            let policies = case.policies.iter();
            policies.map(|policy| format!("{}{}", name(policy), not_ready(policy))).collect()
        }
        Some(facts) => {
            let opinions = case.policies.opinions(&case.namespace, facts).into_iter();
            let line =
                |(policy, it)| format!("{}: {}{}", name(policy), opinion(it), not_ready(policy));
            opinions.map(line).collect()
        }
    };
    for (reference, error) in &case.not_understood {
        lines.push(format!("{reference}: not understood, so what it may select is kept: {error}"));
    }
    if lines.is_empty() {
        return format!("There is no policy for {kind}.");
    }
    format!("Policies for {kind}, in the order in which they are asked:\n  {}", lines.join("\n  "))
}

fn name(policy: &Policy) -> String {
    let mode = match policy.mode {
        Mode::Audit => "Audit",
        Mode::Enforce => "Enforce",
    };
    format!("{} ({mode})", policy.reference())
}

fn opinion(opinion: Opinion<'_>) -> String {
    match opinion {
        Opinion::Elsewhere => "is for other namespaces".to_owned(),
        Opinion::NotSelected => "its selector does not fit".to_owned(),
        Opinion::Unfinished => "has not finished in its sense".to_owned(),
        Opinion::Defers(rule) => format!("rule {} defers to the next policy", rule.name),
        Opinion::Decides(rule) => format!("rule {} decides", rule.name),
    }
}

#[cfg(test)]
mod tests;
