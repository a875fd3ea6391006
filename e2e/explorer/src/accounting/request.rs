//! A request under way.

use std::time::Duration;

use trainjob_accounting_core::{
    answer::Failure,
    keeper::{Answer, Call},
};

/// Who sent a request, and what was known then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    /// Which process.
    pub(super) process: usize,
    /// How many there were before in its place.
    pub(super) epoch: u64,
    /// Its time.
    pub(super) planned_at: i64,
    /// Whether it has to know of a suspension.
    pub(super) knows_job: bool,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) by: Sender,
    pub(super) call: Call,
    /// Nobody waits for its answer any more.
    pub(super) given_up: bool,
}

/// The answer to one that fails.
pub(super) const fn failed(failure: Failure) -> Answer {
    Answer::Failed { failure, retry_after: Duration::ZERO }
}

/// What a request asks for.
pub(super) fn word(call: &Call) -> String {
    match call {
        Call::Create { long_name } => {
            format!("create {}", if *long_name { "long" } else { "short" })
        }
        Call::Get { long_name } => format!("get {}", if *long_name { "long" } else { "short" }),
        Call::List { .. } => "list".into(),
        Call::ReadJob => "read job".into(),
        Call::Store(store) => {
            format!("store [{}] at {}", store.status.settling.join(" "), store.fence.version)
        }
        Call::Release { uid, is_counted, .. } => {
            format!("{} {uid}", if *is_counted { "release" } else { "let go" })
        }
    }
}
