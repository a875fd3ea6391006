use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::breaker::TripId;

use super::*;

fn trip(scope: Scope) -> Trip {
    Trip { id: TripId::from("7-d-1"), at: Timestamp(1), stock: 60, scope }
}

/// The reasons of all conditions, each behind its status.
fn short(situation: &Situation) -> Vec<String> {
    let sign = |status| if status { '+' } else { '-' };
    let said = conditions(situation);
    said.iter().map(|said| format!("{}{}", sign(said.status), said.reason.as_str())).collect()
}

#[test]
fn conditions_say_whether_a_policy_works_and_why_not() {
    let everywhere = Scope::Policy { reason: Reason::MassDelete, count: 51 };
    let somewhere = Scope::Namespaces([("a".into(), 51)].into());
    let clock = Scope::Policy { reason: Reason::ClockStep, count: 51 };
    let good = Situation::good();
    let syncing = Situation { kind: KindState::Syncing, ..good.clone() };
    let with = |scope| Situation { tripped: Some(trip(scope)), ..good.clone() };
    let rules = vec![MissingRule {
        api_groups: vec!["batch".to_owned()],
        resources: vec!["jobs".to_owned()],
        verbs: vec!["delete".to_owned()],
    }];
    let of_owners = Missing { rules: rules.clone(), pauses: false };
    let missing = Missing { rules, pauses: true };
    let not_understood = Err("spec.x: unknown field".to_owned());
    for (situation, expected) in [
        (good.clone(), "+Watching +Enforcing -WithinLimits -Allowed"),
        (
            Situation { mode: Ok(Mode::Audit), ..good.clone() },
            "+Watching -AuditMode -WithinLimits -Allowed",
        ),
        (
            Situation { is_time_known: false, ..good.clone() },
            "+Watching -ClockSuspect -WithinLimits -Allowed",
        ),
        (with(everywhere), "+Watching -Tripped +MassDelete -Allowed"),
        (with(somewhere), "+Watching +Enforcing +MassDelete -Allowed"),
        (with(clock), "+Watching -Tripped +ClockStep -Allowed"),
        (syncing.clone(), "-Syncing -NotReady -WithinLimits -Allowed"),
        (
            Situation { is_gone: true, ..syncing.clone() },
            "-KindNotServed -NotReady -WithinLimits -Allowed",
        ),
        (
            Situation { missing: of_owners, ..good.clone() },
            "+Watching +Enforcing -WithinLimits +MissingRules",
        ),
        (
            Situation { missing: missing.clone(), ..good.clone() },
            "-Forbidden -NotReady -WithinLimits +MissingRules",
        ),
        (
            Situation { missing: missing.clone(), ..syncing.clone() },
            "-Forbidden -NotReady -WithinLimits +MissingRules",
        ),
        (
            Situation { missing, is_gone: true, ..good.clone() },
            "-KindNotServed -NotReady -WithinLimits +MissingRules",
        ),
        (
            Situation { kind: KindState::NotATarget, ..good.clone() },
            "-Forbidden -NotReady -WithinLimits +MissingRules",
        ),
        (
            Situation { mode: not_understood, ..good },
            "-NotUnderstood -NotReady -WithinLimits -Allowed",
        ),
    ] {
        assert_eq!(short(&situation).join(" "), expected, "{situation:?}");
    }
}

#[test]
fn a_trip_says_that_another_one_was_acknowledged() {
    let tripped = Some(trip(Scope::Policy { reason: Reason::MassDelete, count: 51 }));
    let asks = "51 of 60 objects wait; to allow them, set the annotation \
        lifecycle.trainjob.dev/acknowledge-trip to 7-d-1";
    for (acknowledged, more) in [
        (None, ""),
        (Some("7-d-1"), ""),
        (Some("6-d-1"), "; now it is \"6-d-1\", which is not the id of this trip"),
    ] {
        let acknowledged = acknowledged.map(Arc::from);
        let situation = Situation { tripped: tripped.clone(), acknowledged, ..Situation::good() };
        let said = conditions(&situation);
        assert_eq!(said[2].message, format!("{asks}{more}"));
    }
}

#[test]
fn what_is_served_instead_of_a_kind_is_said_before_and_when_that_is_certain() {
    let absence = Some(Arc::from("the API server serves no resource job of batch"));
    for is_gone in [false, true] {
        let kind = KindState::Syncing;
        let without = Situation { kind, is_gone, ..Situation::good() };
        let situation = Situation { absence: absence.clone(), ..without.clone() };
        assert_eq!(conditions(&situation)[0].message, absence.as_deref().unwrap());
        assert_ne!(conditions(&without)[0].message, "");
    }
}

#[test]
fn one_object_is_not_told_of_as_several() {
    let one = |condition: usize, situation: Situation| {
        let mut said = conditions(&situation);
        said.swap_remove(condition).message
    };
    let first = ObjectKey::new("a", "j");
    let namespaces = [("a".into(), 1)].into();
    let waiting = breaker::WaitingObjects { until: Timestamp(60), namespaces };
    let known = KindState::Known { skipped: 1 };
    let unreadable = Some(Unreadable { count: 1, first });
    let ready = Situation { kind: known, stuck: 1, unreadable, ..Situation::good() };
    let expected = "1 object cannot be read and is left alone; \
        1 object has been terminating for over 10 minutes; \
        1 object asks for a hold or a TTL that cannot be read: a/j";
    assert_eq!(one(0, ready), expected);
    let waiting = Situation { waiting: Some(waiting), ..Situation::good() };
    let expected =
        "1 object that an edit has made due waits until 1970-01-01T00:01:00Z, and is deleted then";
    assert_eq!(one(1, waiting), expected);
}

#[test]
fn what_waits_and_what_cannot_be_read_is_said_though_the_policy_works() {
    let namespaces = (0..12_u64).map(|index| (format!("n{index:02}").into(), index + 1));
    let waiting =
        breaker::WaitingObjects { until: Timestamp(60), namespaces: namespaces.collect() };
    let object = |name: &str| ObjectKey::new("a", name);
    let situation = Situation {
        waiting: Some(waiting),
        unreadable: Some(Unreadable { count: 2, first: object("j") }),
        ..Situation::good()
    };
    let said = conditions(&situation);
    let messages: Vec<_> = said.iter().map(|said| said.message.as_str()).collect();
    let expected = [
        "2 objects ask for a hold or a TTL that cannot be read, such as a/j",
        "78 objects that an edit has made due wait until 1970-01-01T00:01:00Z, and are deleted then",
        "",
        "",
    ];
    assert_eq!(messages, expected);
    let waiting = situation.waiting_objects().unwrap();
    let named: Vec<_> = waiting.namespaces.iter().map(|it| (&*it.name, it.unexpected)).collect();
    assert_eq!((waiting.unexpected, named.len()), (78, 10));
    assert_eq!(named.first(), Some(&("n11", 12)));
}

#[test]
fn rules_are_shown_as_they_are_pasted() {
    let rule = |resource: &str| MissingRule {
        api_groups: vec![String::new()],
        resources: vec![resource.to_owned()],
        verbs: vec!["list".to_owned(), "delete".to_owned()],
    };
    let expected = "the engine needs in all namespaces:\n\
        - {\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"list\",\"delete\"]}\n\
        - {\"apiGroups\":[\"\"],\"resources\":[\"jobs\"],\"verbs\":[\"list\",\"delete\"]}";
    assert_eq!(to_paste(&[rule("pods"), rule("jobs")]), expected);
}
