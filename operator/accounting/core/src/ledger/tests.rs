//! What records add up to.

use std::sync::Arc;

use proptest::{prelude::*, sample::subsequence};
use trainjob_api::lifecycle::v1alpha1::{
    record::{RESOURCES, Totals},
    record_words::{DeletedReason as D, FailedReason as F},
};

use super::*;
use crate::{
    amounts::MOST,
    job::{Job, Suspension},
    pod::{Phase, Template},
    share::share,
    testing::{at, ended_at, pod, template},
    verdict::Order,
};

/// A share of one GPU: attempt, verdict, and from when to when.
fn gpu(restart: u64, verdict: Verdict, start: i64, end: i64) -> Share {
    let amounts = [("nvidia.com/gpu".to_owned(), 1)].into();
    let pod = Pod {
        name: format!("p-{restart}-{start}-{end}").into(),
        phase: Phase::Failed,
        bound_at: Some(at(start)),
        template: Arc::new(Template { amounts, ..template() }),
        containers: [ended_at(end, i32::from(verdict != Verdict::Succeeded))].into(),
        restart,
        ..pod()
    };
    let job = Job::Running { suspension: Suspension::Never };
    Share { verdict, ..share(&pod, Order::Unknown, &job, at(100_000)) }
}

fn of(shares: &[Share], outcome: Outcome) -> TrainJobRecordStatus {
    let settings = Settings::default();
    let mut ledger = Ledger::new(TrainJobRecordStatus::default(), &settings);
    for share in shares {
        ledger.count(share);
    }
    ledger.set_open([]);
    ledger.finish(outcome)
}

const OOM: Verdict = Verdict::Failed(F::OOMKilled);
const ERROR: Verdict = Verdict::Failed(F::Error);
const STOPPED: Verdict = Verdict::Deleted(D::Stopped);
const SUSPENDED: Verdict = Verdict::Deleted(D::Suspended);

/// The story of the guide: one rank runs out of memory, seven are stopped, all eight succeed in the next attempt.
#[test]
fn a_job_that_runs_out_of_memory_and_restarts() {
    let mut shares = vec![gpu(0, OOM, 0, 3_600)];
    shares.extend((0..7).map(|_| gpu(0, STOPPED, 0, 3_600)));
    shares.extend((0..8).map(|_| gpu(1, Verdict::Succeeded, 4_000, 7_600)));
    let record = of(&shares, Outcome::Complete);
    let totals = &record.totals;
    assert_eq!((totals.pods.succeeded, totals.pods.failed, totals.pods.deleted), (8, 1, 7));
    assert_eq!((totals.restarts, totals.gpu_seconds, &*totals.gpu_hours), (1, 57_600, "16.00"));
    assert_eq!((totals.wasted_gpu_seconds, &*totals.wasted_gpu_hours), (28_800, "8.00"));
    assert_eq!(totals.wasted_by_cause, [("OOMKilled".to_owned(), 28_800)].into());
    let [first, second] = &record.replicated_jobs[0].attempts[..] else { panic!("{record:?}") };
    assert_eq!(first.sums.reasons, [("OOMKilled".to_owned(), 1), ("Stopped".to_owned(), 7)].into());
    assert_eq!(second.sums.wasted.len(), 0);
    assert_eq!(record.exit_codes, [("1".to_owned(), 1)].into());
    assert_eq!(record.first_failures.len(), 1);
}

#[test]
fn am0_a_record_of_open_pods_without_finalizer_is_not_exact() {
    let settings = Settings::default();
    for (finalizer, expected) in [(true, vec![]), (false, vec!["Observed".to_owned()])] {
        let mut ledger = Ledger::new(TrainJobRecordStatus::default(), &settings);
        ledger.set_open(&[Pod { finalizer, ..pod() }]);
        assert_eq!(ledger.finish(Outcome::Running).inexact, expected, "finalizer: {finalizer}");
    }
}

#[test]
fn aw1_the_cause_is_the_earliest_failure_then_the_alphabet_then_suspended_then_stopped() {
    for (case, shares, expected) in [
        ("earliest", vec![gpu(0, ERROR, 0, 50), gpu(0, OOM, 0, 40)], "OOMKilled"),
        ("alphabet", vec![gpu(0, OOM, 0, 50), gpu(0, ERROR, 0, 50)], "Error"),
        (
            "a failure goes before a stop",
            vec![gpu(0, SUSPENDED, 0, 30), gpu(0, OOM, 0, 40)],
            "OOMKilled",
        ),
        ("suspended", vec![gpu(0, STOPPED, 0, 30), gpu(0, SUSPENDED, 0, 40)], "Suspended"),
        ("stopped", vec![gpu(0, STOPPED, 0, 30)], "Stopped"),
    ] {
        let reversed: Vec<_> = shares.iter().rev().cloned().collect();
        for shares in [shares, reversed] {
            assert_eq!(of(&shares, Outcome::Running).causes[0].reason, expected, "{case}");
        }
    }
}

#[test]
fn aw2_what_was_lost_depends_on_the_outcome_and_on_the_last_attempt() {
    let shares = [
        gpu(0, STOPPED, 0, 100),
        gpu(1, Verdict::Succeeded, 200, 210),
        gpu(1, ERROR, 200, 201),
        gpu(1, SUSPENDED, 200, 202),
        gpu(1, STOPPED, 200, 203),
    ];
    for (outcome, expected) in [
        (Outcome::Running, 103),
        (Outcome::Complete, 103),
        (Outcome::Failed, 116),
        (Outcome::DeadlineExceeded, 116),
        (Outcome::Deleted, 116),
    ] {
        let totals = of(&shares, outcome).totals;
        assert_eq!(totals.wasted_gpu_seconds, expected, "{outcome:?}");
        assert_eq!(totals.wasted_by_cause.values().sum::<u64>(), expected, "{outcome:?}");
    }
}

#[test]
fn restarts_are_those_of_all_job_sets() {
    let of_job_set =
        |uid: &str, restart| Share { job_set: uid.into(), ..gpu(restart, STOPPED, 0, 1) };
    for (shares, expected) in [
        (vec![of_job_set("a", 0)], 0),
        (vec![of_job_set("a", 0), of_job_set("a", 2)], 2),
        (vec![of_job_set("a", 2), of_job_set("a", 0)], 2),
        (vec![of_job_set("a", 1), of_job_set("b", 0)], 2),
        (vec![of_job_set("a", 1), of_job_set("b", 0), of_job_set("b", 3)], 5),
    ] {
        let record = of(&shares, Outcome::Running);
        assert_eq!(record.totals.restarts, expected, "{shares:?}");
    }
}

#[test]
fn a11_job_sets_are_numbered_by_their_first_pods_however_these_are_counted() {
    let of = |uid: &str, created| {
        let template = Template { job_set: uid.into(), ..template() };
        Pod { template: Arc::new(template), created_at: at(created), ..pod() }
    };
    let (first, second) = (of("a", 10), of("b", 20));
    let settings = Settings::default();
    let mut ledger = Ledger::new(TrainJobRecordStatus::default(), &settings);
    ledger.meet([&second, &first]);
    ledger.count(&Share { job_set: "b".into(), ..gpu(0, STOPPED, 20, 30) });
    ledger.set_open([&first]);
    let uids: Vec<_> =
        ledger.finish(Outcome::Running).job_sets.into_iter().map(|it| it.uid).collect();
    assert_eq!(uids, ["a", "b"]);
}

#[test]
fn numbers_stop_at_the_largest_and_the_record_says_so() {
    let mut share = gpu(0, STOPPED, 0, 1);
    share.seconds = [("nvidia.com/gpu".to_owned(), MOST - 1)].into();
    let record = of(&[share.clone(), share], Outcome::Running);
    assert_eq!((record.totals.gpu_seconds, record.inexact), (MOST, vec!["Saturated".to_owned()]));
}

#[test]
fn of_too_many_resources_gpus_and_then_cpu_and_memory_stay() {
    let mut share = gpu(0, STOPPED, 0, 1);
    let names = ["a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "cpu", "memory", "nvidia.com/gpu"];
    share.seconds = names.map(|name| (name.to_owned(), 1)).into();
    let record = of(&[share], Outcome::Running);
    let kept: Vec<_> = record.totals.seconds.keys().map(String::as_str).collect();
    assert_eq!(kept, ["a/1", "a/2", "a/3", "a/4", "a/5", "cpu", "memory", "nvidia.com/gpu"]);
    assert_eq!(record.inexact, ["TooManyResources"]);
}

#[test]
fn hours_are_cut_off() {
    for (seconds, expected) in
        [(0, "0.00"), (35, "0.00"), (36, "0.01"), (3_599, "0.99"), (57_600, "16.00")]
    {
        assert_eq!(hours(seconds), expected);
    }
}

/// Trap 32.
#[test]
fn however_much_there_is_a_record_stays_within_its_bounds() {
    let mut shares = Vec::new();
    for restart in 0..200 {
        for job in 0..30 {
            let code = i32::try_from((restart + job) % 100).unwrap();
            let mut share = gpu(restart, ERROR, 0, 10);
            share.replicated_job = format!("job-{job}");
            share.culprit = Some(("node".into(), code + 1));
            share.seconds = (0..20).map(|n| (format!("example.com/{n:02}"), 1)).collect();
            share.message = "x".repeat(1_000);
            shares.push(share);
        }
    }
    let record = of(&shares, Outcome::Failed);
    assert_eq!(record.replicated_jobs.len(), NAMES + 1);
    assert_eq!(record.replicated_jobs.last().unwrap().name, OTHER);
    assert!(record.replicated_jobs.iter().all(|job| job.attempts.len() == ATTEMPTS));
    assert_eq!(record.causes.len(), ATTEMPTS);
    assert_eq!(record.exit_codes.len(), NAMES + 1);
    assert_eq!(record.first_failures.len(), 10);
    assert_eq!(record.totals.seconds.len(), 8);
    assert_eq!((record.totals.pods.failed, record.totals.restarts), (6_000, 199));
    let bytes = serde_json::to_vec(&record).unwrap().len();
    assert!(bytes < 160_000, "{bytes} bytes");
}

#[test]
fn what_is_summed_of_many_has_room_for_as_many_resources_as_a_part() {
    let mut shares = Vec::new();
    for restart in 0..10 {
        for job in 0..30 {
            let mut share = gpu(restart, ERROR, 0, 10);
            share.replicated_job = format!("job-{job:02}");
            let names = (0..3).map(|n| format!("example.com/{job:02}-{restart}-{n}"));
            share.seconds = names.map(|name| (name, 1)).collect();
            shares.push(share);
        }
    }
    for shares in [shares.clone(), shares.into_iter().rev().collect()] {
        let record = of(&shares, Outcome::Failed);
        let attempts = record.replicated_jobs.iter().flat_map(|job| &job.attempts);
        let earlier = record.replicated_jobs.iter().filter_map(|job| job.earlier.as_ref());
        let sums = attempts.map(|it| &it.sums).chain(earlier.map(|it| &it.sums));
        let most = sums.flat_map(|sums| [sums.seconds.len(), sums.wasted.len()]).max();
        assert_eq!(most, Some(RESOURCES));
        assert_eq!(record.inexact, ["TooManyResources"]);
        assert_eq!(record.totals.seconds.keys().next().unwrap(), "example.com/00-0-0");
    }
}

fn any_share() -> impl Strategy<Value = Share> {
    let verdict = prop::sample::select(vec![Verdict::Succeeded, ERROR, OOM, STOPPED, SUSPENDED]);
    (0..9_u64, verdict, 0..50_i64, 0..50_i64, 0..19_u8, 0..20_i32).prop_map(
        |(restart, verdict, start, length, job, code)| {
            let mut share = gpu(restart, verdict, start, start + length);
            share.replicated_job = format!("job-{job}");
            share.culprit = share.culprit.map(|(name, _)| (name, code));
            // No two Pods have one name.
            share.pod = format!("{}-{job}-{code}-{verdict:?}", share.pod);
            share
        },
    )
}

proptest! {
    /// A11, as far as the record's own entries go. What was moved to `earlier` may have come too late for its cause.
    #[test]
    fn a11_the_order_of_counting_makes_no_difference(
        shares in prop::collection::vec(any_share(), 1..40), seed in any::<u64>(),
    ) {
        let mut shuffled = shares.clone();
        shuffled.sort_by_key(|share| {
            let text = format!("{share:?}");
            text.bytes().fold(seed, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
        });
        let [mut one, mut other] = [&shares, &shuffled].map(|it| of(it, Outcome::Failed));
        for record in [&mut one, &mut other] {
            record.totals.wasted_by_cause.clear();
            for earlier in record.replicated_jobs.iter_mut().filter_map(|it| it.earlier.as_mut()) {
                earlier.attempts = 0;
                earlier.wasted_by_cause.clear();
            }
        }
        prop_assert_eq!(one, other);
    }

    #[test]
    fn a4_sums_never_fall_and_replicated_jobs_add_up(
        shares in prop::collection::vec(any_share(), 1..40),
    ) {
        let mut last = Totals::default();
        for end in 1..=shares.len() {
            let record = of(&shares[..end], Outcome::Running);
            let totals = record.totals;
            prop_assert!(totals.gpu_seconds >= last.gpu_seconds);
            prop_assert!(totals.wasted_gpu_seconds >= last.wasted_gpu_seconds);
            prop_assert!(totals.restarts >= last.restarts);
            let attempts = record.replicated_jobs.iter().flat_map(|job| {
                let attempts = job.attempts.iter().map(|attempt| &attempt.sums);
                attempts.chain(job.earlier.iter().map(|earlier| &earlier.sums))
            });
            let sums: Vec<_> = attempts.collect();
            let pods = sums.iter().map(|it| it.pods.succeeded + it.pods.failed + it.pods.deleted);
            prop_assert_eq!(pods.sum::<u64>(), u64::try_from(end).unwrap());
            let seconds = sums.iter().filter_map(|it| it.seconds.get("nvidia.com/gpu"));
            prop_assert_eq!(seconds.sum::<u64>(), totals.gpu_seconds);
            prop_assert_eq!(totals.wasted_by_cause.values().sum::<u64>(), totals.wasted_gpu_seconds);
            last = totals;
        }
    }

    #[test]
    fn a_pod_is_counted_in_the_attempt_that_it_belongs_to_however_late_it_comes(
        late in subsequence((0..12_u64).collect::<Vec<_>>(), 1..4),
    ) {
        let on_time = (0..12).filter(|restart| !late.contains(restart));
        let order: Vec<_> = on_time.chain(late.iter().copied()).collect();
        let shares: Vec<_> = order.iter().map(|it| gpu(*it, ERROR, 0, 10)).collect();
        let record = of(&shares, Outcome::Failed);
        let job = &record.replicated_jobs[0];
        let kept: Vec<_> = job.attempts.iter().map(|attempt| attempt.restart).collect();
        prop_assert_eq!(kept, (6..12).collect::<Vec<_>>());
        prop_assert_eq!(job.earlier.as_ref().unwrap().sums.pods.failed, 6);
    }
}
