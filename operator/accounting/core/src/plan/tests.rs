//! One case for each rule of the algorithm.

mod releases;

use std::{borrow::Borrow, slice, sync::Arc, time::Duration};

use trainjob_api::lifecycle::v1alpha1::{
    record::{SETTLING, TrainJobRecordStatus},
    record_words::{Outcome, RecordCondition},
};

use super::{
    Action, Context, Evidence, JobRead, Plan, Record, condition, pace::BATCH, plan, unwatched,
};
use crate::{
    clock::Now,
    holding::Valve,
    job::{Finish, FinishedHow, Job, Suspension},
    ledger::Ledger,
    pod::{Deletion, Phase, Pod, Template},
    settings::Settings,
    testing::{at, ended_at, pod, template},
    tracked::{Presence, Tracked},
};

const NOW: Now = Now { server: at(1_000), clock: Duration::from_secs(100) };
const PROVEN: Evidence = Evidence::Proven { unwatched: 0, listed_after_end: false };
const LISTED: Evidence = Evidence::Proven { unwatched: 0, listed_after_end: true };

fn running() -> Job {
    Job::Running { suspension: Suspension::Never }
}

fn complete() -> Job {
    let how = FinishedHow::Complete;
    let texts = [String::new(), String::new()];
    let [reason, message] = texts;
    Job::Finished(Finish { how, at: at(900), reason, message, suspension: Suspension::Never })
}

/// A Pod that succeeded, seen so long ago.
fn ended(uid: &str, ago: u64) -> Tracked {
    let containers = vec![ended_at(900, 0)];
    let pod =
        Pod { uid: uid.into(), phase: Phase::Succeeded, containers: containers.into(), ..pod() };
    seen(pod, ago)
}

fn deleted(mut tracked: Tracked) -> Tracked {
    tracked.pod.deletion = Some(Deletion { at: at(990), grace: 30 });
    tracked
}

fn seen(pod: Pod, ago: u64) -> Tracked {
    let mut tracked = Tracked::new(pod, NOW);
    tracked.ended_seen = NOW.clock.checked_sub(Duration::from_secs(ago));
    tracked
}

/// A record that tells of everything but the Pods of the test.
fn stored(settling: &[&str], active: u64) -> Record {
    let mut status = TrainJobRecordStatus {
        outcome: Outcome::Running.as_str().into(),
        settling: settling.iter().map(|uid| (*uid).into()).collect(),
        as_of: Some(NOW.server.into()),
        ..Default::default()
    };
    status.totals.pods.active = active;
    Record { status: Some(Box::new(status)), evidence: PROVEN, ..Record::default() }
}

/// The status of a record that is there.
fn status(record: &mut Record) -> &mut TrainJobRecordStatus {
    record.status.as_mut().unwrap()
}

fn planned(stored: impl Borrow<Record>, pods: &[Tracked], job: &Job) -> Plan {
    let settings = Settings::default();
    let context = Context { job, job_read: JobRead::Watched, settings: &settings, now: NOW };
    plan(stored.borrow(), pods, &context)
}

/// What is done, in a word each, with the UIDs that a store leaves in `settling`.
fn words(plan: &Plan) -> Vec<String> {
    let word = |action: &Action| match action {
        Action::Create => "create".to_owned(),
        Action::Prove => "prove".to_owned(),
        Action::ListPods => "list".to_owned(),
        Action::ReadJob => "read job".to_owned(),
        Action::Store(status) => format!("store {}", status.settling.join(" ")),
        Action::Release(uid) => format!("release {uid}"),
        Action::LetGo(uid) => format!("let go {uid}"),
    };
    plan.actions.iter().map(word).collect()
}

#[test]
fn a_record_is_created_when_the_first_marked_pod_is_seen() {
    let settings = Settings::default();
    let job = running();
    let context = Context { job: &job, job_read: JobRead::Watched, settings: &settings, now: NOW };
    let accounted = seen(Pod { accounted: true, finalizer: false, ..pod() }, 0);
    for (pods, expected) in [
        (vec![], vec![]),
        (vec![accounted], vec![]),
        (vec![Tracked::new(pod(), NOW)], vec!["create"]),
    ] {
        assert_eq!(words(&plan(&Record::default(), &pods, &context)), expected);
    }
}

#[test]
fn ag1_ag2_a_pod_is_stored_then_released_then_cleared() {
    let here = || deleted(ended("a", 1));
    let released = Tracked { presence: Presence::Released, ..here() };
    let gone = Tracked { presence: Presence::Gone, ..here() };
    let waited = |stored: Record| Record { stored_at: Some(Duration::from_secs(98)), ..stored };
    let fresh = |stored: Record| Record { stored_at: Some(Duration::from_secs(99)), ..stored };
    for (case, stored, pods, expected) in [
        ("stored", stored(&[], 1), vec![here()], vec!["store a"]),
        ("released", stored(&["a"], 0), vec![here()], vec!["release a"]),
        ("cleared", waited(stored(&["a"], 0)), vec![released.clone()], vec!["store "]),
        ("cleared, since it is gone", waited(stored(&["a"], 0)), vec![gone], vec!["store "]),
        ("cleared, since nobody has it", waited(stored(&["a"], 0)), vec![], vec!["store "]),
        ("not cleared yet", fresh(stored(&["a"], 0)), vec![released.clone()], vec![]),
        ("done", stored(&[], 0), vec![released], vec![]),
    ] {
        assert_eq!(words(&planned(stored, &pods, &running())), expected, "{case}");
    }
}

#[test]
fn ag2_deleted_pods_are_stored_first_and_no_more_than_fit() {
    let full: Vec<_> = (0..SETTLING - 1).map(|n| format!("s{n:03}")).collect();
    let mut stored = stored(&[], 2);
    status(&mut stored).settling.clone_from(&full);
    let settling =
        full.iter().map(|uid| Tracked { presence: Presence::Releasing, ..ended(uid, 1) });
    let pods: Vec<_> = settling.chain([ended("a", 50), deleted(ended("b", 1))]).collect();
    let plan = planned(stored, &pods, &running());
    let Some(Action::Store(status)) = plan.actions.last() else { panic!("{:?}", words(&plan)) };
    assert_eq!(status.settling.len(), SETTLING);
    assert!(
        status.settling.contains(&"b".to_owned()) && !status.settling.contains(&"a".to_owned())
    );
    assert_eq!(status.totals.pods.active, 1);
}

#[test]
fn ag2_of_more_than_fit_those_are_stored_first_that_ended_first() {
    const MORE: usize = SETTLING + 100;
    let uid = |number: usize| format!("p{number:03}");
    // The later in the order of UIDs, the earlier it has ended; every fiftieth is deleted.
    let pod = |number: usize| {
        let end = 900 - i64::try_from(number).unwrap();
        let tracked = ended(&uid(number), 50);
        let containers = vec![ended_at(end, 0)].into();
        let tracked = Tracked { pod: Pod { containers, ..tracked.pod }, ..tracked };
        if number.is_multiple_of(50) { deleted(tracked) } else { tracked }
    };
    let pods: Vec<_> = (0..MORE).map(pod).collect();
    let plan = planned(stored(&[], 0), &pods, &running());
    let Some(Action::Store(status)) = plan.actions.last() else { panic!("{:?}", words(&plan)) };
    let [deleted, left]: [Vec<_>; 2] =
        [true, false].map(|is| (0..MORE).filter(|it| it.is_multiple_of(50) == is).collect());
    let first = left.into_iter().rev().take(SETTLING - deleted.len());
    let expected: Vec<_> = deleted.into_iter().rev().chain(first).map(uid).collect();
    assert_eq!(status.settling, expected);
    assert_eq!(status.totals.pods.active, 100);
}

#[test]
fn ag5_nothing_is_stored_on_a_version_that_somebody_else_wrote() {
    let unproven = Record { evidence: Evidence::Unproven, ..stored(&["b"], 2) };
    let pods = [deleted(ended("a", 9)), ended("b", 9)];
    assert_eq!(words(&planned(unproven, &pods, &running())), ["release b", "prove"]);
}

#[test]
fn row_7_the_train_job_is_read_before_it_is_asked() {
    let ended = Pod { phase: Phase::Failed, containers: [ended_at(995, 143)].into(), ..pod() };
    let stopped = seen(Pod { deletion: Some(Deletion { at: at(990), grace: 30 }), ..ended }, 9);
    assert_eq!(words(&planned(stored(&[], 1), &[stopped], &running())), ["read job"]);
}

#[test]
fn ag9_the_pace_depends_on_who_waits() {
    let just_now = |tracked: Tracked| Tracked { ended_seen: Some(NOW.clock), ..tracked };
    let many: Vec<_> = (0..BATCH).map(|n| just_now(ended(&format!("p{n:03}"), 0))).collect();
    let after = |millis| Some(Duration::from_millis(millis));
    let busy = |stored: Record| Record { stored_at: Some(NOW.clock), ..stored };
    for (case, stored, pods, job, expected) in [
        (
            "deleted: others gather",
            stored(&[], 1),
            vec![just_now(deleted(ended("a", 0)))],
            running(),
            after(100),
        ),
        ("nobody waits", stored(&[], 1), vec![just_now(ended("a", 0))], running(), after(5_000)),
        (
            "four times a second",
            busy(stored(&[], 1)),
            vec![deleted(ended("a", 9))],
            running(),
            after(250),
        ),
        ("a full batch", stored(&[], 500), many, running(), None),
        ("the job has finished", stored(&[], 1), vec![just_now(ended("a", 0))], complete(), None),
    ] {
        let plan = planned(stored, &pods, &job);
        let stores = plan.actions.iter().any(|action| matches!(action, Action::Store(_)));
        assert_eq!((plan.after, stores), (expected, expected.is_none()), "{case}");
    }
}

#[test]
fn a9_a_plan_that_changes_nothing_writes_nothing() {
    let open = Tracked::new(pod(), NOW);
    assert_eq!(planned(stored(&[], 1), &[open], &running()), Plan::default());
}

#[test]
fn active_is_written_when_it_has_changed_and_is_half_a_minute_old() {
    let open = Tracked::new(pod(), NOW);
    let mut old = stored(&[], 0);
    for (age, expected) in [(0, Some(30)), (29, Some(1)), (30, None)] {
        status(&mut old).as_of = Some(at(1_000 - age).into());
        let plan = planned(old.clone(), slice::from_ref(&open), &running());
        assert_eq!(plan.after, expected.map(Duration::from_secs), "{age}");
        assert_eq!(plan.actions.len(), usize::from(expected.is_none()), "{age}");
    }
}

#[test]
fn ag10_a_stripped_pod_is_counted_and_annotated_before_its_uid_is_cleared() {
    let stripped =
        Tracked { presence: Presence::Stripped, ..seen(Pod { uid: "a".into(), ..pod() }, 9) };
    let pods = [stripped];
    let plan = planned(stored(&[], 1), &pods, &running());
    let Some(Action::Store(status)) = plan.actions.first() else { panic!("{:?}", words(&plan)) };
    assert_eq!(
        (status.totals.pods.deleted, &status.inexact[..]),
        (1, &["Unprotected".to_owned()][..])
    );
    assert_eq!(words(&planned(stored(&["a"], 0), &pods, &running())), ["release a"]);
}

#[test]
fn ag11_what_went_unseen_is_what_was_told_of_and_is_not_listed() {
    let settings = Settings::default();
    let mut ledger = Ledger::new(TrainJobRecordStatus::default(), &settings);
    let named = |uid: &str, restart| Pod { uid: uid.into(), restart, ..pod() };
    ledger.set_open(&[named("a", 0), named("b", 0), named("c", 1)]);
    let mut status = ledger.finish(Outcome::Running);
    status.as_of = Some(at(500).into());
    let late = Pod { created_at: at(501), ..named("d", 0) };
    let accounted = Pod { accounted: true, ..named("b", 0) };
    for (case, pods, expected) in [
        ("all there", vec![named("a", 0), named("b", 0), named("c", 1)], 0),
        ("one is gone", vec![named("a", 0), named("c", 1)], 1),
        ("all are gone", vec![], 3),
        ("one is of another attempt", vec![named("a", 0), named("b", 0), named("d", 0)], 1),
        ("one came later", vec![named("a", 0), late, named("c", 1)], 1),
        ("one is annotated", vec![named("a", 0), accounted, named("c", 1)], 1),
    ] {
        assert_eq!(unwatched(&status, &pods), expected, "{case}");
    }
}

#[test]
fn ag11_a_record_is_final_after_a_list_that_was_made_when_the_job_was_over() {
    let is_final = |plan: &Plan| {
        plan.actions.iter().any(|action| {
            matches!(action, Action::Store(status)
            if condition::is_true(status, RecordCondition::Final))
        })
    };
    let listed = Record { evidence: LISTED, ..stored(&[], 0) };
    for (case, stored, pods, job, expected) in [
        ("it runs", listed.clone(), vec![], running(), false),
        ("no list yet", stored(&[], 0), vec![], complete(), false),
        (
            "a Pod is open",
            Record { evidence: LISTED, ..stored(&[], 1) },
            vec![Tracked::new(pod(), NOW)],
            complete(),
            false,
        ),
        ("complete", listed.clone(), vec![], complete(), true),
        ("gone", listed, vec![], Job::Gone { suspension: Suspension::Never }, true),
    ] {
        assert_eq!(is_final(&planned(stored, &pods, &job)), expected, "{case}");
    }
    let plan = planned(stored(&[], 0), &[], &complete());
    assert_eq!(words(&plan).first().map(String::as_str), Some("list"));
}

#[test]
fn ah2_a_pod_that_somebody_waits_for_is_let_go_when_its_record_cannot_be_written() {
    let refused = |since| Record {
        valve: Valve::Refused { since: Duration::from_secs(since) },
        evidence: Evidence::Unproven,
        ..stored(&[], 1)
    };
    let old_clock = Now { clock: Duration::from_secs(1_000), ..NOW };
    let settings = Settings::default();
    let job = running();
    let context =
        Context { job: &job, job_read: JobRead::Watched, settings: &settings, now: old_clock };
    let seen_at = |tracked: Tracked, seconds| Tracked {
        ended_seen: Some(Duration::from_secs(seconds)),
        ..tracked
    };
    for (case, since, pod, expected) in [
        ("the limit has passed", 700, seen_at(deleted(ended("a", 0)), 600), true),
        ("not yet", 701, seen_at(deleted(ended("a", 0)), 600), false),
        ("the Pod ended later", 600, seen_at(deleted(ended("a", 0)), 701), false),
        ("nobody waits", 600, seen_at(ended("a", 0), 600), false),
        (
            "it is not held",
            600,
            seen_at(
                deleted(Tracked {
                    pod: Pod { finalizer: false, ..ended("a", 0).pod },
                    ..ended("a", 0)
                }),
                600,
            ),
            false,
        ),
    ] {
        let plan = plan(&refused(since), &[pod], &context);
        assert_eq!(words(&plan).contains(&"let go a".to_owned()), expected, "{case}");
    }
}

#[test]
fn ah2_what_was_let_go_is_told_of_with_the_next_store() {
    let plan = planned(Record { let_go: 2, ..stored(&[], 0) }, &[], &running());
    let Some(Action::Store(status)) = plan.actions.first() else { panic!("{:?}", words(&plan)) };
    assert_eq!(status.lost, [("RecordUnwritable".to_owned(), 2)].into());
    assert_eq!(status.inexact, ["Lost"]);
}

#[test]
fn a11_a_job_set_whose_first_pod_is_open_comes_before_one_of_which_a_pod_is_counted() {
    let mut later = deleted(ended("p2", 1));
    later.pod.template = Arc::new(Template { job_set: "s2".into(), ..template() });
    later.pod.created_at = at(200);
    let record = Record { status: Some(Box::default()), evidence: PROVEN, ..Record::default() };
    let plan = planned(record, &[later, seen(pod(), 1)], &running());
    let stores = plan.actions.iter().filter_map(|action| match action {
        Action::Store(status) => Some(status),
        _ => None,
    });
    let uids: Vec<_> =
        stores.flat_map(|status| &status.job_sets).map(|it| it.uid.as_str()).collect();
    assert_eq!(uids, ["s1", "s2"]);
}
