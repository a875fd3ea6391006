//! The judge of the accounting program judged: a good life breaks nothing, and each seeded defect breaks its own invariant
//! alone.

use std::collections::BTreeSet;

use invariants::{
    Millis,
    accounting::{
        AccountingHistory, Charge, Invariant, PodVersion, RecordVersion, Terms, Written, check,
        gpu_seconds,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use trainjob_api::{
    lifecycle::v1alpha1::record::{
        Attempt, PodCounts, PodSums, RecordedReplicatedJob, Totals, TrainJobRecordStatus,
    },
    time::Timestamp,
};

const GPU: &str = "nvidia.com/gpu";

/// Pod `uid` in this revision, a second after the revision before.
fn pod(revision: u64, uid: &str) -> PodVersion {
    PodVersion {
        revision,
        at: at(revision),
        name: format!("a/{uid}"),
        uid: uid.to_owned(),
        job: "u1".into(),
        finalizer: true,
        accounted: false,
        ended: false,
        deleted: false,
        gone: false,
        charge: None,
    }
}

fn at(revision: u64) -> Millis {
    Millis::try_from(revision).unwrap() * 1_000
}

/// It has ended after ten seconds with two GPUs.
fn ended(revision: u64, uid: &str) -> PodVersion {
    let [start, end] = [1_000, 1_010].map(Timestamp);
    let charge = Some(Charge { start, end, at_most: false, gpus: 2 });
    PodVersion { ended: true, deleted: true, charge, ..pod(revision, uid) }
}

fn released(revision: u64, uid: &str) -> PodVersion {
    PodVersion { finalizer: false, accounted: true, ..ended(revision, uid) }
}

fn status(active: u64, succeeded: u64, settling: &[&str]) -> TrainJobRecordStatus {
    let pods = PodCounts { active, succeeded, ..PodCounts::default() };
    let gpu_seconds = succeeded * 20;
    let seconds = [(GPU.to_owned(), gpu_seconds)].into_iter().collect();
    let sums = PodSums { pods, ..PodSums::default() };
    let attempts = vec![Attempt { sums, ..Attempt::default() }];
    TrainJobRecordStatus {
        totals: Totals { pods, gpu_seconds, seconds, ..Totals::default() },
        replicated_jobs: vec![RecordedReplicatedJob { attempts, ..Default::default() }],
        settling: settling.iter().map(|uid| (*uid).to_owned()).collect(),
        ..TrainJobRecordStatus::default()
    }
}

fn is_final(mut status: TrainJobRecordStatus) -> TrainJobRecordStatus {
    status.conditions.push(Condition {
        type_: "Final".into(),
        status: "True".into(),
        reason: "AllCounted".into(),
        message: String::new(),
        last_transition_time: Time::from(Timestamp(1_000)),
        observed_generation: None,
    });
    status
}

fn record(revision: u64, status: TrainJobRecordStatus) -> RecordVersion {
    RecordVersion {
        revision,
        at: at(revision),
        name: "a/llm-1".into(),
        uid: "r1".into(),
        job: "u1".into(),
        status,
        gone: false,
    }
}

/// Two Pods run, end, are counted, released and cleared.
fn good() -> AccountingHistory {
    let gone = |revision, uid| PodVersion { gone: true, ..released(revision, uid) };
    AccountingHistory {
        pods: vec![
            pod(1, "p1"),
            pod(2, "p2"),
            ended(5, "p1"),
            ended(6, "p2"),
            released(8, "p1"),
            // What had another finalizer, and what had none.
            gone(9, "p1"),
            PodVersion { gone: true, ..ended(10, "p2") },
        ],
        records: vec![
            record(3, TrainJobRecordStatus::default()),
            record(4, status(2, 0, &[])),
            record(7, status(0, 2, &["p1", "p2"])),
            record(11, is_final(status(0, 2, &[]))),
        ],
        written: vec![
            (at(4), Written::Status { with_version: true }),
            (at(8), Written::Pod(BTreeSet::from(["metadata.uid".to_owned()]))),
        ],
        end: at(20),
    }
}

/// What this change of the good life breaks.
fn broken(change: impl FnOnce(&mut AccountingHistory)) -> Vec<Invariant> {
    let mut history = good();
    change(&mut history);
    let terms = Terms { watch_behind: 0, ..Terms::default() };
    let found = check(&history, &terms).into_iter().map(|it| it.invariant);
    found.collect::<BTreeSet<_>>().into_iter().collect()
}

fn of_record(history: &mut AccountingHistory, revision: u64) -> &mut TrainJobRecordStatus {
    let mut all = history.records.iter_mut();
    &mut all.find(|version| version.revision == revision).unwrap().status
}

#[test]
fn a_good_life_breaks_nothing() {
    assert_eq!(check(&good(), &Terms::default()), []);
}

#[test]
fn a1_a_pod_that_is_counted_again() {
    let found = broken(|it| {
        it.records.push(record(12, status(0, 2, &["p1"])));
        it.records.push(record(13, is_final(status(0, 2, &[]))));
        // Its share is not added again.
        it.pods.iter_mut().for_each(|pod| pod.charge = None);
    });
    assert_eq!(found, [Invariant::A1]);
}

#[test]
fn a2_a_pod_that_is_released_before_it_is_counted() {
    let found = broken(|it| {
        it.pods.retain(|pod| pod.uid == "p1");
        it.pods.iter_mut().filter(|pod| pod.revision == 8).for_each(|pod| pod.revision = 6);
        *of_record(it, 4) = status(1, 0, &[]);
        *of_record(it, 7) = status(0, 1, &["p1"]);
        *of_record(it, 11) = is_final(status(0, 1, &[]));
    });
    assert_eq!(found, [Invariant::A2]);
}

#[test]
fn a2_a_pod_that_was_let_go_is_excused() {
    let mut history = good();
    history.pods.retain(|pod| pod.uid == "p1");
    history.records.truncate(2);
    *of_record(&mut history, 4) = status(1, 0, &[]);
    let found = |terms: &Terms| -> Vec<_> {
        check(&history, terms).into_iter().map(|violation| violation.invariant).collect()
    };
    assert_eq!(found(&Terms::default()), [Invariant::A2]);
    let excused = BTreeSet::from(["p1".to_owned()]);
    assert_eq!(found(&Terms { excused, ..Terms::default() }), []);
}

#[test]
fn a3_a_uid_that_is_cleared_while_its_pod_is_held() {
    let found = broken(|it| {
        it.records.insert(3, record(8, status(0, 2, &["p1"])));
    });
    assert_eq!(found, [Invariant::A3]);
}

#[test]
fn a4_sums_that_fall_or_do_not_add_up() {
    let fallen = broken(|it| of_record(it, 7).clamped = 1);
    assert_eq!(fallen, [Invariant::A4]);
    let uneven = broken(|it| of_record(it, 4).totals.pods.active = 3);
    assert_eq!(uneven, [Invariant::A4]);
}

#[test]
fn a4_what_was_wasted_falls_only_if_a_deletion_is_corrected() {
    let found = |after: &str| {
        broken(|it| {
            of_record(it, 7).outcome = "Deleted".into();
            of_record(it, 7).totals.wasted_gpu_seconds = 40;
            of_record(it, 11).outcome = after.into();
        })
    };
    assert_eq!((found("Complete"), found("Deleted")), (vec![], vec![Invariant::A4]));
}

#[test]
fn a4_a_resource_goes_only_when_others_take_all_room() {
    for (others, expected) in [("abcdef", vec![Invariant::A4]), ("abcdefg", vec![])] {
        let found = broken(|it| {
            of_record(it, 7).totals.seconds.insert("z".into(), 1);
            let last = &mut of_record(it, 11).totals.seconds;
            last.extend(others.chars().map(|name| (name.into(), 1)));
        });
        assert_eq!(found, expected, "{others}");
    }
}

#[test]
fn a5_more_are_counted_than_settled() {
    let found = broken(|it| {
        let counts_more = |status: &mut TrainJobRecordStatus| {
            status.totals.pods.failed = 1;
            status
                .replicated_jobs
                .first_mut()
                .unwrap()
                .attempts
                .first_mut()
                .unwrap()
                .sums
                .pods
                .failed = 1;
        };
        // There is a third Pod, which nobody has settled.
        it.pods.push(PodVersion { finalizer: false, ..pod(2, "p3") });
        counts_more(of_record(it, 7));
        counts_more(of_record(it, 11));
    });
    assert_eq!(found, [Invariant::A5]);
}

#[test]
fn a6_a_pod_that_a_final_record_does_not_tell_of() {
    let found = broken(|it| it.pods.push(PodVersion { finalizer: false, ..pod(2, "p3") }));
    assert_eq!(found, [Invariant::A6]);
    let lost = broken(|it| {
        it.pods.push(PodVersion { finalizer: false, ..pod(2, "p3") });
        of_record(it, 11).lost.insert("Unwatched".into(), 1);
    });
    assert_eq!(lost, [Invariant::A6], "nothing happened that excuses a loss");
}

/// The record of [`good`] is deleted in this revision, before it was final, and another takes its place.
fn made_anew(deleted: u64, then: Vec<RecordVersion>) -> AccountingHistory {
    let mut history = good();
    history.records.retain(|version| version.revision < deleted);
    let last = history.records.last().unwrap().status.clone();
    let gone = RecordVersion { gone: true, ..record(deleted, last) };
    let other = |version| RecordVersion { uid: "r2".into(), ..version };
    history.records.push(gone);
    history.records.extend(then.into_iter().map(other));
    history
}

#[test]
fn a6_a_record_that_is_made_anew_tells_of_what_the_one_before_had_not_counted() {
    let terms = Terms { records_go: true, ..Terms::default() };
    let judged = |deleted, then: Vec<RecordVersion>| -> Vec<_> {
        let found = check(&made_anew(deleted, then), &terms);
        found.into_iter().map(|violation| violation.invariant).collect()
    };
    let ends = |counted, revision| record(revision, is_final(status(0, counted, &[])));
    let counts = |revision| record(revision, status(0, 2, &["p1", "p2"]));
    // Deleted before it had counted anything.
    assert_eq!(judged(5, vec![counts(7), ends(2, 11)]), []);
    // Once it had counted both, which the other finds released, or counts again.
    assert_eq!(judged(8, vec![ends(0, 12)]), []);
    assert_eq!(judged(8, vec![counts(9), ends(2, 11)]), []);

    let lost = |counted, revision| {
        let mut lost = ends(counted, revision);
        lost.status.lost.insert("Unwatched".into(), 1);
        lost
    };
    assert_eq!(judged(8, vec![lost(0, 12)]), [Invariant::A6], "what was counted is not lost");
    let mut uncounted = made_anew(8, vec![ends(0, 12)]);
    uncounted.pods.push(PodVersion { finalizer: false, ..pod(2, "p3") });
    let found = check(&uncounted, &terms);
    let found: Vec<_> = found.into_iter().map(|violation| violation.invariant).collect();
    assert_eq!(found, [Invariant::A6], "a Pod of which neither tells");
}

#[test]
fn a7_a_share_that_does_not_follow_from_its_pod() {
    let found = broken(|it| {
        for revision in [7, 11] {
            let status = of_record(it, revision);
            status.totals.gpu_seconds = 41;
        }
    });
    assert_eq!(found, [Invariant::A7]);
}

/// It turns out then to have ended a second later than its version before says.
fn half_a_second_before_it_is_counted_a_pod_ended_later(history: &mut AccountingHistory) {
    let pods = &mut history.pods;
    pods.iter_mut().find(|pod| pod.revision == 2).unwrap().charge = ended(2, "p2").charge;
    let last = pods.iter_mut().find(|pod| pod.revision == 6).unwrap();
    last.at = at(7) - 500;
    last.charge.as_mut().unwrap().end = Timestamp(1_011);
}

#[test]
fn a7_a_pod_may_be_counted_by_what_a_watch_that_is_behind_has_shown() {
    let later = half_a_second_before_it_is_counted_a_pod_ended_later;
    assert_eq!(broken(later), [Invariant::A7]);
    let mut history = good();
    later(&mut history);
    for (watch_behind, expected) in [(499, 1), (501, 0)] {
        let terms = Terms { watch_behind, ..Terms::default() };
        assert_eq!(check(&history, &terms).len(), expected, "{watch_behind}");
    }
}

#[test]
fn a8_a_pod_that_is_held_for_too_long_and_a_list_that_is_too_long() {
    let held = broken(|it| {
        it.end = 1_000_000;
        it.pods.iter_mut().filter(|pod| pod.revision == 10).for_each(|pod| pod.at = 900_000);
    });
    assert_eq!(held, [Invariant::A8]);
    let long = broken(|it| {
        let codes = (0..18).map(|code| (code.to_string(), 1)).collect();
        of_record(it, 11).exit_codes = codes;
    });
    assert_eq!(long, [Invariant::A8]);
}

#[test]
fn a9_a_write_that_changes_nothing_and_one_without_a_version() {
    let idle = broken(|it| {
        let mut again = is_final(status(0, 2, &[]));
        again.as_of = Some(Time::from(Timestamp(2_000)));
        it.records.push(record(12, again));
    });
    assert_eq!(idle, [Invariant::A9]);
    let blind = broken(|it| it.written.push((at(5), Written::Status { with_version: false })));
    assert_eq!(blind, [Invariant::A9]);
}

#[test]
fn a10_a_write_that_is_not_allowed() {
    let labels = Written::Pod(BTreeSet::from(["metadata.labels.x".to_owned()]));
    assert_eq!(broken(|it| it.written.push((at(5), labels))), [Invariant::A10]);
    let deletion = Written::Other("delete pods".into());
    assert_eq!(broken(|it| it.written.push((at(5), deletion))), [Invariant::A10]);
}

#[test]
fn a12_a_record_that_goes() {
    let gone = |it: &mut AccountingHistory| {
        let last = record(12, is_final(status(0, 2, &[])));
        it.records.push(RecordVersion { gone: true, ..last });
    };
    assert_eq!(broken(gone), [Invariant::A12]);
    let mut history = good();
    gone(&mut history);
    assert_eq!(check(&history, &Terms { records_go: true, ..Terms::default() }), []);
}

#[test]
fn gpu_seconds_are_those_of_all_pods_as_they_were_when_they_were_counted() {
    let history = good();
    assert_eq!(gpu_seconds(&history, "u1", 0), Ok(40..=40));
    assert_eq!(gpu_seconds(&history, "u2", 0), Ok(0..=0), "another job");

    let mut uncounted = good();
    uncounted.pods.push(ended(12, "p3"));
    assert_eq!(gpu_seconds(&uncounted, "u1", 0), Err("a/p3 was not counted".to_owned()));

    let mut unknown = good();
    unknown.pods.iter_mut().for_each(|pod| pod.charge = None);
    assert!(gpu_seconds(&unknown, "u1", 0).is_err());

    let mut behind = good();
    half_a_second_before_it_is_counted_a_pod_ended_later(&mut behind);
    assert_eq!(gpu_seconds(&behind, "u1", 499), Ok(42..=42));
    assert_eq!(gpu_seconds(&behind, "u1", 501), Ok(40..=42));
}

#[test]
fn a_pod_whose_latest_end_is_known_is_charged_until_it_is_counted_at_most() {
    let [start, end] = [1_000, 1_010].map(Timestamp);
    let charge = Charge { start, end, at_most: true, gpus: 2 };
    for (counted_at, expected) in
        [(Some(1_005), Some(10)), (Some(1_010), Some(20)), (Some(1_020), Some(20)), (None, None)]
    {
        assert_eq!(charge.gpu_seconds(counted_at.map(Timestamp)), expected, "{counted_at:?}");
    }
}
