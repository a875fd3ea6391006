//! What waits to be told, shared fairly between namespaces.
//!
//! Namespaces take turns, and one thing of each is being told at a time, so that an API server or an admission webhook
//! that is slow for one of them holds up no other. When the backlog is full, who waits with most loses their newest, so
//! that one namespace cannot displace what another has to tell.

use std::collections::{HashMap, VecDeque};

/// Things that wait, by namespace, in the order in which they came.
#[derive(Debug)]
pub(super) struct Backlog<T> {
    most: usize,
    count: usize,
    waiting: HashMap<String, Waiting<T>>,
    /// Namespaces with something to tell and nothing under way; the first has its turn.
    turns: VecDeque<String>,
}

#[derive(Debug)]
struct Waiting<T> {
    items: VecDeque<T>,
    is_under_way: bool,
}

impl<T> Backlog<T> {
    /// Room for at most `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { most, count: 0, waiting: HashMap::new(), turns: VecDeque::new() }
    }

    /// Adds something; returns what there is no room for, if there is not enough.
    pub(super) fn push(&mut self, namespace: &str, item: T) -> Option<T> {
        let mut displaced = None;
        if self.count >= self.most {
            let own = self.waiting.get(namespace).map_or(0, |waiting| waiting.items.len());
            let longest = self.waiting.values_mut().max_by_key(|waiting| waiting.items.len());
            // What is added must not make the others' share the smaller one.
            let Some(longest) = longest.filter(|longest| longest.items.len() > own + 1) else {
                return Some(item);
            };
            displaced = longest.items.pop_back();
            self.count -= 1;
        }
        let empty = || Waiting { items: VecDeque::new(), is_under_way: false };
        let waiting = self.waiting.entry(namespace.to_owned()).or_insert_with(empty);
        if waiting.items.is_empty() && !waiting.is_under_way {
            self.turns.push_back(namespace.to_owned());
        }
        waiting.items.push_back(item);
        self.count += 1;
        displaced
    }

    /// Whose turn it is, and what they have to tell. Until it is [told](Self::told), they have no other turn.
    pub(super) fn next(&mut self) -> Option<(String, T)> {
        let namespace = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&namespace)?;
        let item = waiting.items.pop_front()?;
        waiting.is_under_way = true;
        self.count -= 1;
        Some((namespace, item))
    }

    /// What a namespace had under way is told.
    pub(super) fn told(&mut self, namespace: &str) {
        let Some(waiting) = self.waiting.get_mut(namespace) else { return };
        waiting.is_under_way = false;
        if waiting.items.is_empty() {
            self.waiting.remove(namespace);
        } else {
            self.turns.push_back(namespace.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A backlog to which these namespaces have added so many, one namespace after the other.
    fn of(most: usize, added: &[(&str, usize)]) -> Backlog<usize> {
        let mut backlog = Backlog::new(most);
        for (namespace, items) in added {
            for item in 0..*items {
                backlog.push(namespace, item);
            }
        }
        backlog
    }

    /// In which order everything is told.
    fn told(mut backlog: Backlog<usize>) -> Vec<String> {
        let mut told = Vec::new();
        while let Some((namespace, item)) = backlog.next() {
            told.push(format!("{namespace}{item}"));
            backlog.told(&namespace);
        }
        assert!(backlog.waiting.is_empty() && backlog.count == 0, "{backlog:?}");
        told
    }

    #[test]
    fn namespaces_take_turns_and_each_keeps_its_order() {
        assert_eq!(
            told(of(9, &[("a", 3), ("b", 1), ("c", 2)])),
            ["a0", "b0", "c0", "a1", "c1", "a2"]
        );
    }

    #[test]
    fn one_thing_of_a_namespace_is_under_way_at_a_time() {
        let mut backlog = of(9, &[("a", 2), ("b", 1)]);
        assert_eq!(backlog.next(), Some(("a".into(), 0)));
        assert_eq!(backlog.next(), Some(("b".into(), 0)));
        assert_eq!(backlog.next(), None);
        backlog.push("b", 7);
        assert_eq!(backlog.next(), None);
        backlog.told("b");
        assert_eq!(backlog.next(), Some(("b".into(), 7)));
        backlog.told("a");
        assert_eq!(backlog.next(), Some(("a".into(), 1)));
    }

    #[test]
    fn namespace_that_fills_the_backlog_makes_room_for_others_until_all_have_the_same() {
        let mut backlog = of(4, &[("a", 4)]);
        assert_eq!(backlog.push("a", 4), Some(4), "its own are not displaced");
        assert_eq!(backlog.push("b", 0), Some(3), "the newest goes");
        assert_eq!(backlog.push("b", 1), Some(2));
        assert_eq!(backlog.push("b", 2), Some(2), "both have the same");
        assert_eq!(backlog.push("c", 0), Some(1), "there is one with more than one more");
        assert_eq!(backlog.count, 4);
        assert_eq!(told(backlog).len(), 4);
    }

    #[test]
    fn namespace_whose_last_is_displaced_by_nobody_keeps_it() {
        let mut backlog = of(2, &[("a", 1), ("b", 1)]);
        assert_eq!(backlog.push("c", 0), Some(0));
        assert_eq!(told(backlog), ["a0", "b0"]);
    }

    #[test]
    fn flood_of_one_namespace_displaces_nothing_of_another() {
        let mut backlog = of(100, &[("quiet", 10)]);
        for item in 0..10_000 {
            backlog.push("flood", item);
        }
        let told = told(backlog);
        assert_eq!(told.len(), 100);
        let last = told.iter().rposition(|told| told.starts_with("quiet"));
        assert_eq!(last, Some(18), "they take turns");
        let quiet = told.iter().filter(|told| told.starts_with("quiet"));
        assert_eq!(quiet.count(), 10);
    }
}
