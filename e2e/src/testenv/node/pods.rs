//! What becomes of the Pods of a TrainJob on a real node.

use std::fmt::{self, Display};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::LogParams;
use tokio::time::{Instant, sleep};
use trainjob_api::conditions::{self, FAILED};
use trainjob_api::time::Timestamp;

use super::host::Node;
use crate::testenv::fixtures::Tenant;
use crate::testenv::fixtures::status::{brief, conditions_of, is_failed_by_deadline};
use crate::testenv::until::until_ok;

/// What a stop of processes may take beyond the grace period that they have.
const MARGIN: Duration = Duration::from_secs(2);
/// How much earlier a look may be late.
const BLUR: Duration = Duration::from_secs(1);
/// What is real takes time, more so on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);
/// Between two looks where a time is measured.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Counts the jobs that the operator has called released.
const RELEASED: &str = "trainjob_release_latency_seconds_count";
/// The exit code of what was killed: 128 and the number of the signal.
const KILLED: i32 = 137;

/// How the last process of a job that its deadline failed went.
#[derive(Debug, Clone, Copy)]
pub struct Stopped {
    /// From the first sight of the condition `Failed` to the end of the last process.
    pub took: Duration,
    /// From then until the operator counted the job as released.
    pub released_after: Duration,
}

impl Stopped {
    /// Sees that the processes had their grace period, and little more.
    pub fn within(&self, grace: Duration) -> Result<()> {
        ensure!(self.took + BLUR >= grace, "killed before the grace period of {grace:?}: {self}");
        ensure!(self.took <= grace + MARGIN, "late after the grace period of {grace:?}: {self}");
        Ok(())
    }
}

impl Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [took, released] = [self.took, self.released_after].map(|it| it.as_secs_f64());
        write!(
            f,
            "{took:.2} s from Failed to the last process gone, released {released:.2} s later"
        )
    }
}

/// Waits until a job has a true condition `kind`.
pub async fn ends(tenant: &Tenant<'_>, job: &str, kind: &str) -> Result<()> {
    until_ok(format!("{job} is {kind}"), PATIENCE, || async {
        let now = tenant.jobs.get(job).await?;
        let conditions = conditions_of(&now);
        if conditions::find_true(conditions, kind).is_some() {
            return Ok(());
        }
        let pods = tenant.pods_of(job).await?;
        bail!("[{}]; {}", brief(conditions), described(&pods))
    })
    .await
}

/// Waits until every Pod of a job has printed `word`.
pub async fn say(tenant: &Tenant<'_>, job: &str, word: &str) -> Result<()> {
    until_ok(format!("the Pods of {job} say {word:?}"), PATIENCE, || async {
        let logs = logs(tenant, job).await?;
        ensure!(logs.iter().all(|log| log.contains(word)), "they say {logs:?}");
        Ok(())
    })
    .await
}

/// Waits until the Pods of a job are deleted and their grace periods are over, and sees that they still run then.
pub async fn outlive_their_grace(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok(format!("the grace periods of {job} are over"), PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        ensure!(!pods.is_empty(), "no Pod is left");
        for pod in pods {
            let deleted = pod.metadata.deletion_timestamp.as_ref().context("one is not deleted")?;
            let now = Timestamp::from(SystemTime::now());
            ensure!(Timestamp::from(deleted) < now, "one has time until {}", deleted.0);
            ensure!(phase(&pod) == "Running", "one is {}", phase(&pod));
        }
        Ok(())
    })
    .await
}

/// Waits until `count` Pods of a job run, all of their containers with them, and returns their UIDs.
pub async fn run(tenant: &Tenant<'_>, job: &str, count: usize) -> Result<Vec<String>> {
    until_ok(format!("{count} Pods of {job} run"), PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        let running = pods.iter().filter(|pod| phase(pod) == "Running");
        let uids: Vec<String> = running.filter_map(kube::ResourceExt::uid).collect();
        ensure!(uids.len() == count, "{}", described(&pods));
        Ok(uids)
    })
    .await
}

/// Waits until a job whose `count` Pods run is failed by its deadline, and its last process is gone: the processes in
/// their cgroups are what is looked at, not what anybody says of them. The operator must not call the job released
/// before that.
pub async fn stopped_by_deadline(
    node: &Node,
    tenant: &Tenant<'_>,
    job: &str,
    pods: &[String],
) -> Result<Stopped> {
    let before = released(tenant).await?;
    let begun = Instant::now();
    let failed = loop {
        let now = tenant.jobs.get(job).await?;
        if conditions::find_true(conditions_of(&now), FAILED).is_some() {
            ensure!(is_failed_by_deadline(&now), "{job} is {}", brief(conditions_of(&now)));
            break Instant::now();
        }
        ensure!(!node.processes(pods)?.is_empty(), "{job} ended by itself");
        ensure!(begun.elapsed() < PATIENCE, "{job} did not meet its deadline");
        sleep(LOOK_EVERY).await;
    };
    ensure!(!node.processes(pods)?.is_empty(), "the processes of {job} ended with its condition");
    let gone = loop {
        // In this order: what ends between the two is no lie.
        let released = released(tenant).await?;
        let left = node.processes(pods)?;
        if left.is_empty() {
            break Instant::now();
        }
        ensure!(released == before, "{job} is called released while {left:?} run");
        ensure!(failed.elapsed() < PATIENCE, "{left:?} of {job} run on");
        sleep(LOOK_EVERY).await;
    };
    until_ok(format!("{job} is called released"), PATIENCE, || async {
        ensure!(released(tenant).await? == before + 1, "it is not yet");
        Ok(())
    })
    .await?;
    Ok(Stopped { took: gone - failed, released_after: gone.elapsed() })
}

/// How many jobs the operator has called released.
async fn released(tenant: &Tenant<'_>) -> Result<u64> {
    let metrics = tenant.world.metrics().await?;
    let mut values = metrics.lines().filter_map(|line| line.strip_prefix(RELEASED));
    let value = values.next().with_context(|| format!("no {RELEASED}"))?;
    value.trim().parse().with_context(|| format!("{RELEASED}{value}"))
}

/// Waits until the kernel has killed a container of a job for its memory, and returns what the event about the job
/// says of it.
pub async fn out_of_memory(tenant: &Tenant<'_>, job: &str) -> Result<String> {
    let pod = until_ok(format!("a container of {job} was out of memory"), PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        let ended = pods.iter().find_map(|pod| {
            let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
            let ended = statuses.first()?.state.as_ref()?.terminated.as_ref()?;
            Some((pod.name_any(), ended.clone()))
        });
        let (name, ended) = ended.with_context(|| described(&pods))?;
        let reason = ended.reason.unwrap_or_default();
        ensure!(reason == "OOMKilled" && ended.exit_code == KILLED, "{name}: {reason}");
        Ok(name)
    });
    let pod = pod.await?;
    let told = tenant.tells(job, "PodOOMKilled").await?;
    let expected = format!("of Pod {pod} ran out of memory (OOMKilled, exit code {KILLED})");
    ensure!(told.contains(&expected), "the event says {told:?}");
    Ok(told)
}

/// What the Pods of a job have printed, in the order of their indices, as the kubelet tells it.
pub async fn logs(tenant: &Tenant<'_>, job: &str) -> Result<Vec<String>> {
    let mut pods = tenant.pods_of(job).await?;
    pods.sort_by_key(kube::ResourceExt::name_any);
    let mut logs = Vec::new();
    for pod in pods {
        let name = pod.name_any();
        let log = tenant.pods.logs(&name, &LogParams::default()).await;
        logs.push(log.with_context(|| format!("no log of {name}"))?);
    }
    Ok(logs)
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Where each Pod is, and what keeps its container.
fn described(pods: &[Pod]) -> String {
    let describe = |pod: &Pod| {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.clone());
        let states: Vec<_> = statuses.into_iter().flatten().filter_map(|it| it.state).collect();
        format!("{} is {}: {states:?}", pod.name_any(), phase(pod))
    };
    pods.iter().map(describe).collect::<Vec<_>>().join("; ")
}
