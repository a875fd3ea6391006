//! The judge: what may never happen, seen from the requests that the API server gets.
//!
//! A DELETE is judged twice. When it is sent, by what the replica had been told then: no watch shows everything at once, so
//! an edit of a policy that it could not know of is no fault of it. When the API server accepts it, by the object as it is
//! stored then: the fence leaves no excuse for that.

use std::{collections::BTreeMap, sync::Arc};

use trainjob_core::Now;
use trainjob_retention::cluster_state::Deletion;
use trainjob_retention_core::breaker::{Reason, Record};

use super::{
    objects::{Job, Policy},
    process::{Process, Since},
    rules::{JobId, PolicyId, Verdict, View},
    server::{SOURCES, Server},
};
use crate::violation::Violation;

/// How long a watch may be silent that a deletion rests on, in milliseconds (R34).
const SILENCE: i64 = 90_000;
/// How long a failed deletion rests at least, in milliseconds (R34).
const REST: i64 = 1_000;
/// The rate of all policies together.
pub const ALL_PER_SECOND: u32 = 10;

/// What has to hold. Rules `R…` are those of `docs/retention.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// What is stored for a policy was judged under its version (R40).
    Fenced,
    /// Nothing is deleted that no policy in Enforce governs, in a namespace that goes included (R20, R30).
    Governed,
    /// Nothing is deleted before it is due, holds and owners included (R24, R30 to R32).
    NotEarly,
    /// What the API server deletes is due as it is stored then: edits win (R33).
    EditsWin,
    /// Nothing is deleted while the time is not known (R45).
    TimeKnown,
    /// Nothing is deleted after a jump of the clock without an acknowledgement (R46).
    ClockStep,
    /// Nothing is deleted while a watch is silent that it rests on (R34).
    Live,
    /// Nothing is deleted where a trip is stored, or before anything is stored (R40, R42).
    NotTripped,
    /// Of what is due when a digest comes into force, no more than the limit goes without an acknowledgement (R42).
    BreakerHolds,
    /// Rates are not exceeded (R38).
    Rate,
    /// A rule never leaves fewer than it keeps (R21).
    KeepsLast,
    /// What was accepted is not sent again, and what failed rests (R34).
    Pressure,
    /// Nothing is deleted while the right is known to be missing (R51).
    Allowed,
    /// Nothing trips without an edit (R42).
    TripFounded,
    /// In the end everything is gone that is due.
    Late,
    /// In the end the status says how it is.
    Status,
    /// Nothing panics.
    NoPanic,
}

/// What was due when a digest came into force.
#[derive(Debug, Default)]
struct Begun {
    digest: Arc<str>,
    /// The UIDs of the Jobs that are so all the time, and since when each was then.
    jobs: BTreeMap<u64, i64>,
    limit: usize,
    deleted: usize,
}

/// What the judge remembers.
#[derive(Debug, Default)]
pub struct Judge {
    /// The first rule that was broken.
    pub violation: Option<Violation<Rule>>,
    begun: BTreeMap<u64, Begun>,
    /// Who wrote the record of a policy last, by UID.
    writers: BTreeMap<u64, u32>,
    /// When who sent deletions.
    sent: BTreeMap<u32, Vec<i64>>,
}

impl Judge {
    /// Notes that a rule is broken, unless it holds.
    pub fn check(&mut self, holds: bool, rule: Rule, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(Violation { rule, what: what() });
        }
    }

    /// A replica is about to send a deletion.
    pub fn sends(
        &mut self,
        process: &mut Process,
        server: &Server,
        id: JobId,
        deletion: &Deletion,
    ) {
        let Some(job) = process.view.jobs.get(&id).cloned() else {
            return self.check(false, Rule::Governed, || format!("{id:?} is not known"));
        };
        let is_it = deletion.uid.to_string() == format!("u{:08}", job.uid)
            && *deletion.resource_version == *job.version.to_string();
        self.check(is_it, Rule::EditsWin, || format!("{deletion:?} is not of {job:?}"));
        let verdict = process.view.verdict(&job, &server.owners, told_time(process, server));
        let Some(verdict) = verdict else {
            return self.check(false, Rule::Governed, || format!("nothing governs {job:?}"));
        };
        let is_due = verdict.due.is_some_and(|due| due <= server.seconds());
        self.check(is_due, Rule::NotEarly, || {
            format!("at {}: {verdict:?} of {job:?}", server.seconds())
        });
        let Some(policy) = process.view.policies.get(&verdict.policy).cloned() else { return };
        let is_named = *deletion.policy.name == *format!("p{}", policy.name);
        self.check(is_named, Rule::Governed, || format!("{deletion:?} by {verdict:?}"));
        self.sends_when(process, server, &policy);
        self.sends_so_often(process, server, (&job, &policy), verdict);
        self.sends_in_spite(process, server, &policy, &job);
    }

    /// The time, the watches, the right.
    fn sends_when(&mut self, process: &Process, server: &Server, policy: &Policy) {
        let is_known = process.clock.is_some() && server.monotonic() >= process.pauses_until;
        self.check(is_known, Rule::TimeKnown, || "the time is not known".to_owned());
        let is_stepped = process.stepped.contains(&policy.uid);
        self.check(!is_stepped, Rule::ClockStep, || format!("p{} after a jump", policy.name));
        for source in 0..SOURCES {
            let heard = process.heard.get(source).copied().flatten();
            let is_live = heard.is_some_and(|heard| server.monotonic() - heard <= SILENCE);
            self.check(is_live, Rule::Live, || format!("watch {source} was heard at {heard:?}"));
        }
        self.check(!process.lacks_right, Rule::Allowed, || "the right is missing".to_owned());
    }

    /// Rates, rests, places in groups.
    fn sends_so_often(
        &mut self,
        process: &mut Process,
        server: &Server,
        (job, policy): (&Job, &Policy),
        verdict: Verdict,
    ) {
        let now = server.monotonic();
        let is_accepted = process.accepted.contains(&job.uid);
        self.check(!is_accepted, Rule::Pressure, || format!("{job:?} was accepted"));
        let failed = process.failed.get(&job.uid).copied();
        let has_rested = failed.is_none_or(|failed| now - failed >= REST);
        self.check(has_rested, Rule::Pressure, || format!("{job:?} failed at {failed:?}"));
        let sent = process.sent.entry(policy.uid).or_default();
        sent.push_back(now);
        let (rate, since) = process.rates.get(&policy.uid).copied().unwrap_or_default();
        let own = sent.iter().copied().filter(|sent| *sent >= since).collect::<Vec<_>>();
        self.check(is_within(&own, rate), Rule::Rate, || {
            format!("p{} at {rate}/s: {own:?}", policy.name)
        });
        let all = self.sent.entry(process.number).or_default();
        all.push(now);
        let all = all.clone();
        self.check(is_within(&all, ALL_PER_SECOND), Rule::Rate, || format!("all: {all:?}"));
        if verdict.by_count {
            let mut gone: Vec<u64> = process.accepted.iter().copied().collect();
            gone.push(job.uid);
            let left = process.view.left_without(job, &gone, told_time(process, server));
            let keeps = left.is_none_or(|(left, count)| left >= count);
            self.check(keeps, Rule::KeepsLast, || format!("{job:?} leaves {left:?}"));
        }
    }

    /// Trips, and what is stored.
    fn sends_in_spite(&mut self, process: &Process, server: &Server, policy: &Policy, job: &Job) {
        let stored = process.has_stored.contains(&policy.uid);
        self.check(stored, Rule::NotTripped, || format!("nothing of p{} is stored", policy.name));
        let known = process.since.get(&policy.uid);
        let there = server.view.policies.values().find(|it| it.uid == policy.uid);
        let record = there.and_then(|there| there.record.as_ref());
        let is_own = self.writers.get(&policy.uid) == Some(&process.number);
        let is_same = |record: &&Record| known.is_some_and(|known| *known.digest == *record.digest);
        let trip = record.filter(is_same).and_then(|record| record.trip.as_ref());
        let namespace = super::objects::NAMESPACES.get(job.namespace).copied().unwrap_or_default();
        let stops = is_own && trip.is_some_and(|trip| trip.stops(namespace));
        self.check(!stops, Rule::NotTripped, || format!("{job:?} in spite of {trip:?}"));
        let Some(known) = known else { return };
        let Some(begun) = self.begun.get_mut(&policy.uid) else { return };
        if *begun.digest == *known.digest
            && begun.jobs.remove(&job.uid).is_some_and(|due| known.has_judged(job.uid, due))
        {
            begun.deleted += 1;
            let (deleted, limit) = (begun.deleted, begun.limit);
            self.check(deleted <= limit, Rule::BreakerHolds, || {
                let name = policy.name;
                format!("{deleted} of what p{name} made due, and {limit} may go, at last {job:?}")
            });
        }
    }

    /// The API server has accepted a deletion of this Job, which was sent `at` then by what this view shows.
    pub fn accepted(&mut self, job: &Job, view: &View, at: i64, server: &Server) {
        // Its clock may have been set back meanwhile.
        let now = server.seconds().max(at);
        // Its group was judged when it was sent: others may have changed since.
        let verdict = view.verdict(job, &server.owners, now);
        let is_due = verdict
            .is_some_and(|verdict| verdict.by_count || verdict.due.is_some_and(|due| due <= now));
        self.check(is_due, Rule::EditsWin, || format!("at {now}: {verdict:?} of {job:?}"));
    }

    /// Something was edited, perhaps the policy of this UID.
    pub fn edited(&mut self, server: &Server, policy: Option<PolicyId>) {
        let due = server.view.due(&server.owners, server.seconds());
        for (uid, begun) in &mut self.begun {
            begun.jobs.retain(|job, _| due.get(job).is_some_and(|(by, _)| by == uid));
            let there = server.view.policies.values().find(|policy| policy.uid == *uid);
            let limit = there.map_or(0, |policy| policy.spec.max_count as usize);
            begun.limit = begun.limit.max(limit);
        }
        let Some(policy) = policy.and_then(|id| server.view.policies.get(&id)) else { return };
        let Some(digest) = server.digests.get(&policy.uid) else { return };
        let is_known = policy.record.as_ref().is_some_and(|record| record.digest == *digest);
        let begun = self.begun.get(&policy.uid);
        if !policy.spec.enforces || is_known || begun.is_some_and(|it| it.digest == *digest) {
            return;
        }
        let jobs = due.into_iter().filter(|(_, (by, _))| *by == policy.uid);
        let jobs = jobs.map(|(job, (_, since))| (job, since)).collect();
        let limit = policy.spec.max_count as usize;
        self.begun
            .insert(policy.uid, Begun { digest: Arc::clone(digest), jobs, limit, deleted: 0 });
    }

    /// The replica of this number has stored a record of a policy in place of another, for which it has judged this. It may have
    /// ended meanwhile.
    pub fn stored(
        &mut self,
        sender: u32,
        server: &Server,
        (uid, judged): (u64, Option<&Since>),
        [before, after]: [Option<&Record>; 2],
    ) {
        self.writers.insert(uid, sender);
        let Some(judged) = judged else { return };
        let is_current = server.digests.get(&uid).is_some_and(|it| **it == *judged.digest);
        self.check(is_current, Rule::Fenced, || format!("{after:?} is of an old version"));
        let digest = |record: Option<&Record>| record.map(|record| Arc::clone(&record.digest));
        let is_first = digest(before) != digest(after);
        if let Some(begun) = self.begun.get_mut(&uid).filter(|_| is_first)
            && *begun.digest == *judged.digest
        {
            // R42 counts what was due for the leader that judges the digest. Whoever goes on from its record cannot tell what
            // it did not know from what came due later (R41).
            begun.jobs.retain(|job, due| judged.has_judged(*job, *due));
        }
    }

    /// Somebody has acknowledged a trip of a policy.
    pub fn acknowledged(&mut self, uid: u64) {
        self.begun.remove(&uid);
    }
}

/// Whether the trip of a jump of the clock is not in a record any more that replaces another.
#[must_use]
pub fn ends_step(records: [Option<&Record>; 2]) -> bool {
    let [was_stepped, is_stepped] = records.map(|record| {
        let trip = record.and_then(|record| record.trip.as_ref());
        trip.is_some_and(|trip| trip.reason() == Reason::ClockStep)
    });
    was_stepped && !is_stepped
}

/// What the replica takes the time to be at the earliest.
fn told_time(process: &Process, server: &Server) -> i64 {
    match process.now(server) {
        Now::Known { earliest, .. } => earliest.0,
        Now::Held { likely } => likely.0,
    }
}

/// Whether so much was sent at these times, in milliseconds, as a rate allows: the last of them in any span that ends
/// with it.
fn is_within(sent: &[i64], rate: u32) -> bool {
    let Some(last) = sent.last().filter(|_| rate > 0) else { return true };
    let saved = (f64::from(rate) / 10.0).max(1.0);
    let mut count = 0.0;
    sent.iter().rev().all(|first| {
        count += 1.0;
        // Exact: these are small numbers of milliseconds.
        let passed = f64::from(u32::try_from(last - first).unwrap_or(u32::MAX)) / 1_000.0;
        count <= saved + passed * f64::from(rate) + 1e-6
    })
}
