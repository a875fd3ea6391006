//! A pass that gives way, because its next call has to wait for its turn.

use k8s_openapi::api::core::v1::ConfigMap;

use super::{JobMemory, Pass, State};
use crate::{action::Action, observed::Reading};

/// A snapshot of at most so many bytes is remembered until the turn comes. Any number of jobs may wait, and the snapshots
/// of their users may be large.
const KEPT: usize = 16_384;

impl Pass {
    /// Ends the pass before its next call. The job is planned anew when the turn of that comes, without asking again for
    /// the snapshot that was made or read, unless that is large.
    pub fn give_way(self, memory: &mut JobMemory) {
        let mut snapshot = std::mem::take(&mut memory.readings.snapshot);
        if let (Reading::NotRead, Some(made)) = (&snapshot, self.snapshot_made()) {
            snapshot = Reading::Found(made.clone());
        }
        memory.forget_documents();
        if self.is_about_to_check_pods() {
            // It was noted as under way, and is not sent now.
            memory.pod_check = None;
        }
        if matches!(&snapshot, Reading::Found(config_map) if size(config_map) <= KEPT) {
            memory.readings.snapshot = snapshot;
        }
    }

    fn is_about_to_check_pods(&self) -> bool {
        let State::Act(round) = &self.state else { return false };
        matches!(round.action(), Some(Action::CheckPods { .. }))
    }

    fn snapshot_made(&self) -> Option<&ConfigMap> {
        let State::Act(round) = &self.state else { return None };
        round.plan.actions.iter().take(round.next).find_map(|action| match action {
            Action::CreateSnapshot(config_map) => Some(&**config_map),
            _ => None,
        })
    }
}

/// Bytes of what a ConfigMap says.
fn size(config_map: &ConfigMap) -> usize {
    config_map.data.iter().flatten().map(|(key, value)| key.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::{
        super::{Next, Round},
        *,
    };
    use crate::{action::Plan, priority::Priority};

    fn config_map(length: usize) -> ConfigMap {
        let data = BTreeMap::from([("runtime".to_owned(), "x".repeat(length))]);
        ConfigMap { data: Some(data), ..ConfigMap::default() }
    }

    /// A pass that has created this snapshot, and whose next call is another.
    fn pass(snapshot: ConfigMap) -> Pass {
        let actions = vec![Action::CreateSnapshot(Box::new(snapshot)), Action::ReadJobSet];
        let round = Round {
            uid: "U".into(),
            finished: false,
            plan: Plan { actions, ..Plan::default() },
            applied_spec_hash: None,
            edited: None,
            postponed: None::<Duration>,
            next: 1,
            inspects: false,
            asked: None,
        };
        Pass { state: State::Act(round), ..Pass::new(Priority::Live) }
    }

    #[test]
    fn small_snapshot_that_was_made_or_read_is_remembered_and_a_large_one_is_not() {
        for (length, kept) in [(10, true), (KEPT - 7, true), (KEPT, false)] {
            let expected = if kept { Reading::Found(config_map(length)) } else { Reading::NotRead };
            let mut memory = JobMemory::default();
            pass(config_map(length)).give_way(&mut memory);
            assert_eq!(memory.readings.snapshot, expected, "{length} made");

            let mut memory = JobMemory::default();
            memory.readings.snapshot = Reading::Found(config_map(length));
            Pass::new(Priority::Live).give_way(&mut memory);
            assert_eq!(memory.readings.snapshot, expected, "{length} read");
        }
    }

    #[test]
    fn check_for_pods_that_was_not_sent_is_not_under_way() {
        let check = Action::CheckPods { except_job_set: None, name_them: false };
        let (mut memory, mut pass) = (JobMemory::default(), pass(config_map(10)));
        if let State::Act(round) = &mut pass.state {
            round.plan.actions = vec![check];
            round.next = 0;
        }
        let now = Duration::from_secs(1_000);
        assert_eq!(pass.next(&mut memory, None, now), Next::Call);
        assert_eq!(memory.pod_check, Some(now), "it is about to be sent");
        pass.give_way(&mut memory);
        assert_eq!(memory.pod_check, None);
    }

    #[test]
    fn snapshot_that_is_not_there_yet_is_not_remembered() {
        let mut memory = JobMemory::default();
        let mut pass = pass(config_map(10));
        if let State::Act(round) = &mut pass.state {
            round.next = 0;
        }
        pass.give_way(&mut memory);
        assert_eq!(memory, JobMemory::default());
    }
}
