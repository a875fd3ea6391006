//! The first failures, and the exit codes of all.

use std::collections::BTreeMap;

use trainjob_api::{
    lifecycle::v1alpha1::record::{
        FAILURES, FAILURES_PER_ATTEMPT, MESSAGE, NAMES, OTHER, PodFailure, TrainJobRecordStatus,
    },
    time::Timestamp,
};

use super::{key::Key, sums::add_to};
use crate::share::Share;

/// Adds a Pod that failed.
pub(super) fn count(status: &mut TrainJobRecordStatus, key: Key, share: &Share, messages: bool) {
    if let Some((_, exit_code)) = share.culprit {
        add_to(&mut status.exit_codes, &exit_code.to_string(), 1);
        keep_least(&mut status.exit_codes);
    }
    let message =
        if messages { share.message.chars().take(MESSAGE).collect() } else { String::new() };
    status.first_failures.push(PodFailure {
        pod: share.pod.clone(),
        replicated_job: share.replicated_job.clone(),
        job_set: key.0,
        restart: key.1,
        node: share.node.clone(),
        container: share.culprit.as_ref().map(|(name, _)| name.clone()),
        exit_code: share.culprit.as_ref().map(|(_, code)| *code),
        reason: share.verdict.reason().unwrap_or_default().into(),
        ended_at: Some(share.span.end().into()),
        message,
    });
    keep_first(&mut status.first_failures);
}

/// Sums all but the least codes.
fn keep_least(codes: &mut BTreeMap<String, u64>) {
    let known = |code: &str| code.parse::<i32>().ok();
    while codes.keys().filter(|code| known(code).is_some()).count() > NAMES {
        let Some(most) = codes.keys().filter_map(|code| known(code)).max() else { break };
        let count = codes.remove(&most.to_string()).unwrap_or_default();
        add_to(codes, OTHER, count);
    }
}

fn keep_first(failures: &mut Vec<PodFailure>) {
    failures.sort_by_cached_key(|failure| {
        (failure.ended_at.as_ref().map(Timestamp::from), failure.pod.clone())
    });
    let mut of_attempt = BTreeMap::<Key, usize>::new();
    failures.retain(|failure| {
        let seen = of_attempt.entry((failure.job_set, failure.restart)).or_default();
        *seen += 1;
        *seen <= FAILURES_PER_ATTEMPT
    });
    failures.truncate(FAILURES);
}
