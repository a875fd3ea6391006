//! S3: terminal is final; S4: no resurrection.

use crate::{
    history::{Change, Condition, Request},
    index::{Index, Life, millis},
    rules::identity::broken,
    violation::{Rule, Violation},
};

/// S3, by what is stored: from the first terminal condition on, every version has that very one.
pub(super) fn terminal_is_final(index: &Index<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for life in index.jobs() {
        let mut end: Option<&Condition> = None;
        for change in &life.versions {
            if let Some(what) = objection(end, change) {
                found.push(Index::broken(Rule::S3, &change.object, change.at, what));
                break;
            }
            end = end.or_else(|| change.object.terminal());
        }
    }
    found
}

fn objection(end: Option<&Condition>, change: &Change) -> Option<String> {
    let conditions = change.object.conditions();
    if conditions.iter().filter(|it| it.is_terminal()).count() > 1 {
        return Some("is both Complete and Failed".into());
    }
    let end = end?;
    match change.object.terminal() {
        None => Some(format!("is no longer {}", end.kind)),
        Some(now) if now.kind != end.kind => Some(format!("is {}, after {}", now.kind, end.kind)),
        Some(now) if now.reason != end.reason => {
            Some(format!("is {} for the reason {}, after {}", now.kind, now.reason, end.reason))
        }
        Some(now) if now.since != end.since => {
            Some(format!("is {} since {}, after {}", now.kind, now.since, end.since))
        }
        Some(_) => None,
    }
}

/// What a child was made or resumed for.
struct Stopped<'a> {
    rule: Rule,
    /// The version that forbids it.
    change: &'a Change,
    why: &'static str,
}

/// S3 and S4, by what is asked for: no creation and no resume is decided for a job that is known to be
/// over. What was under way when it ended cannot be fenced: such a JobSet must be deleted.
pub(super) fn nothing_new_after_the_end(index: &Index<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for request in index.history.requests.iter().filter(|request| request.took_effect()) {
        let Some((job, verb)) = started(index, request) else { continue };
        let Some(stopped) = stopped(job, verb, request) else { continue };
        if index.knew(request, stopped.change) {
            let what = format!("was {verb} after its TrainJob {}", stopped.why);
            found.push(broken(stopped.rule, request, what));
        }
    }
    found.extend(index.jobs().flat_map(|job| leftovers(index, job)));
    found
}

/// The job that this request makes or resumes something for.
fn started<'a, 'b>(
    index: &'b Index<'a>,
    request: &Request,
) -> Option<(&'b Life<'a>, &'static str)> {
    let resumes = request.suspend == Some(false) && request.resource == "jobsets";
    match request.verb.as_str() {
        "create" if request.resource != "events" => {
            let owner = request.owner.as_deref();
            let made = || index.made(request).and_then(|made| made.owner.as_deref());
            Some((index.life(owner.or_else(made)?)?, "created"))
        }
        "patch" | "update" if resumes => {
            let job_set = index.life(request.uid.as_deref()?)?;
            let before = job_set.before(request.answer.version?)?;
            let suspended =
                matches!(&before.object.state, crate::history::State::JobSet(it) if it.suspend);
            let job = index.life(job_set.last().object.owner.as_deref()?)?;
            suspended.then_some((job, "resumed"))
        }
        _ => None,
    }
}

/// What about this job forbids it, at the time the request was sent.
fn stopped<'a>(job: &Life<'a>, verb: &str, request: &Request) -> Option<Stopped<'a>> {
    if let Some(finish) = job.finish().filter(|finish| finish.change.at < request.sent) {
        let by_deadline = finish.condition.is_deadline();
        let rule = if by_deadline || verb == "resumed" { Rule::S4 } else { Rule::S3 };
        return Some(Stopped { rule, change: finish.change, why: "had finished" });
    }
    let deletion = job.deletion().filter(|change| change.at < request.sent)?;
    Some(Stopped { rule: Rule::S4, change: deletion, why: "was being deleted" })
}

/// JobSets that were made after the end of their job and that nobody deletes. One that has ended by
/// itself runs nothing and may stay.
fn leftovers(index: &Index<'_>, job: &Life<'_>) -> Vec<Violation> {
    let Some(finish) = job.finish() else { return Vec::new() };
    let by_deadline = finish.condition.is_deadline();
    let rule = if by_deadline { Rule::S4 } else { Rule::S3 };
    let allowance = index.history.terms.allowance;
    let job_sets = index.job_sets(&job.last().object.uid);
    let left = job_sets.filter(|life| {
        let made = life.first();
        let since = made.at.max(finish.change.at).max(millis(made.object.created));
        let late = made.object.created > finish.condition.since;
        let stays = life.deletion().is_none() && life.last().object.job_set_end().is_none();
        late && stays && since + allowance < index.history.end
    });
    left.map(|life| {
        let what = "was created after the end of its TrainJob, and stays".into();
        Index::broken(rule, &life.last().object, index.history.end, what)
    })
    .collect()
}
