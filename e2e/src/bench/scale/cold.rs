//! A start without a leader before it, beside a raw LIST of the same.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::{Client, Resource};
use serde::Serialize;
use tokio::time::Instant;
use trainjob_api::{JobSet, TrainJob};

use super::super::calls::{Call, Calls, counted};
use super::super::rig::Rig;
use super::replica::Replica;
use super::stock::OVERDUE;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::until::until_ok;

/// Objects of a page.
const PAGE: usize = 500;

/// How long a raw LIST of each kind took, in milliseconds, both at the same time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Listed {
    pub(super) train_jobs_ms: f64,
    pub(super) job_sets_ms: f64,
}

impl Listed {
    /// Until both were there.
    pub(super) const fn whole_ms(&self) -> f64 {
        self.train_jobs_ms.max(self.job_sets_ms)
    }
}

/// What came of a start.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ColdStart {
    pub(super) ready_ms: f64,
    /// From the answer with the first page of TrainJobs to the first accepted deletion.
    pub(super) first_deletion_ms: f64,
    /// From the answer with the first page to the last accepted deletion of those that were overdue.
    pub(super) last_deletion_ms: f64,
    /// Overdue jobs that were not deleted.
    pub(super) missing: usize,
    /// All that was asked for until then, by what it was.
    pub(super) calls: BTreeMap<String, usize>,
}

/// Lists both kinds, page by page, and does nothing with them.
pub(super) async fn listed(rig: &Rig) -> Result<Listed> {
    let [jobs, sets] = [TrainJob::url_path(&(), None), JobSet::url_path(&(), None)];
    let (train_jobs_ms, job_sets_ms) =
        tokio::try_join!(list(&rig.raw, &jobs), list(&rig.raw, &sets))?;
    Ok(Listed { train_jobs_ms, job_sets_ms })
}

async fn list(client: &Client, path: &str) -> Result<f64> {
    let (begun, mut from) = (Instant::now(), String::new());
    loop {
        let page = format!("{path}?limit={PAGE}{from}");
        let text = client.request_text(http::Request::get(page).body(Vec::new())?).await?;
        match next(&text) {
            Some(token) => from = format!("&continue={token}"),
            None => return Ok(begun.elapsed().as_secs_f64() * 1e3),
        }
    }
}

/// Where the next page begins. It is behind the objects or before them, and no object of a bench has such a field.
fn next(page: &str) -> Option<&str> {
    let (_, rest) = page.rsplit_once(r#""continue":""#)?;
    let (token, _) = rest.split_once('"')?;
    (!token.is_empty()).then_some(token)
}

/// Starts a replica, which finds nobody that leads.
pub(super) async fn start(rig: &Rig, name: &str) -> Result<(Replica, ColdStart)> {
    rig.progress.step("the operator starts", 0);
    let replica = Replica::launch(rig, name).await?;
    let ready_ms = replica.ready().await?;
    // What is not deleted by then is counted.
    let _ = until_ok("overdue TrainJobs are deleted", PATIENCE, || async {
        let deleted = deletions(&rig.noted().await?.operator, &replica.token).len();
        (deleted >= OVERDUE).then_some(()).with_context(|| format!("{deleted} are"))
    })
    .await;
    let cold = judged(&rig.noted().await?.operator, &replica.token, ready_ms);
    Ok((replica, cold))
}

/// What the operator with this token has deleted: the one that wrote for samples has left its traces, too.
fn deletions<'c>(calls: &'c Calls, token: &str) -> Vec<&'c Call> {
    let mut deleted = calls.accepted("delete", "trainjobs");
    deleted.retain(|call| call.has_token(token));
    deleted
}

/// What a start was, by what was asked for.
fn judged(calls: &Calls, token: &str, ready_ms: f64) -> ColdStart {
    let is_page = |call: &&Call| call.is("list", "trainjobs") && call.has_token(token);
    let first = calls.watching.iter().filter(is_page).map(Call::completed).min();
    let deleted = deletions(calls, token);
    let after = |call: Option<&&Call>| match (call, first) {
        (Some(call), Some(first)) => call.completed().since(first),
        _ => f64::NAN,
    };
    ColdStart {
        ready_ms,
        first_deletion_ms: after(deleted.first()),
        last_deletion_ms: after(deleted.last()),
        missing: OVERDUE.saturating_sub(deleted.len()),
        calls: counted(calls.all().filter(|call| call.has_token(token))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_page_is_found_before_or_behind_the_objects() {
        for (page, expected) in [
            (r#"{"items":[{}],"metadata":{"continue":"abc","resourceVersion":"1"}}"#, Some("abc")),
            (r#"{"metadata":{"continue":"abc"},"items":[{"a":"b"}]}"#, Some("abc")),
            (r#"{"items":[],"metadata":{"continue":"","resourceVersion":"1"}}"#, None),
            (r#"{"items":[],"metadata":{"resourceVersion":"1"}}"#, None),
        ] {
            assert_eq!(next(page), expected, "{page}");
        }
    }
}
