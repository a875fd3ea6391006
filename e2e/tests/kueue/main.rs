//! The real Kueue queues TrainJobs that have a deadline and a TTL.
//!
//! The tests share two boxes, one for each clock of deadlines, and are tenants of them side by side. That of
//! retention changes Kueue's configuration and has a box to itself.

mod admission;
mod deadline;
mod multikueue;
mod queued;
mod retention;
mod topology;
mod ttl;

use std::sync::Arc;

use anyhow::Result;
use e2e::fixtures::shared::Shared;
use e2e::kueue::{Clock, Setting};
use serde_json::json;

/// The field of the deadline.
const DEADLINE: &str = "activeDeadlineSeconds";
/// The field of the TTL.
const TTL: &str = "ttlSecondsAfterFinished";

/// The box that all tests of a clock share. Its Kueue keeps Workloads as long as their jobs, as by default.
async fn shared(clock: Clock) -> Result<Arc<Setting>> {
    static CREATION: Shared<Setting> = Shared::new();
    static LAST_RESUME: Shared<Setting> = Shared::new();
    let shared = match clock {
        Clock::Creation => &CREATION,
        Clock::LastResume => &LAST_RESUME,
    };
    shared.get(async || Setting::start(clock, json!({})).await).await
}
