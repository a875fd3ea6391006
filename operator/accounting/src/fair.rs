//! Requests about many Pods, of which those of one namespace hold up no others for long.
//!
//! Every request about a Pod may hang in a webhook of its namespace until it is given up. So namespaces take turns, and one
//! that is slow to answer has one request under way.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{Instant, sleep};

/// The most requests that are under way.
const AT_ONCE: usize = 16;
/// The most of one namespace, while it answers soon.
const OF_NAMESPACE: usize = 12;
/// An answer that takes no longer came soon.
const SOON: Duration = Duration::from_secs(1);
/// When a round may be cut: later than a request is given up, so that those that hang are known to fail.
const LONG: Duration = Duration::from_secs(20);

/// Which rounds are cut when they take twenty seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// All: something else may have become due meanwhile.
    Any,
    /// Those of which only namespaces that are slow to answer are left: the next round begins with a list, which takes long.
    OnlySlowLeft,
}

/// What came of a round.
#[derive(Debug)]
pub struct Round<T> {
    /// Of each item that was done, in the order in which they ended.
    pub ended: Vec<T>,
    /// Whether some are left to the next round.
    pub is_cut: bool,
}

/// Does this with all items, unless it is cut. Namespaces take turns in the order of their first items, and those of a
/// namespace begin in their order.
pub async fn round<T, F: Future>(
    items: impl IntoIterator<Item = T>,
    namespace_of: impl Fn(&T) -> &str,
    act: impl Fn(T) -> F,
    cut: Cut,
) -> Round<F::Output> {
    let mut line = Line::of(items, namespace_of);
    let (mut under_way, mut ended) = (FuturesUnordered::new(), Vec::new());
    let (mut is_long, mut long) = (false, pin!(sleep(LONG)));
    loop {
        if is_long && (cut == Cut::Any || !line.has_more_that_answers_soon()) {
            return Round { ended, is_cut: true };
        }
        while under_way.len() < AT_ONCE
            && let Some((namespace, item)) = line.next()
        {
            let (begun, request) = (Instant::now(), act(item));
            under_way.push(async move { (namespace, request.await, begun.elapsed()) });
        }
        tokio::select! {
            next = under_way.next() => match next {
                Some((namespace, output, took)) => {
                    line.ended(namespace, took <= SOON);
                    ended.push(output);
                }
                None => return Round { ended, is_cut: false },
            },
            () = &mut long, if !is_long => is_long = true,
        }
    }
}

/// What waits for its turn.
struct Line<T> {
    namespaces: Vec<Namespace<T>>,
    /// Those that may send another request, by their place among all.
    turns: VecDeque<usize>,
}

struct Namespace<T> {
    items: VecDeque<T>,
    under_way: usize,
    answers_soon: bool,
    has_turn: bool,
}

impl<T> Line<T> {
    fn of(items: impl IntoIterator<Item = T>, namespace_of: impl Fn(&T) -> &str) -> Self {
        let mut places = HashMap::new();
        let mut line = Self { namespaces: Vec::new(), turns: VecDeque::new() };
        for item in items {
            let place = places.get(namespace_of(&item)).copied().unwrap_or_else(|| {
                places.insert(namespace_of(&item).to_owned(), line.namespaces.len());
                line.add_namespace()
            });
            if let Some(namespace) = line.namespaces.get_mut(place) {
                namespace.items.push_back(item);
            }
        }
        line
    }

    fn add_namespace(&mut self) -> usize {
        let place = self.namespaces.len();
        self.namespaces.push(Namespace {
            items: VecDeque::new(),
            under_way: 0,
            answers_soon: false,
            has_turn: true,
        });
        self.turns.push_back(place);
        place
    }

    /// The next item, and the place of its namespace.
    fn next(&mut self) -> Option<(usize, T)> {
        let place = self.turns.pop_front()?;
        let namespace = self.namespaces.get_mut(place)?;
        namespace.has_turn = false;
        namespace.under_way += 1;
        let item = namespace.items.pop_front()?;
        self.give_turn(place);
        Some((place, item))
    }

    fn ended(&mut self, place: usize, soon: bool) {
        if let Some(namespace) = self.namespaces.get_mut(place) {
            namespace.under_way = namespace.under_way.saturating_sub(1);
            namespace.answers_soon = soon;
        }
        self.give_turn(place);
    }

    fn has_more_that_answers_soon(&self) -> bool {
        let has_more = |it: &Namespace<T>| it.under_way > 0 || !it.items.is_empty();
        self.namespaces.iter().any(|it| it.answers_soon && has_more(it))
    }

    fn give_turn(&mut self, place: usize) {
        let Some(namespace) = self.namespaces.get_mut(place) else { return };
        let most = if namespace.answers_soon { OF_NAMESPACE } else { 1 };
        if !namespace.has_turn && namespace.under_way < most && !namespace.items.is_empty() {
            namespace.has_turn = true;
            self.turns.push_back(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use tokio::{sync::Notify, task::yield_now, time::timeout};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn namespaces_that_hang_hold_up_no_others() {
        const HANGING: usize = AT_ONCE - 1;
        const OTHERS: usize = 1_000;
        let (done, all_done) = (AtomicUsize::new(0), Notify::new());
        let hanging = (0..100 * HANGING).map(|number| format!("hangs-{}", number % HANGING));
        let others = (0..OTHERS).map(|number| format!("other-{}", number % 3));
        let act = |item: String| {
            let (done, all_done) = (&done, &all_done);
            async move {
                if item.starts_with("hangs") {
                    pending::<()>().await;
                }
                if done.fetch_add(1, Ordering::Relaxed) + 1 == OTHERS {
                    all_done.notify_one();
                }
            }
        };
        let round = round(hanging.chain(others), |item| item, act, Cut::Any);
        tokio::select! {
            _ = round => panic!("what hangs cannot end"),
            done = timeout(PATIENCE, all_done.notified()) => done.expect("all others are done"),
        }
    }

    #[tokio::test]
    async fn all_are_done_and_no_more_at_once_than_are_allowed() {
        for (namespaces, allowed) in [(1, OF_NAMESPACE), (2, AT_ONCE), (40, AT_ONCE)] {
            let (under_way, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let act = |item| {
                let (under_way, most) = (&under_way, &most);
                async move {
                    most.fetch_max(
                        under_way.fetch_add(1, Ordering::Relaxed) + 1,
                        Ordering::Relaxed,
                    );
                    yield_now().await;
                    under_way.fetch_sub(1, Ordering::Relaxed);
                    item
                }
            };
            let items = (0..400).map(|number| format!("namespace-{}", number % namespaces));
            let Round { ended, is_cut } = round(items, |item| item, act, Cut::Any).await;
            assert_eq!((ended.len(), is_cut), (400, false), "{namespaces}");
            assert_eq!(most.into_inner(), allowed, "{namespaces}");
        }
    }

    /// Beside requests that take a minute there are as many short ones as take forty seconds.
    #[tokio::test(start_paused = true)]
    async fn a_long_round_is_cut_at_once_or_when_only_slow_ones_are_left() {
        for (cut, expected) in [(Cut::Any, 20), (Cut::OnlySlowLeft, 40)] {
            let items = (0..100).map(|_| "slow").chain((0..4_000 * OF_NAMESPACE).map(|_| "quick"));
            let begun = Instant::now();
            let act = |item| async move {
                let takes = if item == "slow" { 60_000 } else { 10 };
                sleep(Duration::from_millis(takes)).await;
            };
            let Round { ended, is_cut } = round(items, |item| item, act, cut).await;
            assert!(is_cut);
            let took = begun.elapsed().as_secs_f64();
            assert!((took - f64::from(expected)).abs() < 1.0 + f64::from(expected) / 5.0, "{took}");
            assert_eq!(ended.len() == 4_000 * OF_NAMESPACE, cut == Cut::OnlySlowLeft);
        }
    }

    #[tokio::test]
    async fn namespaces_begin_in_turn_and_those_of_one_in_their_order() {
        let begun = Mutex::new(Vec::new());
        let items = ["b-1", "a-1", "b-2", "b-3", "a-2"];
        let act = |item| {
            begun.lock().unwrap().push(item);
            async {}
        };
        round(items, |item| &item[..1], act, Cut::Any).await;
        let begun = begun.into_inner().unwrap();
        assert_eq!(begun[..2], ["b-1", "a-1"]);
        let of = |namespace| -> Vec<_> {
            begun.iter().copied().filter(|item: &&str| item.starts_with(namespace)).collect()
        };
        assert_eq!((of("a"), of("b")), (vec!["a-1", "a-2"], vec!["b-1", "b-2", "b-3"]));
    }
}
