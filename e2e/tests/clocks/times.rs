//! What was done when, by the API server's clock, which is that of this machine.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::LATE;
use invariants::{Change, Condition, History, Job, Millis, Request, State, Terms};
use launcher::say;

/// How far what is written down as the time of a change may be off: little beside the hour that a clock is off here.
const OFF: Millis = LATE * 1_000;

/// How late what was due happened, and what was written down of when it did.
#[derive(Debug)]
pub(crate) struct Times {
    history: History,
    /// By deadline, in milliseconds.
    deadlines: Vec<Millis>,
    /// By TTL.
    ttls: Vec<Millis>,
    /// How long after the request was sent, and how long before its answer, a condition was written to have changed.
    off: Vec<Millis>,
}

impl Times {
    pub(crate) fn of(changes: Vec<Change>, requests: Vec<Request>) -> Result<Self> {
        let end = changes.iter().map(|change| change.at).max().context("nothing was recorded")?;
        let history = History { changes, requests, terms: Terms::default(), end };
        let (mut deadlines, mut off) = (Vec::new(), Vec::new());
        let mut known = BTreeSet::new();
        for change in &history.changes {
            let State::TrainJob(job) = &change.object.state else { continue };
            let write = history.requests.iter().find(|it| wrote(it, change));
            for condition in &job.conditions {
                let since = condition.since.0 * 1_000;
                let is_new = known.insert((&change.object.uid, &condition.kind, since));
                let Some(write) = write.filter(|_| is_new) else { continue };
                off.push((write.sent - 1_000 - since).max(since - write.ended));
                if let Some(seconds) = job.deadline.filter(|_| is_deadline(condition)) {
                    deadlines.push(write.sent - change.object.created.plus(seconds).0 * 1_000);
                }
            }
        }
        let ttls = history.requests.iter().filter_map(|it| lateness_of_deletion(it, &history));
        Ok(Self { ttls: ttls.collect(), deadlines, off, history })
    }

    /// Tells how late what was due was.
    pub(crate) fn print(&self, what: &str) {
        let Self { deadlines, ttls, off, .. } = self;
        say(format_args!(
            "{what}: deadlines {deadlines:?} ms late, TTLs {ttls:?} ms late, \
             {} times of changes at most {} ms off",
            off.len(),
            off.iter().max().map_or(0, |most| (*most).max(0)),
        ));
    }

    /// Sees that so many deadlines and TTLs were enforced, none of them early or late, that the times written down are
    /// right, and that every rule holds.
    pub(crate) fn check(&self, deadlines: usize, ttls: usize) -> Result<()> {
        let counts = (self.deadlines.len(), self.ttls.len());
        ensure!(counts == (deadlines, ttls), "deadlines and TTLs: {counts:?}");
        let in_time = |late: &Millis| (0..=LATE * 1_000).contains(late);
        ensure!(self.deadlines.iter().chain(&self.ttls).all(in_time), "early or late: {self:?}");
        ensure!(self.off.iter().all(|off| *off <= OFF), "wrong times: {:?}", self.off);
        let broken: Vec<String> =
            invariants::check(&self.history).iter().map(ToString::to_string).collect();
        ensure!(broken.is_empty(), "{}", broken.join("\n"));
        Ok(())
    }
}

/// Whether this version of a job is what the operator's request stored.
fn wrote(request: &Request, change: &Change) -> bool {
    request.subresource == "status"
        && request.took_effect()
        && request.answer.version == Some(change.revision)
}

fn is_deadline(condition: &Condition) -> bool {
    condition.holds && condition.reason == "DeadlineExceeded"
}

/// How much later than its TTL said this request deletes a job.
fn lateness_of_deletion(request: &Request, history: &History) -> Option<Millis> {
    if (&*request.verb, &*request.resource) != ("delete", "trainjobs") || !request.took_effect() {
        return None;
    }
    let uid = request.uid.as_deref();
    let mut versions = history.changes.iter().filter(|it| uid == Some(&it.object.uid));
    let (finished, ttl) = versions.find_map(|it| ended(&it.object.state))?;
    Some(request.sent - (finished + ttl) * 1_000)
}

/// When a job finished, and its TTL.
fn ended(state: &State) -> Option<(i64, i64)> {
    let State::TrainJob(Job { conditions, ttl, .. }) = state else { return None };
    let end =
        conditions.iter().find(|it| it.holds && matches!(&*it.kind, "Complete" | "Failed"))?;
    Some((end.since.0, (*ttl)?))
}
