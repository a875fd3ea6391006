//! A real node: a training on two Pods that talk over their network, one that does not let go, one that takes too much; and
//! how Pods are [counted](accounting) there.

mod accounting;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, FAILED};

use crate::demo::leftovers;
use crate::testenv::chart::file_of_chart;
use crate::testenv::fixtures::Tenant;
use crate::testenv::fixtures::status::{brief, conditions_of};
use crate::testenv::node::{self, Node, Tell, jax, pods};
use crate::testenv::{workspace, yaml};

/// The runtime that the chart ships.
const RUNTIME: &str = "runtimes/jax-distributed.yaml";
/// The same, but for a container that ends: it is not started again.
const ONCE: &str = "jax-once";
/// Where a runtime has the Pods of its nodes.
const POD: &str = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
/// How much of the loss is left in the end.
const LEARNT: f64 = 0.01;
/// That of Pods that name none.
const GRACE: Duration = Duration::from_secs(30);

/// Shows all of it; `tell` hears of each step. Where no real node can run, it says why and that is all.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    if let Some(reason) = node::missing() {
        tell(&format!("skipped: {reason}"));
        return Ok(());
    }
    let image = tokio::task::spawn_blocking(jax::provide).await??;
    // From within the node's network nothing can be downloaded for it.
    tokio::task::spawn_blocking(workspace::accounting).await??;
    node::visit(tell, async move |node, tell| {
        node.load(&jax::image(&image, node.folder())?).await?;
        tell.say("an image with JAX is there");
        let runtimes = [runtime(false)?, runtime(true)?];
        node.world.cluster.apply_yaml("default", &yaml::stream(&runtimes)).await?;
        node.world.start_operator().await?;
        node.world
            .test("jax", async |tenant| {
                learns(tenant, tell).await?;
                // What takes long there is waiting.
                tokio::try_join!(stubborn(node, tenant, tell), greedy(tenant, tell))?;
                let left = leftovers::find(&tenant.client, &tenant.namespace).await?;
                ensure!(left.is_empty(), "{} are left", left.join(", "));
                tell.say("nothing is left of any of them");
                Ok(())
            })
            .await?;
        accounting::run(node, tell).await
    })
    .await
}

/// The chart's runtime, with an image for CPUs.
fn runtime(once: bool) -> Result<Value> {
    let mut runtime = file_of_chart(RUNTIME)?.pop().context("the chart has no runtime of JAX")?;
    let image = runtime.pointer_mut(&format!("{POD}/containers/0/image"));
    *image.context("the runtime has no image")? = json!(jax::IMAGE);
    if once {
        let job = POD.strip_suffix("/template/spec").unwrap_or_default();
        for (place, field, value) in [
            ("/metadata", "name", json!(ONCE)),
            (POD, "restartPolicy", json!("Never")),
            (job, "backoffLimit", json!(0)),
        ] {
            let object = runtime.pointer_mut(place).and_then(Value::as_object_mut);
            object.with_context(|| format!("no {place}"))?.insert(field.to_owned(), value);
        }
    }
    Ok(runtime)
}

async fn create(
    tenant: &Tenant<'_>,
    name: &str,
    runtime: &str,
    how: &str,
    more: &Value,
) -> Result<()> {
    let command = ["python3", jax::SCRIPT, how];
    let mut spec = json!({"trainer": {"command": command, "numNodes": 2}});
    let fields = more.as_object().context("no fields")?;
    spec.as_object_mut().context("no spec")?.extend(fields.clone());
    tenant.create(name, runtime, spec).await?;
    Ok(())
}

/// Two Pods train together, complete, and are deleted with everything that the job owns.
async fn learns(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let job = "learns";
    create(tenant, job, "jax-distributed", "train", &json!({"ttlSecondsAfterFinished": 10}))
        .await?;
    pods::ends(tenant, job, COMPLETE).await?;
    let logs = pods::logs(tenant, job).await?;
    let losses = judged(&logs)?;
    let (first, last) = losses.first().zip(losses.last()).context("no losses")?;
    tell.say(format!("two Pods have trained: loss {first} to {last}, the same on both"));
    tenant.gone(job).await?;
    tell.say("the job is deleted after its TTL");
    Ok(())
}

/// The losses that the ranks have seen: they fall, and are those of all.
fn judged(logs: &[String]) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    for (rank, log) in logs.iter().enumerate() {
        let expected = format!("rank {rank} of {}", logs.len());
        ensure!(log.lines().any(|line| line == expected), "not {expected}: {log}");
        let results = ["step ", "weights "];
        let seen = log.lines().filter(|line| results.iter().any(|it| line.starts_with(it)));
        all.push(seen.map(str::to_owned).collect::<Vec<_>>());
    }
    let one = all.first().context("no logs")?;
    ensure!(all.iter().all(|other| other == one), "they do not agree: {all:?}");
    let losses = one.iter().filter_map(|line| line.rsplit_once("loss "));
    let losses = losses.map(|(_, loss)| Ok(loss.parse::<f64>()?)).collect::<Result<Vec<_>>>()?;
    let falls = losses.windows(2).all(|pair| matches!(pair, [before, after] if after < before));
    let (first, last) = losses.first().zip(losses.last()).context("no losses")?;
    ensure!(falls && *last < first * LEARNT, "the loss does not fall: {losses:?}");
    Ok(losses)
}

/// Two Pods that ignore SIGTERM meet their deadline.
async fn stubborn(node: &Node, tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let job = "stubborn";
    let limits = json!({"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 0});
    create(tenant, job, "jax-distributed", "stubborn", &limits).await?;
    let uids = pods::run(tenant, job, 2).await?;
    // It has said that by then, and ignores the signal.
    pods::say(tenant, job, "step 0").await?;
    tell.say("a job that ignores SIGTERM runs");
    let stopped = pods::stopped_by_deadline(node, tenant, job, &uids).await?;
    tell.say(format!("{stopped}; the grace period is {} s", GRACE.as_secs()));
    stopped.within(GRACE)?;
    tenant.gone(job).await
}

/// A Pod that takes too much memory is killed by the kernel.
async fn greedy(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let job = "greedy";
    let trainer = json!({
        "command": ["python3", jax::SCRIPT, "greedy"],
        "numNodes": 1,
        "resourcesPerNode": {"limits": {"memory": "512Mi"}},
    });
    tenant.create(job, ONCE, json!({"trainer": trainer, "ttlSecondsAfterFinished": 10})).await?;
    pods::ends(tenant, job, FAILED).await?;
    let said = pods::out_of_memory(tenant, job).await?;
    let ended = tenant.jobs.get(job).await?;
    tell.say(format!("{said}; the job: {}", brief(conditions_of(&ended))));
    tenant.gone(job).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_losses_that_fall_and_are_the_same_everywhere_are_a_training() {
        let log = |rank: usize, losses: [&str; 2]| {
            let [first, last] = losses;
            format!("rank {rank} of 2\nstep 0 loss {first}\nstep 10 loss {last}\nweights 2 1\n")
        };
        let good = ["4.5", "0.001"];
        assert_eq!(judged(&[log(0, good), log(1, good)]).unwrap().len(), 2);
        let bad = ["0.001", "4.5"];
        for (one, other) in [(good, ["4.5", "0.002"]), (bad, bad)] {
            assert!(judged(&[log(0, one), log(1, other)]).is_err());
        }
        assert!(judged(&[log(0, good), log(0, good)]).is_err());
    }
}
