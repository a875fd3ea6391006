//! The first minute of a cluster: the definitions are new, and the API server refuses what jobs are made of
//! until it has discovered them. The jobs run as soon as it has, and their users hear nothing of it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::chart::install_crds;
use e2e::cluster::Options;
use e2e::discovered::{is_discovered, until_discovered};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, COMPLETES_AFTER, PATIENCE, POOL, RUNS, SYSTEM, World, runtime};
use e2e::operator::SERVICE_ACCOUNT;
use e2e::proxy::{Call, Fault};
use e2e::until::until_ok;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

const JOBS: usize = 5;
const CREATION_FAILED: &str = "TrainJobResourcesCreationFailed";

/// The words of an API server that does not know the kind.
const UNDISCOVERED: &str = "jobsets.jobset.x-k8s.io \"job\" is forbidden: cannot set \
    blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
    trainer.kubeflow.org/v1alpha1 Kind TrainJob: no matches for kind \"TrainJob\" in version \
    \"trainer.kubeflow.org/v1alpha1\"";

/// How long the operator waits such refusals out.
const WAITED_OUT: Duration = Duration::from_secs(45);

/// How much the operator may err about the API server's clock, which tells whole seconds.
const BLUR: Duration = Duration::from_secs(1);

/// Longer than the operator takes between two tries, on a busy machine.
const BETWEEN_TRIES: i64 = 8_000;

/// A kind of this test, as new as TrainJobs are to be.
fn definition_of_probes() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "probes.e2e.trainjob.dev"},
        "spec": {
            "group": "e2e.trainjob.dev",
            "scope": "Namespaced",
            "names": {"plural": "probes", "singular": "probe", "kind": "Probe"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

/// Returns just after the API server has looked for new kinds, which it does every 30 seconds: nothing that is
/// defined now is known for nearly as long.
async fn the_api_server_has_looked_for_new_kinds(world: &World) -> Result<()> {
    let (account, probe) = ((SYSTEM, SERVICE_ACCOUNT), ("e2e.trainjob.dev/v1", "Probe"));
    let knows_it = is_discovered(&world.cluster, account, probe).await?;
    ensure!(!knows_it, "it knows probes before they are defined");
    let api: Api<CustomResourceDefinition> = Api::all(world.cluster.client().await?);
    let definition = serde_json::from_value(definition_of_probes())?;
    api.create(&PostParams::default(), &definition).await?;
    until_discovered(&world.cluster, account, probe).await
}

fn job(index: usize) -> String {
    format!("job-{index}")
}

/// The longest pause between two tries of the operator to make a job's snapshot, in milliseconds, and how
/// many of them were refused.
fn tries(tenant: &Tenant<'_>, job: &str) -> Result<(i64, usize)> {
    let tries = tenant.requests("create", "configmaps", &format!("{job}-runtime-snapshot"))?;
    let at: Vec<i64> = tries.iter().map(|it| it.at.0.as_millisecond()).collect();
    let pauses = at.iter().zip(at.iter().skip(1)).map(|(one, next)| next - one);
    Ok((pauses.max().unwrap_or(0), tries.iter().filter(|it| it.code() == 403).count()))
}

#[tokio::test]
async fn jobs_created_right_after_the_definitions_run_and_nobody_is_told_of_a_failure() -> Result<()>
{
    let world = Box::pin(World::without_crds(Options::default())).await?;
    the_api_server_has_looked_for_new_kinds(&world).await?;
    install_crds(&world.cluster.client().await?).await?;
    let delay = json!({COMPLETES_AFTER: "1s"});
    let manifest = runtime(COMPLETES, &delay, 3, None).to_string();
    world.cluster.apply_yaml("default", &manifest).await?;
    // Its first list has the runtime, or it would tell users that there is none.
    let operator = world.start_operator().await?;
    world
        .test("first-minute", async |tenant| {
            for index in 0..JOBS {
                tenant.create(&job(index), COMPLETES, json!({})).await?;
            }
            for index in 0..JOBS {
                tenant.completes(&job(index)).await?;
            }
            for index in 0..JOBS {
                let (pause, refused) = tries(tenant, &job(index))?;
                ensure!(refused > 0, "{}: not refused once, so nothing is shown", job(index));
                ensure!(pause < BETWEEN_TRIES, "{}: {pause} ms without a try", job(index));
                let told = tenant.told(&job(index), CREATION_FAILED).await?;
                ensure!(told.is_empty(), "{}: {told:?}", job(index));
            }
            let log = operator.log()?;
            ensure!(!log.contains("cannot find RESTMapping"), "it says so in its log:\n{log}");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_refusal_that_lasts_is_told_after_45_seconds() -> Result<()> {
    POOL.test_behind_proxy("undiscovered", async |tenant, proxy| {
        let creates = |call: &Call| call.verb == "create" && call.resource == "jobsets";
        let refuse = Fault::Refuse { status: 403, message: UNDISCOVERED };
        let refused = proxy.inject(creates, 1..=usize::MAX, refuse);
        tenant.create("job", RUNS, json!({})).await?;
        refused.reached().await?;
        let told = until_ok("users are told", WAITED_OUT + PATIENCE, || async {
            tenant.told("job", CREATION_FAILED).await?.pop().context("they are not")
        })
        .await?;
        let note = told.note.unwrap_or_default();
        ensure!(note.ends_with(UNDISCOVERED), "{note}");

        let asked = proxy.requests();
        let first = asked.iter().find(|it| it.verb == "create" && it.resource == "jobsets");
        let first = first.context("it did not ask")?.sent;
        let at = told.event_time.context("it has no time")?.0.as_millisecond();
        let waited = Duration::from_millis(u64::try_from(at - first)?);
        // From the answer to the first try on, by the operator's clock; a test sees when that was asked.
        ensure!(waited + BLUR >= WAITED_OUT, "told after {waited:?}");
        // One try every one or two seconds.
        let tries = refused.befallen();
        ensure!((10..=60).contains(&tries), "{tries} tries in {waited:?}");

        refused.remove();
        tenant.runs("job").await?;
        Ok(())
    })
    .await
}
