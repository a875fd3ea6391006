use super::*;

#[test]
fn a_policy_is_read_whatever_its_status_is() {
    let text = |status: &str| {
        format!(
            r#"{{"metadata":{{"uid":"u","resourceVersion":"7","generation":2}},"status":{status}}}"#
        )
    };
    for status in ["null", "{}", "7", r#"{"counts":7}"#] {
        let seen = SeenPolicy::read(&text(status));
        assert_eq!((&*seen.uid, &*seen.resource_version, seen.generation), ("u", "7", 2));
        assert_eq!(seen.status, RetentionPolicyStatus::default(), "{status}");
    }
    let seen = SeenPolicy::read(&text(r#"{"servedVersion":"v1"}"#));
    assert_eq!(seen.status.served_version.as_deref(), Some("v1"));
}

#[test]
fn only_a_policy_in_audit_loses_what_its_breaker_stored() {
    let record = Record { digest: "d".into(), through: Timestamp(1_795_329_000), trip: None };
    let mut status = RetentionPolicyStatus::default();
    put(Some(&record), false, &mut status);
    for (is_audited, left) in [(false, Some(record)), (true, None)] {
        let seen = SeenPolicy { status: status.clone(), ..SeenPolicy::default() };
        let (written, found) = (Written::new(seen), Found { is_audited, ..Found::audited() });
        assert_eq!(written.is_urgent(None, &found), is_audited);
        put(None, is_audited, &mut status);
        assert_eq!(Record::read(&status), left);
    }
}

#[test]
fn a_record_that_deletions_wait_for_is_stored_at_once_though_nothing_in_it_is_new() {
    let record = Record { digest: "d".into(), through: Timestamp(1_795_329_000), trip: None };
    let mut status = RetentionPolicyStatus::default();
    put(Some(&record), false, &mut status);
    let mut written = Written::new(SeenPolicy { status, ..SeenPolicy::default() });
    written.stored = Some(Instant::now());
    for is_awaited in [false, true] {
        let found = Found { is_awaited, is_audited: false, ..Found::audited() };
        assert_eq!(written.is_urgent(Some(&record), &found), is_awaited);
    }
}
