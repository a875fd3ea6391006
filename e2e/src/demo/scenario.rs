//! The scenario of one TrainJob as it was observed: everything that was seen of it, and when.
//!
//! It is a fold over what the watches deliver, without a clock of its own. Each instant is when the
//! demo first saw something, which is never before it happened.

use std::collections::BTreeMap;

use crate::demo::clock::Timestamp;
use crate::demo::seen::{Change, JobState, PodPhase, PodState};

/// One scenario of the demo: what is known of its TrainJob.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    /// The TrainJob as it was last seen; kept when it is gone.
    pub job: Option<JobState>,
    /// Whether its JobSet is there.
    pub has_job_set: bool,
    /// Its Pods that are there.
    pub pods: BTreeMap<String, PodState>,
    /// All the Pods that it ever had, as each was last seen.
    pub all_pods: BTreeMap<String, PodState>,
    /// When it was first suspended.
    pub suspended_at: Option<Timestamp>,
    /// When it was first refused.
    pub refused_at: Option<Timestamp>,
    /// When its JobSet was first there.
    pub started_at: Option<Timestamp>,
    /// When its JobSet had ended.
    pub ended_at: Option<Timestamp>,
    /// How it finished.
    pub finished: Option<Finish>,
    /// When, after its deadline had failed it, neither a JobSet nor a Pod that runs was left.
    pub released_at: Option<Timestamp>,
    /// When it was first being deleted, or gone.
    pub deleted_at: Option<Timestamp>,
    /// When it was gone.
    pub gone_at: Option<Timestamp>,
    /// When the demo resumed it; from then on it may have Pods.
    pub resumed_at: Option<Timestamp>,
    /// When the demo deleted it, as a user would.
    pub removed_at: Option<Timestamp>,
    /// GPUs times the seconds they were held.
    pub gpu_seconds: f64,
    /// What was seen that must never be.
    pub faults: Vec<String>,
    counted_at: Option<Timestamp>,
}

/// The end of a TrainJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// How it ended.
    pub outcome: Outcome,
    /// The stored instant, in whole seconds.
    pub at: Timestamp,
    /// When it was first seen.
    pub seen: Timestamp,
    /// Whether the job was being deleted already when this was seen.
    pub too_late: bool,
}

/// How a TrainJob ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The training is complete.
    Complete,
    /// It ran too long.
    DeadlineExceeded,
    /// It failed for another reason.
    Failed(String),
}

impl Outcome {
    fn of(job: &JobState) -> Option<(Self, Timestamp)> {
        let complete = job.condition("Complete").map(|it| (Self::Complete, it));
        let failed = job.condition("Failed").map(|it| match it.reason.as_str() {
            "DeadlineExceeded" => (Self::DeadlineExceeded, it),
            reason => (Self::Failed(reason.to_owned()), it),
        });
        let (outcome, condition) = complete.or(failed)?;
        Some((outcome, condition.last_transition_time.0))
    }

    /// In the words of its conditions.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Complete => "Complete".to_owned(),
            Self::DeadlineExceeded => "Failed: DeadlineExceeded".to_owned(),
            Self::Failed(reason) => format!("Failed: {reason}"),
        }
    }
}

impl Scenario {
    /// Adds what was seen at `at`.
    pub fn see(&mut self, at: Timestamp, change: &Change) {
        self.count_gpus(at);
        match change {
            Change::Job(job) => self.see_job(at, job),
            Change::JobGone => {
                self.deleted_at.get_or_insert(at);
                self.gone_at.get_or_insert(at);
            }
            Change::JobSet { ended } => self.see_job_set(at, *ended),
            Change::JobSetGone => self.has_job_set = false,
            Change::Pod(name, pod) => self.see_pod(name, *pod),
            Change::PodGone(name) => {
                self.pods.remove(name);
            }
            Change::Refused(_) => {
                self.refused_at.get_or_insert(at);
            }
            Change::Told(_) => {}
        }
        let ended_by_deadline = |it: &Finish| it.outcome == Outcome::DeadlineExceeded;
        if self.finished.as_ref().is_some_and(ended_by_deadline) && self.holds_nothing() {
            self.released_at.get_or_insert(at);
        }
    }

    fn see_job(&mut self, at: Timestamp, job: &JobState) {
        let first = |instant: &mut Option<Timestamp>, holds: bool| {
            if holds {
                instant.get_or_insert(at);
            }
        };
        first(&mut self.suspended_at, job.condition("Suspended").is_some());
        first(&mut self.deleted_at, job.deleted.is_some());
        match (Outcome::of(job), &self.finished) {
            (Some((outcome, stored)), None) => {
                let too_late = job.deleted.is_some();
                self.finished = Some(Finish { outcome, at: stored, seen: at, too_late });
            }
            (now, Some(before)) if now.as_ref().is_none_or(|(now, _)| *now != before.outcome) => {
                let now = now.map_or("unfinished".to_owned(), |(outcome, _)| outcome.name());
                self.fault(format!("it was {} and then {now}", before.outcome.name()));
            }
            _ => {}
        }
        self.job = Some(job.clone());
    }

    fn see_job_set(&mut self, at: Timestamp, ended: bool) {
        if self.finished.is_some() && !self.has_job_set {
            self.fault("it got a JobSet after it had finished".to_owned());
        }
        self.has_job_set = true;
        self.started_at.get_or_insert(at);
        if ended {
            self.ended_at.get_or_insert(at);
        }
    }

    fn see_pod(&mut self, name: &str, pod: PodState) {
        if self.is_suspended() && pod.phase != PodPhase::Ended {
            self.fault("it had Pods while it was suspended".to_owned());
        }
        self.pods.insert(name.to_owned(), pod);
        self.all_pods.insert(name.to_owned(), pod);
    }

    fn fault(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn count_gpus(&mut self, at: Timestamp) {
        let since = self.counted_at.map(|before| at.duration_since(before).as_secs_f64());
        let held = f64::from(i32::try_from(self.held_gpus()).unwrap_or(i32::MAX));
        self.gpu_seconds += held * since.unwrap_or(0.0).max(0.0);
        self.counted_at = Some(at);
    }

    /// Whether it was told to hold nothing, and not yet to go on.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.resumed_at.is_none() && self.job.as_ref().is_some_and(|job| job.spec.suspend)
    }

    /// Whether neither a JobSet nor a Pod that has not ended is there.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        !self.has_job_set && self.pods.values().all(|pod| pod.phase == PodPhase::Ended)
    }

    /// Whether it is gone with its JobSet and Pods.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.gone_at.is_some() && !self.has_job_set && self.pods.is_empty()
    }

    /// How many of its Pods run.
    #[must_use]
    pub fn running_pods(&self) -> usize {
        self.pods.values().filter(|pod| pod.phase == PodPhase::Running).count()
    }

    /// Whether a Pod of it has ended.
    #[must_use]
    pub fn has_run(&self) -> bool {
        self.pods.values().any(|pod| pod.phase == PodPhase::Ended)
    }

    /// The GPUs that nobody else can have because of it.
    #[must_use]
    pub fn held_gpus(&self) -> i64 {
        self.pods.values().map(PodState::held_gpus).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::testing::{at, job, pod};

    #[test]
    fn a_job_that_its_deadline_failed_is_released_when_jobset_and_pods_are_gone() {
        let mut scenario = Scenario::default();
        scenario.see(at(0.5), &job(|_| {}));
        scenario.see(at(1.0), &Change::JobSet { ended: false });
        scenario.see(at(1.5), &pod("a", PodPhase::Running, 4));
        scenario.see(at(10.1), &job(|job| job.finish("Failed", "DeadlineExceeded", 10)));
        assert_eq!(scenario.released_at, None);
        scenario.see(at(10.3), &Change::JobSetGone);
        assert_eq!(scenario.released_at, None, "a Pod still runs");
        scenario.see(at(10.5), &pod("a", PodPhase::Ended, 4));
        assert_eq!(scenario.released_at, Some(at(10.5)));
        assert!(!scenario.is_over());
        scenario.see(at(10.6), &Change::PodGone("a".to_owned()));
        scenario.see(at(20.1), &Change::JobGone);
        assert!(scenario.is_over() && scenario.faults.is_empty());
        assert!((scenario.gpu_seconds - 36.0).abs() < 0.001, "{}", scenario.gpu_seconds);
    }

    #[test]
    fn a_job_that_completed_is_not_waited_for_to_be_released() {
        let mut scenario = Scenario::default();
        scenario.see(at(9.0), &job(|job| job.finish("Complete", "AllJobsCompleted", 9)));
        assert_eq!(scenario.released_at, None);
        let finish = scenario.finished.unwrap();
        assert_eq!((finish.outcome, finish.at, finish.seen), (Outcome::Complete, at(9.0), at(9.0)));
    }

    #[test]
    fn forbidden_observations_are_recorded_once() {
        let mut scenario = Scenario::default();
        let suspended = job(|job| job.spec.suspend = true);
        scenario.see(at(1.0), &suspended);
        scenario.see(at(2.0), &pod("a", PodPhase::Starting, 0));
        scenario.see(at(2.1), &pod("a", PodPhase::Running, 0));
        assert_eq!(scenario.faults, ["it had Pods while it was suspended"]);

        let mut scenario = Scenario::default();
        scenario.see(at(1.0), &job(|job| job.finish("Complete", "AllJobsCompleted", 1)));
        scenario.see(at(2.0), &Change::JobSet { ended: false });
        scenario.see(at(3.0), &job(|job| job.finish("Failed", "DeadlineExceeded", 3)));
        assert_eq!(
            scenario.faults,
            [
                "it got a JobSet after it had finished",
                "it was Complete and then Failed: DeadlineExceeded",
            ]
        );
    }

    #[test]
    fn pods_that_come_once_the_demo_has_resumed_a_job_are_as_they_should_be() {
        // The watch of Pods may be faster than that of TrainJobs.
        let mut scenario = Scenario::default();
        scenario.see(at(1.0), &job(|job| job.spec.suspend = true));
        scenario.resumed_at = Some(at(5.0));
        scenario.see(at(5.1), &pod("a", PodPhase::Starting, 0));
        assert!(scenario.faults.is_empty());
    }
}
