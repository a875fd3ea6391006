//! The Kubeflow Python SDK, as its users have it: `e2e/python/sdk.py` is one of them.

use anyhow::Result;

use crate::release::Release;

const SCRIPT: &str = "sdk.py";

/// Runs the script as somebody with the role `edit` in a namespace; `tell` hears what it has seen.
///
/// # Errors
///
/// The SDK sees something that its users do not expect; the error is its own.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let values = [
        // With the defaults a TTL cannot be added to a job,
        "manager.config.lifecycle.fieldUpdates=Mutable",
        // and who may edit in a namespace may not list the runtimes of the cluster, as the SDK does.
        "rbac.clusterRuntimesForAll=true",
    ];
    let release = Release::with_runtimes(&values).await?;
    let _programs = release.start().await?;
    let (user, namespace) = release.user("sdk").await?;
    tell("the release is there, and somebody may edit in a namespace");
    let seen = user.python(SCRIPT, &[&namespace]).await?;
    seen.lines().for_each(tell);
    Ok(())
}
