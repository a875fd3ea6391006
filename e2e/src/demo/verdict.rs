//! Whether what was promised of a job is what became of it.

use crate::demo::clock::{SignedDuration, Timestamp, short};
use crate::demo::lateness::{LIMIT, Punctuality, TARGET, of_deadline, of_deletion};
use crate::demo::model::{Deed, Model};
use crate::demo::row::Phase;
use crate::demo::scenario::{Outcome, Scenario};
use crate::demo::scenarios::{Course, Example};

/// By how much the order in which two watches deliver may differ from the order of events.
const WATCH_ORDER: SignedDuration = SignedDuration::from_secs(1);

/// Everything about a job that is not as promised, as sentences; none if the promise was kept.
#[must_use]
pub fn broken(model: &Model, example: &Example, scenario: &Scenario) -> Vec<String> {
    let mut complaints = scenario.faults.clone();
    complaints.extend(wrong_end(example.course, scenario));
    complaints.extend(missed_step(model, example.course, scenario).map(str::to_owned));
    complaints.extend(left(scenario));
    complaints.extend(unpunctual("its deadline", of_deadline(scenario)));
    complaints.extend(unpunctual("its deletion", of_deletion(scenario)));
    complaints
}

fn wrong_end(course: Course, scenario: &Scenario) -> Option<String> {
    let wanted = match course {
        Course::Exceeds => Outcome::DeadlineExceeded,
        Course::Armed | Course::Completes | Course::Resumed | Course::Refused => Outcome::Complete,
    };
    match &scenario.finished {
        None if scenario.gone_at.is_some() => Some("it is gone, unfinished".to_owned()),
        None => Some(format!("it did not finish: {}", Phase::of(scenario))),
        Some(finish) if finish.outcome != wanted => {
            Some(format!("it ended {}, not {}", finish.outcome.name(), wanted.name()))
        }
        Some(finish) if finish.too_late => {
            Some("its end could not be seen before its deletion".to_owned())
        }
        Some(_) => None,
    }
}

/// What is missing on the way to the end.
fn missed_step(model: &Model, course: Course, scenario: &Scenario) -> Option<&'static str> {
    let (taken, otherwise) = match course {
        Course::Completes => return None,
        Course::Armed => {
            let spec = &scenario.job.as_ref()?.spec;
            let armed = (spec.active_deadline_seconds, spec.ttl_seconds_after_finished);
            let as_in_the_kep = armed == (Some(7200), Some(3600));
            (as_in_the_kep, "its deadline and its time to live are not the KEP's")
        }
        Course::Exceeds => {
            let latest = scenario.deleted_at.map(|at| at.saturating_add(WATCH_ORDER));
            let latest = latest.and_then(Result::ok).unwrap_or(Timestamp::MAX);
            let released = scenario.released_at.is_some_and(|at| at <= latest);
            (released, "it was not released before it was deleted")
        }
        Course::Resumed => {
            let resumed = scenario.suspended_at.is_some() && scenario.resumed_at.is_some();
            (resumed, "it was never suspended and resumed")
        }
        Course::Refused => {
            let started = start_after_runtime(model, scenario).is_some();
            let refused = scenario.refused_at.is_some() && started;
            (refused, "it was not refused and then started with its runtime")
        }
    };
    (!taken).then_some(otherwise)
}

fn left(scenario: &Scenario) -> Option<String> {
    let job_set = if scenario.has_job_set { ", its JobSet is there" } else { "" };
    match (scenario.gone_at, scenario.pods.len()) {
        _ if scenario.is_over() => None,
        (None, _) => Some(format!("it is still there: {}", Phase::of(scenario))),
        (Some(_), pods) => Some(format!("it is gone, but not all of it: {pods} Pods{job_set}")),
    }
}

fn unpunctual(what: &str, punctuality: Option<Punctuality>) -> Option<String> {
    match punctuality? {
        Punctuality::Early(by) => Some(format!("{what} came {} early", short(by))),
        Punctuality::Late(by) => (by > LIMIT).then(|| format!("{what} came {} late", short(by))),
    }
}

/// How long after the demo began to apply its runtime the JobSet of a job was there.
#[must_use]
pub fn start_after_runtime(model: &Model, scenario: &Scenario) -> Option<SignedDuration> {
    let brought = model.begun(Deed::BringRuntime)?;
    let took = scenario.started_at?.duration_since(brought);
    (!took.is_negative()).then_some(took)
}

/// The worst punctuality of one kind of action, over all jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worst {
    /// How many there were.
    pub count: usize,
    /// An early one if there is any, else the latest.
    pub worst: Punctuality,
}

impl Worst {
    /// The worst of them; `None` if there are none.
    pub fn of(all: impl Iterator<Item = Punctuality>) -> Option<Self> {
        let rank = |it: &Punctuality| match *it {
            Punctuality::Early(by) => (true, by),
            Punctuality::Late(by) => (false, by),
        };
        let all: Vec<Punctuality> = all.collect();
        let worst = all.iter().copied().max_by_key(rank)?;
        Some(Self { count: all.len(), worst })
    }

    /// Whether all of them are within the target.
    #[must_use]
    pub fn is_met(&self) -> bool {
        matches!(self.worst, Punctuality::Late(by) if by <= TARGET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::scenarios::EXAMPLES;
    use crate::demo::seen::{Change, JobState, PodPhase, Seen};
    use crate::demo::testing::{at, job, pod};

    fn told(name: &str, changes: Vec<(f64, Change)>) -> Vec<String> {
        let mut model = Model::default();
        for (seconds, change) in changes {
            model.see(&Seen { at: at(seconds), job: name.to_owned(), change });
        }
        verdict(&model, name)
    }

    fn verdict(model: &Model, name: &str) -> Vec<String> {
        let (example, scenario) = model.scenarios().find(|(it, _)| it.job == name).unwrap();
        broken(model, example, scenario)
    }

    fn complete(job: &mut JobState) {
        job.spec.ttl_seconds_after_finished = Some(10);
        job.finish("Complete", "AllJobsCompleted", 15);
    }

    fn deleted(job: &mut JobState) {
        complete(job);
        job.deleted = Some(at(25.0));
    }

    #[test]
    fn a_job_that_completes_and_is_deleted_on_time_keeps_its_promise() {
        let changes = vec![
            (0.1, job(|_| {})),
            (0.2, Change::JobSet { ended: false }),
            (1.0, pod("a", PodPhase::Running, 1)),
            (15.5, job(complete)),
            (25.02, job(deleted)),
            (25.5, Change::JobSetGone),
            (25.5, Change::PodGone("a".to_owned())),
            (25.6, Change::JobGone),
        ];
        assert_eq!(told("completes", changes), [""; 0]);
    }

    #[test]
    fn every_way_to_break_a_promise_is_told() {
        for (changes, expected) in [
            (vec![], vec!["it did not finish: -", "it is still there: -"]),
            (vec![(1.0, job(|_| {})), (2.0, Change::JobGone)], vec!["it is gone, unfinished"]),
            (
                vec![(15.5, job(complete)), (24.5, Change::JobGone)],
                vec!["its deletion came 500 ms early"],
            ),
            (
                vec![(15.5, job(complete)), (31.2, Change::JobGone)],
                vec!["its deletion came 6.2 s late"],
            ),
            (
                vec![(25.1, job(deleted)), (25.2, Change::JobGone)],
                vec!["its end could not be seen before its deletion"],
            ),
            (
                vec![
                    (1.0, Change::JobSet { ended: false }),
                    (15.5, job(complete)),
                    (25.0, Change::JobGone),
                ],
                vec!["it is gone, but not all of it: 0 Pods, its JobSet is there"],
            ),
            (
                vec![
                    (15.0, job(|job| job.finish("Failed", "FailedJobs", 15))),
                    (25.0, Change::JobGone),
                ],
                vec!["it ended Failed: FailedJobs, not Complete"],
            ),
        ] {
            assert_eq!(told("completes", changes), expected);
        }
    }

    #[test]
    fn a_job_that_its_deadline_failed_must_be_released_before_it_is_deleted() {
        let failed = |job: &mut JobState| {
            job.spec.active_deadline_seconds = Some(10);
            job.spec.ttl_seconds_after_finished = Some(10);
            job.finish("Failed", "DeadlineExceeded", 10);
        };
        let changes = |released: f64| {
            vec![
                (1.0, Change::JobSet { ended: false }),
                (10.01, job(failed)),
                (20.03, Change::JobGone),
                (released, Change::JobSetGone),
            ]
        };
        assert_eq!(told("deadline", changes(20.05)), [""; 0]);
        assert_eq!(told("deadline", changes(22.0)), ["it was not released before it was deleted"]);
    }

    #[test]
    fn scenario_without_its_action_breaks_its_promise() {
        let ends = || vec![(15.5, job(complete)), (25.0, Change::JobGone)];
        assert_eq!(told("suspended", ends()), ["it was never suspended and resumed"]);
        let refused = "it was not refused and then started with its runtime";
        assert_eq!(told("late-runtime", ends()), [refused]);
        assert!(
            told("my-training", ends())
                .contains(&"its deadline and its time to live are not the KEP's".to_owned())
        );
    }

    #[test]
    fn a_start_is_measured_from_the_arrival_of_the_runtime() {
        let mut model = Model::default();
        let see = |model: &mut Model, seconds: f64, change: Change| {
            model.see(&Seen { at: at(seconds), job: "late-runtime".to_owned(), change });
        };
        see(&mut model, 1.0, Change::Refused("no runtime".to_owned()));
        model.begin(Deed::BringRuntime, at(6.0));
        see(&mut model, 6.04, Change::JobSet { ended: false });
        let scenario = |model: &Model| {
            let course = |it: &&Example| it.course == Course::Refused;
            assert_eq!(EXAMPLES.iter().filter(course).count(), 1);
            model.scenarios().find(|(it, _)| it.course == Course::Refused).unwrap().1.clone()
        };
        let took = start_after_runtime(&model, &scenario(&model));
        assert_eq!(took, Some(SignedDuration::from_millis(40)));
        see(&mut model, 15.5, job(complete));
        see(&mut model, 25.1, Change::JobSetGone);
        see(&mut model, 25.1, Change::JobGone);
        assert_eq!(verdict(&model, "late-runtime"), [""; 0]);
    }

    #[test]
    fn the_worst_is_an_early_one_else_the_latest() {
        let millis = SignedDuration::from_millis;
        let (early, late) = (Punctuality::Early, Punctuality::Late);
        for (all, worst, met) in [
            (vec![late(millis(3)), late(millis(12))], late(millis(12)), true),
            (vec![late(millis(251)), late(millis(12))], late(millis(251)), false),
            (vec![late(millis(9_000)), early(millis(1))], early(millis(1)), false),
        ] {
            let found = Worst::of(all.into_iter()).unwrap();
            assert_eq!((found.worst, found.is_met()), (worst, met));
        }
        assert_eq!(Worst::of([].into_iter()), None);
    }
}
