//! Keys that wait with one priority, in lines that take turns.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;
use trainjob_api::time::Timestamp;

use crate::shares::{Flow, Operation, Share};

/// Of so many turns, one belongs to repeated attempts even when there are first ones: they could starve otherwise.
const TURNS_PER_REPEATED: u8 = 8;

/// Whether something was tried before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attempt {
    /// Something has changed, or an instant has come.
    First,
    /// It failed, and is tried again.
    Repeated,
}

/// Keys of one namespace whose work begins with the same operation, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub(super) namespace: Arc<str>,
    /// `None` before the key was planned.
    pub(super) operation: Option<Operation>,
}

impl Line {
    /// The flow of its requests, if that is known.
    pub(super) fn flow(&self) -> Option<Flow> {
        let operation = self.operation?;
        Some(Flow { namespace: Arc::clone(&self.namespace), operation })
    }
}

/// Within a line: since when it has been due, then the order in which they came.
pub(super) type Turn = (Timestamp, u64);

/// A key, and since when it waits.
pub(super) type Waiter<K> = (K, Instant);

/// What waits with one priority.
#[derive(Debug)]
pub(super) struct Turns<K> {
    first: Lines<K>,
    repeated: Lines<K>,
    taken: u8,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { first: Lines::default(), repeated: Lines::default(), taken: 0 }
    }
}

impl<K> Turns<K> {
    pub(super) fn insert(&mut self, attempt: Attempt, line: Line, turn: Turn, waiter: Waiter<K>) {
        self.of(attempt).insert(line, turn, waiter);
    }

    pub(super) fn remove(&mut self, attempt: Attempt, line: &Line, turn: Turn) {
        if let Some(waiters) = self.of(attempt).waiters.get_mut(line) {
            waiters.remove(&turn);
        }
    }

    /// Takes the first of the next line that may go, with the place it may have.
    pub(super) fn pop(
        &mut self,
        may_go: impl Fn(&Line) -> Option<Share>,
    ) -> Option<(Line, Share, Waiter<K>)> {
        self.taken = self.taken.wrapping_add(1);
        let (earlier, later) = if self.taken.is_multiple_of(TURNS_PER_REPEATED) {
            (&mut self.repeated, &mut self.first)
        } else {
            (&mut self.first, &mut self.repeated)
        };
        earlier.pop(&may_go).or_else(|| later.pop(&may_go))
    }

    /// Where somebody waits.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        let lines = [&self.first, &self.repeated].into_iter().flat_map(|lines| &lines.waiters);
        lines.filter(|(_, waiters)| !waiters.is_empty()).map(|(line, _)| line)
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = &Waiter<K>> {
        [&self.first, &self.repeated]
            .into_iter()
            .flat_map(|lines| lines.waiters.values().flat_map(BTreeMap::values))
    }

    const fn of(&mut self, attempt: Attempt) -> &mut Lines<K> {
        match attempt {
            Attempt::First => &mut self.first,
            Attempt::Repeated => &mut self.repeated,
        }
    }
}

/// Lines, and which of them is next. Each is in the order once, until it was found empty.
#[derive(Debug)]
struct Lines<K> {
    waiters: HashMap<Line, BTreeMap<Turn, Waiter<K>>>,
    order: VecDeque<Line>,
}

impl<K> Default for Lines<K> {
    fn default() -> Self {
        Self { waiters: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K> Lines<K> {
    fn insert(&mut self, line: Line, turn: Turn, waiter: Waiter<K>) {
        if let Some(waiters) = self.waiters.get_mut(&line) {
            waiters.insert(turn, waiter);
        } else {
            self.order.push_back(line.clone());
            self.waiters.insert(line, BTreeMap::from([(turn, waiter)]));
        }
    }

    fn pop(&mut self, may_go: impl Fn(&Line) -> Option<Share>) -> Option<(Line, Share, Waiter<K>)> {
        for _ in 0..self.order.len() {
            let line = self.order.pop_front()?;
            let Some(waiters) = self.waiters.get_mut(&line) else { continue };
            if waiters.is_empty() {
                self.waiters.remove(&line);
                continue;
            }
            let popped = may_go(&line).and_then(|share| Some((share, waiters.pop_first()?)));
            self.order.push_back(line.clone());
            if let Some((share, (_, waiter))) = popped {
                return Some((line, share, waiter));
            }
        }
        None
    }
}
