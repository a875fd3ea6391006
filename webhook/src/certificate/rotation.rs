//! When a CA is replaced, and by what.
//!
//! The Secret holds the CA that signs, the next one once that is needed, and what signed before. The
//! bundle is all of their certificates, and stands in the webhook configurations. The next CA signs only after
//! every webhook configuration has held it for a while (`bundle_lead`), so that every API server knows a CA
//! before it meets a certificate of it; and a CA that signs no more stays in the bundle until nothing of
//! it can be in use.
//!
//! Replicas decide on their own. Every change of the Secret is fenced by its resourceVersion, so of
//! several that decide the same only one carries it out, and the others decide anew.
//!
//! What comes first when not everything can be had: that there is a certificate at all.
//!
//! * On an empty cluster, or when the CA is unusable or over and there is no next one, a new CA signs at
//!   once. There is no certificate that waiting could protect.
//! * When the CA is unusable or over and there is a next one, that signs at once.
//! * When the next CA has not stood long enough at the last moment before the CA is over (its last
//!   minute, or the last tenth of a shorter life), it signs nevertheless.

use std::{
    cmp::min,
    time::{Duration, Instant, SystemTime},
};

use super::{settings::Settings, x509::Certificate};

/// How long before a CA is over the next one is waited for no more.
const LAST_MOMENT: Duration = Duration::from_mins(1);

/// One place for a CA in the Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// There is nothing.
    #[default]
    Empty,
    /// A CA that can sign.
    Usable(Certificate),
    /// Something that cannot sign, perhaps with a certificate that somebody trusts.
    Unusable(Option<Certificate>),
}

impl Place {
    /// The CA, if it can sign at `now`.
    #[must_use]
    pub fn valid(&self, now: SystemTime) -> Option<&Certificate> {
        match self {
            Self::Usable(certificate) => Some(certificate).filter(|ca| !ca.is_expired(now)),
            Self::Empty | Self::Unusable(_) => None,
        }
    }

    const fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::Usable(certificate) | Self::Unusable(Some(certificate)) => Some(certificate),
            Self::Empty | Self::Unusable(None) => None,
        }
    }
}

/// The CAs in the Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The one that signs.
    pub signer: Place,
    /// The one that will sign next.
    pub next: Place,
    /// Those that signed before, oldest first.
    pub previous: Vec<Certificate>,
}

impl State {
    /// Takes in a CA of which this process has a certificate in use: it has signed, even if the Secret does
    /// not say so any more because somebody has deleted it. Whether that is news.
    pub fn remember(&mut self, ca: &Certificate, now: SystemTime) -> bool {
        let places = [&self.signer, &self.next];
        let is_known = places.into_iter().any(|place| place.certificate() == Some(ca));
        let is_news = !is_known && !self.previous.contains(ca) && !ca.is_expired(now);
        if is_news {
            self.previous.push(ca.clone());
        }
        is_news
    }
}

/// What to do with the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Make a CA that signs at once.
    Create,
    /// Make the next CA.
    AddNext,
    /// Let the next CA sign.
    Promote(Reason),
    /// Forget CAs of which nothing can be in use.
    DropPrevious,
    /// Write down a CA that signed before, or the replicas would not agree on the bundle.
    Remember,
    /// Nothing for so long, if nothing changes.
    Wait(Duration),
}

impl Step {
    /// What a process does instead that has [remembered](State::remember) a CA.
    ///
    /// Where the signer is older than `authority_renew_before` and `lifetime` together (a CA of somebody's own), what is
    /// remembered counts as out of use. Forgotten, it would be remembered again at once. So such a process keeps it, unwritten, until
    /// its certificate is signed anew, which takes no longer than a new signer has to stand.
    #[must_use]
    pub const fn with_remembered(self) -> Self {
        match self {
            Self::Wait(_) => Self::Remember,
            Self::DropPrevious => Self::Wait(Duration::MAX),
            Self::Create | Self::AddNext | Self::Promote(_) | Self::Remember => self,
        }
    }
}

/// Why the next CA may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It has stood in the webhook configurations for long enough.
    Stood,
    /// It has not, but the one that signs is about to be over.
    LastMoment,
    /// It has not, but there is none that signs.
    NoSigner,
}

/// What to do next. `stood` is for how long the next CA is known to have been in every webhook configuration
/// without interruption; `None` if it is not.
#[must_use]
pub fn plan(state: &State, stood: Option<Duration>, settings: &Settings, now: SystemTime) -> Step {
    let next = state.next.valid(now);
    let Some(signer) = state.signer.valid(now) else {
        return next.map_or(Step::Create, |_| Step::Promote(Reason::NoSigner));
    };
    let renewal = signer.renewal(settings.authority_renew_before);
    let lead = settings.bundle_lead;
    match next {
        Some(_) if stood.is_some_and(|stood| stood >= lead) => Step::Promote(Reason::Stood),
        Some(_) if last_moment(signer) <= now => Step::Promote(Reason::LastMoment),
        None if renewal <= now => Step::AddNext,
        _ if state.previous.iter().any(|ca| end_of_use(ca, signer, settings) <= now) => {
            Step::DropPrevious
        }
        _ => {
            let change = next.map_or(renewal, |_| last_moment(signer));
            let ends = state.previous.iter().map(|ca| end_of_use(ca, signer, settings));
            let at = ends.fold(change, min);
            let wait = at.duration_since(now).unwrap_or_default();
            Step::Wait(stood.map_or(wait, |stood| wait.min(lead.saturating_sub(stood))))
        }
    }
}

fn last_moment(signer: &Certificate) -> SystemTime {
    let life = signer.not_after.duration_since(signer.not_before).unwrap_or_default();
    signer.renewal(LAST_MOMENT.min(life / 10))
}

/// From when on nothing that a previous CA signed can be in use.
///
/// It ends with the CA. One of somebody else may be valid for many years more; so it also ends when all
/// has been replaced that was signed before this signer took over, which it did within
/// `authority_renew_before` of its making.
fn end_of_use(ca: &Certificate, signer: &Certificate, settings: &Settings) -> SystemTime {
    let replaced = signer
        .not_before
        .checked_add(settings.authority_renew_before)
        .and_then(|promoted| promoted.checked_add(settings.lifetime));
    replaced.map_or(ca.not_after, |replaced| min(ca.not_after, replaced))
}

/// What the webhook configurations must hold: every CA of which something may be in use or soon will be, each
/// once, oldest first.
#[must_use]
pub fn bundle(state: &State, now: SystemTime) -> Vec<&Certificate> {
    let next = match &state.next {
        Place::Usable(next) => Some(next),
        Place::Empty | Place::Unusable(_) => None,
    };
    let mut bundle = Vec::new();
    for certificate in state.previous.iter().chain(state.signer.certificate()).chain(next) {
        if !certificate.is_expired(now) && !bundle.contains(&certificate) {
            bundle.push(certificate);
        }
    }
    bundle
}

/// What the Secret holds after a step. `new` is what [`Step::Create`] and [`Step::AddNext`] put there.
#[must_use]
pub fn after(
    state: &State,
    step: Step,
    new: Option<Certificate>,
    settings: &Settings,
    now: SystemTime,
) -> State {
    let State { signer, next, mut previous } = state.clone();
    let new = new.map_or(Place::Empty, Place::Usable);
    let (signer, next) = match step {
        Step::Create => {
            previous.extend(signer.certificate().cloned());
            (new, Place::Empty)
        }
        Step::Promote(_) => {
            previous.extend(signer.certificate().cloned());
            (next, Place::Empty)
        }
        Step::AddNext => (signer, new),
        Step::DropPrevious | Step::Remember | Step::Wait(_) => (signer, next),
    };
    if let Some(signer) = signer.certificate() {
        previous.retain(|ca| end_of_use(ca, signer, settings) > now);
    }
    State { signer, next, previous }
}

/// For how long the next CA has stood in the webhook configurations, as this process has seen it.
#[derive(Debug, Default)]
pub struct Standing(Option<(Certificate, Instant)>);

impl Standing {
    /// Takes in what was seen at an instant: the next CA, if every webhook configuration held it.
    pub fn observe(&mut self, held: Option<&Certificate>, at: Instant) -> Option<Duration> {
        let since = match (&self.0, held) {
            (Some((known, since)), Some(held)) if known == held => *since,
            _ => at,
        };
        self.0 = held.map(|held| (held.clone(), since));
        held.map(|_| at.saturating_duration_since(since))
    }
}

/// Whether a serving certificate is to be signed anew by the same CA. One that lives as long as the CA
/// is not: another would not live longer.
#[must_use]
pub fn is_due(leaf: &Certificate, signer: &Certificate, before: Duration, now: SystemTime) -> bool {
    leaf.not_after < signer.not_after && leaf.renewal(before) <= now
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
