use trainjob_api::v1alpha1::train_job::JobStatus;

use super::*;
use crate::{
    facts::Finished, lifecycle::deadline::Clock, observed::Reading, running_pods::RunningPods,
};

const NOW: Timestamp = Timestamp(10_000);

fn job(name: &str) -> JobFacts {
    JobFacts {
        key: ObjectKey::new("ns", name),
        created_at: Timestamp(9_000),
        deadline: None,
        ttl: None,
        ..JobFacts::unfinished()
    }
}

fn finished(at: i64, outcome: Outcome, ttl: Option<u32>) -> JobFacts {
    JobFacts { finished: Some(Finished { at: Timestamp(at), outcome }), ttl, ..job("a") }
}

fn with_deadline(name: &str, seconds: i64) -> JobFacts {
    JobFacts { deadline: Some(seconds), ..job(name) }
}

fn part(ready: i32, succeeded: i32) -> JobStatus {
    JobStatus { name: "node".into(), ready, succeeded, active: 1, ..JobStatus::default() }
}

/// What one look at these jobs says, none of which has anything left to release.
fn job_stats<'a>(settings: &'a Settings, most: usize, jobs: &[JobFacts]) -> JobStats<'a> {
    let mut job_stats = JobStats::new(settings, NOW, most);
    for job in jobs {
        job_stats.add("".into(), &job.key, job, || release::Decision::Released);
    }
    job_stats
}

/// Those of all groups, of which there is one.
fn counts(job_stats: &JobStats<'_>) -> Counts {
    let groups: Vec<_> = job_stats.groups().collect();
    assert_eq!(groups.len(), 1);
    *groups[0].1
}

#[test]
fn groups_are_counted_apart() {
    let settings = Settings::default();
    let mut job_stats = JobStats::new(&settings, NOW, 0);
    for group in ["x", "y", "x"] {
        job_stats.add(group.into(), &job("a").key, &job("a"), || release::Decision::Released);
    }
    let queued =
        |(group, counts): (&Arc<str>, &Counts)| (group.to_string(), counts.in_state(State::Queued));
    let expected = [("x".to_owned(), 2), ("y".to_owned(), 1)];
    assert_eq!(job_stats.groups().map(queued).collect::<Vec<_>>(), expected);
}

#[test]
fn a_job_is_in_the_first_state_that_fits() {
    let by_deadline = finished(1, Outcome::DeadlineExceeded, None);
    let running = JobFacts { jobs_status: vec![part(0, 0), part(1, 0)], ..job("a") };
    let suspended = JobFacts { suspend: true, ..running.clone() };
    for (job, expected) in [
        (JobFacts { managed_elsewhere: true, ..by_deadline.clone() }, State::ManagedElsewhere),
        (JobFacts { terminating: true, ..by_deadline.clone() }, State::Terminating),
        (finished(1, Outcome::Complete, None), State::Finished(Outcome::Complete)),
        (finished(1, Outcome::Failed, None), State::Finished(Outcome::Failed)),
        (by_deadline, State::Finished(Outcome::DeadlineExceeded)),
        (suspended, State::Suspended),
        (running, State::Running),
        (JobFacts { jobs_status: vec![part(0, 1)], ..job("a") }, State::Running),
        (JobFacts { jobs_status: vec![part(0, 0)], ..job("a") }, State::Queued),
        (job("a"), State::Queued),
    ] {
        let settings = Settings::default();
        let job_stats = job_stats(&settings, 0, std::slice::from_ref(&job));
        for state in State::ALL {
            assert_eq!(counts(&job_stats).in_state(state), u64::from(state == expected), "{job:?}");
        }
    }
}

#[test]
fn what_a_ttl_has_still_to_do_is_pending_overdue_or_under_way() {
    let of = |job: JobFacts| {
        let settings = Settings::default();
        let job_stats = job_stats(&settings, 0, &[job]);
        (
            counts(&job_stats).pending,
            counts(&job_stats).overdue.jobs,
            counts(&job_stats).terminating,
        )
    };
    for (at, ttl, untouched, deleted) in [
        (9_990, None, (0, 0, 0), (0, 0, 0)),
        (9_990, Some(11), (1, 0, 0), (0, 0, 0)),
        (9_990, Some(10), (0, 1, 0), (0, 0, 1)),
        (9_990, Some(0), (0, 1, 0), (0, 0, 1)),
    ] {
        let job = finished(at, Outcome::Complete, ttl);
        assert_eq!(of(JobFacts { terminating: true, ..job.clone() }), deleted, "{ttl:?}");
        assert_eq!(of(JobFacts { remote_copy: true, ..job.clone() }), (0, 0, 0), "{ttl:?}");
        assert_eq!(of(JobFacts { managed_elsewhere: true, ..job.clone() }), (0, 0, 0), "{ttl:?}");
        assert_eq!(of(job), untouched, "{ttl:?}");
    }
}

#[test]
fn how_late_it_is_is_told_of_the_latest() {
    let settings = Settings::default();
    let jobs = [
        finished(9_000, Outcome::Complete, Some(990)),
        finished(9_000, Outcome::Failed, Some(100)),
        with_deadline("a", 999),
        with_deadline("b", 400),
    ];
    let job_stats = job_stats(&settings, 0, &jobs);
    assert_eq!(counts(&job_stats).overdue, Late { jobs: 2, longest: 900 });
    assert_eq!(counts(&job_stats).overdue_deadlines, Late { jobs: 2, longest: 600 });
}

#[test]
fn a_job_that_its_deadline_failed_is_unreleased_or_blocked_until_it_is_released() {
    use release::Decision::{Blocked, CheckPods, DeleteJobSet, PodsRunning, Released, Terminating};
    let settings = Settings::default();
    for (release, unreleased, blocked) in [
        (DeleteJobSet, 1, 0),
        (Terminating { check_at: NOW }, 1, 0),
        (CheckPods, 1, 0),
        (PodsRunning, 1, 0),
        (Blocked, 0, 1),
        (Released, 0, 0),
    ] {
        let mut job_stats = JobStats::new(&settings, NOW, 0);
        let job = finished(9_400, Outcome::DeadlineExceeded, Some(0));
        job_stats.add("".into(), &job.key, &job, || release);
        let late = Late { jobs: unreleased, longest: 600 * i64::try_from(unreleased).unwrap() };
        assert_eq!(
            (counts(&job_stats).unreleased, counts(&job_stats).blocked),
            (late, blocked),
            "{release:?}"
        );
        // Its TTL waits for that.
        assert_eq!(counts(&job_stats).pending, unreleased + blocked, "{release:?}");
        assert_eq!(counts(&job_stats).overdue.jobs, u64::from(release == Released), "{release:?}");
    }
}

#[test]
fn of_all_other_jobs_nobody_asks_for_the_release() {
    let settings = Settings::default();
    let by_deadline = finished(1, Outcome::DeadlineExceeded, None);
    for job in [
        job("a"),
        finished(1, Outcome::Failed, None),
        JobFacts { managed_elsewhere: true, ..by_deadline },
    ] {
        let mut job_stats = JobStats::new(&settings, NOW, 0);
        job_stats.add("".into(), &job.key, &job, || unreachable!("asked"));
        assert_eq!(counts(&job_stats).unreleased.jobs, 0);
    }
}

#[test]
fn a_release_is_judged_by_the_jobs_own_jobset() {
    let job = finished(9_000, Outcome::DeadlineExceeded, None);
    let job_set = |owner: &str| JobSetFacts {
        uid: "J".into(),
        resource_version: "2".into(),
        generation: 1,
        created_at: Timestamp(9_000),
        terminating_since: Some(Timestamp(9_000)),
        train_job_uid: Some(owner.into()),
        suspended: false,
        never_ran: false,
        holds_pods: false,
        ended: None,
        jobs_status: vec![],
    };
    for (job_set, pods, expected) in [
        (None, Reading::NotRead, release::Decision::CheckPods),
        (None, Reading::Absent, release::Decision::Released),
        (Some(job_set("U")), Reading::Absent, release::Decision::Blocked),
        (Some(job_set("V")), Reading::Absent, release::Decision::Released),
        (
            Some(job_set("U")),
            Reading::Found(RunningPods::unnamed()),
            release::Decision::PodsRunning,
        ),
    ] {
        assert_eq!(release_of(&job, job_set.as_ref(), &pods, NOW), expected, "{job_set:?}");
    }
}

#[test]
fn every_deadline_is_within_one_horizon() {
    for (left, expected) in [
        (-5, Horizon::Minute),
        (60, Horizon::Minute),
        (61, Horizon::TenMinutes),
        (600, Horizon::TenMinutes),
        (601, Horizon::Hour),
        (3_600, Horizon::Hour),
        (3_601, Horizon::Day),
        (86_400, Horizon::Day),
        (86_401, Horizon::Later),
    ] {
        let settings = Settings::default();
        let job_stats = job_stats(&settings, 0, &[with_deadline("a", 1_000 + left)]);
        for horizon in Horizon::ALL {
            assert_eq!(
                counts(&job_stats).within(horizon),
                u64::from(horizon == expected),
                "{left}"
            );
        }
    }
}

#[test]
fn a_clock_that_stands_still_and_a_job_of_somebody_else_have_no_deadline() {
    let settings = Settings { deadline_clock: Clock::LastResume, ..Settings::default() };
    let suspended = JobFacts { suspend: true, ..with_deadline("a", 1_060) };
    let elsewhere = JobFacts { managed_elsewhere: true, ..with_deadline("b", 1_060) };
    let job_stats = job_stats(&settings, 9, &[suspended, elsewhere]);
    assert_eq!(Horizon::ALL.map(|horizon| counts(&job_stats).within(horizon)), [0; 5]);
    assert_eq!(job_stats.nearest(), []);
}

#[test]
fn the_nearest_deadlines_are_told_with_their_jobs_up_to_a_bound() {
    let settings = Settings::default();
    let jobs = [("e", 1_050), ("b", 1_020), ("d", 1_040), ("a", 990), ("c", 1_030)]
        .map(|(name, seconds)| with_deadline(name, seconds));
    for (most, expected) in [
        (0, &[][..]),
        (2, &[("a", 0), ("b", 20)]),
        (9, &[("a", 0), ("b", 20), ("c", 30), ("d", 40), ("e", 50)]),
    ] {
        let nearest = job_stats(&settings, most, &jobs).nearest();
        let nearest: Vec<_> = nearest.iter().map(|(key, left)| (&*key.name, *left)).collect();
        assert_eq!(nearest, expected, "at most {most}");
    }
}

#[test]
fn the_jobs_that_have_been_unreleased_longest_are_told_with_their_names_up_to_a_bound() {
    let settings = Settings::default();
    let mut job_stats = JobStats::new(&settings, NOW, 0);
    let failed = |name: String, at| {
        let mut job = finished(at, Outcome::DeadlineExceeded, None);
        job.key = ObjectKey::new("ns", name);
        job
    };
    for number in (0..20).rev() {
        let job = failed(format!("job-{number:02}"), 9_000 + number);
        job_stats.add("".into(), &job.key, &job, || release::Decision::PodsRunning);
    }
    let blocked = failed("blocked".into(), 1);
    job_stats.add("".into(), &blocked.key, &blocked, || release::Decision::Blocked);
    let oldest = job_stats.oldest_unreleased();
    assert_eq!(oldest.len(), MOST_UNRELEASED);
    let told: Vec<_> = oldest.iter().map(|(key, since)| (&*key.name, *since)).collect();
    assert_eq!(told[..2], [("job-00", 1_000), ("job-01", 999)]);
    assert_eq!(counts(&job_stats).unreleased.jobs, 20);
}
