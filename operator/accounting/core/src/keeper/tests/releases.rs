//! Pods that are let go because their record cannot be written (AH2).

use trainjob_api::lifecycle::v1alpha1::record_words::Outcome;

use super::*;
use crate::ledger::Ledger;

#[test]
fn what_was_counted_by_the_process_before_is_not_told_of_as_lost() {
    let mut keeper = Keeper::default();
    keeper.saw(5, ended(), now(0));
    answer(&mut keeper, 1, failed(Failure::NotServed));
    let calls = next(&mut keeper, 302);
    let of_pod = |call: &&Call| matches!(call, Call::Release { .. });
    let release = calls.iter().find(of_pod).unwrap();
    keeper.answered(release, Answer::Released { version: 8 }, now(302));
    let (settling, as_of) = (vec!["p1".to_owned()], Some(at(1_000).into()));
    let status = TrainJobRecordStatus { settling, as_of, ..TrainJobRecordStatus::default() };
    let fence = Fence { name: "llm-j1".into(), uid: "r1".into(), version: "7".into() };
    let get = calls.iter().find(|call| !of_pod(call)).unwrap();
    keeper.answered(get, Answer::Record(fence, Box::new(status)), now(303));
    answer(&mut keeper, 304, Answer::Pods { version: 9, pods: vec![] });
    let calls = next(&mut keeper, 310);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert!(store.status.lost.is_empty(), "{:?}", store.status.lost);
}

/// One with this Pod, which is let go at 302, since nobody has said whether there is a record.
fn lets_go_unread() -> (Keeper, Call) {
    let mut keeper = Keeper::default();
    keeper.saw(5, ended(), now(0));
    answer(&mut keeper, 1, failed(Failure::NotServed));
    let calls = next(&mut keeper, 302);
    let [release @ Call::Release { .. }, get] = &calls[..] else { panic!("{calls:?}") };
    keeper.answered(get, record(), now(302));
    (keeper, release.clone())
}

#[test]
fn what_had_gone_before_it_was_let_go_is_not_told_of_as_let_go() {
    for (first, expected) in [(Failure::NotFound, None), (Failure::Unanswered, Some(1))] {
        let (mut keeper, release) = lets_go_unread();
        keeper.answered(&release, failed(first), now(302));
        keeper.lost_labels("p1", now(302));
        keeper.answered(&release, failed(Failure::NotFound), now(303));
        answer(&mut keeper, 304, Answer::Pods { version: 9, pods: vec![] });
        let calls = next(&mut keeper, 310);
        let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!(store.status.lost.get("RecordUnwritable").copied(), expected, "{first:?}");
    }
}

#[test]
fn ah2_a_write_that_succeeds_while_a_pod_is_being_let_go_ends_the_haste() {
    let (mut keeper, release, store) = lets_go_beside_a_store();
    keeper.answered(&store, Answer::Stored { version: "8".into() }, now(305));
    keeper.answered(&release, Answer::Released { version: 9 }, now(305));
    assert!(!keeper.is_unwritable());
}

#[test]
fn what_a_store_counts_that_was_under_way_is_not_told_of_as_let_go() {
    for stored_first in [true, false] {
        let mut keeper = proven(ended());
        answer(&mut keeper, 4, failed(Failure::Forbidden));
        let calls = next(&mut keeper, 5);
        let [store @ Call::Store(_)] = &calls[..] else { panic!("{calls:?}") };
        let release = let_go(&mut keeper, 304).unwrap();
        let (stored, released) =
            (Answer::Stored { version: "8".into() }, Answer::Released { version: 9 });
        if stored_first {
            keeper.answered(store, stored, now(305));
            keeper.answered(&release, released, now(305));
        } else {
            keeper.answered(&release, released, now(305));
            keeper.answered(store, stored, now(305));
        }
        let calls = next(&mut keeper, 310);
        let [Call::Store(clear)] = &calls[..] else { panic!("{calls:?}") };
        assert!(clear.status.lost.is_empty(), "{stored_first}: {:?}", clear.status.lost);
        assert_eq!(clear.status.totals.pods.succeeded, 1);
    }
}

#[test]
fn ah3_silence_about_the_train_job_is_silence_too() {
    let containers = vec![ended_at(900, 143)];
    let mut keeper = proven(Pod { phase: Phase::Failed, containers: containers.into(), ..ended() });
    let silent = |seconds, keeper: &mut Keeper| {
        let asked = answer(keeper, seconds, failed(Failure::Silent));
        assert_eq!(asked, Call::ReadJob);
    };
    answer(&mut keeper, 4, failed(Failure::Unavailable));
    silent(5, &mut keeper);
    assert!(let_go(&mut keeper, 299).is_none());
}

#[test]
fn what_is_being_let_go_when_its_record_is_proven_is_told_of_once() {
    let told = [
        Answer::Released { version: 8 },
        // Its answer is lost, and the list shows that it was carried out.
        failed(Failure::Unanswered),
    ];
    // It is gone, or others keep it.
    let lists = [vec![], vec![(8, Pod { accounted: true, finalizer: false, ..ended() })]];
    for (released, pods) in told.iter().flat_map(|told| lists.iter().map(move |it| (told, it))) {
        let mut keeper = Keeper::default();
        keeper.saw(5, ended(), now(0));
        answer(&mut keeper, 1, failed(Failure::NotServed));
        let calls = next(&mut keeper, 302);
        let [release @ Call::Release { .. }, get] = &calls[..] else { panic!("{calls:?}") };
        let settings = Settings::default();
        let mut ledger = Ledger::new(TrainJobRecordStatus::default(), &settings);
        ledger.set_open([&pod()]);
        let mut status = ledger.finish(Outcome::Running);
        status.as_of = Some(at(1_000).into());
        let fence = Fence { name: "llm-j1".into(), uid: "r1".into(), version: "7".into() };
        keeper.answered(get, Answer::Record(fence, Box::new(status)), now(302));
        answer(&mut keeper, 303, Answer::Pods { version: 9, pods: pods.clone() });
        keeper.answered(release, released.clone(), now(303));
        for (version, pod) in pods {
            keeper.saw(*version, pod.clone(), now(303));
        }
        let calls = next(&mut keeper, 304);
        let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!(store.status.lost, [("RecordUnwritable".to_owned(), 1)].into());
    }
}

/// One that has a Pod from this list of its own, which the watch has not shown and which has no finalizer any more.
fn listed_only(meanwhile: fn(&mut Keeper)) -> Keeper {
    let mut keeper = without_record(observed());
    answer(&mut keeper, 2, record());
    let calls = next(&mut keeper, 3);
    let [list @ Call::List { .. }] = &calls[..] else { panic!("{calls:?}") };
    meanwhile(&mut keeper);
    let bare = Pod { uid: "p2".into(), finalizer: false, ..ended() };
    let pods = Answer::Pods { version: 9, pods: vec![(5, observed()), (8, bare)] };
    keeper.answered(list, pods, now(3));
    keeper
}

#[test]
fn what_went_between_a_list_and_a_new_watch_is_looked_for_with_another_list() {
    let mut keeper = listed_only(Keeper::recheck);
    let shown = Answer::Pods { version: 11, pods: vec![(5, observed())] };
    assert_eq!(answer(&mut keeper, 4, shown), Call::List { is_over: false });
    assert!(!matches!(&next(&mut keeper, 5)[..], [Call::List { .. }]), "once");
    let gone = keeper.pod("p2").map(|tracked| tracked.presence);
    assert_eq!(gone, Some(crate::tracked::Presence::Gone));
}

#[test]
fn a_pod_that_is_not_found_twice_is_looked_for_with_a_list() {
    let mut keeper = listed_only(|_| {});
    answer(&mut keeper, 4, Answer::Stored { version: "10".into() });
    let is_release = |call: &Call| matches!(call, Call::Release { .. });
    assert!(next(&mut keeper, 5).is_empty(), "it may go by itself");
    assert!(is_release(&answer(&mut keeper, 33, failed(Failure::NotFound))));
    let calls = next(&mut keeper, 33);
    assert_eq!(calls, [], "the watch may show it");
    assert!(is_release(&answer(&mut keeper, 34, failed(Failure::NotFound))));
    let shown = Answer::Pods { version: 11, pods: vec![(5, observed())] };
    assert_eq!(answer(&mut keeper, 34, shown), Call::List { is_over: false });
    let calls = next(&mut keeper, 68);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert!(store.status.settling.is_empty(), "{:?}", store.status.settling);
    assert!(keeper.pod("p2").is_none(), "nothing is kept of it");
}

#[test]
fn a_pod_that_is_not_found_and_is_listed_is_released_again() {
    let mut keeper = listed_only(|_| {});
    answer(&mut keeper, 4, Answer::Stored { version: "10".into() });
    for seconds in [33, 34] {
        answer(&mut keeper, seconds, failed(Failure::NotFound));
    }
    let bare = Pod { uid: "p2".into(), finalizer: false, ..ended() };
    let pods = vec![(5, observed()), (8, bare)];
    answer(&mut keeper, 34, Answer::Pods { version: 11, pods });
    let calls = next(&mut keeper, 35);
    assert!(matches!(&calls[..], [Call::Release { .. }]), "{calls:?}");
}

/// One whose record cannot be written, and the request that lets its Pod go at 304, with the store that is sent beside it.
fn lets_go_beside_a_store() -> (Keeper, Call, Call) {
    let mut keeper = proven(ended());
    answer(&mut keeper, 4, failed(Failure::Forbidden));
    let calls = next(&mut keeper, 304);
    let [release @ Call::Release { is_counted: false, .. }, store @ Call::Store(_)] = &calls[..]
    else {
        panic!("{calls:?}")
    };
    (keeper, release.clone(), store.clone())
}

#[test]
fn ag11_what_is_being_let_go_is_active_until_it_is_told_of() {
    let (mut keeper, release, store) = lets_go_beside_a_store();
    let Call::Store(first) = &store else { panic!("{store:?}") };
    assert_eq!(first.status.totals.pods.active, 1, "a successor finds that it is not there");
    keeper.answered(&store, Answer::Stored { version: "8".into() }, now(304));
    keeper.answered(&release, Answer::Released { version: 9 }, now(304));
    let calls = next(&mut keeper, 305);
    let [Call::Store(second)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(second.status.totals.pods.active, 0);
    assert_eq!(second.status.lost, [("RecordUnwritable".to_owned(), 1)].into());
}

#[test]
fn ah2_what_was_let_go_and_is_shown_before_its_answer_comes_is_told_of_once() {
    fn released(pod: Pod) -> Pod {
        Pod { finalizer: false, accounted: true, ..pod }
    }
    let watched = |keeper: &mut Keeper| keeper.saw(9, released(ended()), now(304));
    let listed = |keeper: &mut Keeper| {
        let pods = vec![(9, released(ended()))];
        let list = Call::List { is_over: false };
        keeper.answered(&list, Answer::Pods { version: 9, pods }, now(304));
    };
    for shows in [watched as fn(&mut Keeper), listed] {
        let (mut keeper, release, store) = lets_go_beside_a_store();
        keeper.answered(&release, failed(Failure::Unanswered), now(304));
        shows(&mut keeper);
        keeper.answered(&store, failed(Failure::Unavailable), now(304));
        let calls = next(&mut keeper, 340);
        let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!(store.status.lost, [("RecordUnwritable".to_owned(), 1)].into());
        assert_eq!(store.status.totals.pods.active, 0);
    }
}

#[test]
fn ah3_an_api_server_that_is_silent_to_a_release_lets_none_go() {
    let mut keeper = proven(ended());
    answer(&mut keeper, 4, Answer::Stored { version: "8".into() });
    keeper.saw(9, Pod { uid: "p2".into(), ..ended() }, now(5));
    let calls = next(&mut keeper, 6);
    let [release @ Call::Release { .. }, store @ Call::Store(_)] = &calls[..] else {
        panic!("{calls:?}")
    };
    keeper.answered(store, failed(Failure::Forbidden), now(6));
    keeper.answered(release, failed(Failure::Silent), now(250));
    assert_eq!(let_go(&mut keeper, 549), None);
    assert!(let_go(&mut keeper, 550).is_some());
}

#[test]
fn a_store_that_failed_is_sent_again_with_what_the_train_job_says_then() {
    let phase = Phase::Failed;
    let stopped = Pod { phase, containers: [ended_at(995, 143)].into(), ..ended() };
    let mut keeper = proven(stopped.clone());
    assert_eq!(answer(&mut keeper, 4, Answer::Job), Call::ReadJob);
    assert!(matches!(answer(&mut keeper, 5, failed(Failure::Unavailable)), Call::Store(_)));
    assert_eq!(answer(&mut keeper, 10, Answer::Job), Call::ReadJob);
    keeper.recheck();
    let pods = Answer::Pods { version: 9, pods: vec![(5, stopped)] };
    assert_eq!(answer(&mut keeper, 11, pods), Call::List { is_over: false });
    assert_eq!(answer(&mut keeper, 12, Answer::Job), Call::ReadJob, "after a list, too");
}

#[test]
fn ag11_what_went_while_it_was_to_be_let_go_is_told_of_as_unwatched() {
    let (mut keeper, release, store) = lets_go_beside_a_store();
    let Call::Store(sent) = &store else { panic!("{store:?}") };
    keeper.answered(&store, failed(Failure::Unanswered), now(304));
    let fence = Fence { version: "8".into(), ..sent.fence.clone() };
    answer(&mut keeper, 340, Answer::Record(fence, Box::new(sent.status.clone())));
    answer(&mut keeper, 341, Answer::Pods { version: 9, pods: vec![] });
    keeper.answered(&release, failed(Failure::NotFound), now(342));
    let calls = next(&mut keeper, 343);
    let [Call::Store(store)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(store.status.lost, [("Unwatched".to_owned(), 1)].into());
}
