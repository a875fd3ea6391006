//! How quickly requests were answered lately.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use super::Flow;

/// An answer within this time is never slow.
const QUICK: Duration = Duration::from_secs(1);
/// Slow is what takes so many times the median.
const TIMES_MEDIAN: u32 = 4;
/// Within this time answers come while there is no trouble, the disk of etcd included.
const NO_TROUBLE: Duration = Duration::from_millis(250);
/// The median is that of so many answers.
const RECENT: usize = 127;
/// So many flows are known at most. Then all are forgotten, which costs each of them a cautious start.
const MOST_FLOWS: usize = 4_096;

/// How quickly a flow is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// It has not answered yet.
    Unknown,
    /// As others are.
    Normal,
    /// Far more slowly than others are.
    Slow,
}

/// The last answer of each flow, and the recent ones of all.
#[derive(Debug, Default)]
pub(super) struct Answers {
    last: HashMap<Flow, Duration>,
    recent: VecDeque<Duration>,
    /// The recent ones in order.
    sorted: Vec<Duration>,
}

impl Answers {
    /// A flow was answered after so long.
    pub(super) fn record(&mut self, flow: Flow, took: Duration) {
        if self.last.len() >= MOST_FLOWS && !self.last.contains_key(&flow) {
            self.last.clear();
        }
        self.last.insert(flow, took);
        if self.recent.len() >= RECENT
            && let Some(oldest) = self.recent.pop_front()
            && let Ok(at) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(at);
        }
        self.recent.push_back(took);
        let at = self.sorted.partition_point(|other| *other < took);
        self.sorted.insert(at, took);
    }

    /// The flows that have answered lately.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.last.keys()
    }

    /// The pace of a flow whose oldest request under way has waited so long, if there is one.
    pub(super) fn pace(&self, flow: &Flow, waited: Option<Duration>) -> Pace {
        let last = self.last.get(flow).copied();
        let Some(longest) = last.max(waited) else { return Pace::Unknown };
        if longest > QUICK && longest > self.median().saturating_mul(TIMES_MEDIAN) {
            return Pace::Slow;
        }
        if last.is_none() { Pace::Unknown } else { Pace::Normal }
    }

    /// Whether answers come without trouble: recent ones did, and nothing has `waited` for longer.
    pub(super) fn are_quick(&self, waited: Option<Duration>) -> bool {
        let slowest = self.median().max(waited.unwrap_or_default());
        !self.recent.is_empty() && slowest <= NO_TROUBLE
    }

    /// Zero while there was no answer.
    fn median(&self) -> Duration {
        self.sorted.get(self.sorted.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::flow, *};

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn flow_is_slow_over_a_second_and_over_four_times_the_median() {
        for (median, last, waited, expected) in [
            (10, None, None, Pace::Unknown),
            (10, None, Some(900), Pace::Unknown),
            (10, None, Some(1_001), Pace::Slow),
            (10, Some(10), None, Pace::Normal),
            (10, Some(10), Some(1_000), Pace::Normal),
            (10, Some(10), Some(1_001), Pace::Slow),
            (10, Some(5_000), None, Pace::Slow),
            (10, Some(5_000), Some(10), Pace::Slow),
            (2_000, Some(8_000), None, Pace::Normal),
            (2_000, Some(8_001), None, Pace::Slow),
        ] {
            let mut answers = Answers::default();
            if let Some(last) = last {
                answers.record(flow("ns"), millis(last));
            }
            (0..RECENT).for_each(|_| answers.record(flow("other"), millis(median)));
            let pace = answers.pace(&flow("ns"), waited.map(millis));
            assert_eq!(pace, expected, "median {median}, last {last:?}, waited {waited:?}");
        }
    }

    #[test]
    fn answers_are_quick_while_recent_ones_were_and_nothing_waits_for_long() {
        for (median, waited, expected) in [
            (None, None, false),
            (Some(10), None, true),
            (Some(10), Some(250), true),
            (Some(10), Some(251), false),
            (Some(250), Some(10), true),
            (Some(251), Some(10), false),
            (Some(251), None, false),
        ] {
            let mut answers = Answers::default();
            if let Some(median) = median {
                (0..RECENT).for_each(|_| answers.record(flow("ns"), millis(median)));
            }
            let quick = answers.are_quick(waited.map(millis));
            assert_eq!(quick, expected, "median {median:?}, waited {waited:?}");
        }
    }

    #[test]
    fn the_median_is_that_of_recent_answers() {
        let mut answers = Answers::default();
        assert_eq!(answers.median(), Duration::ZERO);
        for (answered, took, median) in
            [(RECENT, 10, 10), (RECENT / 2, 5_000, 10), (1, 5_000, 5_000), (RECENT, 20, 20)]
        {
            (0..answered).for_each(|_| answers.record(flow("ns"), millis(took)));
            assert_eq!(answers.median(), millis(median), "{answered} more of {took} ms");
            assert!(answers.sorted.len() <= RECENT && answers.sorted.is_sorted());
        }
    }

    #[test]
    fn flows_that_come_and_go_take_a_bounded_room() {
        let mut answers = Answers::default();
        for n in 0..3 * MOST_FLOWS {
            answers.record(flow(&n.to_string()), millis(1));
            assert!(answers.last.len() <= MOST_FLOWS);
        }
    }
}
