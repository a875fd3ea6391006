//! The traps of retention (`docs/retention-tests.md`): what goes wrong in the worst moment, on a real API server.
//!
//! Nothing but the API server acts on objects, so tests say themselves how they end. Each has a namespace with an engine of
//! its own behind a proxy, and ends with a look at its history: no DELETE before due, none without UID and version, none
//! that a policy in Enforce does not cover, none where one has tripped.

#![expect(
    clippy::indexing_slicing,
    reason = "what is not in a JSON value is null, which no test expects"
)]

mod clocks;
mod edits;
mod failures;
mod kinds;
mod restarts;
mod rules;
mod trips;

use std::time::Duration;

use anyhow::Result;
use e2e::faults::retention::{Ground, Place};
use e2e::fixtures::shared::Shared;
use serde_json::{Value, json};

/// Longer than an engine that is about to do something wrong hesitates.
const WINDOW: Duration = Duration::from_secs(3);

/// A namespace of the box that all traps share, without an engine.
async fn place(prefix: &str) -> Result<Place> {
    static GROUND: Shared<Ground> = Shared::new();
    Place::prepare(GROUND.get(Ground::start).await?, prefix).await
}

/// Deletes so many seconds after the end.
fn ttl(seconds: i64) -> Value {
    json!({"ttlSecondsAfterFinished": seconds})
}

/// So many names that begin like this.
fn named(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{prefix}-{number:03}"))
}

/// The status and the reason of a condition.
fn condition<'a>(status: &'a Value, kind: &str) -> (&'a str, &'a str) {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    let text = |field: &str| found.and_then(|it| it[field].as_str()).unwrap_or_default();
    (text("status"), text("reason"))
}

fn is_enforcing(status: &Value) -> bool {
    condition(status, "Enforcing").0 == "True"
}

fn has_tripped(status: &Value) -> bool {
    condition(status, "Tripped").0 == "True"
}
