use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::status::Counts;
use trainjob_retention_core::{
    finished::Definitions,
    stored::{self, Digest, PolicyKind},
};

use super::*;
use crate::status::conditions::is_said;

fn said(status: bool, reason: PolicyReason) -> Said {
    Said { condition: PolicyCondition::Ready, status, reason, message: "why".to_owned() }
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let first = dated(vec![said(false, PolicyReason::Syncing)], &[], 1, Timestamp(100));
    assert_eq!(first[0].last_transition_time, Timestamp(100).into());
    for (status, reason, time, is_news) in [
        (false, PolicyReason::Syncing, 100, false),
        (false, PolicyReason::KindNotServed, 100, true),
        (true, PolicyReason::Watching, 200, true),
    ] {
        let now = vec![said(status, reason)];
        assert_eq!(is_said(&now, &first), !is_news, "{reason:?}");
        let then = dated(now, &first, 2, Timestamp(200));
        assert_eq!(then[0].last_transition_time, Timestamp(time).into(), "{reason:?}");
        assert_eq!((&*then[0].reason, then[0].observed_generation), (reason.as_str(), Some(2)));
    }
}

#[test]
fn what_ready_says_of_objects_stays_until_they_are_counted_again() {
    let mut stuck = Tally::default();
    stuck.stuck = 3;
    let mut seen = SeenPolicy::default();
    let mut message = |tally: Option<&Tally>| {
        seen.status = compose(&Found::audited(), tally, None, &seen, Timestamp(100));
        seen.status.conditions.as_ref().unwrap()[0].message.clone()
    };
    let says = "3 objects have been terminating for over 10 minutes";
    for (tally, expected) in [(Some(&stuck), says), (None, says), (Some(&Tally::default()), "")] {
        assert_eq!(message(tally), expected, "{tally:?}");
    }
}

#[test]
fn a_status_that_finds_the_same_is_the_same_whenever_it_is_made() {
    let mut seen = SeenPolicy::default();
    let tally = Tally::default();
    seen.status = compose(&Found::audited(), Some(&tally), None, &seen, Timestamp(100));
    seen.status.counted_at = Some(Timestamp(100).into());
    for tally in [Some(&tally), None] {
        assert_eq!(compose(&Found::audited(), tally, None, &seen, Timestamp(200)), seen.status);
    }
    let mut more = Tally::default();
    more.counts.kept = 1;
    assert_ne!(compose(&Found::audited(), Some(&more), None, &seen, Timestamp(200)), seen.status);
}

#[test]
fn numbers_and_their_time_go_when_the_kind_is_not_known() {
    let mut seen = SeenPolicy::default();
    seen.status.counted_at = Some(Timestamp(100).into());
    seen.status.counts = Some(Counts::default());
    let mut found = Found::audited();
    found.situation.kind = KindState::Syncing;
    let status = compose(&found, None, None, &seen, Timestamp(200));
    assert_eq!((status.counted_at, status.counts), (None, None));
}

/// The digest of a policy with this TTL.
fn digest(ttl: u32) -> Digest {
    let policy = json!({
        "metadata": {"name": "p", "uid": "u", "generation": 1},
        "spec": {
            "target": {"apiGroup": "batch", "kind": "Job"},
            "rules": [{"name": "all", "action": {"ttlSecondsAfterFinished": ttl}}],
        },
    });
    let policy = policy.to_string();
    stored::read(PolicyKind::Cluster, &policy, &mut Definitions::default()).unwrap().digest
}

#[test]
fn a_digest_is_that_of_the_generation_that_the_status_is_about() {
    let (old, new) = (digest(1), digest(2));
    let observed = |before: Option<i64>, read: Option<(i64, Digest)>| {
        let mut seen = SeenPolicy { generation: 2, ..SeenPolicy::default() };
        seen.status.observed_generation = before;
        seen.status.observed_digest = before.map(|_| old.to_string());
        let found = Found { digest: read, ..Found::audited() };
        compose(&found, None, None, &seen, Timestamp(100)).observed_digest
    };
    for (before, read, expected) in [
        (None, Some((2, new)), Some(new)),
        (Some(1), Some((2, new)), Some(new)),
        // What was read is of before the edit.
        (Some(1), Some((1, old)), None),
        (Some(2), Some((1, new)), Some(old)),
        // It is not understood: perhaps because the same generation says something else now.
        (Some(2), None, Some(old)),
        (Some(1), None, None),
        (None, None, None),
    ] {
        let expected = expected.map(|digest| digest.to_string());
        assert_eq!(observed(before, read), expected, "{before:?} {read:?}");
    }
}
