//! The Kubeflow Python SDK, as its users have it: `e2e/python/sdk.py` is one of them. And a client that only
//! knows Kubeflow Trainer's API, from the SDK's generated models: `e2e/python/trainer_client`.

use anyhow::Result;

use crate::testenv::release::Release;

const SDK: &str = "sdk.py";
const CLIENT: &str = "trainer_client";

/// Runs both as somebody with the role `edit` in a namespace; `tell` hears what they have seen.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let values = [
        // With the defaults a TTL cannot be added to a job,
        "manager.config.lifecycle.fieldUpdates=Mutable",
        // a deadline counts from the creation of a job and not, as with Kubeflow Trainer, from its resumption,
        "manager.config.lifecycle.deadlineClock=LastResume",
        // and who may edit in a namespace may not list the runtimes of the cluster, as the SDK does.
        "rbac.clusterRuntimesForAll=true",
    ];
    let release = Release::with_runtimes(&values).await?;
    let _programs = release.start().await?;
    for script in [SDK, CLIENT] {
        let (user, namespace) = release.user("sdk").await?;
        tell(&format!("the release is there, and somebody with {script} may edit in a namespace"));
        let seen = user.python(script, &[&namespace]).await?;
        seen.lines().for_each(tell);
    }
    Ok(())
}
