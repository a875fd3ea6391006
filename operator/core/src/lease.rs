//! Leader election: which of several replicas works, agreed upon in one Lease.
//!
//! The record has the meaning that client-go gives it, so that this operator and a controller written
//! in Go can share a Lease: who holds it, for how many seconds since it was last renewed, and how often it
//! has changed hands. One that was released has an empty holder.
//!
//! Never do two processes believe to lead. That takes no clock that two of them share:
//!
//! * A record expires when this process has not seen it change for as long as its holder asked for. When
//!   it says to have been renewed does not matter.
//! * A leader believes to lead for `renew_deadline`, counted from when it *sent* its last renewal that
//!   was stored. Nobody saw that earlier than it was sent, and everybody waits longer, so the belief is
//!   over before anybody else may begin.
//! * Each write names the version it replaces: of several that take an expired Lease, one does.
//!
//! Who is not ready to do all of its work leaves a Lease to those that are: it takes one that nobody has taken for a
//! while, so that what it can do is done meanwhile. How long that was, for a Lease that was released, it reads off the wall
//! clock; if that is wrong, it waits until it is ready.
//!
//! What this leaves to chance are clocks whose speeds differ by more than the two durations do, and
//! somebody who empties the Lease by hand, or deletes it while a replica starts. Correctness never rests
//! on it: every write of the operator is fenced by itself.
//!
//! ```
//! use std::time::Duration;
//!
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
//! use trainjob_core::lease::{Elector, Step, Times};
//!
//! let wall = MicroTime("2026-01-01T00:00:00Z".parse()?);
//! let (sent, answered) = (Duration::from_secs(1), Duration::from_secs(2));
//! let mut elector = Elector::new("operator-1".into(), Times::default());
//! assert_eq!(elector.next(sent, &wall), Step::Read);
//! // There is no Lease, so the elector asks to create one.
//! elector.saw(None, sent);
//! let Step::Write(lease) = elector.next(sent, &wall) else { panic!("nobody holds it") };
//! elector.wrote(*lease, sent, answered);
//! // It believes to lead for ten seconds, counted from when it sent the request.
//! assert_eq!(elector.leads_until(), Some(Duration::from_secs(11)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Instants are those of a clock of the process that never steps, as the time since any moment in the
//! past. The wall clock is written into the record for readers; that two do not lead does not depend on it.

use std::time::Duration;

use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};

/// For so long a Lease that nobody holds is left to those that are ready. They see it within a moment.
const READY_FIRST: Duration = Duration::from_secs(3);

/// How long things take. `renew_deadline` is the shorter of the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How long others wait for a holder that they do not hear of.
    pub lease_duration: Duration,
    /// How long a leader believes to lead without having renewed.
    pub renew_deadline: Duration,
    /// How long a leader waits before it renews, and anybody before trying again what failed.
    pub retry_period: Duration,
}

impl Default for Times {
    /// Those of client-go.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Look at the Lease: it is not known as it is now.
    Read,
    /// Store this Lease: create it if it has no version, otherwise replace that version.
    Write(Box<Lease>),
    /// Nothing before this instant, unless news of the Lease comes.
    Wait(Duration),
    /// Stop acting at once: this process led, and does not any more.
    StepDown(Loss),
}

/// Why a leader lost the leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// It could not renew in time.
    NotRenewed,
    /// The Lease has another holder.
    TakenBy(String),
}

/// What one process knows of the Lease, and whether it leads.
#[derive(Debug, Clone)]
pub struct Elector {
    identity: String,
    times: Times,
    /// The Lease as it was last seen; `None`: there was none.
    lease: Option<Box<Lease>>,
    /// Whether it has to be looked at before anything is made of it.
    outdated: bool,
    /// Who is to be waited for, and until when.
    held: Option<Held>,
    /// When the last renewal that was stored was sent; `None` while this process does not lead.
    renewed: Option<Duration>,
    /// What failed is not tried again before this instant.
    not_before: Duration,
    /// Whether it can do all of its work.
    is_ready: bool,
}

#[derive(Debug, Clone)]
struct Held {
    by: String,
    until: Duration,
}

impl Elector {
    /// Somebody of this name, which nobody else may have, who knows nothing yet.
    #[must_use]
    pub const fn new(identity: String, times: Times) -> Self {
        Self {
            identity,
            times,
            lease: None,
            outdated: true,
            held: None,
            renewed: None,
            not_before: Duration::ZERO,
            is_ready: true,
        }
    }

    /// Like [`Self::new`], but it leaves the Lease to those that are ready until it is [so itself](Self::ready).
    #[must_use]
    pub fn unready(identity: String, times: Times) -> Self {
        Self { is_ready: false, ..Self::new(identity, times) }
    }

    /// From now on it takes a Lease as soon as it may.
    pub const fn ready(&mut self) {
        self.is_ready = true;
    }

    /// Who this is.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Until when this process believes to lead; `None` if it does not.
    #[must_use]
    pub fn leads_until(&self) -> Option<Duration> {
        Some(self.renewed?.saturating_add(self.times.renew_deadline))
    }

    /// Whether this process believes to lead.
    #[must_use]
    pub fn leads(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// Who holds the Lease, as last seen, if that is somebody else.
    #[must_use]
    pub fn other_holder(&self) -> Option<&str> {
        let held = self.held.as_ref().filter(|held| held.by != self.identity)?;
        Some(&held.by)
    }

    /// How long a request may wait for its answer: a leader must have the time to try again.
    #[must_use]
    pub fn patience(&self, now: Duration) -> Duration {
        let patience = self.times.renew_deadline / 3;
        self.leads_until().map_or(patience, |until| patience.min(until.saturating_sub(now)))
    }

    /// Takes in what a watch shows: as an answer, unless it is older than what is known.
    pub fn heard(&mut self, lease: Option<Lease>, now: Duration) {
        match (&lease, &self.lease) {
            (Some(shown), Some(known)) if is_older(shown, known) => {}
            _ => self.saw(lease, now),
        }
    }

    /// Takes in an answer that came at `now`: the Lease, or that there is none.
    pub fn saw(&mut self, lease: Option<Lease>, now: Duration) {
        self.outdated = false;
        let Some(lease) = lease else {
            // Whoever held it does not know yet: it is theirs for as long as if they had just renewed.
            if let Some(before) = self.lease.take() {
                self.held = self.held_from(&before, now);
            }
            return;
        };
        // Each renewal changes the record. What else is changed of the Lease says nothing of its holder.
        let known = self.lease.as_ref();
        if known.is_none_or(|known| known.spec != lease.spec) {
            self.held = self.held_from(&lease, now);
        }
        self.lease = Some(Box::new(lease));
    }

    /// Takes in that what [`Step::Write`] asked for was sent at `sent` and stored as this.
    pub fn wrote(&mut self, stored: Lease, sent: Duration, now: Duration) {
        let mine = self.is_mine(&stored);
        self.saw(Some(stored), now);
        // A belief that is over does not come back by itself, and an answer that came too late begins none.
        let in_time = now < sent.saturating_add(self.times.renew_deadline);
        if mine && in_time && (self.renewed.is_none() || self.leads(now)) {
            self.renewed = Some(sent);
        }
        self.not_before = now;
    }

    /// Takes in that a request failed, that somebody else was faster, or that the answer was not waited
    /// for. What there is now is not known; the next request comes after `pause`.
    pub const fn failed(&mut self, now: Duration, pause: Duration) {
        self.not_before = now.saturating_add(pause);
        self.outdated = true;
    }

    /// What to do at `now`; `wall` is what the wall clock shows.
    #[must_use]
    pub fn next(&self, now: Duration, wall: &MicroTime) -> Step {
        let mut wait = self.not_before;
        if let (Some(renewed), Some(until)) = (self.renewed, self.leads_until()) {
            if now >= until {
                return Step::StepDown(Loss::NotRenewed);
            }
            match &self.held {
                Some(held) if held.by != self.identity => {
                    return Step::StepDown(Loss::TakenBy(held.by.clone()));
                }
                // Nobody's: it is taken back at once.
                None => {}
                Some(_) if self.outdated || self.lease.is_none() => {}
                Some(_) => wait = wait.max(renewed.saturating_add(self.times.retry_period)),
            }
            wait = wait.min(until);
        } else if !self.outdated {
            let others = self.held.as_ref().filter(|held| held.by != self.identity);
            wait = others.map_or(wait, |held| wait.max(held.until));
            if !self.is_ready {
                wait = wait.max(self.left_to_others(now, wall));
            }
        }
        if now < wait {
            return Step::Wait(wait);
        }
        if self.outdated { Step::Read } else { Step::Write(Box::new(self.claim(wall))) }
    }

    /// Until when the Lease is left to those that are ready.
    fn left_to_others(&self, now: Duration, wall: &MicroTime) -> Duration {
        if let Some(held) = &self.held {
            return held.until.saturating_add(READY_FIRST);
        }
        let spec = self.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let Some(released) = spec.and_then(|spec| spec.renew_time.as_ref()) else { return now };
        let ago = wall.0.duration_since(released.0);
        let ago = Duration::try_from(ago).unwrap_or_default();
        now.saturating_add(READY_FIRST.saturating_sub(ago))
    }

    /// Ends the belief to lead, and gives what to store so that somebody else may begin at once; `None` if
    /// the Lease is not this process's to release. Must be stored before it is asked for again.
    #[must_use]
    pub fn release(&mut self, wall: &MicroTime) -> Option<Lease> {
        self.renewed = None;
        let mut lease = self.lease.as_deref().filter(|lease| self.is_mine(lease))?.clone();
        let spec = lease.spec.get_or_insert_default();
        // As client-go releases it: nobody's, and over in a second for who does not look at the holder.
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.acquire_time = Some(wall.clone());
        spec.renew_time = Some(wall.clone());
        lease.metadata.managed_fields = None;
        Some(lease)
    }

    /// Whether it has to be looked at before it can be released.
    #[must_use]
    pub const fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// The Lease, held by this process.
    fn claim(&self, wall: &MicroTime) -> Lease {
        let mut lease = self.lease.as_deref().cloned().unwrap_or_default();
        let renewal = self.is_mine(&lease);
        let spec = lease.spec.get_or_insert_default();
        let transitions = spec.lease_transitions.unwrap_or(0);
        if !renewal {
            spec.acquire_time = Some(wall.clone());
            let transitions = self.lease.as_ref().map_or(0, |_| transitions.saturating_add(1));
            spec.lease_transitions = Some(transitions);
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = Some(whole_seconds(self.times.lease_duration));
        spec.renew_time = Some(wall.clone());
        // Who wrote which field is for the API server to know.
        lease.metadata.managed_fields = None;
        lease
    }

    fn is_mine(&self, lease: &Lease) -> bool {
        holder(lease) == Some(&self.identity)
    }

    /// Whose it is from `now` on, and for as long as its holder asked for; where the record does not say,
    /// as long as this process would.
    fn held_from(&self, lease: &Lease, now: Duration) -> Option<Held> {
        let by = holder(lease)?.to_owned();
        let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|it| *it > 0);
        let lasts = seconds.map_or(self.times.lease_duration, Duration::from_secs);
        Some(Held { by, until: now.saturating_add(lasts) })
    }
}

/// Who holds a Lease, if anybody does.
fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then_some(holder)
}

/// Whether a Lease that was just shown is an older version than one that is known.
fn is_older(shown: &Lease, known: &Lease) -> bool {
    let version = |lease: &Lease| lease.metadata.resource_version.as_ref()?.parse::<u64>().ok();
    matches!((version(shown), version(known)), (Some(shown), Some(known)) if shown < known)
}

/// Rounded up: others may wait longer than the holder asks for, never shorter.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
