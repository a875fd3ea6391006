//! Whether the watches that a deletion rests on are live (`docs/retention.md`, R34).
//!
//! A watch that is silent may be frozen: a policy that was deleted a minute ago could still delete. So a request is sent
//! only if each of the watches has shown lately that it tells everything, by an event, a bookmark or an end in its time, and
//! one of policies a moment ago: those end every few seconds, so that there is a connection at all. Times are of a clock that nobody sets.

use std::{collections::BTreeMap, time::Duration};

use super::source::Source;

/// How long ago each watch may have been heard of last. The API server ends them every minute.
const WATCHED: Duration = Duration::from_secs(90);
/// How long ago one of policies may have been heard of last. The API server ends those every few seconds.
const CONNECTED: Duration = Duration::from_secs(10);

/// When each watch was last heard of.
#[derive(Debug, Default)]
pub(super) struct Liveness(BTreeMap<Source, Duration>);

impl Liveness {
    /// A watch has shown something.
    pub(super) fn heard(&mut self, source: Source, now: Duration) {
        self.0.insert(source, now);
    }

    /// Whether all of these watches are live.
    pub(super) fn is_live(&self, sources: impl IntoIterator<Item = Source>, now: Duration) -> bool {
        let within = |heard: Duration, limit: Duration| now.saturating_sub(heard) <= limit;
        let mut of_policies =
            self.0.iter().filter(|(source, _)| matches!(source, Source::Policies(_)));
        let is_connected = of_policies.any(|(_, heard)| within(*heard, CONNECTED));
        let is_watched = |source| self.0.get(&source).is_some_and(|heard| within(*heard, WATCHED));
        is_connected && sources.into_iter().all(is_watched)
    }
}

#[cfg(test)]
mod tests {
    use trainjob_retention_core::stored::PolicyKind;

    use super::*;
    use crate::key::TargetId;

    #[test]
    fn every_watch_was_heard_of_within_90_seconds_and_one_of_policies_within_10() {
        let [policies, others] =
            [PolicyKind::Namespaced, PolicyKind::Cluster].map(Source::Policies);
        let jobs = Source::Target(TargetId(0));
        for (heard_jobs, heard_policies, expected) in [
            (Some(1_000), Some(1_000), true),
            (Some(910), Some(1_000), true),
            (Some(909), Some(1_000), false),
            (Some(910), Some(990), true),
            (Some(1_000), Some(989), false),
            (None, Some(1_000), false),
        ] {
            let mut liveness = Liveness::default();
            for (source, heard) in
                [(jobs, heard_jobs), (policies, heard_policies), (others, Some(920))]
            {
                if let Some(heard) = heard {
                    liveness.heard(source, Duration::from_secs(heard));
                }
            }
            let now = Duration::from_secs(1_000);
            let is_live = liveness.is_live([jobs, policies, others], now);
            assert_eq!(is_live, expected, "{heard_jobs:?} {heard_policies:?}");
        }
        assert!(!Liveness::default().is_live([], Duration::ZERO), "no connection was seen");
    }
}
