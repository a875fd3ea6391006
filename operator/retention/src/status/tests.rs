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

fn version(uid: &str, version: &str, generation: i64) -> SeenPolicy {
    let (uid, resource_version) = (uid.to_owned(), version.to_owned());
    SeenPolicy { uid, resource_version, generation, ..SeenPolicy::default() }
}

/// The answer to a write can come before the watch tells of the version that it went on from. If that one were taken for the
/// newest again, each later write would be refused with 409.
#[test]
fn what_a_write_has_replaced_is_not_taken_for_the_newest() {
    for (news, is_edited, expected) in [
        (version("mine", "9", 1), false, "10"),
        (version("mine", "10", 1), false, "10"),
        (version("mine", "11", 1), false, "11"),
        (version("mine", "11", 2), true, "11"),
        (version("another of the name", "9", 2), true, "9"),
    ] {
        let mut written = Written::new(version("mine", "8", 1));
        written.wrote(RetentionPolicyStatus::default(), "10".to_owned());
        assert_eq!(written.see(news.clone()), is_edited, "{news:?}");
        assert_eq!(written.seen.resource_version, expected, "{news:?}");
    }
}

/// A backup of etcd that is restored brings back what was replaced.
#[test]
fn an_older_version_is_taken_if_it_was_not_this_process_that_replaced_it() {
    let mut written = Written::new(version("mine", "900", 1));
    written.see(version("mine", "40", 1));
    assert_eq!(written.seen.resource_version, "40");
}

#[test]
fn a_status_that_cannot_be_written_waits_until_it_may_be_written_again() {
    let mut written = Written::new(version("mine", "8", 1));
    let found = Found::audited();
    assert!(written.is_due(&found));
    assert!(written.failed(), "the first time");
    assert!(!written.is_due(&found));
    assert!(!written.failed(), "the second time");
    written.see(version("mine", "9", 1));
    assert!(written.is_due(&found), "somebody else has written it");
    written.failed();
    written.wrote(RetentionPolicyStatus::default(), "10".to_owned());
    assert!(written.is_due(&found));
}

/// While its kind cannot be listed a policy has no record, and that is asked every second.
#[test]
fn a_policy_without_a_record_is_written_only_if_its_status_changes() {
    let record = Record { digest: "d".into(), through: Timestamp(1_795_329_000), trip: None };
    let written = Written::new(SeenPolicy::default());
    for is_audited in [false, true] {
        let found = Found { is_audited, ..Found::audited() };
        for (record, expected) in [(None, false), (Some(&record), true)] {
            assert_eq!(written.stores(record, &found), expected, "{is_audited} {record:?}");
            assert_eq!(written.awaits(record, &found), expected, "{is_audited} {record:?}");
        }
    }
}
