//! An API server that answers, but not as it should: it has too much to do, or cannot list one kind.

use anyhow::{Context, Result, bail, ensure};
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{Operation, PATIENCE, POOL, RUNS, runtime};
use e2e::proxy::{Call, Fault, Proxy, Scope};
use e2e::until::until_ok;
use e2e::{coscheduling, yaml};
use serde_json::json;
use trainjob_api::conditions;

/// Seconds that an overloaded API server says to wait: longer than the operator would wait by itself.
const RETRY_AFTER: u32 = 6;

#[tokio::test]
async fn a_refusal_in_plain_text_is_waited_out_as_its_header_says() -> Result<()> {
    POOL.test_behind_proxy("overloaded", async |tenant, proxy| {
        let creations = |call: &Call| call.verb == "create" && call.resource == "jobsets";
        let refused =
            proxy.inject(creations, 1..=1, Fault::Overloaded { retry_after: RETRY_AFTER });
        tenant.create("job", RUNS, json!({})).await?;
        refused.reached().await?;
        tenant.has_job_set("job").await?;

        let requests = proxy.requests();
        let about = requests.iter().filter(|it| it.resource == "jobsets" && it.verb == "create");
        let creations: Vec<_> = about.collect();
        let [first, second] = creations[..] else { bail!("not two creations: {creations:#?}") };
        ensure!(first.answer.code == Some(429), "{first:?}");
        let waited = second.sent - first.ended;
        ensure!(waited >= i64::from(RETRY_AFTER) * 1_000, "it waited only {waited} ms");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_warning_that_an_overloaded_api_server_did_not_take_is_told_the_next_time() -> Result<()>
{
    POOL.test_behind_proxy("untold", async |tenant, proxy| {
        let warnings = |call: &Call| call.verb == "create" && call.resource == "events";
        let refused = proxy.inject(warnings, 1..=1, Fault::Overloaded { retry_after: 1 });
        let denial = tenant.deny(Operation::Create).await?;
        tenant.create("job", RUNS, json!({})).await?;
        refused.reached().await?;
        tenant.tells("job", "TrainJobResourcesCreationFailed").await?;
        denial.lift().await?;
        tenant.runs("job").await?;
        Ok(())
    })
    .await
}

/// What the operator calls the kind that cannot be listed.
const KIND: &str = "PodGroup of scheduler-plugins";

/// Makes a runtime that asks for a gang; returns its name.
async fn gang_runtime(tenant: &Tenant<'_>) -> Result<String> {
    let name = format!("{}-gang", tenant.namespace);
    let mut manifest = runtime(&name, &json!({}), 1, None);
    let spec = manifest.get_mut("spec").and_then(|spec| spec.as_object_mut());
    let policy = json!({"coscheduling": {"scheduleTimeoutSeconds": 90}});
    spec.context("a runtime without a spec")?.insert("podGroupPolicy".into(), policy);
    tenant.world.cluster.apply_yaml("default", &yaml::stream(&[manifest])).await?;
    Ok(name)
}

#[tokio::test]
async fn a_kind_of_podgroup_that_cannot_be_listed_keeps_only_jobs_waiting_that_need_it()
-> Result<()> {
    // Its own: what is installed stays.
    let world = POOL.take().await?.alone();
    let run = async |tenant: &Tenant<'_>| {
        let definitions = tokio::task::spawn_blocking(coscheduling::pod_group_definition).await??;
        world.cluster.apply_yaml("default", &yaml::stream(&definitions)).await?;
        let gang_runtime = gang_runtime(tenant).await?;
        let proxy = Proxy::start(&world.cluster, Scope::Cluster).await?;
        let lists = |call: &Call| {
            call.verb == "list"
                && call.resource == "podgroups"
                && call.group == "scheduling.x-k8s.io"
        };
        let broken = Fault::Answer { status: 500, retry_after: None };
        let broken = proxy.inject(lists, 1..=usize::MAX, broken);
        let operator = world.launch_operator_through(&proxy, "").await?;
        tenant.create("gang", &gang_runtime, json!({})).await?;
        tenant.create("plain", RUNS, json!({})).await?;

        operator.wait_ready().await?;
        tenant.runs("plain").await?;
        tenant.waits_because("gang", "PodGroupNotServed").await?;
        let made = |call: &Call| call.verb == "create" && call.name == "gang";
        ensure!(proxy.count(made) == 0, "it was given something");
        let said = format!("cannot list {KIND}");
        ensure!(operator.log()?.matches(&said).count() == 1, "not said once");

        broken.remove();
        tenant.has_job_set("gang").await?;
        until_ok("it waits no more", PATIENCE, || async {
            let job = tenant.jobs.get("gang").await?;
            let waits = conditions::find_true(conditions_of(&job), "Waiting");
            ensure!(waits.is_none(), "{waits:?}");
            Ok(())
        })
        .await?;
        let groups = |call: &Call| made(call) && call.resource == "podgroups";
        ensure!(proxy.count(groups) == 1, "{} PodGroups were created", proxy.count(groups));
        ensure!(operator.log()?.contains(&format!("{KIND} is listed now")), "not said");
        world.stop_operator().await
    };
    world.test("unlisted", run).await
}
