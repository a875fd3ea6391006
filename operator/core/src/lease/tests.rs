use k8s_openapi::{api::coordination::v1::LeaseSpec, jiff};
use serde_json::json;

use super::*;

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn wall(second: i64) -> MicroTime {
    MicroTime(jiff::Timestamp::from_second(second).unwrap())
}

fn elector() -> Elector {
    Elector::new("me".into(), Times::default())
}

/// A Lease of this version, renewed at a time of the wall clock.
fn lease(version: u64, holder: &str, seconds: Option<i32>, renewed: i64) -> Lease {
    let mut lease = Lease {
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: seconds,
            lease_transitions: Some(7),
            acquire_time: Some(wall(5)),
            renew_time: Some(wall(renewed)),
            ..LeaseSpec::default()
        }),
        ..Lease::default()
    };
    lease.metadata.resource_version = Some(version.to_string());
    lease
}

fn others(version: u64) -> Lease {
    lease(version, "other", Some(15), i64::try_from(version).unwrap())
}

/// The record of what is to be written.
fn record(step: Step) -> LeaseSpec {
    let Step::Write(lease) = step else { panic!("{step:?}") };
    lease.spec.unwrap()
}

fn next(elector: &Elector, now: u64) -> Step {
    elector.next(at(now), &wall(1_000))
}

/// One that leads since a renewal that it sent at second 10.
fn leader() -> Elector {
    let mut elector = elector();
    elector.saw(None, at(9));
    elector.wrote(lease(1, "me", Some(15), 10), at(10), at(11));
    elector
}

#[test]
fn who_knows_nothing_looks_first_and_creates_what_is_not_there() {
    let mut elector = elector();
    assert_eq!(next(&elector, 1), Step::Read);
    elector.saw(None, at(2));
    let Step::Write(created) = next(&elector, 2) else { panic!() };
    assert_eq!(created.metadata.resource_version, None);
    assert_eq!(
        serde_json::to_value(created.spec).unwrap(),
        json!({
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
            "acquireTime": "1970-01-01T00:16:40.000000Z",
            "renewTime": "1970-01-01T00:16:40.000000Z",
        })
    );
    assert!(!elector.leads(at(2)), "asking is not having");
}

#[test]
fn elector_tells_its_name_and_whether_what_it_knows_is_outdated() {
    let mut elector = elector();
    assert_eq!(elector.identity(), "me");
    assert!(elector.is_outdated(), "it has seen nothing");
    elector.saw(None, at(1));
    assert!(!elector.is_outdated());
    elector.failed(at(2), at(1));
    assert!(elector.is_outdated());
}

#[test]
fn another_holder_is_waited_for_as_long_as_it_asked_counted_from_when_it_was_seen() {
    for (what, held, until) in [
        ("as long as this process would", lease(1, "other", Some(15), 100), 115),
        ("longer", lease(1, "other", Some(60), 100), 160),
        ("shorter", lease(1, "other", Some(3), 100), 103),
        ("it does not say how long", lease(1, "other", None, 100), 115),
        ("no length of time", lease(1, "other", Some(0), 100), 115),
        ("renewed long ago, it says", lease(1, "other", Some(15), -1_000_000), 115),
        ("renewed in the future, it says", lease(1, "other", Some(15), 1_000_000_000), 115),
    ] {
        let mut elector = elector();
        elector.saw(Some(held), at(100));
        assert_eq!(elector.other_holder(), Some("other"), "{what}");
        assert_eq!(next(&elector, 100), Step::Wait(at(until)), "{what}");
        assert_eq!(next(&elector, until - 1), Step::Wait(at(until)), "{what}");
        let record = record(next(&elector, until));
        assert_eq!(record.holder_identity.as_deref(), Some("me"), "{what}");
        assert_eq!(record.lease_transitions, Some(8), "{what}");
        assert_eq!(
            (record.acquire_time, record.renew_time),
            (Some(wall(1_000)), Some(wall(1_000)))
        );
    }
}

#[test]
fn every_renewal_that_is_seen_begins_the_wait_anew_and_nothing_else_does() {
    let mut elector = elector();
    elector.saw(Some(others(1)), at(100));
    elector.heard(Some(others(2)), at(110));
    assert_eq!(next(&elector, 110), Step::Wait(at(125)));
    let mut touched = others(2);
    touched.metadata.resource_version = Some("3".into());
    touched.metadata.annotations = Some([("touched".into(), "true".into())].into());
    elector.heard(Some(touched.clone()), at(120));
    assert_eq!(next(&elector, 120), Step::Wait(at(125)));
    let Step::Write(taken) = next(&elector, 125) else { panic!() };
    assert_eq!(taken.metadata, touched.metadata, "it is fenced by the newest version");
}

#[test]
fn old_news_is_no_news_but_an_answer_is_believed() {
    let mut elector = elector();
    elector.saw(Some(others(20)), at(100));
    elector.heard(Some(lease(19, "", Some(1), 0)), at(101));
    assert_eq!(next(&elector, 101), Step::Wait(at(115)));
    // The store has been restored from a backup.
    elector.saw(Some(others(19)), at(102));
    assert_eq!(next(&elector, 102), Step::Wait(at(117)));
}

#[test]
fn what_was_given_back_is_taken_at_once() {
    let mut elector = elector();
    elector.saw(Some(others(1)), at(100));
    elector.heard(Some(lease(2, "", Some(1), 100)), at(101));
    assert_eq!(elector.other_holder(), None);
    let record = record(next(&elector, 101));
    assert_eq!(record.holder_identity.as_deref(), Some("me"));
    assert_eq!((record.lease_duration_seconds, record.lease_transitions), (Some(15), Some(8)));
}

#[test]
fn a_lease_that_vanishes_belongs_to_its_holder_for_as_long_as_if_it_had_just_renewed() {
    let mut elector = elector();
    elector.saw(Some(others(1)), at(100));
    elector.heard(None, at(114));
    assert_eq!(next(&elector, 115), Step::Wait(at(129)));
    elector.heard(None, at(120));
    assert_eq!(record(next(&elector, 129)).lease_transitions, Some(0));
}

#[test]
fn a_leader_whose_lease_vanishes_makes_it_anew_and_leads_on() {
    let mut elector = leader();
    elector.heard(None, at(11));
    assert_eq!(record(next(&elector, 11)).lease_transitions, Some(0), "not first at second 12");
    assert!(elector.leads(at(11)));
}

#[test]
fn a_leader_believes_from_when_it_sent_its_renewal_and_not_from_when_the_answer_came() {
    let elector = leader();
    assert_eq!(elector.leads_until(), Some(at(20)));
    assert!(elector.leads(at(19)) && !elector.leads(at(20)));
    assert_eq!(next(&elector, 11), Step::Wait(at(12)));
    let renewal = record(next(&elector, 12));
    assert_eq!((renewal.acquire_time, renewal.renew_time), (Some(wall(5)), Some(wall(1_000))));
    assert_eq!(renewal.lease_transitions, Some(7));
    assert_eq!(next(&elector, 20), Step::StepDown(Loss::NotRenewed));
}

#[test]
fn a_leader_that_cannot_renew_tries_again_until_its_time_is_over() {
    let mut elector = leader();
    elector.failed(at(13), at(2));
    assert!(elector.leads(at(13)));
    assert_eq!(next(&elector, 14), Step::Wait(at(15)));
    // The one that failed may have been stored.
    assert_eq!(next(&elector, 15), Step::Read);
    elector.saw(Some(lease(2, "me", Some(15), 12)), at(16));
    assert!(matches!(next(&elector, 16), Step::Write(_)));
    elector.failed(at(17), at(60));
    assert_eq!(next(&elector, 17), Step::Wait(at(20)), "not longer than it leads");
    assert_eq!(next(&elector, 20), Step::StepDown(Loss::NotRenewed));
}

#[test]
fn a_renewal_that_is_known_too_late_brings_nothing_back() {
    let mut late = leader();
    late.wrote(lease(2, "me", Some(15), 19), at(19), at(21));
    assert!(!late.leads(at(21)));
    assert_eq!(next(&late, 21), Step::StepDown(Loss::NotRenewed));

    let mut never_led = elector();
    never_led.wrote(lease(1, "me", Some(15), 1), at(1), at(11));
    assert!(!never_led.leads(at(11)));
    assert!(matches!(next(&never_led, 11), Step::Write(_)), "it is its own, and renewed");
}

#[test]
fn a_leader_that_finds_another_holder_steps_down() {
    let mut elector = leader();
    elector.heard(Some(others(2)), at(12));
    assert_eq!(next(&elector, 12), Step::StepDown(Loss::TakenBy("other".into())));
}

#[test]
fn a_request_leaves_the_time_for_another_one_before_the_leader_has_to_stop() {
    assert!(elector().patience(at(0)) * 2 < Times::default().renew_deadline);
    assert!(leader().patience(at(12)) * 2 < Times::default().renew_deadline);
    assert_eq!(leader().patience(at(19)), at(1));
    assert_eq!(leader().patience(at(25)), at(0));
}

#[test]
fn stopping_leader_releases_only_its_own_lease() {
    let mut elector = leader();
    let given = elector.release(&wall(1_000)).unwrap();
    assert!(!elector.leads(at(12)));
    assert_eq!(given.metadata.resource_version.as_deref(), Some("1"));
    let record = given.spec.unwrap();
    assert_eq!(record.holder_identity.as_deref(), Some(""));
    assert_eq!((record.lease_duration_seconds, record.lease_transitions), (Some(1), Some(7)));
    assert_eq!((record.acquire_time, record.renew_time), (Some(wall(1_000)), Some(wall(1_000))));

    for not_mine in [Some(others(1)), None] {
        let mut elector = self::elector();
        elector.saw(not_mine, at(1));
        assert_eq!(elector.release(&wall(1_000)), None);
    }
}

#[test]
fn a_part_of_a_second_is_promised_as_a_whole_one() {
    for (millis, seconds) in [(1, 1), (1_000, 1), (1_001, 2), (15_000, 15), (u64::MAX, i32::MAX)] {
        assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
    }
}

#[test]
fn who_is_not_ready_leaves_a_free_lease_to_those_that_are() {
    let released = |at| Some(lease(3, "", Some(1), at));
    for (what, seen, waits_for) in [
        ("nobody has ever held it", None, None),
        ("it was released long ago", released(900), None),
        ("it was released a second ago", released(999), Some(2)),
        ("it says that it was released in the future", released(2_000), Some(3)),
        ("its holder is not heard of any more", Some(others(3)), Some(18)),
    ] {
        let mut elector = Elector::unready("me".into(), Times::default());
        elector.saw(seen, at(20));
        let step = next(&elector, 20);
        match waits_for {
            Some(seconds) => assert_eq!(step, Step::Wait(at(20 + seconds)), "{what}"),
            None => assert!(matches!(step, Step::Write(_)), "{what}: {step:?}"),
        }
    }
}

#[test]
fn who_is_ready_takes_a_free_lease_at_once() {
    let mut elector = Elector::unready("me".into(), Times::default());
    elector.saw(Some(lease(3, "", Some(1), 1_000)), at(20));
    assert!(matches!(next(&elector, 20), Step::Wait(_)));
    elector.ready();
    assert!(matches!(next(&elector, 20), Step::Write(_)));
}
