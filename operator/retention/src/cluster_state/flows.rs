//! Flows whose deletions fail back off as a whole (`docs/retention.md`, R35).
//!
//! What makes one deletion fail, such as an admission webhook that denies them, makes the others of its kind in its
//! namespace fail, too. So after some failures in a row a flow waits, and then one request at a time probes it. An answer
//! that is about one object, such as a conflict, says nothing about the flow. Times are of a clock that nobody sets.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use trainjob_core::facts::ObjectKey;

use super::step::Reply;
use crate::key::{Key, TargetId};

/// So many failures in a row, and the flow backs off.
const FAILURES: u32 = 5;
/// First and longest wait of a flow.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// A probe that was not answered within that time will not be.
const PROBED_WITHIN: Duration = Duration::from_mins(1);
/// A flow in which nothing was tried for so long, although it could have been, has nothing left that is due. Longer than the
/// rest of an object whose deletion has failed.
const LEFT_AFTER: Duration = Duration::from_mins(6);

/// The deletions of the objects of a kind in a namespace, or those of their Pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    target: TargetId,
    namespace: Arc<str>,
    pods: bool,
}

impl Flow {
    /// That of an object, or of its Pods.
    pub(super) fn of(key: &Key, pods: bool) -> Self {
        Self { target: key.target, namespace: Arc::clone(&key.object.namespace), pods }
    }
}

/// A flow whose last deletion has failed.
#[derive(Debug, Default)]
struct Troubled {
    /// So many in a row.
    failures: u32,
    /// Until when it backs off.
    until: Duration,
    /// When it was last said that this is over.
    announced: Option<Duration>,
    /// When a request was last sent after that.
    probed: Duration,
    /// The request that is under way after that, and since when.
    probe: Option<(ObjectKey, Duration)>,
}

impl Troubled {
    const fn backs_off(&self) -> bool {
        self.failures >= FAILURES
    }

    /// Whether nothing was tried for so long that nothing can be left that is due.
    fn is_left(&self, now: Duration) -> bool {
        self.backs_off() && now.saturating_sub(self.until.max(self.probed)) >= LEFT_AFTER
    }

    fn is_probed_by(&self, object: &ObjectKey) -> bool {
        self.probe.as_ref().is_some_and(|(probe, _)| probe == object)
    }
}

/// All flows whose last deletion has failed.
#[derive(Debug, Default)]
pub(super) struct Flows(BTreeMap<Flow, Troubled>);

impl Flows {
    /// Whether this object has to wait for its flow.
    pub(super) fn blocks(&self, flow: &Flow, object: &ObjectKey, now: Duration) -> bool {
        let Some(troubled) = self.0.get(flow).filter(|troubled| troubled.backs_off()) else {
            return false;
        };
        let probes_else = |(probe, since): &(ObjectKey, Duration)| {
            probe != object && now.saturating_sub(*since) < PROBED_WITHIN
        };
        now < troubled.until || troubled.probe.as_ref().is_some_and(probes_else)
    }

    /// A deletion of this object is sent.
    pub(super) fn begin(&mut self, flow: &Flow, object: &ObjectKey, now: Duration) {
        if let Some(troubled) = self.0.get_mut(flow).filter(|troubled| troubled.backs_off()) {
            (troubled.probed, troubled.probe) = (now, Some((object.clone(), now)));
        }
    }

    /// What came of a deletion of this object. True if others may go that had to wait.
    ///
    /// While a flow backs off, a failure of anything but its probe says nothing new: that was under way when it began to, as
    /// many others may have been.
    pub(super) fn replied(
        &mut self,
        flow: &Flow,
        object: &ObjectKey,
        reply: Reply,
        now: Duration,
    ) -> bool {
        match reply {
            Reply::Accepted => self.0.remove(flow).is_some_and(|troubled| troubled.backs_off()),
            Reply::Failed => {
                let troubled = self.0.entry(flow.clone()).or_default();
                if troubled.backs_off() && !troubled.is_probed_by(object) {
                    return false;
                }
                troubled.failures = troubled.failures.saturating_add(1);
                let exponent = troubled.failures.saturating_sub(FAILURES).min(16);
                let wait = BACKOFF.0.saturating_mul(1 << exponent).min(BACKOFF.1);
                (troubled.until, troubled.announced) = (now.saturating_add(wait), None);
                troubled.probe = None;
                false
            }
            Reply::Missing | Reply::Conflict | Reply::Throttled(_) => {
                let troubled =
                    self.0.get_mut(flow).filter(|troubled| troubled.is_probed_by(object));
                troubled.is_some_and(|troubled| troubled.probe.take().is_some())
            }
        }
    }

    /// The kinds and namespaces that may be probed, each once after each wait, and again if no answer came of it: what was to
    /// be the probe may have gone before it was sent, and nothing else may come due there. One in which nothing is tried any more
    /// is forgotten.
    pub(super) fn take_ready(&mut self, now: Duration) -> Vec<(TargetId, Arc<str>)> {
        let is_ready = |troubled: &Troubled| {
            let again = troubled.announced.is_none_or(|at| now.saturating_sub(at) >= PROBED_WITHIN);
            troubled.backs_off() && troubled.until <= now && again
        };
        let mut ready = Vec::new();
        self.0.retain(|flow, troubled| {
            if is_ready(troubled) {
                troubled.announced = Some(now);
                ready.push((flow.target, Arc::clone(&flow.namespace)));
            }
            !troubled.is_left(now)
        });
        ready
    }

    /// The flows that back off: kind and namespace of each.
    pub(super) fn backing_off(&self) -> usize {
        self.0.values().filter(|troubled| troubled.backs_off()).count()
    }

    /// Nothing is known of the objects of a kind any more.
    pub(super) fn forget_kind(&mut self, target: TargetId) {
        self.0.retain(|flow, _| flow.target != target);
    }

    /// There is nothing in a namespace any more.
    pub(super) fn forget_namespace(&mut self, namespace: &str) {
        self.0.retain(|flow, _| *flow.namespace != *namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn key(name: &str) -> Key {
        let object = ObjectKey::new("a", name);
        Key { target: TargetId(0), object }
    }

    #[test]
    fn after_five_failures_in_a_row_one_request_at_a_time_probes_a_flow() {
        let (mut flows, flow) = (Flows::default(), Flow::of(&key("j"), false));
        let (one, other) = (key("j").object, key("k").object);
        for _ in 0..4 {
            flows.replied(&flow, &one, Reply::Failed, at(0));
            assert!(!flows.blocks(&flow, &one, at(0)));
        }
        flows.replied(&flow, &one, Reply::Conflict, at(0));
        flows.replied(&flow, &one, Reply::Failed, at(0));
        // Under way all the time.
        (0..27).for_each(|_| _ = flows.replied(&flow, &other, Reply::Failed, at(0)));
        let mut now = 0;
        for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            now += wait;
            let before = Duration::from_millis(now * 1_000 - 1);
            assert!(flows.blocks(&flow, &one, before) && flows.take_ready(before).is_empty());
            assert!(!flows.blocks(&flow, &one, at(now)) && !flows.blocks(&flow, &other, at(now)));
            assert_eq!(flows.take_ready(at(now)), [(TargetId(0), "a".into())]);
            assert!(flows.take_ready(at(now)).is_empty(), "once");
            assert!(flows.take_ready(at(now + 59)).is_empty(), "a probe may be under way");
            flows.begin(&flow, &one, at(now));
            assert!(flows.blocks(&flow, &other, at(now)) && !flows.blocks(&flow, &one, at(now)));
            flows.replied(&flow, &one, Reply::Failed, at(now));
        }
        assert_eq!(flows.backing_off(), 1);
        flows.begin(&flow, &one, at(9_000));
        assert!(flows.replied(&flow, &one, Reply::Accepted, at(9_000)), "the others may go");
        assert!(!flows.blocks(&flow, &other, at(9_000)) && flows.backing_off() == 0);
    }

    #[test]
    fn flow_whose_probe_never_came_is_told_of_again() {
        let (mut flows, flow) = (Flows::default(), Flow::of(&key("j"), false));
        (0..5).for_each(|_| _ = flows.replied(&flow, &key("j").object, Reply::Failed, at(0)));
        let told: Vec<_> = (0..999).filter(|now| !flows.take_ready(at(*now)).is_empty()).collect();
        assert_eq!(told, [1, 61, 121, 181, 241, 301, 361]);
        assert_eq!(flows.backing_off(), 0, "nothing is left of it");
    }

    #[test]
    fn flow_that_is_tried_now_and_then_is_not_forgotten() {
        let (mut flows, flow) = (Flows::default(), Flow::of(&key("j"), false));
        (0..5).for_each(|_| _ = flows.replied(&flow, &key("j").object, Reply::Failed, at(0)));
        for now in [300, 600, 900] {
            flows.take_ready(at(now));
            assert_eq!(flows.backing_off(), 1, "{now}");
            flows.begin(&flow, &key("j").object, at(now));
            flows.replied(&flow, &key("j").object, Reply::Conflict, at(now));
        }
        flows.begin(&flow, &key("j").object, at(1_000));
        flows.take_ready(at(1_359));
        assert_eq!(flows.backing_off(), 1, "its answer is lost");
        flows.take_ready(at(1_360));
        assert_eq!(flows.backing_off(), 0);
    }

    #[test]
    fn other_flows_go_on_and_success_forgets_failures() {
        let (mut flows, flow) = (Flows::default(), Flow::of(&key("j"), false));
        for reply in [Reply::Failed, Reply::Failed, Reply::Accepted, Reply::Failed, Reply::Failed] {
            assert!(!flows.replied(&flow, &key("j").object, reply, at(0)));
        }
        assert_eq!(flows.backing_off(), 0);
        (0..5).for_each(|_| _ = flows.replied(&flow, &key("j").object, Reply::Failed, at(0)));
        assert!(flows.blocks(&flow, &key("j").object, at(0)));
        assert!(!flows.blocks(&Flow::of(&key("j"), true), &key("j").object, at(0)), "its Pods");
        flows.forget_namespace("a");
        assert!(!flows.blocks(&flow, &key("j").object, at(0)));
    }

    #[test]
    fn a_probe_that_says_nothing_or_is_lost_leaves_the_turn_to_another() {
        for reply in [Reply::Conflict, Reply::Missing, Reply::Throttled(at(1))] {
            let (mut flows, flow) = (Flows::default(), Flow::of(&key("j"), false));
            (0..5).for_each(|_| _ = flows.replied(&flow, &key("j").object, Reply::Failed, at(0)));
            flows.begin(&flow, &key("j").object, at(1));
            assert!(flows.blocks(&flow, &key("k").object, at(60)));
            assert!(!flows.blocks(&flow, &key("k").object, at(61)), "no answer");
            assert!(!flows.replied(&flow, &key("l").object, reply, at(2)), "no probe: {reply:?}");
            assert!(flows.replied(&flow, &key("j").object, reply, at(2)), "{reply:?}");
            assert!(!flows.blocks(&flow, &key("k").object, at(2)));
        }
    }
}
