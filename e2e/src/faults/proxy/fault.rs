//! Faults: what they do to a call, which calls they befall, and how a test holds the strings.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;

use super::call::Call;

/// How long [`Injection::reached`] waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// What is done to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is kept from the API server until released, and dropped if the client goes away meanwhile.
    HoldRequest,
    /// It is on its way until released, and arrives even if the client goes away meanwhile.
    HoldOnItsWay,
    /// It is forwarded, and its reply kept until released.
    HoldReply,
    /// It is forwarded, and when its reply is there, the connection (over HTTP/2, the stream) is broken
    /// in place of it.
    DropReply,
    /// A watch is passed through until [`Injection::freeze`]; from then on nothing of it is passed on,
    /// and nothing closed.
    FreezeWatch,
    /// It is not forwarded, but answered as the API server would.
    Answer {
        /// The HTTP status.
        status: u16,
        /// Seconds of `Retry-After`.
        retry_after: Option<u32>,
    },
    /// It is not forwarded, but refused as an API server does that has too much to do: in plain text, and how long to wait
    /// is only in the header.
    Overloaded {
        /// Seconds of `Retry-After`.
        retry_after: u32,
    },
    /// It is not forwarded, but refused in these words of the API server.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// What it says.
        message: &'static str,
    },
    /// It is forwarded so much later.
    Delay(Duration),
    /// Nothing happens to it; [`Injection::reached`] says when its reply is on its way to the client.
    Pass,
}

pub(super) type Matcher = Box<dyn Fn(&Call) -> bool + Send + Sync>;

/// A fault, as injected.
pub(super) struct Rule {
    pub(super) fault: Fault,
    matches: Matcher,
    which: RangeInclusive<usize>,
    seen: AtomicUsize,
    gate: watch::Sender<Gate>,
}

/// What calls that a fault has befallen wait for, and who waits for them.
#[derive(Debug, Default)]
struct Gate {
    /// How many calls it has taken hold of.
    befallen: usize,
    /// How many of them wait.
    held: usize,
    /// How often those that were held were let go.
    releases: usize,
    frozen: bool,
    /// Whether it befalls no further call.
    over: bool,
    /// Whether those that it holds go on.
    removed: bool,
}

/// One call that waits; it may go away before it is released.
pub(super) struct Held<'a>(&'a watch::Sender<Gate>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|gate| gate.held -= 1);
    }
}

impl Rule {
    pub(super) fn new(matches: Matcher, which: RangeInclusive<usize>, fault: Fault) -> Self {
        let (seen, gate) = (AtomicUsize::new(0), watch::Sender::default());
        Self { fault, matches, which, seen, gate }
    }

    /// Whether the fault is meant for this call; counts it if it matches.
    pub(super) fn befalls(&self, call: &Call) -> bool {
        if self.is_over() || !(self.matches)(call) {
            return false;
        }
        self.which.contains(&(self.seen.fetch_add(1, Ordering::Relaxed) + 1))
    }

    pub(super) fn is_over(&self) -> bool {
        self.gate.borrow().over
    }

    /// Notes that the fault has taken hold of a call.
    pub(super) fn taken(&self) {
        self.gate.send_modify(|gate| gate.befallen += 1);
    }

    /// Notes that the fault has taken hold of a call, and holds it until it is released.
    pub(super) async fn hold(&self) {
        let (_held, before) = self.held();
        self.until(|gate| gate.releases > before || gate.removed).await;
    }

    /// Waits until watches are to be frozen, and notes that one is.
    pub(super) async fn frozen(&self) -> Held<'_> {
        self.until(|gate| gate.frozen && !gate.removed).await;
        self.held().0
    }

    /// Waits until frozen watches are to go on.
    pub(super) async fn thawed(&self) {
        self.until(|gate| !gate.frozen || gate.removed).await;
    }

    /// A call that the fault has taken hold of, and how often calls were released before.
    fn held(&self) -> (Held<'_>, usize) {
        let mut before = 0;
        self.gate.send_modify(|gate| {
            gate.befallen += 1;
            gate.held += 1;
            before = gate.releases;
        });
        (Held(&self.gate), before)
    }

    async fn until(&self, condition: impl Fn(&Gate) -> bool) {
        // Its sender lives as long as this rule.
        let _ = self.gate.subscribe().wait_for(|gate| condition(gate)).await;
    }

    /// How many calls it must have taken hold of to be reached. A range without an end is reached with
    /// the first.
    fn wanted(&self) -> usize {
        let (first, last) = (*self.which.start(), *self.which.end());
        if last == usize::MAX { 1 } else { (last + 1).saturating_sub(first) }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.seen.load(Ordering::Relaxed);
        write!(formatter, "{:?} for {:?} of {seen} seen", self.fault, self.which)
    }
}

/// A fault in the way of calls. Dropping this does not remove it.
#[derive(Debug, Clone)]
pub struct Injection(pub(super) Arc<Rule>);

impl Injection {
    /// Waits until the fault has taken hold of all calls that it is meant for (of a range up to
    /// `usize::MAX`, of one): they are held, their replies are held or dropped, they are answered, passed
    /// or frozen.
    pub async fn reached(&self) -> Result<()> {
        let wanted = self.0.wanted();
        self.waits(|gate| gate.befallen >= wanted).await.context("not reached")
    }

    /// Waits until it holds no call: those that it held were released, or their clients have gone away.
    /// A call that is held when its client dies is dropped only once the proxy has noticed that.
    pub async fn holds_none(&self) -> Result<()> {
        self.waits(|gate| gate.held == 0).await.context("still held")
    }

    async fn waits(&self, condition: impl Fn(&Gate) -> bool) -> Result<()> {
        let waited = tokio::time::timeout(PATIENCE, self.0.until(condition)).await;
        waited.with_context(|| format!("{:?}, befell {} calls", self.0, self.befallen()))
    }

    /// Whether it has taken hold of all calls that it is meant for.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.befallen() >= self.0.wanted()
    }

    /// How many calls it has taken hold of.
    #[must_use]
    pub fn befallen(&self) -> usize {
        self.0.gate.borrow().befallen
    }

    /// Freezes the watches that [`Fault::FreezeWatch`] is meant for: those that began since it was injected, and those to
    /// come.
    pub fn freeze(&self) {
        self.0.gate.send_modify(|gate| gate.frozen = true);
    }

    /// Lets the calls go on that are held or frozen now.
    pub fn release(&self) {
        self.0.gate.send_modify(|gate| {
            gate.releases += 1;
            gate.frozen = false;
        });
    }

    /// The fault befalls no further call. Those that are held stay so: to them the API server, which
    /// answers again, is as dead as before.
    pub fn cease(&self) {
        self.0.gate.send_modify(|gate| gate.over = true);
    }

    /// The fault befalls no further call; those that are held or frozen go on.
    pub fn remove(&self) {
        self.0.gate.send_modify(|gate| {
            gate.over = true;
            gate.removed = true;
        });
    }
}
