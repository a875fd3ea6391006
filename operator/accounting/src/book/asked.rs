//! TrainJobs whose Pods are listed together.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::key::JobKey;

/// TrainJobs that one list is about. Their UIDs are to fit into a URL of 4 kB.
pub(super) const TOGETHER: usize = 100;

/// The TrainJobs that wait for a list, by namespace, in the order in which they asked.
#[derive(Debug, Default)]
pub(super) struct Asked(HashMap<Arc<str>, VecDeque<Arc<JobKey>>>);

impl Asked {
    /// One more waits.
    pub(super) fn ask(&mut self, key: Arc<JobKey>) {
        self.0.entry(Arc::clone(&key.namespace)).or_default().push_back(key);
    }

    /// Those that the next list of a namespace is about. They wait on until they are [answered](Self::answered).
    pub(super) fn next(&self, namespace: &str) -> Vec<Arc<JobKey>> {
        self.0.get(namespace).into_iter().flatten().take(TOGETHER).cloned().collect()
    }

    /// One that the list was about does not wait any more.
    pub(super) fn answered(&mut self, key: &JobKey) {
        let Some(waiting) = self.0.get_mut(&key.namespace) else { return };
        // It is among the first: they are answered in the order in which they asked.
        if let Some(at) = waiting.iter().position(|it| **it == *key) {
            waiting.remove(at);
        }
        if waiting.is_empty() {
            self.0.remove(&key.namespace);
        }
    }

    /// Whether any wait in a namespace.
    pub(super) fn waits(&self, namespace: &str) -> bool {
        self.0.contains_key(namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, number: usize) -> Arc<JobKey> {
        let (name, uid) = (format!("job-{number}").into(), number.to_string().into());
        Arc::new(JobKey { namespace: namespace.into(), name, uid })
    }

    #[test]
    fn a_list_is_about_those_that_have_waited_longest_in_its_namespace() {
        let mut asked = Asked::default();
        for number in 0..TOGETHER + 50 {
            asked.ask(key("a", number));
        }
        asked.ask(key("b", 0));
        let first = asked.next("a");
        assert_eq!(first, (0..TOGETHER).map(|number| key("a", number)).collect::<Vec<_>>());
        assert_eq!(asked.next("a"), first, "a list that broke off is asked for again");
        // One asks again before all are answered.
        asked.answered(&key("a", 0));
        asked.ask(key("a", 0));
        for key in first.iter().skip(1) {
            asked.answered(key);
        }
        let second = asked.next("a");
        assert_eq!((second.len(), &second[50]), (51, &key("a", 0)));
        for key in &second {
            asked.answered(key);
        }
        assert!(!asked.waits("a") && asked.waits("b") && asked.next("a").is_empty());
        asked.answered(&key("a", 7));
        assert_eq!(asked.next("b"), [key("b", 0)]);
    }
}
