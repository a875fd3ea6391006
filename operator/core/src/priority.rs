//! Priorities: which work goes first wherever work waits.
//!
//! A backlog of a hundred thousand expired jobs must delay neither a due deadline nor a new job. Within
//! the priorities of stopping and of cleaning up, what was due first goes first.

use trainjob_api::time::Timestamp;

use crate::{
    facts::{JobFacts, JobSetFacts, Outcome},
    lifecycle::{deadline, ttl},
    now::Now,
    observed::{Reading, Settings},
    plan,
    queue_position::{self, Begins, QueuePriority},
    running_pods::RunningPods,
};

/// Of so many turns, one begins with the last priority even when the others have work: it could starve otherwise.
const TURNS_PER_CLEANUP: u8 = 8;

/// One place in so many is kept for stopping.
const KEPT_FOR_STOP: usize = 8;

/// Where a job's next pass waits.
pub type QueuePosition = queue_position::QueuePosition<Priority>;

/// A priority; the lesser goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Deadlines that are due, and the release of what they stopped.
    Stop,
    /// New, changed and resumed jobs, and their status.
    Live,
    /// The removal of finished jobs.
    Cleanup,
}

impl Priority {
    /// All priorities, the first first.
    pub const ALL: [Self; 3] = [Self::Stop, Self::Live, Self::Cleanup];
}

impl QueuePriority for Priority {
    const ALL: &'static [Self] = &Self::ALL;
    const EVENTS: Self = Self::Cleanup;

    fn begins(turn: u8) -> Self {
        if turn.is_multiple_of(TURNS_PER_CLEANUP) { Self::Cleanup } else { Self::Stop }
    }

    fn kept(self, places: usize) -> usize {
        match self {
            Self::Stop if places >= KEPT_FOR_STOP => places / KEPT_FOR_STOP,
            Self::Stop | Self::Live | Self::Cleanup => 1,
        }
    }
}

impl QueuePosition {
    /// In the priority of live work, which is worked on in the order in which it came.
    pub const LIVE: Self = Self { priority: Priority::Live, due: Timestamp(0) };
}

/// The position that a job's next pass belongs in.
#[must_use]
pub fn position(
    job: &JobFacts,
    job_set: Option<&JobSetFacts>,
    pods: &Reading<RunningPods>,
    settings: &Settings,
    now: Now,
) -> QueuePosition {
    match job.finished {
        Some(finished) => {
            let deadline = finished.outcome == Outcome::DeadlineExceeded;
            let unreleased = deadline && *pods != Reading::Absent;
            let late = job_set.is_some_and(|job_set| job_set.may_run_after_the_end(job));
            if !job.managed_elsewhere && (unreleased || late) {
                return QueuePosition { priority: Priority::Stop, due: finished.at };
            }
            // What exempts a job from its TTL does not matter to its place.
            let due = plan::ttl_subject(job, true, *settings).due().unwrap_or(Timestamp(i64::MAX));
            QueuePosition { priority: Priority::Cleanup, due }
        }
        None if job.managed_elsewhere => QueuePosition::LIVE,
        None => {
            let subject = deadline::Subject::of(job, settings.deadline_clock);
            match deadline::decide(&subject, now) {
                deadline::Decision::Exceeded { due } => {
                    QueuePosition { priority: Priority::Stop, due }
                }
                deadline::Decision::Never | deadline::Decision::Wait { .. } => QueuePosition::LIVE,
            }
        }
    }
}

/// From when on a job is worked on by a process that takes over. One whose TTL is due begins early, unless its deadline failed it
/// (see [`Listed::TheJob`](crate::observed::Listed)). One whose JobSet has not ended and runs or is suspended as the job says, or that is
/// kept for a while yet, most likely needs nothing and begins last; whatever becomes of it meanwhile brings it forward. Every other begins
/// first.
#[must_use]
pub fn begins(
    job: &JobFacts,
    job_set: Option<&JobSetFacts>,
    position: QueuePosition,
    settings: &Settings,
    now: Now,
) -> Begins {
    let by_deadline = job.finished.is_some_and(|it| it.outcome == Outcome::DeadlineExceeded);
    let follows = |it: &JobSetFacts| it.ended.is_none() && it.suspended == job.suspend;
    match position.priority {
        Priority::Live if job_set.is_some_and(follows) => Begins::Last,
        Priority::Stop | Priority::Live => Begins::First,
        Priority::Cleanup => match ttl::decide(&plan::ttl_subject(job, true, *settings), now) {
            ttl::Decision::Delete { .. } if by_deadline => Begins::First,
            ttl::Decision::Delete { .. } => Begins::Early,
            ttl::Decision::Keep | ttl::Decision::Wait { .. } | ttl::Decision::Held { .. } => {
                Begins::Last
            }
        },
    }
}

/// When a job that waits gets a better [`position`] by time alone: when its deadline comes due, or its TTL. However long the
/// queue is, and whatever else the job was to be looked at for, that goes before.
#[must_use]
pub fn rises_at(job: &JobFacts, settings: &Settings, now: Now) -> Option<Timestamp> {
    if job.managed_elsewhere {
        return None;
    }
    if job.finished.is_some() {
        let due = plan::ttl_subject(job, true, *settings).due();
        return due.filter(|due| now.reached().is_none_or(|now| now < *due));
    }
    let subject = deadline::Subject::of(job, settings.deadline_clock);
    match deadline::decide(&subject, now) {
        deadline::Decision::Wait { due } => Some(due),
        deadline::Decision::Never | deadline::Decision::Exceeded { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use trainjob_api::lifecycle::v1alpha1::hold::HoldWish;

    use super::*;
    use crate::facts::{Finished, JobSetEnd};

    const NOW: Timestamp = Timestamp(5_000);

    fn finished(outcome: Outcome) -> JobFacts {
        JobFacts {
            finished: Some(Finished { at: Timestamp(2_000), outcome }),
            ..JobFacts::unfinished()
        }
    }

    /// A JobSet of this owner that was created at `at`.
    fn job_set(owner: &str, at: i64) -> JobSetFacts {
        JobSetFacts {
            generation: 1,
            uid: "J".into(),
            resource_version: "2".into(),
            created_at: Timestamp(at),
            terminating_since: None,
            train_job_uid: Some(owner.into()),
            suspended: false,
            never_ran: false,
            holds_pods: false,
            ended: None,
            jobs_status: vec![],
        }
    }

    fn position_of(
        job: &JobFacts,
        job_set: Option<&JobSetFacts>,
        pods: &Reading<RunningPods>,
    ) -> QueuePosition {
        position(job, job_set, pods, &Settings::default(), Now::at(NOW))
    }

    #[test]
    fn at_a_take_over_all_begins_last_that_has_a_job_set_or_time() {
        let job_set = job_set("U", 1_000);
        let complete = finished(Outcome::Complete);
        let by_deadline = finished(Outcome::DeadlineExceeded);
        let (not_read, absent) = (Reading::NotRead, Reading::Absent);
        for (what, job, job_set, pods, now, expected) in [
            ("new", JobFacts::unfinished(), None, &not_read, 1_000, Begins::First),
            (
                "it has its JobSet",
                JobFacts::unfinished(),
                Some(&job_set),
                &not_read,
                1_000,
                Begins::Last,
            ),
            (
                "its JobSet is to be suspended",
                JobFacts { suspend: true, ..JobFacts::unfinished() },
                Some(&job_set),
                &not_read,
                1_000,
                Begins::First,
            ),
            (
                "its deadline is due",
                JobFacts::unfinished(),
                Some(&job_set),
                &not_read,
                1_060,
                Begins::First,
            ),
            ("its TTL is due", complete.clone(), None, &not_read, 2_030, Begins::Early),
            ("its TTL is not due", complete.clone(), None, &not_read, 2_029, Begins::Last),
            (
                "it has no TTL",
                JobFacts { ttl: None, ..complete.clone() },
                None,
                &not_read,
                9_000,
                Begins::Last,
            ),
            (
                "it is being deleted",
                JobFacts { terminating: true, ..complete },
                None,
                &not_read,
                9_000,
                Begins::Last,
            ),
            (
                "it may hold accelerators",
                by_deadline.clone(),
                None,
                &not_read,
                2_030,
                Begins::First,
            ),
            ("its release is known", by_deadline, None, &absent, 2_030, Begins::First),
        ] {
            let (now, settings) = (Now::at(Timestamp(now)), Settings::default());
            let position = position(&job, job_set, pods, &settings, now);
            let begins = begins(&job, job_set, position, &settings, now);
            assert_eq!(begins, expected, "{what}");
        }
    }

    #[test]
    fn finished_job_rises_when_its_ttl_is_due() {
        let job = finished(Outcome::Complete);
        let at = |now| rises_at(&job, &Settings::default(), Now::at(Timestamp(now)));
        assert_eq!((at(2_029), at(2_030)), (Some(Timestamp(2_030)), None));
    }

    #[test]
    fn an_unfinished_job_is_live_until_its_deadline_is_due() {
        let stop = QueuePosition { priority: Priority::Stop, due: Timestamp(1_060) };
        for (deadline, expected) in
            [(Some(60), stop), (Some(4_001), QueuePosition::LIVE), (None, QueuePosition::LIVE)]
        {
            let job = JobFacts { deadline, ..JobFacts::unfinished() };
            assert_eq!(position_of(&job, None, &Reading::NotRead), expected, "{deadline:?}");
        }
    }

    #[test]
    fn only_unfinished_job_with_a_deadline_to_come_rises_and_then_it_is_to_be_stopped() {
        let due = Timestamp(5_060);
        let coming = JobFacts { deadline: Some(4_060), ..JobFacts::unfinished() };
        let elsewhere = JobFacts { managed_elsewhere: true, ..coming.clone() };
        let ended = JobFacts { deadline: Some(4_060), ..finished(Outcome::Complete) };
        let endless = JobFacts { deadline: None, ..JobFacts::unfinished() };
        for (what, job, expected) in [
            ("a deadline to come", &coming, Some(due)),
            ("a deadline that is due", &JobFacts::unfinished(), None),
            ("no deadline", &endless, None),
            ("somebody else's", &elsewhere, None),
            ("finished", &ended, None),
        ] {
            let settings = Settings::default();
            assert_eq!(rises_at(job, &settings, Now::at(NOW)), expected, "{what}");
        }
        let risen = position(&coming, None, &Reading::NotRead, &Settings::default(), Now::at(due));
        assert_eq!(risen, QueuePosition { priority: Priority::Stop, due });
    }

    #[test]
    fn what_a_deadline_failed_is_stopped_until_it_is_released_and_then_cleaned_up() {
        let job = finished(Outcome::DeadlineExceeded);
        let stop = QueuePosition { priority: Priority::Stop, due: Timestamp(2_000) };
        let cleanup = QueuePosition { priority: Priority::Cleanup, due: Timestamp(2_030) };
        for (pods, expected) in [
            (Reading::NotRead, stop),
            (Reading::Found(RunningPods::unnamed()), stop),
            (Reading::Absent, cleanup),
        ] {
            assert_eq!(position_of(&job, None, &pods), expected, "{pods:?}");
        }
    }

    #[test]
    fn a_jobset_made_after_the_end_is_to_be_stopped() {
        let ended = Box::new(JobSetEnd {
            completed: true,
            condition: Condition {
                type_: "Completed".into(),
                status: "True".into(),
                reason: String::new(),
                message: String::new(),
                last_transition_time: Timestamp(2_002).into(),
                observed_generation: None,
            },
        });
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::DeadlineExceeded] {
            let late = job_set("U", 2_001);
            for (what, job_set, expected) in [
                ("late", late.clone(), Priority::Stop),
                ("ended", JobSetFacts { ended: Some(ended.clone()), ..late }, Priority::Cleanup),
                ("in the same second", job_set("U", 2_000), Priority::Cleanup),
                ("somebody else's", job_set("V", 2_001), Priority::Cleanup),
            ] {
                let position = position_of(&finished(outcome), Some(&job_set), &Reading::Absent);
                assert_eq!(position.priority, expected, "{outcome:?}, {what}");
            }
        }
    }

    #[test]
    fn there_is_nothing_to_stop_of_a_job_that_somebody_else_manages() {
        let elsewhere = |job| JobFacts { managed_elsewhere: true, ..job };
        assert_eq!(
            position_of(&elsewhere(JobFacts::unfinished()), None, &Reading::NotRead),
            QueuePosition::LIVE
        );
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::DeadlineExceeded] {
            let job = elsewhere(finished(outcome));
            let position = position_of(&job, Some(&job_set("U", 2_001)), &Reading::NotRead);
            assert_eq!(position.priority, Priority::Cleanup, "{outcome:?}");
        }
    }

    #[test]
    fn without_a_ttl_there_is_time() {
        let job = JobFacts { ttl: None, ..finished(Outcome::Complete) };
        let expected = QueuePosition { priority: Priority::Cleanup, due: Timestamp(i64::MAX) };
        assert_eq!(position_of(&job, None, &Reading::NotRead), expected);
    }

    #[test]
    fn a_held_job_waits_in_the_place_of_the_end_of_its_hold() {
        let hold = Some(HoldWish::Until(Timestamp(2_100)));
        let job = JobFacts { hold, ..finished(Outcome::Complete) };
        let expected = QueuePosition { priority: Priority::Cleanup, due: Timestamp(2_100) };
        assert_eq!(position_of(&job, None, &Reading::NotRead), expected);
    }

    #[test]
    fn one_turn_in_eight_begins_with_the_last_lane() {
        let first: Vec<_> = (0..=u8::MAX).map(Priority::begins).collect();
        assert_eq!(first.iter().filter(|priority| **priority == Priority::Cleanup).count(), 32);
        assert!(first.windows(8).all(|turns| turns.contains(&Priority::Cleanup)));
        for turn in 0..=u8::MAX {
            let mut priorities: Vec<_> = Priority::order(turn).collect();
            priorities.sort();
            assert_eq!(priorities, Priority::ALL, "every lane has its turn");
        }
    }
}
