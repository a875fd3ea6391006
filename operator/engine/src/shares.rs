//! Who may send a request now: fair shares of a bounded number of places.
//!
//! The API server answers most requests within milliseconds, but behind one kind in one namespace there may be a
//! webhook that never answers. Such requests must not take the places of all others. So requests are told apart by
//! their [`Flow`], and a place is given by these rules (`docs/semantics.md`, §6):
//!
//! 1. Every priority keeps some places that the others do not get, as many as it [says](QueuePriority::kept). All of them
//!    but one it lends.
//! 2. One namespace has half of what its priority can get. While answers are quick it may borrow the other half, and what
//!    other priorities lend: a place [on loan](Share::OnLoan) is for requests of flows that are known to be quick. It is
//!    [called back](Shares::call_back) when somebody else needs it and its request has waited for [`LOAN`], so that a flow
//!    that begins to hang holds up others no longer than that.
//! 3. A flow is slow whose last answer took, or whose oldest request has waited, over a second and over four times the
//!    median of recent answers. One request of it is waited for at a time; of all slow flows together, a quarter of the
//!    places but at least two; of those of one namespace, half as many.
//! 4. A flow that has not answered yet may turn out to be slow. Such flows have half of the places, those of one
//!    namespace a quarter.
//!
//! A request has its place until it is answered or given up, also when nobody waits for it any more. In a brown-out the
//! median moves with the answers: what is as slow as everything else is not slow, so nothing is starved.
//!
//! Nothing here waits and nothing here reads a clock.

mod answers;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use trainjob_core::queue_position::QueuePriority;

use self::answers::{Answers, Pace};

/// With fewer places a priority would have none of its own.
pub const FEWEST_PLACES: usize = 3;

/// So many requests of slow flows are waited for at least, each of another namespace: a flow that was slow once must not
/// wait for one that hangs.
const FEWEST_SLOW: usize = 2;

/// So many of its places a priority does not lend (rule 1).
const NOT_LENT: usize = 1;

/// How long a request with a place on loan is left alone, whoever needs the place (rule 2).
pub const LOAN: Duration = Duration::from_secs(1);

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names of the API server")]
pub enum Verb {
    Get,
    List,
    Create,
    Update,
    Patch,
    Delete,
}

/// A verb and the kind of object it is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// What is done.
    pub verb: Verb,
    /// To what: the plural name of the kind, such as `jobsets`.
    pub kind: &'static str,
}

/// Requests that have one fate: what makes one of them slow (an admission webhook, an overloaded extension) makes the
/// others slow, too, and no request of another flow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Where.
    pub namespace: Arc<str>,
    /// What.
    pub operation: Operation,
}

/// A number of places, and who has them.
#[derive(Debug)]
pub struct Shares<P> {
    places: usize,
    taken: BTreeMap<PlaceId, Taken<P>>,
    /// How many are taken by each priority: asked for with every pass that begins or ends.
    counts: BTreeMap<P, Count>,
    next: PlaceId,
    answers: Answers,
}

/// Which place.
pub type PlaceId = u64;

/// Whose a place is (rules 1 and 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Of its priority, and of the half of its namespace.
    Own,
    /// Of another priority or of the other half; it may be called back.
    OnLoan,
}

/// How many places are taken.
#[derive(Debug, Default)]
struct Count {
    all: usize,
    /// Of them, those not on loan.
    own: usize,
}

/// Who has a place.
#[derive(Debug)]
struct Taken<P> {
    priority: P,
    namespace: Arc<str>,
    share: Share,
    /// The flow it was given for, until it has [entered](Shares::enter) that.
    reserved: Option<Flow>,
    /// The flow of its request, or of the last one.
    entered: Option<Flow>,
    /// Since when the request is under way.
    asked: Option<Instant>,
    /// Whether that request is to be given up, because the place is needed.
    called_back: bool,
    /// Whether nobody waits for the request any more. What enforces a deadline is sent anew then: the path may be dead.
    left: bool,
}

impl<P> Taken<P> {
    /// The flow that it counts for.
    fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.reserved.iter().chain(&self.entered)
    }
}

impl<P: QueuePriority> Shares<P> {
    /// So many places, at least [`FEWEST_PLACES`].
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self {
            places: places.max(FEWEST_PLACES),
            taken: BTreeMap::new(),
            counts: BTreeMap::new(),
            next: 0,
            answers: Answers::default(),
        }
    }

    /// How many places are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Which place this priority may have, if one is free (rule 1). It is its own if it could be had were nothing on loan.
    #[must_use]
    pub fn room(&self, priority: P) -> Option<Share> {
        let is_own = self.is_left(priority, usize::MAX, |count| count.own);
        let share = if is_own { Share::Own } else { Share::OnLoan };
        self.is_left(priority, NOT_LENT, |count| count.all).then_some(share)
    }

    /// Which place this namespace may have, where there is [room](Self::room) for its priority, if it may have one more
    /// (rule 2).
    #[must_use]
    pub fn share(&self, priority: P, room: Share, namespace: &str, now: Instant) -> Option<Share> {
        let half = self.places.saturating_sub(self.kept_from(priority)).div_ceil(2);
        let of_namespace = || self.taken.values().filter(|taken| &*taken.namespace == namespace);
        if room == Share::Own
            && of_namespace().filter(|taken| taken.share == Share::Own).count() < half
        {
            return Some(Share::Own);
        }
        let oldest = of_namespace().filter_map(|taken| taken.asked).min();
        let waited = oldest.map(|asked| now.saturating_duration_since(asked));
        self.answers.are_quick(waited).then_some(Share::OnLoan)
    }

    /// Whether a request of this flow may be sent from such a place (rules 2, 3 and 4).
    #[must_use]
    pub fn admits(&self, flow: &Flow, share: Share, now: Instant) -> bool {
        self.admits_beside(flow, share, None, now)
    }

    /// Takes a place; in a flow, if it is for a request of that.
    pub fn take(
        &mut self,
        priority: P,
        namespace: Arc<str>,
        share: Share,
        reserved: Option<Flow>,
    ) -> PlaceId {
        self.next += 1;
        let taken = Taken {
            priority,
            namespace,
            share,
            reserved,
            entered: None,
            asked: None,
            called_back: false,
            left: false,
        };
        self.taken.insert(self.next, taken);
        let count = self.counts.entry(priority).or_default();
        count.all += 1;
        count.own += usize::from(share == Share::Own);
        self.next
    }

    /// The places that can be called back for this priority, with who has them; none while one is about to be given back, and
    /// none if the priority would have no place of its own then.
    pub fn overdue_loans(
        &self,
        priority: P,
        now: Instant,
    ) -> impl Iterator<Item = (PlaceId, (P, &str))> {
        let is_of_use = self.is_left(priority, usize::MAX, |count| count.own)
            && !self.taken.values().any(|taken| taken.called_back);
        let overdue = move |taken: &Taken<P>| {
            let asked = taken.asked.filter(|_| taken.share == Share::OnLoan);
            let asked = asked.filter(|_| is_of_use);
            asked.is_some_and(|asked| now.saturating_duration_since(asked) >= LOAN)
        };
        let taken = self.taken.iter().filter(move |(_, taken)| overdue(taken));
        taken.map(|(place, taken)| (*place, (taken.priority, &*taken.namespace)))
    }

    /// The request that is under way from this place is to be given up.
    pub fn call_back(&mut self, place: PlaceId) {
        if let Some(taken) = self.taken.get_mut(&place) {
            taken.called_back = taken.asked.is_some();
        }
    }

    /// If the request from this place is to be given up: how long it was under way.
    #[must_use]
    pub fn called_back(&self, place: PlaceId, now: Instant) -> Option<Duration> {
        let taken = self.taken.get(&place).filter(|taken| taken.called_back)?;
        taken.asked.map(|asked| now.saturating_duration_since(asked))
    }

    /// Uses a place for a request of this flow, if that is admitted.
    pub fn enter(&mut self, place: PlaceId, flow: &Flow, now: Instant) -> bool {
        let Some(share) = self.taken.get(&place).map(|taken| taken.share) else { return false };
        let admitted = self.admits_beside(flow, share, Some(place), now);
        if let (true, Some(taken)) = (admitted, self.taken.get_mut(&place)) {
            taken.entered = Some(flow.clone());
            taken.reserved = taken.reserved.take().filter(|reserved| reserved != flow);
        }
        admitted
    }

    /// The request is sent.
    pub fn asked(&mut self, place: PlaceId, now: Instant) {
        if let Some(taken) = self.taken.get_mut(&place) {
            taken.asked = Some(now);
        }
    }

    /// The request is answered, or given up.
    pub fn answered(&mut self, place: PlaceId, now: Instant) {
        let Some(taken) = self.taken.get_mut(&place) else { return };
        taken.called_back = false;
        if let (Some(asked), Some(flow)) = (taken.asked.take(), taken.entered.clone()) {
            self.answers.record(flow, now.saturating_duration_since(asked));
        }
    }

    /// Nobody waits for its request any more.
    pub fn leave(&mut self, place: PlaceId) {
        if let Some(taken) = self.taken.get_mut(&place) {
            taken.left = true;
        }
    }

    /// Gives a place back.
    pub fn give_back(&mut self, place: PlaceId) {
        let Some(Taken { priority, share, .. }) = self.taken.remove(&place) else { return };
        if let Some(count) = self.counts.get_mut(&priority) {
            count.all = count.all.saturating_sub(1);
            count.own = count.own.saturating_sub(usize::from(share == Share::Own));
        }
    }

    /// What the other priorities keep.
    fn kept_from(&self, priority: P) -> usize {
        priority.others().map(|other| other.kept(self.places)).sum()
    }

    /// Whether a place is left for this priority, where `taken` says which of the places that a priority has count, and no
    /// other priority keeps more than `most`.
    fn is_left(&self, priority: P, most: usize, taken: fn(&Count) -> usize) -> bool {
        let kept = priority.others().map(|other| {
            let taken = self.counts.get(&other).map_or(0, taken);
            other.kept(self.places).min(most).saturating_sub(taken)
        });
        self.counts.values().map(taken).sum::<usize>() + kept.sum::<usize>() < self.places
    }

    fn admits_beside(&self, flow: &Flow, share: Share, own: Option<PlaceId>, now: Instant) -> bool {
        let others = || self.taken.iter().filter(|(place, _)| Some(**place) != own);
        let quarter = (self.places / 4).max(1);
        match self.pace(flow, now) {
            Pace::Normal => true,
            Pace::Slow | Pace::Unknown if share == Share::OnLoan => false,
            Pace::Slow => {
                let most = quarter.max(FEWEST_SLOW);
                let slow: BTreeSet<&Flow> = others()
                    .filter(|(_, taken)| !taken.left)
                    .flat_map(|(_, taken)| taken.flows())
                    .filter(|other| self.pace(other, now) == Pace::Slow)
                    .collect();
                let of_namespace = slow.iter().filter(|it| it.namespace == flow.namespace).count();
                !slow.contains(flow) && slow.len() < most && of_namespace < most / 2
            }
            Pace::Unknown => {
                let unknown = others()
                    .filter(|(_, taken)| {
                        taken.flows().any(|other| self.pace(other, now) == Pace::Unknown)
                    })
                    .map(|(_, taken)| taken.namespace == flow.namespace)
                    .collect::<Vec<_>>();
                let of_namespace = unknown.iter().filter(|same| **same).count();
                unknown.len() < self.places.div_ceil(2) && of_namespace < quarter
            }
        }
    }

    /// How many flows are slow.
    #[must_use]
    pub fn slow_flows(&self, now: Instant) -> usize {
        let waiting = self.taken.values().filter_map(|taken| taken.entered.as_ref());
        let flows: BTreeSet<&Flow> = self.answers.flows().chain(waiting).collect();
        flows.into_iter().filter(|flow| self.pace(flow, now) == Pace::Slow).count()
    }

    fn pace(&self, flow: &Flow, now: Instant) -> Pace {
        let under_way = self.taken.values().filter(|taken| taken.entered.as_ref() == Some(flow));
        let oldest = under_way.filter_map(|taken| taken.asked).min();
        self.answers.pace(flow, oldest.map(|asked| now.saturating_duration_since(asked)))
    }
}
