//! All scenarios together, and what the demo itself does to them.

use std::collections::BTreeMap;

use crate::demo::clock::{SignedDuration, Timestamp};
use crate::demo::scenario::{Outcome, Scenario};
use crate::demo::scenarios::{Course, EXAMPLES, Example};
use crate::demo::seen::Seen;

/// How long a job is left suspended, or refused, for everybody to see.
const LEFT_ALONE: SignedDuration = SignedDuration::from_secs(5);

/// Something the demo does, once, as a user would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// Resume the suspended job.
    Resume,
    /// Apply the runtime that a job was refused for want of, and the job once more.
    BringRuntime,
    /// Delete the job whose time to live is too long for a demo.
    Remove,
}

impl Deed {
    const ALL: [Self; 3] = [Self::Resume, Self::BringRuntime, Self::Remove];

    /// The course of the example it is done for.
    #[must_use]
    pub const fn course(self) -> Course {
        match self {
            Self::Resume => Course::Resumed,
            Self::BringRuntime => Course::Refused,
            Self::Remove => Course::Armed,
        }
    }
}

/// Everything that was seen and done.
#[derive(Debug)]
pub struct Model {
    scenarios: Vec<(Example, Scenario)>,
    deeds: BTreeMap<Deed, Timestamp>,
    most_gpus: i64,
}

impl Default for Model {
    fn default() -> Self {
        let scenarios = EXAMPLES.iter().map(|example| (*example, Scenario::default())).collect();
        Self { scenarios, deeds: BTreeMap::new(), most_gpus: 0 }
    }
}

impl Model {
    /// Adds what was seen; of jobs that are no example, nothing.
    pub fn see(&mut self, seen: &Seen) {
        let scenario = self.scenarios.iter_mut().find(|(example, _)| example.job == seen.job);
        if let Some((_, scenario)) = scenario {
            scenario.see(seen.at, &seen.change);
        }
        self.most_gpus = self.most_gpus.max(self.held_gpus());
    }

    /// Every example with its scenario.
    pub fn scenarios(&self) -> impl Iterator<Item = (&Example, &Scenario)> {
        self.scenarios.iter().map(|(example, scenario)| (example, scenario))
    }

    /// What is to be done at `now`; each deed only once, from when it has [begun](Self::begin).
    #[must_use]
    pub fn next_deed(&self, now: Timestamp) -> Option<Deed> {
        Deed::ALL
            .into_iter()
            .find(|deed| !self.deeds.contains_key(deed) && self.is_time(*deed, now))
    }

    fn is_time(&self, deed: Deed, now: Timestamp) -> bool {
        let Some((_, scenario)) = self.scenarios().find(|(it, _)| it.course == deed.course())
        else {
            return false;
        };
        let long_ago = |at: Timestamp| now.duration_since(at) >= LEFT_ALONE;
        match deed {
            Deed::Resume => scenario.suspended_at.is_some_and(long_ago),
            Deed::BringRuntime => scenario.refused_at.is_some_and(long_ago),
            Deed::Remove => {
                let complete =
                    scenario.finished.as_ref().is_some_and(|it| it.outcome == Outcome::Complete);
                let others = self.scenarios().filter(|(it, _)| it.course != Course::Armed);
                complete && scenario.deleted_at.is_none() && { others }
                    .all(|(_, scenario)| scenario.is_over())
            }
        }
    }

    /// Notes that a deed begins, and where it is for; returns the job it is for.
    pub fn begin(&mut self, deed: Deed, now: Timestamp) -> &'static str {
        self.deeds.insert(deed, now);
        let mut of_deed = self.scenarios.iter_mut().filter(|(it, _)| it.course == deed.course());
        let Some((example, scenario)) = of_deed.next() else { return "" };
        match deed {
            Deed::Resume => scenario.resumed_at = Some(now),
            Deed::Remove => scenario.removed_at = Some(now),
            Deed::BringRuntime => {}
        }
        example.job
    }

    /// When a deed began.
    #[must_use]
    pub fn begun(&self, deed: Deed) -> Option<Timestamp> {
        self.deeds.get(&deed).copied()
    }

    /// Whether every job is gone with its JobSet and Pods.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.scenarios().all(|(_, scenario)| scenario.is_over())
    }

    /// The GPUs that are held now.
    #[must_use]
    pub fn held_gpus(&self) -> i64 {
        self.scenarios().map(|(_, scenario)| scenario.held_gpus()).sum()
    }

    /// The most GPUs that were held at a time.
    #[must_use]
    pub const fn most_gpus(&self) -> i64 {
        self.most_gpus
    }

    /// GPUs times the seconds they were held.
    #[must_use]
    pub fn gpu_seconds(&self) -> f64 {
        self.scenarios().map(|(_, scenario)| scenario.gpu_seconds).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::seen::{Change, PodPhase};
    use crate::demo::testing::{at, condition, job, pod};

    fn see(model: &mut Model, seconds: f64, job: &str, change: Change) {
        model.see(&Seen { at: at(seconds), job: job.to_owned(), change });
    }

    #[test]
    fn a_suspended_job_is_resumed_and_a_late_runtime_brought_after_a_while_once() {
        let suspended = job(|job| job.conditions = vec![condition("Suspended", "", 1)]);
        for (name, change, deed) in [
            ("suspended", suspended, Deed::Resume),
            ("late-runtime", Change::Refused("no runtime".to_owned()), Deed::BringRuntime),
        ] {
            let mut model = Model::default();
            assert_eq!(model.next_deed(at(100.0)), None);
            see(&mut model, 1.0, name, change);
            assert_eq!(model.next_deed(at(5.9)), None);
            assert_eq!(model.next_deed(at(6.0)), Some(deed));
            assert_eq!(model.begin(deed, at(6.0)), name);
            assert_eq!(model.next_deed(at(7.0)), None);
            assert_eq!(model.begun(deed), Some(at(6.0)));
        }
    }

    #[test]
    fn the_job_of_the_kep_is_deleted_when_it_is_complete_and_the_only_one_left() {
        let mut model = Model::default();
        let complete = || job(|job| job.finish("Complete", "AllJobsCompleted", 1));
        see(&mut model, 1.0, "my-training", complete());
        for example in EXAMPLES.iter().skip(1) {
            assert_eq!(model.next_deed(at(2.0)), None, "before {}", example.job);
            see(&mut model, 2.0, example.job, complete());
            see(&mut model, 2.0, example.job, Change::JobGone);
        }
        assert_eq!(model.next_deed(at(2.0)), Some(Deed::Remove));
        model.begin(Deed::Remove, at(2.0));
        see(&mut model, 2.1, "my-training", Change::JobGone);
        assert!(model.is_over());
    }

    #[test]
    fn gpus_are_added_up_over_all_jobs() {
        let mut model = Model::default();
        see(&mut model, 1.0, "completes", pod("a", PodPhase::Running, 2));
        see(&mut model, 1.0, "deadline", pod("b", PodPhase::Starting, 4));
        see(&mut model, 3.0, "deadline", pod("b", PodPhase::Ended, 4));
        see(&mut model, 3.0, "stranger", pod("c", PodPhase::Running, 8));
        assert_eq!((model.held_gpus(), model.most_gpus()), (2, 6));
    }
}
