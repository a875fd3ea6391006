//! What follows from answers and news, one by one. How they go together is tested by `e2e/explorer/src/accounting`.

mod releases;

use std::time::Duration;

use super::*;
use crate::{
    job::Suspension,
    pod::{Deletion, Phase},
    testing::{at, ended_at, pod},
};

const RUNNING: Job = Job::Running { suspension: Suspension::Never };

fn now(seconds: u64) -> Now {
    Now { server: at(1_000), clock: Duration::from_secs(seconds) }
}

fn ended() -> Pod {
    let deletion = Some(Deletion { at: at(990), grace: 30 });
    Pod { phase: Phase::Succeeded, containers: [ended_at(900, 0)].into(), deletion, ..pod() }
}

/// What is sent at this time.
fn next(keeper: &mut Keeper, seconds: u64) -> Vec<Call> {
    keeper.next(&RUNNING, &Settings::default(), now(seconds)).now
}

/// Answers the only call that is sent at this time.
fn answer(keeper: &mut Keeper, seconds: u64, answer: Answer) -> Call {
    let calls = next(keeper, seconds);
    let [call] = &calls[..] else { panic!("{calls:?}") };
    keeper.answered(call, answer, now(seconds));
    call.clone()
}

const fn failed(failure: Failure) -> Answer {
    Answer::Failed { failure, retry_after: Duration::ZERO }
}

fn record() -> Answer {
    record_of("r1")
}

fn record_of(uid: &str) -> Answer {
    let fence = Fence { name: "llm-j1".into(), uid: uid.into(), version: "7".into() };
    Answer::Record(fence, Box::default())
}

/// One that knows this Pod and that there is no record.
fn without_record(pod: Pod) -> Keeper {
    let mut keeper = Keeper::default();
    keeper.saw(5, pod, now(0));
    assert_eq!(answer(&mut keeper, 1, failed(Failure::NotFound)), Call::Get { long_name: false });
    keeper
}

/// One whose record is there, proven, with this Pod.
fn proven(pod: Pod) -> Keeper {
    let mut keeper = without_record(pod.clone());
    answer(&mut keeper, 2, record());
    answer(&mut keeper, 3, Answer::Pods { version: 6, pods: vec![(5, pod)] });
    keeper
}

#[test]
fn a_record_is_created_read_back_and_proven_before_anything_is_stored() {
    let mut keeper = without_record(ended());
    assert_eq!(answer(&mut keeper, 2, record()), Call::Create { long_name: false });
    let pods = Answer::Pods { version: 6, pods: vec![(5, ended())] };
    assert_eq!(answer(&mut keeper, 3, pods), Call::List { is_over: false });
    assert!(matches!(&next(&mut keeper, 4)[..], [Call::Store(_)]));
    assert_eq!(next(&mut keeper, 5), [], "one request about a record at a time");
}

#[test]
fn a_record_whose_name_another_has_gets_the_long_one() {
    let mut keeper = Keeper::default();
    keeper.saw(5, pod(), now(0));
    answer(&mut keeper, 1, failed(Failure::AlreadyExists { same: false }));
    assert_eq!(answer(&mut keeper, 2, failed(Failure::NotFound)), Call::Get { long_name: true });
    assert_eq!(next(&mut keeper, 3), [Call::Create { long_name: true }]);
}

#[test]
fn ag12_a_record_that_somebody_deleted_is_made_anew_and_says_so() {
    let mut keeper = proven(ended());
    assert!(matches!(answer(&mut keeper, 4, failed(Failure::NotFound)), Call::Store(_)));
    assert_eq!(answer(&mut keeper, 5, record_of("r2")), Call::Create { long_name: false });
    answer(&mut keeper, 6, Answer::Pods { version: 8, pods: vec![(5, ended())] });
    let calls = next(&mut keeper, 7);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(store.status.inexact, ["Recreated"]);
}

/// Who makes it anew may end before its first store. The next process finds nothing in it, and Pods that were released.
#[test]
fn ag12_a_record_in_which_nothing_is_stored_was_recreated_if_a_pod_was_released_before() {
    for (accounted, finalizer, expected) in
        [(false, true, None), (true, false, Some("Recreated")), (true, true, Some("Recreated"))]
    {
        let other = Pod { uid: "p2".into(), accounted, finalizer, ..ended() };
        let mut keeper = without_record(ended());
        answer(&mut keeper, 2, record());
        let pods = vec![(5, ended()), (5, other)];
        answer(&mut keeper, 3, Answer::Pods { version: 6, pods });
        let calls = next(&mut keeper, 4);
        let Some(Call::Store(store)) = calls.last() else { panic!("{calls:?}") };
        let inexact = store.status.inexact.first().map(String::as_str);
        assert_eq!(inexact, expected, "{accounted} {finalizer}");
    }
}

#[test]
fn a_pod_is_released_when_it_is_stored_and_again_when_that_failed() {
    let mut keeper = proven(ended());
    answer(&mut keeper, 4, Answer::Stored { version: "8".into() });
    let release = |call: &Call| matches!(call, Call::Release { is_counted: true, .. });
    assert!(release(&answer(&mut keeper, 5, failed(Failure::Forbidden))));
    assert_eq!(next(&mut keeper, 5), [], "it waits");
    assert!(release(&answer(&mut keeper, 6, Answer::Released { version: 9 })));
    keeper.went("p1", now(7));
    assert!(keeper.pods().next().is_none(), "nothing is kept of it");
}

#[test]
fn without_a_namespace_to_create_in_ended_pods_are_let_go_at_once() {
    let mut keeper = without_record(ended());
    answer(&mut keeper, 2, failed(Failure::NamespaceTerminating));
    let calls = next(&mut keeper, 3);
    assert!(
        calls.iter().any(|call| matches!(call, Call::Release { is_counted: false, .. })),
        "{calls:?}"
    );
}

#[test]
fn ah2_a_kind_that_is_not_served_holds_no_pod_longer_than_the_limit() {
    let mut keeper = Keeper::default();
    keeper.saw(5, ended(), now(0));
    for seconds in [1, 60, 299] {
        let call = answer(&mut keeper, seconds, failed(Failure::NotServed));
        assert_eq!(call, Call::Get { long_name: false });
    }
    let calls = next(&mut keeper, 301);
    let let_go = calls.iter().filter(|call| matches!(call, Call::Release { .. }));
    assert_eq!(let_go.count(), 1, "{calls:?}");
}

/// The release that is sent at this time, if one is.
fn let_go(keeper: &mut Keeper, seconds: u64) -> Option<Call> {
    let calls = next(keeper, seconds);
    // What is asked about the record is not answered.
    calls.into_iter().find(|call| matches!(call, Call::Release { is_counted: false, .. }))
}

#[test]
fn ah4_whatever_a_record_cannot_be_written_for_its_pods_are_let_go() {
    let conflict = Failure::AlreadyExists { same: true };
    for failure in [
        Failure::NotFound,
        Failure::NotServed,
        Failure::Conflict,
        conflict,
        Failure::Invalid,
        Failure::Forbidden,
        Failure::Unavailable,
        Failure::Unanswered,
    ] {
        let mut keeper = without_record(ended());
        assert_eq!(answer(&mut keeper, 2, failed(failure)), Call::Create { long_name: false });
        assert_eq!(let_go(&mut keeper, 301), None, "{failure:?}");
        assert!(let_go(&mut keeper, 302).is_some(), "{failure:?}");
    }
}

#[test]
fn ah3_while_the_api_server_is_silent_no_pod_is_let_go() {
    let mut keeper = without_record(ended());
    answer(&mut keeper, 2, failed(Failure::Forbidden));
    answer(&mut keeper, 250, failed(Failure::Silent));
    assert_eq!(let_go(&mut keeper, 549), None);
    let release = let_go(&mut keeper, 550).unwrap();
    // It cannot release either, so it is not the record that is refused.
    keeper.answered(&release, failed(Failure::Unavailable), now(551));
    assert_eq!(let_go(&mut keeper, 850), None);
    assert!(let_go(&mut keeper, 851).is_some());
}

#[test]
fn a_lost_answer_leaves_no_record_unwritable() {
    let mut keeper = proven(ended());
    let calls = next(&mut keeper, 4);
    let [store @ Call::Store(stored)] = &calls[..] else { panic!("{calls:?}") };
    keeper.answered(store, failed(Failure::Unanswered), now(4));
    assert!(keeper.is_unwritable());
    let fence = Fence { version: "8".into(), ..stored.fence.clone() };
    let read = Answer::Record(fence, Box::new(stored.status.clone()));
    for answered in [read, Answer::Pods { version: 9, pods: vec![(5, ended())] }] {
        let calls = next(&mut keeper, 5);
        let about_record = calls.iter().find(|it| !matches!(it, Call::Release { .. }));
        keeper.answered(about_record.unwrap(), answered, now(5));
    }
    next(&mut keeper, 5);
    assert!(!keeper.is_unwritable());
}

#[test]
fn a_record_that_was_not_found_and_is_there_was_not_recreated() {
    let mut keeper = proven(ended());
    assert!(matches!(answer(&mut keeper, 4, failed(Failure::NotFound)), Call::Store(_)));
    let exists = failed(Failure::AlreadyExists { same: true });
    assert_eq!(answer(&mut keeper, 5, exists), Call::Create { long_name: false });
    assert_eq!(answer(&mut keeper, 6, record()), Call::Get { long_name: false });
    answer(&mut keeper, 7, Answer::Pods { version: 8, pods: vec![(5, ended())] });
    let calls = next(&mut keeper, 8);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert!(store.status.inexact.is_empty(), "{:?}", store.status.inexact);
}

#[test]
fn a_write_that_fails_is_tried_ever_more_rarely_though_reads_succeed() {
    let mut keeper = proven(ended());
    let mut tries = Vec::new();
    for seconds in 4..100 {
        for call in next(&mut keeper, seconds) {
            let answered = match &call {
                Call::Store(_) => {
                    tries.push(seconds);
                    failed(Failure::Conflict)
                }
                Call::Get { .. } => record(),
                Call::List { .. } => Answer::Pods { version: 6, pods: vec![(5, ended())] },
                Call::Create { .. } | Call::ReadJob | Call::Release { .. } => panic!("{call:?}"),
            };
            keeper.answered(&call, answered, now(seconds));
        }
    }
    assert!(tries.len() < 10, "{tries:?}");
}

#[test]
fn a_train_job_that_cannot_be_read_is_as_the_watch_shows_it() {
    for failure in [Failure::Forbidden, Failure::NotFound] {
        let phase = Phase::Failed;
        let stopped = Pod { phase, containers: [ended_at(995, 143)].into(), ..ended() };
        let mut keeper = proven(stopped);
        for seconds in [4, 10] {
            assert_eq!(answer(&mut keeper, seconds, failed(failure)), Call::ReadJob);
        }
        assert!(matches!(&next(&mut keeper, 20)[..], [Call::Store(_)]), "{failure:?}");
    }
}

#[test]
fn a_pod_that_is_not_found_is_released_once_the_watch_shows_that_it_left() {
    let mut keeper = proven(ended());
    answer(&mut keeper, 4, Answer::Stored { version: "8".into() });
    let is_release = |call: &Call| matches!(call, Call::Release { .. });
    assert!(is_release(&answer(&mut keeper, 5, failed(Failure::NotFound))));
    assert!(is_release(&answer(&mut keeper, 6, failed(Failure::NotFound))));
    keeper.went("p1", now(7));
    next(&mut keeper, 7);
    assert!(keeper.is_empty(), "nothing is kept of it");
}

#[test]
fn what_was_let_go_is_told_of_once_though_the_answer_to_that_is_lost() {
    let mut keeper = without_record(ended());
    answer(&mut keeper, 2, failed(Failure::Forbidden));
    let release = let_go(&mut keeper, 302).unwrap();
    keeper.answered(&release, Answer::Released { version: 8 }, now(302));
    keeper.went("p1", now(302));
    keeper.answered(&Call::Create { long_name: false }, record(), now(303));
    answer(&mut keeper, 304, Answer::Pods { version: 9, pods: vec![] });
    let calls = next(&mut keeper, 305);
    let [store @ Call::Store(stored)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(stored.status.lost, [("RecordUnwritable".to_owned(), 1)].into());
    keeper.answered(store, failed(Failure::Unanswered), now(305));
    let fence = Fence { version: "8".into(), ..stored.fence.clone() };
    answer(&mut keeper, 306, Answer::Record(fence, Box::new(stored.status.clone())));
    answer(&mut keeper, 307, Answer::Pods { version: 10, pods: vec![] });
    assert_eq!(next(&mut keeper, 400), [], "it is told of");
}

#[test]
fn ag10_a_pod_that_lost_our_labels_is_counted_and_released() {
    let mut keeper = proven(pod());
    // What is open is told of.
    answer(&mut keeper, 40, Answer::Stored { version: "8".into() });
    keeper.lost_labels("p1", now(41));
    let calls = next(&mut keeper, 50);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(
        (&store.status.settling[..], store.status.totals.pods.deleted),
        (&["p1".into()][..], 1)
    );
}

#[test]
fn ag10_labels_that_are_lost_before_anything_is_counted_hang_no_pod() {
    let mut keeper = without_record(pod());
    answer(&mut keeper, 2, record());
    keeper.lost_labels("p1", now(2));
    answer(&mut keeper, 3, Answer::Pods { version: 6, pods: vec![] });
    let calls = next(&mut keeper, 10);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(store.status.settling, ["p1"]);
}

/// A Pod as `Observe` marks it.
fn observed() -> Pod {
    Pod { finalizer: false, ..pod() }
}

#[test]
fn ag10_a_pod_that_goes_while_its_record_is_made_is_counted_as_it_was_last_seen() {
    let seen = |keeper: &mut Keeper| keeper.went("p1", now(2));
    let unseen = |_: &mut Keeper| {};
    for (case, goes, pod, reason) in [
        ("the watch shows it first", seen as fn(&mut Keeper), observed(), "Observed"),
        ("the list shows it first", unseen, observed(), "Observed"),
        ("it had a finalizer", unseen, pod(), "Unprotected"),
    ] {
        let mut keeper = without_record(pod);
        goes(&mut keeper);
        answer(&mut keeper, 2, record());
        answer(&mut keeper, 3, Answer::Pods { version: 6, pods: vec![] });
        if reason == "Observed" {
            // Whether it was stopped by a suspension.
            assert_eq!(answer(&mut keeper, 4, Answer::Job), Call::ReadJob, "{case}");
        }
        let calls = next(&mut keeper, 10);
        let [Call::Store(store)] = &calls[..] else { panic!("{case}: {calls:?}") };
        let status = &store.status;
        assert_eq!(
            (status.totals.pods.deleted, &status.inexact[..], status.lost.len()),
            (1, &[reason.to_owned()][..], 0),
            "{case}"
        );
    }
}

#[test]
fn ag11_of_a_record_that_was_only_made_at_least_one_pod_is_lost_if_there_is_none() {
    let mut keeper = Keeper::default();
    assert_eq!(answer(&mut keeper, 1, record()), Call::Get { long_name: false });
    answer(&mut keeper, 2, Answer::Pods { version: 6, pods: vec![] });
    let calls = next(&mut keeper, 3);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(store.status.lost, [("Unwatched".to_owned(), 1)].into());
    assert_eq!(store.status.inexact, ["Lost"]);
}

#[test]
fn a_release_that_the_watch_shows_before_its_answer_leaves_nothing_behind() {
    for leaves in [Keeper::went, Keeper::lost_labels] {
        let mut keeper = proven(ended());
        answer(&mut keeper, 4, Answer::Stored { version: "8".into() });
        let calls = next(&mut keeper, 5);
        let [release @ Call::Release { .. }] = &calls[..] else { panic!("{calls:?}") };
        leaves(&mut keeper, "p1", now(5));
        assert!(!next(&mut keeper, 5).iter().any(|call| matches!(call, Call::Release { .. })));
        keeper.answered(release, Answer::Released { version: 9 }, now(6));
        assert!(keeper.is_empty(), "nothing is kept of it");
    }
}

#[test]
fn once_its_namespace_is_gone_nothing_is_left_to_do_about_a_record() {
    let mut keeper = without_record(pod());
    assert_eq!(
        answer(&mut keeper, 2, failed(Failure::NoNamespace)),
        Call::Create { long_name: false }
    );
    assert!(keeper.is_done());
}

#[test]
fn ag12_a_record_that_was_deleted_is_made_anew_even_if_no_pod_comes() {
    let mut keeper = proven(ended());
    answer(&mut keeper, 4, Answer::Stored { version: "8".into() });
    answer(&mut keeper, 5, Answer::Released { version: 9 });
    keeper.went("p1", now(6));
    keeper.record_went("r1");
    assert!(!keeper.is_done());
    assert_eq!(next(&mut keeper, 7), [Call::Create { long_name: false }]);
}

#[test]
fn ae1_a_pod_that_ends_because_time_passes_is_stored() {
    let deletion = Some(Deletion { at: at(1_000), grace: 0 });
    let mut keeper = proven(Pod { phase: Phase::Open, deletion, ..pod() });
    answer(&mut keeper, 4, Answer::Stored { version: "8".into() });
    let later = |clock| Now { server: at(1_010), clock: Duration::from_secs(clock) };
    assert_eq!(keeper.next(&RUNNING, &Settings::default(), later(14)).now, []);
    let calls = keeper.next(&RUNNING, &Settings::default(), later(15)).now;
    assert!(matches!(&calls[..], [Call::ReadJob]), "{calls:?}");
}
