//! Definitions and webhook configurations that are older or newer than the programs, as upgrades and downgrades
//! pass through them (`docs/upgrade.md`, KEP-2899 on version skew), and a JobSet that does not know every field.

#![expect(clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{finished_at, now};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{
    COMPLETES, PATIENCE, POOL, RUNS, Request, World, consistently, runtime, train_job,
};
use e2e::until::until_ok;
use e2e::webhook::{Webhook, WebhookOptions};
use e2e::{workspace, yaml};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

const DEFINITION: &str = "charts/trainjob-operator/files/crds/trainjobs.trainer.kubeflow.org.yaml";
const TTL: &str = "ttlSecondsAfterFinished";
const DEADLINE: &str = "activeDeadlineSeconds";
/// Longer than an operator that is about to delete a job hesitates.
const WINDOW: Duration = Duration::from_secs(3);

/// The definition of TrainJobs, with another schema of its spec and its status.
fn definition(change: impl Fn(&mut Value)) -> Result<Value> {
    let mut definition = yaml::documents(&workspace::read(DEFINITION)?)?.pop().context("empty")?;
    let versions = definition["spec"]["versions"].as_array_mut().context("no versions")?;
    for version in versions {
        change(&mut version["schema"]["openAPIV3Schema"]["properties"]);
    }
    Ok(definition)
}

fn without_the_fields(properties: &mut Value) {
    let spec = &mut properties["spec"];
    if let Some(fields) = spec["properties"].as_object_mut() {
        fields.retain(|name, _| ![TTL, DEADLINE].contains(&name.as_str()));
    }
    // Rules that speak of fields must not speak of those that are gone.
    if let Some(rules) = spec["x-kubernetes-validations"].as_array_mut() {
        rules
            .retain(|rule| !rule.to_string().contains(TTL) && !rule.to_string().contains(DEADLINE));
    }
}

fn with_more_fields(properties: &mut Value) {
    let text = json!({"type": "string"});
    properties["spec"]["properties"]["fromTheFuture"] = text.clone();
    properties["status"]["properties"]["fromTheFuture"] = text;
}

/// Replaces the definition of TrainJobs and waits until this much more of a spec is known, or not.
async fn define(world: &World, definition: Value, more: Value, is_known: bool) -> Result<()> {
    let client = world.cluster.client().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    // What the new one does not say goes away, as with Helm.
    let mut next: CustomResourceDefinition = serde_json::from_value(definition)?;
    let name = next.metadata.name.clone().context("no name")?;
    next.metadata.resource_version = definitions.get(&name).await?.metadata.resource_version;
    definitions.replace(&name, &PostParams::default(), &next).await?;

    let jobs: Api<DynamicObject> = Api::default_namespaced_with(client, &train_jobs());
    let probe: DynamicObject = serde_json::from_value(train_job("probe", RUNS, &more))?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    until_ok(format!("{more} is known: {is_known}"), PATIENCE, || async {
        let stored = jobs.create(&dry_run, &probe).await?;
        let has = |(field, value): (&String, &Value)| stored.data["spec"].get(field) == Some(value);
        let knows = more.as_object().is_some_and(|more| more.iter().all(has));
        ensure!(knows == is_known, "{:?}", stored.data);
        Ok(())
    })
    .await
}

/// Waits until the operator has begun another watch: one that began before a definition changed shows objects as
/// they were defined then, as long as it lasts, which is some seconds.
async fn watched_anew(world: &World) -> Result<()> {
    let watches = async || {
        let metrics = world.metrics().await?;
        let is_of_jobs = |line: &&str| {
            line.starts_with("trainjob_operator_api_requests_total{")
                && line.contains("kind=\"TrainJob\"")
                && line.contains("verb=\"watch\"")
        };
        let counts = metrics.lines().filter(is_of_jobs).filter_map(|line| line.rsplit(' ').next());
        anyhow::Ok(counts.filter_map(|count| count.parse::<f64>().ok()).sum::<f64>())
    };
    let before = watches().await?;
    until_ok("the operator watches anew", PATIENCE, || async {
        ensure!(watches().await? > before, "it does not");
        Ok(())
    })
    .await
}

fn train_jobs() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("trainer.kubeflow.org", "v1alpha1", "TrainJob"))
}

/// A TrainJob as everybody sees it, with fields that this repository does not know.
async fn seen(tenant: &Tenant<'_>, name: &str) -> Result<Value> {
    let jobs: Api<DynamicObject> =
        Api::namespaced_with(tenant.client.clone(), &tenant.namespace, &train_jobs());
    Ok(serde_json::to_value(jobs.get(name).await?)?)
}

async fn is_kept(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    consistently("a finished job is kept", WINDOW, || async {
        let job = tenant.jobs.get(name).await?;
        ensure!(job.metadata.deletion_timestamp.is_none(), "it is being deleted");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_works_with_definitions_that_are_older_or_newer() -> Result<()> {
    let world = POOL.take().await?.alone();
    define(&world, definition(without_the_fields)?, json!({TTL: 9}), false).await?;
    world.start_operator().await?;
    world
        .test("skew", async |tenant| {
            older(tenant).await.context("older")?;
            same(tenant).await.context("same")?;
            newer(tenant).await.context("newer")?;
            older_again(tenant).await.context("older again")
        })
        .await
}

/// The definition does not know the fields: jobs run and complete, and stay.
async fn older(tenant: &Tenant<'_>) -> Result<()> {
    tenant.create("old", COMPLETES, json!({TTL: 1, DEADLINE: 600})).await?;
    tenant.completes("old").await?;
    is_kept(tenant, "old").await
}

/// The definition is upgraded under the operator: what was finished before can be given a TTL, and new jobs keep
/// both promises.
async fn same(tenant: &Tenant<'_>) -> Result<()> {
    define(tenant.world, definition(|_| {})?, json!({TTL: 9}), true).await?;
    watched_anew(tenant.world).await?;
    let job = tenant.patch("old", &json!({"spec": {TTL: 1}})).await?;
    ensure!(job.spec.ttl_seconds_after_finished == Some(1), "{job:?}");
    tenant.gone("old").await?;
    tenant.create("due", RUNS, json!({DEADLINE: 1, TTL: 1})).await?;
    tenant.fails_by_deadline("due").await?;
    tenant.gone("due").await
}

/// The definition knows more than the operator: what it does not know stays, in the spec and in the status that it
/// writes.
async fn newer(tenant: &Tenant<'_>) -> Result<()> {
    let future = json!({"fromTheFuture": "kept"});
    define(tenant.world, definition(with_more_fields)?, future.clone(), true).await?;
    watched_anew(tenant.world).await?;
    tenant.create("new", COMPLETES, json!({"suspend": true, TTL: 600})).await?;
    tenant.patch("new", &json!({"spec": future})).await?;
    let status = Patch::Merge(json!({"status": future}));
    tenant.jobs.patch_status("new", &PatchParams::default(), &status).await?;
    tenant.patch("new", &json!({"spec": {"suspend": false}})).await?;
    tenant.completes("new").await?;
    let job = seen(tenant, "new").await?;
    for part in ["spec", "status"] {
        ensure!(job[part]["fromTheFuture"] == "kept", "{part}: {job}");
    }
    ensure!(job["spec"][TTL] == 600, "{job}");
    Ok(())
}

/// Definition and operator are taken back: the TTL counts as unset. It is still stored: with both as they were, it
/// holds again.
async fn older_again(tenant: &Tenant<'_>) -> Result<()> {
    // Long enough for the operator to be stopped before it has passed.
    const SECONDS: i64 = 20;
    tenant.create("back", COMPLETES, json!({TTL: SECONDS})).await?;
    tenant.completes("back").await?;
    tenant.world.stop_operator().await?;
    define(tenant.world, definition(without_the_fields)?, json!({TTL: 9}), false).await?;
    tenant.world.start_operator().await?;
    until_ok("its time has come", PATIENCE, || async {
        let job = tenant.jobs.get("back").await?;
        ensure!(now().since(finished_at(&job)?) > SECONDS, "not yet");
        Ok(())
    })
    .await?;
    is_kept(tenant, "back").await?;
    define(tenant.world, definition(|_| {})?, json!({TTL: 9}), true).await?;
    tenant.world.start_operator().await?;
    tenant.gone("back").await
}

/// A webhook configuration as it was before it was restricted to what can change what runs, and before other webhooks
/// could have it asked again.
fn as_before(webhook: &mut Value) {
    if let Some(webhook) = webhook.as_object_mut() {
        webhook.remove("matchConditions");
        webhook.remove("reinvocationPolicy");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_work_with_webhook_configurations_and_definitions_of_before() -> Result<()> {
    let world = POOL.take().await?.alone();
    define(&world, definition(without_the_fields)?, json!({TTL: 9}), false).await?;
    let webhook = Webhook::unasked(&world.cluster, WebhookOptions::default()).await?;
    let client = world.cluster.client().await?;
    webhook.register(&client, as_before).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&client).await?;
    world.start_operator().await?;
    world
        .test("before", async |tenant| {
            changes_while_suspended(tenant, "old").await.context("both older")?;
            define(&world, definition(|_| {})?, json!({TTL: 9}), true).await?;
            watched_anew(&world).await?;
            keeps_both_promises(tenant, "between").await.context("older configurations")?;
            webhook.register(&client, |_| {}).await?;
            changes_while_suspended(tenant, "new").await.context("nothing older")?;
            keeps_both_promises(tenant, "due").await.context("nothing older")
        })
        .await
}

/// A suspended job is patched as Kueue does it, goes on with the patch, and completes.
async fn changes_while_suspended(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    tenant.create(name, COMPLETES, json!({"suspend": true, TTL: 600})).await?;
    tenant.has_job_set(name).await?;
    let pods = json!({"template": {"metadata": {"annotations": {"queue": "left"}}}});
    let jobs = json!([{"name": "node", "template": {"spec": pods}}]);
    let patches = json!([{
        "manager": "e2e.trainjob.dev/test",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }]);
    tenant.patch(name, &json!({"spec": {"runtimePatches": patches}})).await?;
    let annotation = "/spec/replicatedJobs/0/template/spec/template/metadata/annotations/queue";
    until_ok("its JobSet has the patch", PATIENCE, || async {
        let job_set = tenant.job_sets.get(name).await?;
        ensure!(job_set.data.pointer(annotation) == Some(&json!("left")), "{:?}", job_set.data);
        Ok(())
    })
    .await?;
    tenant.patch(name, &json!({"spec": {"suspend": false}})).await?;
    tenant.completes(name).await?;
    Ok(())
}

async fn keeps_both_promises(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    tenant.create(name, RUNS, json!({DEADLINE: 1, TTL: 1})).await?;
    tenant.fails_by_deadline(name).await?;
    tenant.gone(name).await
}

fn volumes() -> Value {
    let storage = json!({"requests": {"storage": "1Gi"}});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": storage});
    json!([{"templates": [{"metadata": {"name": "data"}, "spec": claim}]}])
}

/// Without it, JobSet refuses [`volumes`].
fn volume_mounts() -> Value {
    json!([{"name": "data", "mountPath": "/data"}])
}

/// Replaces the definition of JobSets by one that knows volumes, or one that does not.
async fn define_job_sets(
    tenant: &Tenant<'_>,
    mut next: CustomResourceDefinition,
    knows: bool,
) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(tenant.client.clone());
    let name = next.metadata.name.clone().context("no name")?;
    next.metadata.resource_version = definitions.get(&name).await?.metadata.resource_version;
    definitions.replace(&name, &PostParams::default(), &next).await?;
    let container = json!({"name": "a", "image": "a", "volumeMounts": volume_mounts()});
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    let probe: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe"},
        "spec": {
            "replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": pod}}}}],
            "volumeClaimPolicies": volumes(),
        },
    }))?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    until_ok(format!("volumes are known: {knows}"), PATIENCE, || async {
        let made = tenant.job_sets.create(&dry_run, &probe).await?;
        let kept = made.data["spec"].get("volumeClaimPolicies").is_some();
        ensure!(kept == knows, "{:?}", made.data);
        Ok(())
    })
    .await
}

/// JobSet 0.10 makes no volumes: its definition would drop them without a word.
#[tokio::test(flavor = "multi_thread")]
async fn fields_unknown_to_jobset_are_reported_and_wait_for_a_newer_jobset() -> Result<()> {
    let world = POOL.take().await?.alone();
    world.start_operator().await?;
    if !world.cluster.versions().jobset.makes_volumes() {
        // There is nothing to give back; tests of the runtimes that ship show the rest.
        return Ok(());
    }
    world
        .test("unknown", async |tenant| {
            let definitions: Api<CustomResourceDefinition> = Api::all(tenant.client.clone());
            let newest = definitions.get("jobsets.jobset.x-k8s.io").await?;
            let mut older = serde_json::to_value(&newest)?;
            let versions = older["spec"]["versions"].as_array_mut().context("no versions")?;
            for version in versions {
                let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
                let fields = spec["properties"].as_object_mut().context("no fields")?;
                fields.remove("volumeClaimPolicies").context("there are no volumes")?;
            }
            define_job_sets(tenant, serde_json::from_value(older)?, false).await?;

            let mut manifest = runtime(&tenant.namespace, &json!({}), 3, None);
            let spec = &mut manifest["spec"]["template"]["spec"];
            spec["volumeClaimPolicies"] = volumes();
            let pod = &mut spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
            pod["containers"][0]["volumeMounts"] = volume_mounts();
            world.cluster.apply_yaml("default", &yaml::stream(&[manifest])).await?;
            // An operator that does not know the runtime yet tells only of that, for a minute.
            tenant.create("first", &tenant.namespace, json!({})).await?;
            until_ok("the operator knows the runtime", PATIENCE, || async {
                let asked = tenant.world.requests(&tenant.namespace)?;
                let makes = |it: &Request| it.verb == "create" && it.object.resource == "jobsets";
                ensure!(asked.iter().any(makes), "it tries to make no JobSet");
                Ok(())
            })
            .await?;
            tenant.create("job", &tenant.namespace, json!({})).await?;
            let words = "unknown field \"spec.volumeClaimPolicies\"";
            tenant.tells_of("job", "TrainJobResourcesCreationFailed", words).await?;
            ensure!(tenant.job_sets.get_opt("job").await?.is_none(), "it has a JobSet");

            define_job_sets(tenant, newest, true).await?;
            let job_set = tenant.has_job_set("job").await?;
            ensure!(job_set.data["spec"].get("volumeClaimPolicies").is_some(), "no volumes");
            Ok(())
        })
        .await
}
