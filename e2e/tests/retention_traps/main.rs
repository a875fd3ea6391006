//! The traps of retention (`docs/retention-tests.md`): what goes wrong in the worst moment, on a real API server.
//!
//! Nothing but the API server acts on objects, so tests say themselves how they end. Each has a namespace with an engine of
//! its own behind a proxy, and ends with a look at its history: no DELETE before due, none without UID and version, none
//! that a policy in Enforce does not cover, none where one has tripped.

#![expect(
    clippy::indexing_slicing,
    reason = "what is not in a JSON value is null, which no test expects"
)]

mod admission_checks;
mod clocks;
mod edits;
mod failures;
mod kinds;
mod kueue_retention;
mod loops;
mod own_ttl;
mod owners;
mod pod_groups;
mod reactivated;
mod restarts;
mod rules;
mod scale;
mod trips;
mod versions;
mod watches;
mod webhooks;
mod workloads;

use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use std::{env, io};

use anyhow::{Result, anyhow};
use e2e::faults::retention::{Ground, Place};
use e2e::fixtures::shared::Shared;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Longer than an engine that is about to do something wrong hesitates.
const WINDOW: Duration = Duration::from_secs(3);

/// A namespace of the box that all traps share, without an engine.
async fn place(prefix: &str) -> Result<Place> {
    static GROUND: Shared<Ground> = Shared::new();
    Place::prepare(GROUND.get(Ground::start).await?, prefix).await
}

/// How far the clock of the API server is ahead of what it stores where one engine sees several namespaces, in seconds. So
/// everything there is that old, and longer due than what the breaker takes for a matter of time (R41).
const AHEAD: i64 = 200;

/// A namespace of a box in which one engine sees all of them.
struct WidePlace {
    place: Place,
    _engine: Arc<Place>,
}

impl Deref for WidePlace {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// A namespace of the box in which one engine sees all of them; it runs.
async fn wide_place(prefix: &str) -> Result<WidePlace> {
    static ENGINE: Shared<Place> = Shared::new();
    // Its proxy outlives the test that starts it, and the runtime of that.
    static LASTING: LazyLock<io::Result<Runtime>> = LazyLock::new(Runtime::new);
    let runtime = LASTING.as_ref().map_err(|error| anyhow!("no runtime: {error}"))?;
    let engine = ENGINE
        .get(async || {
            let started = runtime.spawn(async {
                let place =
                    Place::in_sight_of_all(Arc::new(Ground::start().await?), "wide").await?;
                place.proxy.shift_dates(AHEAD);
                place.launch().await?;
                anyhow::Ok(place)
            });
            started.await?
        })
        .await?;
    Ok(WidePlace { place: engine.another(prefix).await?, _engine: engine })
}

/// How many there are of something: few, or as many as the trap is about if `RETENTION_TRAPS` is `full`.
fn scaled<T>(few: T, full: T) -> T {
    if env::var_os("RETENTION_TRAPS").is_some_and(|it| it == "full") { full } else { few }
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
