//! A real node: containerd, runc and a kubelet. What fake Pods only say, processes do here.
//!
//! One node for all that is seen, because it takes a while to start and what takes long on it is waiting.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::demo::leftovers;
use e2e::fixtures::status::{brief, conditions_of};
use e2e::fixtures::{Tenant, runtime};
use e2e::node::image::SMALL;
use e2e::node::{self, Node, Tell, pods};
use e2e::yaml;
use launcher::say;
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, FAILED};

const RUNTIME: &str = "small";
/// The grace period of its Pods.
const GRACE: Duration = Duration::from_secs(5);

/// Says a word to the other Pod, by its name, and ends well when that has said its own.
const TALK: &str = r#"
said() { cat /tmp/heard; [ "$(cat /tmp/heard)" = "this is $1" ]; }
case $JOB_COMPLETION_INDEX in
    0) echo "this is 0" | nc -l -p 7000 >/tmp/heard; said 1 ;;
    1) until echo "this is 1" | nc -w 5 talk-node-0-0.talk 7000 >/tmp/heard 2>/dev/null; do sleep 0.2; done; said 0 ;;
esac
"#;
/// Ignores what it is asked, and so does what it runs.
const STUBBORN: &str = "trap '' TERM; echo deaf; while :; do sleep 1; done";

#[tokio::test]
async fn on_a_real_node_pods_talk_a_deadline_waits_for_the_last_process_and_memory_has_a_limit()
-> Result<()> {
    if let Some(reason) = node::missing() {
        say(format_args!("skipped: {reason}"));
        return Ok(());
    }
    node::visit(&|line: &str| say(line), async |node, tell| {
        let small = runtime(RUNTIME, &json!({}), i64::try_from(GRACE.as_secs())?, None);
        node.world.cluster.apply_yaml("default", &yaml::stream(&[small])).await?;
        node.world.start_operator().await?;
        node.world.test("node", async |tenant| Box::pin(scenarios(node, tenant, tell)).await).await
    })
    .await
}

async fn scenarios(node: &Node, tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    tokio::try_join!(talk(tenant, tell), stubborn(node, tenant, tell), greedy(tenant, tell))?;
    let left = leftovers::find(&tenant.client, &tenant.namespace).await?;
    ensure!(left.is_empty(), "{} are left", left.join(", "));
    Ok(())
}

async fn create(
    tenant: &Tenant<'_>,
    name: &str,
    trainer: &Value,
    ttl: i64,
    deadline: Option<i64>,
) -> Result<()> {
    let mut trainer = trainer.clone();
    trainer.as_object_mut().context("no trainer")?.insert("image".to_owned(), json!(SMALL));
    let spec = json!({
        "trainer": trainer,
        "ttlSecondsAfterFinished": ttl,
        "activeDeadlineSeconds": deadline,
    });
    tenant.create(name, RUNTIME, spec).await?;
    Ok(())
}

/// Two Pods find each other by name, complete, and are deleted.
async fn talk(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let trainer = json!({"numNodes": 2, "command": ["sh", "-c", TALK]});
    create(tenant, "talk", &trainer, 8, None).await?;
    pods::ends(tenant, "talk", COMPLETE).await?;
    let heard = pods::logs(tenant, "talk").await?;
    ensure!(heard == ["this is 1\n", "this is 0\n"], "they heard {heard:?}");
    tell.say("two Pods have talked");
    tenant.gone("talk").await
}

/// A job that ignores SIGTERM is not released before it is killed, and deleted after that.
async fn stubborn(node: &Node, tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let trainer = json!({"numNodes": 2, "command": ["sh", "-c", STUBBORN]});
    create(tenant, "stubborn", &trainer, 0, Some(20)).await?;
    let uids = pods::run(tenant, "stubborn", 2).await?;
    pods::say(tenant, "stubborn", "deaf").await?;
    let stopped = pods::stopped_by_deadline(node, tenant, "stubborn", &uids).await?;
    tell.say(format!("{stopped}; the grace period is {} s", GRACE.as_secs()));
    stopped.within(GRACE)?;
    tenant.gone("stubborn").await
}

/// What takes more memory than it may is killed by the kernel, and the job fails.
async fn greedy(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let limits = json!({"limits": {"memory": "32Mi"}});
    let trainer = json!({"command": ["tail", "/dev/zero"], "resourcesPerNode": limits});
    create(tenant, "greedy", &trainer, 8, None).await?;
    pods::ends(tenant, "greedy", FAILED).await?;
    let said = pods::out_of_memory(tenant, "greedy").await?;
    let job = tenant.jobs.get("greedy").await?;
    tell.say(format!("{said}; the job: {}", brief(conditions_of(&job))));
    tenant.gone("greedy").await
}
