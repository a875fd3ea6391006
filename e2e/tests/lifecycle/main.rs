//! Traps that others fell into (`docs/semantics.md`, last chapter), on a real control plane with
//! the real operator. Those that take a restart of the operator are in `crashes.rs`.
//!
//! All tests share one box and one operator; each has a namespace of its own.

use std::time::Duration;

use anyhow::Result;
use e2e::fixtures::{Tenant, World};
use kube::api::DeleteParams;

mod defaults;
mod foreign;
mod holds;
mod large;
mod loops;
mod out_of_memory;
mod release;
mod removal;
mod still_running;
mod terminating;

/// How long a test looks on to see that nothing happens: several tries of the operator, whose
/// retries of a release are at most five seconds apart.
const WINDOW: Duration = Duration::from_secs(5);

async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    World::shared().await?.test(prefix, body).await
}

/// Takes the JobSet of a TrainJob away from its Jobs and Pods, which outlive it.
async fn orphan(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    let deletion = tenant.job_sets.delete(name, &DeleteParams::background()).await;
    deletion.map(drop).or_else(|error| match error {
        // It may have gone before them by itself.
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        error => Err(error),
    })?;
    tenant.job_set_gone(name).await
}
