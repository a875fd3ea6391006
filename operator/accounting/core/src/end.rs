//! When a Pod has ended (AE1).
//!
//! A deleted Pod on a dead node has not ended: without a finalizer of ours it would stay, too, until something that
//! knows the node gives it up.

use trainjob_api::time::Timestamp;

use crate::pod::{Deletion, Pod};

/// How long a Pod without grace may still be reported by its kubelet, in seconds.
pub const FORCED_SECONDS: i64 = 10;

/// Whether a Pod has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It goes on.
    No,
    /// It will have, unless it is reported before then.
    At(Timestamp),
    /// It has.
    Yes,
}

/// Whether this Pod has ended at `now`.
#[must_use]
pub fn ended(pod: &Pod, now: Timestamp) -> Ended {
    if pod.is_terminal() {
        return Ended::Yes;
    }
    match (pod.deletion, &pod.node) {
        (Some(_), None) => Ended::Yes,
        (Some(Deletion { grace: 0, at }), Some(_)) => {
            let until = at.plus(FORCED_SECONDS);
            if now >= until { Ended::Yes } else { Ended::At(until) }
        }
        (None, _) | (Some(_), Some(_)) => Ended::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pod::Phase, testing::pod};

    const T: Timestamp = Timestamp(1_000);

    #[test]
    fn ae1_a_pod_has_ended_when_it_is_terminal_or_deleted_unscheduled_or_by_force() {
        let deleted = |grace| Some(Deletion { at: T, grace });
        for (case, phase, deletion, node, now, expected) in [
            ("it runs", Phase::Open, None, Some("n"), 5_000, Ended::No),
            ("it waits", Phase::Open, None, None, 5_000, Ended::No),
            ("a) succeeded", Phase::Succeeded, None, Some("n"), 1_000, Ended::Yes),
            ("a) failed, never bound", Phase::Failed, None, None, 1_000, Ended::Yes),
            ("a) failed and deleted", Phase::Failed, deleted(30), Some("n"), 1_000, Ended::Yes),
            ("b) deleted, no node", Phase::Open, deleted(30), None, 1_000, Ended::Yes),
            (
                "c) by force, too early",
                Phase::Open,
                deleted(0),
                Some("n"),
                1_009,
                Ended::At(Timestamp(1_010)),
            ),
            ("c) by force", Phase::Open, deleted(0), Some("n"), 1_010, Ended::Yes),
            ("deleted, node dead", Phase::Open, deleted(30), Some("n"), 90_000, Ended::No),
        ] {
            let pod = Pod { phase, deletion, node: node.map(Into::into), ..pod() };
            assert_eq!(ended(&pod, Timestamp(now)), expected, "{case}");
        }
    }
}
