use std::time::Duration;

use serde_json::{Value, json};
use trainjob_accounting_core::{answer::Failure, keeper::Fence};
use trainjob_api::{
    lifecycle::v1alpha1::{
        ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
    },
    time::Timestamp,
};

use super::*;
use crate::key::PodKey;

const NOW: Now = Now { server: Timestamp(1_795_329_000), clock: Duration::from_secs(7) };

fn key() -> JobKey {
    JobKey { namespace: "a".into(), name: "llm".into(), uid: "u1".into() }
}

/// Pod p1 of the job, changed in this way.
fn pod(version: u32, metadata: Value) -> StoredPod {
    let mut all = json!({
        "name": "llm-node-0", "namespace": "a", "uid": "p1", "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-11-22T06:00:00Z",
        "labels": {TRAIN_JOB_NAME_LABEL: "llm", TRAIN_JOB_UID_LABEL: "u1"},
        "finalizers": [ACCOUNTING_FINALIZER],
    });
    let Value::Object(changes) = metadata else { panic!("no map") };
    all.as_object_mut().unwrap().extend(changes);
    let status = json!({"phase": "Running"});
    let spec = json!({"nodeName": "n1", "containers": []});
    serde_json::from_value(json!({"metadata": all, "spec": spec, "status": status})).unwrap()
}

fn running() -> StoredPod {
    pod(5, json!({}))
}

fn terminating() -> StoredPod {
    let (at, grace) = ("2026-11-22T06:10:00Z", 30);
    pod(6, json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}))
}

fn released() -> StoredPod {
    pod(7, json!({"finalizers": [], "annotations": {ACCOUNTED_ANNOTATION: "p1"}}))
}

fn record(is_final: &str) -> TrainJobRecord {
    let condition = json!({
        "type": "Final", "status": is_final, "reason": "Open", "message": "",
        "lastTransitionTime": "2026-11-22T06:00:00Z",
    });
    serde_json::from_value(json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1", "kind": "TrainJobRecord",
        "metadata": {"name": "llm-1", "namespace": "a", "uid": "r1"},
        "spec": {"trainJob": {"name": "llm", "uid": "u1"}},
        "status": {"conditions": [condition]},
    }))
    .unwrap()
}

fn standby() -> Book {
    Book::new(TrainJobs::default())
}

fn leader() -> Book {
    let mut book = standby();
    book.take_over();
    book
}

#[test]
fn of_a_pod_that_another_process_counts_nothing_is_kept() {
    for leaves in
        [Book::pod_gone, |book: &mut Book, _: &StoredPod, now| book.pod_seen(&released(), now)]
    {
        let mut book = standby();
        assert_eq!(book.pod_seen(&running(), NOW), Some(key()));
        assert!(book.has(&key()));
        leaves(&mut book, &terminating(), NOW);
        assert!(!book.has(&key()) && book.pods.is_empty());
    }
}

#[test]
fn a_pod_that_was_released_before_is_no_work() {
    let mut book = leader();
    assert_eq!(book.pod_seen(&released(), NOW), None);
    assert!(book.keys().is_empty() && book.pods.is_empty());
}

#[test]
fn ag10_a_pod_that_leaves_with_our_finalizer_may_be_there_without_our_labels() {
    for (case, left) in [("it runs", running()), ("it is being deleted", terminating())] {
        let mut book = leader();
        book.pod_seen(&left, NOW);
        book.pod_gone(&left, NOW);
        let tracked = book.pod(&key(), "p1").unwrap();
        assert_eq!(tracked.presence, Presence::Stripped, "{case}");
    }
    let mut book = leader();
    let observed = pod(5, json!({"finalizers": []}));
    book.pod_seen(&observed, NOW);
    book.pod_gone(&observed, NOW);
    assert_eq!(book.pod(&key(), "p1").unwrap().presence, Presence::Gone, "it never had one");
}

#[test]
fn ag10_a_pod_that_loses_the_name_of_its_job_has_lost_our_labels() {
    let unnamed = pod(6, json!({"labels": {TRAIN_JOB_UID_LABEL: "u1"}}));
    let mut book = leader();
    book.pod_seen(&running(), NOW);
    assert_eq!(book.pod_seen(&unnamed, NOW), Some(key()));
    assert_eq!(book.pod(&key(), "p1").unwrap().presence, Presence::Stripped);
    assert!(book.take_lost_labels() && book.pods.is_empty());
    assert_eq!(book.pod_seen(&unnamed, NOW), None, "nobody knows whose it is");
}

/// Ends that a Pod is held whose labels can name no job.
type Ends<'a> = &'a dyn Fn(&mut Book);

#[test]
fn ah7_a_pod_whose_labels_can_name_no_job_is_held_in_no_record() {
    let labels = json!({TRAIN_JOB_NAME_LABEL: "No_Name", TRAIN_JOB_UID_LABEL: "u1"});
    let nameless = pod(6, json!({"labels": labels}));
    let ways: [Ends<'_>; 5] = [
        &|book| book.nameless.forget("p1"),
        &|book| assert_eq!(book.pod_gone(&nameless, NOW), None),
        &|book| {
            book.pod_seen(&pod(7, json!({"labels": labels, "finalizers": []})), NOW);
        },
        &|book| assert_eq!(book.pod_seen(&running(), NOW), Some(key())),
        &|book| {
            book.pods_relist();
            book.pods_listed(NOW);
        },
    ];
    for ends in ways {
        let mut book = leader();
        assert_eq!(book.pod_seen(&nameless, NOW), None);
        assert!(book.keys().is_empty());
        book.pods_relist();
        book.pod_seen(&nameless, NOW);
        book.pods_listed(NOW);
        assert_eq!(book.nameless.held(), [PodKey::of(&nameless.metadata)]);
        ends(&mut book);
        assert_eq!(book.nameless.held(), []);
    }
    let mut book = leader();
    book.pod_seen(&running(), NOW);
    assert_eq!(book.pod_seen(&nameless, NOW), Some(key()), "the record that knows it keeps it");
    assert_eq!(book.nameless.held(), []);
}

#[test]
fn a_pod_with_the_uid_of_a_job_and_another_name_is_of_another_record() {
    let labels = json!({TRAIN_JOB_NAME_LABEL: "foo", TRAIN_JOB_UID_LABEL: "u1"});
    let of_foo = pod(6, json!({"uid": "p2", "labels": labels}));
    let foo = JobKey { name: "foo".into(), ..key() };
    let read = |stored: &StoredPod| versioned(stored).unwrap().1;
    let (own, foreign) = (read(&running()), read(&of_foo));
    let mut book = leader();
    assert!(book.belongs(&key(), &own) && !book.belongs(&foo, &own));
    assert!(book.belongs(&foo, &foreign) && !book.belongs(&key(), &foreign));
    book.pod_seen(&running(), NOW);
    let renamed =
        read(&pod(6, json!({"labels": {TRAIN_JOB_NAME_LABEL: "foo", TRAIN_JOB_UID_LABEL: "u1"}})));
    assert!(book.belongs(&key(), &renamed), "the record that knows it keeps it");
}

#[test]
fn what_a_list_of_the_watch_does_not_show_has_left() {
    let mut book = leader();
    book.pod_seen(&running(), NOW);
    book.pods_relist();
    assert_eq!(book.pods_listed(NOW), [key()]);
    assert_eq!(book.pod(&key(), "p1").unwrap().presence, Presence::Stripped);
}

#[test]
fn a_record_that_is_not_final_is_work_and_a_final_one_is_none() {
    let mut book = standby();
    assert_eq!(book.record_seen(key(), &record("False"), true), Some(key()));
    assert_eq!(book.keys(), [key()]);
    assert_eq!(book.record_seen(key(), &record("True"), false), None);
    assert!(book.keys().is_empty());
}

#[test]
fn what_this_process_wrote_is_no_news_to_it() {
    let mut book = leader();
    assert_eq!(book.record_seen(key(), &record("False"), false), None);
    assert!(book.keys().is_empty());
    let listed = book.record_seen(key(), &record("False"), true);
    assert_eq!(listed, Some(key()), "a list may show what it has missed");
}

#[test]
fn ag12_pods_of_a_namespace_that_is_gone_are_told_of_as_forgotten() {
    let mut book = leader();
    book.pod_seen(&terminating(), NOW);
    let settings = Settings::default();
    let not_found = |call: &Call| {
        let failure = match call {
            Call::Create { .. } => Failure::NoNamespace,
            _ => Failure::NotFound,
        };
        Answer::Failed { failure, retry_after: Duration::ZERO }
    };
    let mut clock = NOW;
    let mut forgotten = 0;
    while book.has(&key()) && clock.clock < Duration::from_mins(1) {
        let (step, _) = book.step(&key(), &settings, clock);
        if let Step::Send(call) = step {
            let answer = not_found(&call);
            forgotten += book.answered(&key(), &call, answer, clock).forgotten.len();
        }
        clock.clock += Duration::from_secs(1);
    }
    assert!(!book.has(&key()), "nothing is left to do");
    assert_eq!(forgotten, 1);
}

#[test]
fn a_request_is_sent_again_until_it_is_answered() {
    let mut book = leader();
    book.pod_seen(&running(), NOW);
    let settings = Settings::default();
    let (Step::Send(call), _) = book.step(&key(), &settings, NOW) else {
        panic!("nothing is sent")
    };
    let (Step::Send(again), _) = book.step(&key(), &settings, NOW) else {
        panic!("it is forgotten")
    };
    assert_eq!(call, again);
    let fence = Fence { name: "llm-1".into(), uid: "r1".into(), version: "1".into() };
    let answer = Answer::Record(fence, Box::default());
    book.answered(&key(), &call, answer, NOW);
    assert!(matches!(book.step(&key(), &settings, NOW), (Step::Share, _)));
    assert_eq!(book.record(&key()), Some(("llm-1".into(), "r1".into())));
}

/// A book that is to list the Pods of a record next.
fn about_to_list() -> Book {
    let mut book = leader();
    book.pod_seen(&running(), NOW);
    let (Step::Send(call), _) = book.step(&key(), &Settings::default(), NOW) else {
        panic!("nothing is sent")
    };
    let fence = Fence { name: "llm-1".into(), uid: "r1".into(), version: "1".into() };
    book.answered(&key(), &call, Answer::Record(fence, Box::default()), NOW);
    book
}

fn more_pods(book: &mut Book, number: usize) {
    for number in 0..number {
        book.pod_seen(&pod(5, json!({"uid": format!("more-{number}")})), NOW);
    }
}

#[test]
fn one_request_at_a_time_is_about_a_record_also_while_its_pods_are_listed_with_those_of_others() {
    let mut book = about_to_list();
    let settings = Settings::default();
    assert!(!book.is_asked("a"));
    for _ in 0..2 {
        assert!(matches!(book.step(&key(), &settings, NOW), (Step::Share, _)));
        assert_eq!(book.shared_list("a").len(), 1, "it is asked for once");
    }
    more_pods(&mut book, entry::FEW);
    assert!(matches!(book.step(&key(), &settings, NOW), (Step::Share, _)), "it is under way");
    let (asked, call) = book.shared_list("a").remove(0);
    assert_eq!(*asked, key());
    book.answered(&key(), &call, Answer::Pods { version: 9, pods: Vec::new() }, NOW);
    assert!(!book.is_asked("a"));
    let (next, _) = book.step(&key(), &settings, NOW);
    assert!(!matches!(next, Step::Share | Step::Send(Call::List { .. })), "{next:?}");
}

#[test]
fn many_pods_have_a_list_of_their_own() {
    let mut book = about_to_list();
    more_pods(&mut book, entry::FEW);
    let (step, _) = book.step(&key(), &Settings::default(), NOW);
    assert!(matches!(step, Step::Send(Call::List { .. })), "{step:?}");
    assert!(!book.is_asked("a"));
}

#[test]
fn of_an_open_pod_the_book_keeps_the_uid_and_the_key_that_are_known() {
    let mut book = leader();
    for version in [5, 6] {
        book.pod_seen(&pod(version, json!({})), NOW);
    }
    book.pod_seen(&pod(7, json!({"name": "llm-node-1", "uid": "p2"})), NOW);
    let (entry, _) = book.entries.get_key_value(&key()).unwrap();
    for (uid, key) in &book.pods {
        assert!(Arc::ptr_eq(key, entry), "{uid}");
        let known = &book.pod(key, uid).unwrap().pod;
        assert!(Arc::ptr_eq(&known.uid, uid), "{uid}");
    }
    assert_eq!(book.pods.len(), 2);
}

#[test]
fn a_look_that_took_long_is_not_followed_by_another_at_once() {
    let (mut book, ms) = (leader(), Duration::from_millis);
    book.pod_seen(&running(), NOW);
    for (took, rest) in [(ms(0), None), (ms(2), Some(ms(40))), (ms(90), Some(LONGEST_REST))] {
        book.looked(&key(), took, NOW);
        assert_eq!(book.rests(&key(), NOW), rest, "{took:?}");
    }
    let later = Now { clock: NOW.clock + ms(240), ..NOW };
    assert_eq!(book.rests(&key(), later), Some(ms(10)));
    let later = Now { clock: NOW.clock + LONGEST_REST, ..NOW };
    assert_eq!(book.rests(&key(), later), None);
    // What is to be sent does not wait.
    let (step, _) = book.step(&key(), &Settings::default(), NOW);
    assert!(matches!(step, Step::Send(_)), "{step:?}");
    assert_eq!(book.rests(&key(), NOW), None);
}
