//! L1 and L2: what is due happens, and in time.
//!
//! "In time" is within the allowance of the run, counted from when the operator could first have acted:
//! the due instant, or the later one at which it was set. How long Pods take to end is theirs to say,
//! so it is only asked that they have, an allowance after they were told to.

use crate::{
    history::{Change, Millis, State},
    index::{Finish, Index, Life, millis},
    rules::fairness::rule_of_delay,
    violation::{Rule, Violation},
};

/// L1, of every job with a TTL that is the operator's to apply, and of the children of every job.
pub(super) fn every_ttl_ends_in_absence(index: &Index<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for life in index.jobs() {
        found.extend(ttl(index, life));
        found.extend(orphans(index, life));
    }
    found
}

fn ttl(index: &Index<'_>, life: &Life<'_>) -> Option<Violation> {
    let Terms { allowance, end } = Terms::of(index);
    let deletion = life.deletion();
    // What it said when its deletion began, or says at the end.
    let decided_on = deletion.map_or(Some(life.last()), |it| life.before(it.revision))?;
    if !index.ttl_applies(decided_on.object.job()?) {
        return None;
    }
    let due = millis(index.ttl_due(&decided_on.object)?);
    let armed = life.since(decided_on.revision, |object| index.ttl_due(object));
    let ready = due.max(armed).max(released(index, life)?);
    let deleted_at = deletion.map_or(end, |it| it.at);
    if deleted_at > ready + allowance {
        let how = if deletion.is_some() { "was deleted" } else { "is still there," };
        return Some(delay(index, life, (ready, deleted_at), Rule::L1, how));
    }
    let began = deletion?.at;
    let held = |life: &Life<'_>| life.last().object.is_held();
    let blocked = held(life) || index.children(&life.last().object.uid).any(held);
    let stuck = life.end().is_none() && !blocked && began + allowance < end;
    stuck.then(|| {
        let what = format!("is still there, {} ms after its deletion began", end - began);
        Index::broken(Rule::L1, &life.last().object, end, what)
    })
}

/// Children of a job that is gone.
fn orphans(index: &Index<'_>, job: &Life<'_>) -> Vec<Violation> {
    let Terms { allowance, end } = Terms::of(index);
    let Some(gone) = job.end() else { return Vec::new() };
    let stay = index.children(&job.last().object.uid).filter(|child| {
        let since = child.deletion().map_or(child.first().at, |it| it.at).max(gone.at);
        child.end().is_none() && !child.last().object.is_held() && since + allowance < end
    });
    stay.map(|child| {
        let what = format!("is still there, {} ms after its TrainJob was gone", end - gone.at);
        Index::broken(Rule::L1, &child.last().object, end, what)
    })
    .collect()
}

/// When a job that its deadline failed held nothing any more; at once for any other, `None` for one
/// that still does.
fn released(index: &Index<'_>, life: &Life<'_>) -> Option<Millis> {
    if !life.finish().is_some_and(|finish| finish.condition.is_deadline()) {
        return Some(0);
    }
    let mut last = 0;
    for job_set in index.job_sets(&life.last().object.uid) {
        last = job_set.end()?.at.max(last);
        for pod in index.children(&job_set.last().object.uid) {
            last = stopped(pod)?.at.max(last);
        }
    }
    Some(last)
}

/// The version from which on a Pod holds nothing.
fn stopped<'a>(pod: &Life<'a>) -> Option<&'a Change> {
    let over = |it: &&Change| it.gone || it.object.state == State::Pod { running: false };
    pod.versions.iter().copied().find(over)
}

/// L2, of every job that is ours.
pub(super) fn every_deadline_ends_in_release(index: &Index<'_>) -> Vec<Violation> {
    let ours = |life: &&Life<'_>| life.last().object.job().is_some_and(|it| !it.managed_elsewhere);
    let mut found = Vec::new();
    for life in index.jobs().filter(ours) {
        let finish = life.finish();
        found.extend(deadline(index, life, finish.as_ref()));
        if let Some(finish) = finish.filter(|finish| finish.condition.is_deadline()) {
            found.extend(unreleased(index, life, &finish));
        }
    }
    found
}

fn deadline(index: &Index<'_>, life: &Life<'_>, finish: Option<&Finish<'_>>) -> Option<Violation> {
    let Terms { allowance, end } = Terms::of(index);
    let decided_on = match finish {
        Some(finish) if finish.condition.is_deadline() => life.before(finish.change.revision)?,
        Some(_) => return None,
        None if life.end().is_some() => return None,
        None => life.last(),
    };
    let due = millis(index.deadline(&decided_on.object)?);
    let armed = life.since(decided_on.revision, |object| index.deadline(object));
    let ready = due.max(armed);
    let failed_at = finish.map_or(end, |finish| finish.change.at);
    let how = if finish.is_some() { "was failed" } else { "has not failed," };
    (failed_at > ready + allowance).then(|| delay(index, life, (ready, failed_at), Rule::L2, how))
}

/// What a job that its deadline failed still holds, or held for too long before it was told to end.
fn unreleased(index: &Index<'_>, life: &Life<'_>, finish: &Finish<'_>) -> Option<Violation> {
    let Terms { allowance, end } = Terms::of(index);
    index.job_sets(&life.last().object.uid).find_map(|job_set| {
        let object = &job_set.last().object;
        let since = finish.change.at.max(job_set.first().at);
        let told = job_set.deletion().map_or(end, |it| it.at);
        if told > since + allowance {
            return Some(delay(index, job_set, (since, told), Rule::L2, "was left running"));
        }
        if end <= told + allowance {
            return None;
        }
        if job_set.end().is_none() && !object.is_held() {
            let what = format!("is still there, {} ms after its deletion began", end - told);
            return Some(Index::broken(Rule::L2, object, end, what));
        }
        let running = index
            .children(&object.uid)
            .find(|pod| stopped(pod).is_none() && pod.first().at + allowance < end)?;
        let what = "runs on after its TrainJob's deadline".into();
        Some(Index::broken(Rule::L2, &running.last().object, end, what))
    })
}

fn delay(
    index: &Index<'_>,
    life: &Life<'_>,
    (ready, at): (Millis, Millis),
    usual: Rule,
    how: &str,
) -> Violation {
    let object = &life.last().object;
    let rule = rule_of_delay(index, object, (ready, at), usual);
    Index::broken(rule, object, at, format!("{how} {} ms after that was due", at - ready))
}

struct Terms {
    allowance: Millis,
    end: Millis,
}

impl Terms {
    const fn of(index: &Index<'_>) -> Self {
        Self { allowance: index.history.terms.allowance, end: index.history.end }
    }
}
