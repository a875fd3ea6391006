//! Every kind of writer, as the API server shows it to the webhook, and a property over all of them.

use proptest::{option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp(1_767_520_800);
const NOW_TEXT: &str = "2026-01-04T10:00:00Z";
const EARLIER: &str = "2026-01-04T09:00:00Z";
const TTL: &str = "ttlSecondsAfterFinished";
const DEADLINE: &str = "activeDeadlineSeconds";
const BOTH: &str = "activeDeadlineSeconds,ttlSecondsAfterFinished";

fn managers(entries: &[Value]) -> Vec<Manager> {
    serde_json::from_value(entries.into()).unwrap()
}

/// An entry of managed fields.
fn entry(manager: &str, operation: &str, time: &str, fields: &[&str]) -> Value {
    let owned = |fields: &[&str]| -> Value {
        fields
            .iter()
            .map(|field| (format!("f:{field}"), json!({})))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let (annotations, spec): (Vec<_>, Vec<_>) = fields.iter().partition(|name| name.contains('/'));
    json!({
        "manager": manager, "operation": operation, "time": time,
        "fieldsV1": {"f:metadata": {"f:annotations": owned(&annotations)}, "f:spec": owned(&spec)},
    })
}

/// An update in `Mutable`, of a job with a TTL of 60 and a deadline of 90, that says nothing of either.
fn drops_both() -> Update<'static> {
    Update {
        stored: Object { ttl: Some("60"), deadline: Some("90"), ..Object::default() },
        requested: Object::default(),
        manager: "somebody",
        updates: FieldUpdates::Mutable,
        now: NOW,
    }
}

fn patch(outcome: &Outcome) -> Value {
    serde_json::to_value(&outcome.patch).unwrap()
}

fn put_back(field: &str, value: i64) -> Value {
    json!({"op": "add", "path": format!("/spec/{field}"), "value": value})
}

fn taken_off() -> Value {
    json!({"op": "remove", "path": "/metadata/annotations/lifecycle.trainjob.dev~1remove-fields"})
}

#[test]
fn a_field_that_the_request_lacks_keeps_its_value_in_both_modes() {
    for (updates, advice) in [
        (
            FieldUpdates::Immutable,
            "it cannot be removed after creation. A client that drops it is older than the field",
        ),
        (
            FieldUpdates::Mutable,
            "to remove it, add lifecycle.trainjob.dev/remove-fields: FIELD to its annotations",
        ),
    ] {
        let outcome = keep(&Update { updates, ..drops_both() });
        assert_eq!(patch(&outcome), json!([put_back(DEADLINE, 90), put_back(TTL, 60)]));
        let warning = |field: &str, value: i64| {
            let advice = advice.replace("FIELD", field);
            format!("spec.{field} stays {value}, which the request lacks: {advice}")
        };
        assert_eq!(outcome.verdict.warnings, [warning(DEADLINE, 90), warning(TTL, 60)]);
        assert_eq!(outcome.verdict.errors, []);
        // Longer ones may be cut off.
        assert!(outcome.verdict.warnings.iter().all(|it| it.len() <= 256));
    }
}

#[test]
fn a_field_that_the_request_has_or_that_is_not_stored_is_left_alone() {
    for (stored, requested) in [
        (Some("60"), Some("60")),
        (Some("60"), Some("61")),
        // Which the schema refuses.
        (Some("60"), Some("\"60\"")),
        (Some("60"), Some("60.5")),
        (None, None),
        (None, Some("60")),
        // A value out of range counts as unset, and may be left out for good.
        (Some("-1"), None),
        (Some("2147483648"), None),
        (Some("\"60\""), None),
    ] {
        let object = |ttl| Object { ttl, ..Object::default() };
        let (stored, requested) = (object(stored), object(requested));
        let outcome = keep(&Update { stored, requested, ..drops_both() });
        assert_eq!(outcome, Outcome::default(), "{stored:?} to {requested:?}");
    }
    let stored = Object { ttl: Some("0"), deadline: Some("0"), ..Object::default() };
    assert_eq!(patch(&keep(&Update { stored, ..drops_both() })), json!([put_back(TTL, 0)]));
}

#[test]
fn the_annotation_of_the_request_removes_what_it_names_and_is_taken_off() {
    for (names, kept) in [
        (TTL, vec![put_back(DEADLINE, 90)]),
        (DEADLINE, vec![put_back(TTL, 60)]),
        (BOTH, vec![]),
        (" ttlSecondsAfterFinished , activeDeadlineSeconds", vec![]),
    ] {
        let requested = Object { remove_fields: Some(names), ..Object::default() };
        let outcome = keep(&Update { requested, ..drops_both() });
        assert_eq!(outcome.verdict.warnings.len(), kept.len(), "{names}");
        assert_eq!(outcome.verdict.errors, []);
        assert_eq!(patch(&outcome), Value::from([kept, vec![taken_off()]].concat()), "{names}");
    }
}

#[test]
fn invalid_remove_fields_annotation_is_denied_with_the_expected_value() {
    use FieldUpdates::{Immutable, Mutable};
    const NAMES: &str = "expected activeDeadlineSeconds, ttlSecondsAfterFinished, or both with a comma between them";
    const THERE: &str = "spec.ttlSecondsAfterFinished would still be there: leave it out of the same request; a server-side apply leaves out only what no other manager owns";
    const FIXED: &str = "metadata.annotations[lifecycle.trainjob.dev/remove-fields]: Forbidden: the fields cannot be removed after creation (lifecycle.fieldUpdates is Immutable): leave the annotation out, or create another TrainJob";
    let invalid = |names: &str, why: &str| {
        format!(
            "metadata.annotations[lifecycle.trainjob.dev/remove-fields]: Invalid value: \"{names}\": {why}"
        )
    };
    for (updates, names, ttl, expected) in [
        (Mutable, "ttl", None, invalid("ttl", NAMES)),
        (Mutable, "", None, invalid("", NAMES)),
        (Mutable, "ttlSecondsAfterFinished,", None, invalid("ttlSecondsAfterFinished,", NAMES)),
        (
            Mutable,
            "spec.ttlSecondsAfterFinished",
            None,
            invalid("spec.ttlSecondsAfterFinished", NAMES),
        ),
        (Mutable, TTL, Some("60"), invalid(TTL, THERE)),
        (Mutable, TTL, Some("61"), invalid(TTL, THERE)),
        (Immutable, TTL, None, FIXED.to_owned()),
        (Immutable, "ttl", None, FIXED.to_owned()),
    ] {
        let requested = Object { remove_fields: Some(names), ttl, ..Object::default() };
        let outcome = keep(&Update { requested, updates, ..drops_both() });
        assert_eq!(outcome.verdict.denial(), Some(expected));
        assert_eq!(patch(&outcome), json!([]));
    }
}

#[test]
fn an_annotation_that_was_stored_before_removes_nothing_refuses_nothing_and_is_taken_off() {
    for updates in [FieldUpdates::Immutable, FieldUpdates::Mutable] {
        for names in [BOTH, "nonsense"] {
            let mut update = Update { updates, ..drops_both() };
            update.stored.remove_fields = Some(names);
            update.requested.remove_fields = Some(names);
            let outcome = keep(&update);
            let expected = json!([put_back(DEADLINE, 90), put_back(TTL, 60), taken_off()]);
            assert_eq!(patch(&outcome), expected);
            assert_eq!(outcome.verdict.errors, []);
            let warning = "metadata.annotations[lifecycle.trainjob.dev/remove-fields] was stored by an earlier request and is removed: it counts only in the request that leaves the field out";
            assert_eq!(outcome.verdict.warnings.last().unwrap(), warning);
        }
    }
    // Another text is another wish.
    let mut update = drops_both();
    update.stored.remove_fields = Some(TTL);
    update.requested.remove_fields = Some(BOTH);
    assert_eq!(patch(&keep(&update)), json!([taken_off()]));
}

#[test]
fn what_was_granted_stays_so_when_the_webhook_is_asked_again() {
    let before = managers(&[entry("kubectl", "Update", EARLIER, &[TTL])]);
    let after = managers(&[entry("kubectl", "Update", NOW_TEXT, &[REMOVE_FIELDS_ANNOTATION])]);
    let mut update = drops_both();
    update.requested.managers = &after;
    assert_eq!(keep(&update), Outcome::default());
    update.stored.managers = &before;
    assert_eq!(keep(&update), Outcome::default());
    // Not if it is not this request that has brought the annotation.
    let all = json!([put_back(DEADLINE, 90), put_back(TTL, 60)]);
    update.stored.managers = &after;
    assert_eq!(patch(&keep(&update)), all);
    update.stored.managers = &before;
    update.stored.remove_fields = Some(BOTH);
    assert_eq!(patch(&keep(&update)), all);
    // And not where nothing can be removed.
    update.stored.remove_fields = None;
    update.updates = FieldUpdates::Immutable;
    assert_eq!(patch(&keep(&update)), all);
}

#[test]
fn an_owner_that_applies_without_the_field_gives_it_up() {
    let applied = |time, fields: &[&str]| entry("owner", "Apply", time, fields);
    let stored = applied(EARLIER, &[TTL, "suspend"]);
    let both = [put_back(DEADLINE, 90), put_back(TTL, 60)];
    let [deadline, _] = both.clone();
    for (what, manager, stored, requested, kept) in [
        (
            "applied anew",
            "owner",
            vec![&stored],
            vec![applied(NOW_TEXT, &["suspend"])],
            vec![deadline.clone()],
        ),
        ("applied nothing else", "owner", vec![&stored], vec![], vec![deadline]),
        // It has lost the field, as all owners do when somebody drops it.
        (
            "updated by somebody",
            "kueue",
            vec![&stored],
            vec![applied(EARLIER, &["suspend"])],
            both.to_vec(),
        ),
        (
            "updated without a name",
            "",
            vec![&stored],
            vec![applied(EARLIER, &["suspend"])],
            both.to_vec(),
        ),
        (
            "updated by itself",
            "owner",
            vec![&stored],
            vec![applied(EARLIER, &["suspend"])],
            both.to_vec(),
        ),
        // Another webhook has dropped what was applied.
        ("applied with it", "owner", vec![&stored], vec![applied(NOW_TEXT, &[TTL])], both.to_vec()),
        (
            "never applied",
            "owner",
            vec![&applied(EARLIER, &[])],
            vec![applied(NOW_TEXT, &[])],
            both.to_vec(),
        ),
        (
            "owned in another way",
            "owner",
            vec![&entry("owner", "Update", EARLIER, &[TTL])],
            vec![entry("owner", "Update", NOW_TEXT, &[])],
            both.to_vec(),
        ),
    ] {
        let stored = managers(&stored.into_iter().cloned().collect::<Vec<_>>());
        let requested = managers(&requested);
        for updates in [FieldUpdates::Immutable, FieldUpdates::Mutable] {
            let mut update = Update { manager, updates, ..drops_both() };
            update.stored.managers = &stored;
            update.requested.managers = &requested;
            let outcome = keep(&update);
            assert_eq!(patch(&outcome), Value::from(kept.clone()), "{what}");
            assert_eq!(outcome.verdict.warnings.len(), kept.len(), "{what}");
        }
    }
}

#[test]
fn two_applies_in_one_second_are_two() {
    let stored = managers(&[entry("owner", "Apply", NOW_TEXT, &[DEADLINE, TTL])]);
    let requested = managers(&[entry("owner", "Apply", NOW_TEXT, &[])]);
    let mut update = Update { manager: "owner", ..drops_both() };
    update.stored.managers = &stored;
    update.requested.managers = &requested;
    for (seconds, is_apply) in [(-2, true), (0, true), (2, true), (3, false), (-3, false)] {
        let outcome = keep(&Update { now: NOW.plus(seconds), ..update });
        assert_eq!(outcome == Outcome::default(), is_apply, "{seconds}");
    }
    // It may as well have been updated under the same name.
    let mixed = managers(&[
        entry("owner", "Apply", NOW_TEXT, &[]),
        entry("owner", "Update", NOW_TEXT, &["suspend"]),
    ]);
    update.requested.managers = &mixed;
    assert_eq!(keep(&update).patch.0.len(), 2);
}

fn value() -> impl Strategy<Value = Option<&'static str>> {
    option::of(select(vec!["-1", "0", "1", "60", "61", "\"x\""]))
}

fn annotation() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![
        2 => Just(None),
        3 => option::of(select(vec![TTL, DEADLINE, BOTH, "ttl", ""])),
    ]
}

fn some_managers() -> impl Strategy<Value = Vec<Manager>> {
    let name = select(vec!["a", "b"]);
    let operation = select(vec!["Apply", "Update"]);
    let time = select(vec![EARLIER, NOW_TEXT]);
    let fields =
        proptest::sample::subsequence(vec![TTL, DEADLINE, REMOVE_FIELDS_ANNOTATION], 0..=3);
    let one = (name, operation, time, fields)
        .prop_map(|(name, how, at, owned)| entry(name, how, at, &owned));
    proptest::collection::vec(one, 0..4).prop_map(|entries| managers(&entries))
}

/// The object as it is once the patch has been applied.
fn patched<'a>(object: &Object<'a>, outcome: &Outcome, stored: &Object<'a>) -> Object<'a> {
    let mut value = json!({"spec": {}, "metadata": {"annotations": {}}});
    for (field, text) in [(DEADLINE, object.deadline), (TTL, object.ttl)] {
        if let Some(text) = text {
            value["spec"][field] = serde_json::from_str(text).unwrap();
        }
    }
    if let Some(names) = object.remove_fields {
        value["metadata"]["annotations"][REMOVE_FIELDS_ANNOTATION] = names.into();
    }
    json_patch::patch(&mut value, &outcome.patch).unwrap();
    let kept = |field: &str, requested: Option<&'a str>, stored: Option<&'a str>| {
        let text = value["spec"].get(field).map(ToString::to_string);
        // Whatever is there is what was requested, or else what was stored.
        assert!(requested.is_none() || text.as_deref() == requested, "{text:?}");
        assert!(requested.is_some() || text.is_none() || text.as_deref() == stored, "{text:?}");
        text.and_then(|_| requested.or(stored))
    };
    assert!(value["metadata"]["annotations"].get(REMOVE_FIELDS_ANNOTATION).is_none());
    Object {
        deadline: kept(DEADLINE, object.deadline, stored.deadline),
        ttl: kept(TTL, object.ttl, stored.ttl),
        remove_fields: None,
        managers: object.managers,
    }
}

proptest! {
    #[test]
    fn a_value_is_lost_only_to_somebody_who_wants_that(
        stored in (value(), value(), annotation(), some_managers()),
        requested in (value(), value(), annotation(), some_managers()),
        manager in select(vec!["", "a", "b"]),
        updates in select(vec![FieldUpdates::Immutable, FieldUpdates::Mutable]),
    ) {
        let object = |(deadline, ttl, remove_fields, managers): &'static (_, _, _, Vec<Manager>)| {
            Object { deadline: *deadline, ttl: *ttl, remove_fields: *remove_fields, managers }
        };
        let stored = object(Box::leak(Box::new(stored)));
        let requested = object(Box::leak(Box::new(requested)));
        let update = Update { stored, requested, manager, updates, now: NOW };
        let outcome = keep(&update);
        if outcome.verdict.denial().is_some() {
            // Nobody is refused who does not ask for a removal in this very request.
            prop_assert!(requested.remove_fields.is_some());
            prop_assert_ne!(requested.remove_fields, stored.remove_fields);
            return Ok(());
        }
        let result = patched(&requested, &outcome, &stored);
        let is_annotated = requested.remove_fields.is_some() || requested.managers.iter().any(Manager::owns_remove_fields);
        for field in Field::ALL {
            if field.value(&stored).is_some() && field.of(&result).is_none() {
                let applied = stored.managers.iter().any(|it| it.is_apply_of(manager) && field.is_owned_by(it));
                prop_assert!(applied || (is_annotated && updates == FieldUpdates::Mutable));
            }
        }
        // Asked again, the webhook has nothing to add, unless it granted a removal that left no trace.
        let again = keep(&Update { requested: result, ..update });
        if requested.remove_fields.is_none() {
            prop_assert_eq!(again, Outcome::default());
        }
    }
}
