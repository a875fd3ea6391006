//! A TrainJob on each of the runtimes that ship: it is made, suspended and resumed, and ends as its Pods
//! do, past JobSet's own webhooks.
//!
//! All tests share one box and one operator; each has a namespace of its own. The Pods are fake: what they
//! do is said in annotations, which the TrainJob sets by a patch.

#![expect(clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE, World, consistently};
use e2e::until::until_ok;
use e2e::{workspace, yaml};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, FAILED};

/// Every runtime that ships, and the names of what a TrainJob `job` has beside its JobSet and snapshot.
const RUNTIMES: [(&str, &[&str]); 10] = [
    ("charts/trainjob-operator/files/runtimes/torch-distributed.yaml", &[]),
    ("charts/trainjob-operator/files/runtimes/torch-distributed-with-cache.yaml", &[]),
    ("charts/trainjob-operator/files/runtimes/torchtune-llama3.2-1b.yaml", &[]),
    ("charts/trainjob-operator/files/runtimes/torchtune-llama3.2-3b.yaml", &[]),
    ("charts/trainjob-operator/files/runtimes/torchtune-qwen2.5-1.5b.yaml", &[]),
    ("charts/trainjob-operator/files/runtimes/jax-distributed.yaml", &[]),
    ("charts/trainjob-operator/files/runtimes/xgboost-distributed.yaml", &[]),
    (
        "charts/trainjob-operator/files/runtimes/deepspeed-distributed.yaml",
        &["ConfigMap job-mpi-hostfile", "Secret job-mpi-ssh-auth"],
    ),
    (
        "charts/trainjob-operator/files/runtimes/mlx-distributed.yaml",
        &["ConfigMap job-mpi-hostfile", "Secret job-mpi-ssh-auth"],
    ),
    (
        "examples/runtimes/flux-distributed.yaml",
        &["ConfigMap job-flux-entrypoint", "Secret job-flux-curve"],
    ),
];

/// What users are told when a child cannot be made.
const CREATION_FAILED: &str = "TrainJobResourcesCreationFailed";

async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    World::shared().await?.test(prefix, body).await
}

/// A runtime that ships, under another name, with Jobs that do not try again.
struct Shipped {
    name: String,
    manifest: Value,
}

impl Shipped {
    fn read(file: &str, suffix: &str) -> Result<Self> {
        let mut documents = yaml::documents(&workspace::read(file)?)?;
        let mut manifest = documents.pop().context("no runtime")?;
        let name = manifest["metadata"]["name"].as_str().context("no name")?;
        // The last words of a torchtune runtime's name are its model.
        let name = format!("{suffix}.{name}");
        manifest["metadata"]["name"] = json!(name);
        let jobs = manifest["spec"]["template"]["spec"]["replicatedJobs"].as_array_mut();
        for job in jobs.context("no jobs")? {
            job["template"]["spec"]["backoffLimit"] = json!(0);
        }
        Ok(Self { name, manifest })
    }

    fn replicated_jobs(&self) -> impl Iterator<Item = &Value> {
        self.manifest["spec"]["template"]["spec"]["replicatedJobs"].as_array().into_iter().flatten()
    }

    /// Brings it into the cluster, with the service accounts and volumes that the Pods of a test need.
    async fn install(&self, tenant: &Tenant<'_>) -> Result<()> {
        let cluster = &tenant.world.cluster;
        cluster.apply_yaml("default", &yaml::stream(std::slice::from_ref(&self.manifest))).await?;
        let names = self.replicated_jobs().filter_map(|replicated_job| {
            let pod = &replicated_job["template"]["spec"]["template"]["spec"];
            pod["serviceAccountName"].as_str()
        });
        for name in names {
            let account = json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
            });
            cluster.apply_yaml(&tenant.namespace, &yaml::stream(&[account])).await?;
        }
        // Nothing in the box provides volumes for claims.
        let volumes = self.claims().map(|claim| volume(&tenant.namespace, claim));
        cluster.apply_yaml("default", &yaml::stream(&volumes.collect::<Vec<_>>())).await?;
        Ok(())
    }

    fn claims(&self) -> impl Iterator<Item = &Value> {
        let policies = self.manifest["spec"]["template"]["spec"]["volumeClaimPolicies"].as_array();
        policies.into_iter().flatten().filter_map(|it| it["templates"].as_array()).flatten()
    }

    /// Whether the JobSet of this box makes everything that the runtime asks for.
    fn is_known(&self, tenant: &Tenant<'_>) -> bool {
        let jobset = tenant.world.cluster.versions().jobset;
        jobset.makes_volumes() || self.claims().next().is_none()
    }

    /// A patch that makes the Pods of each replicated job end well, or those of the trainer's replicated job
    /// not so. What serves until the trainer's replicated job is over runs on.
    fn outcome(&self, fails: bool) -> Value {
        let label = "trainer.kubeflow.org/trainjob-ancestor-step";
        let replicated_jobs = self.replicated_jobs().map(|replicated_job| {
            let annotations = match replicated_job["template"]["metadata"]["labels"][label].as_str()
            {
                None => json!({"e2e.trainjob.dev/outcome": "hang"}),
                Some("trainer") if fails => json!({
                    "e2e.trainjob.dev/outcome": "fail",
                    COMPLETES_AFTER: "100ms",
                }),
                Some(_) => json!({COMPLETES_AFTER: "100ms"}),
            };
            let pod = json!({"metadata": {"annotations": annotations}});
            json!({"name": replicated_job["name"], "template": {"spec": {"template": pod}}})
        });
        let spec = json!({"replicatedJobs": replicated_jobs.collect::<Vec<_>>()});
        json!([{"manager": "e2e.trainjob.dev/test", "trainingRuntimeSpec": {"template": {"spec": spec}}}])
    }
}

/// A volume for a claim of a test in `namespace`.
fn volume(namespace: &str, claim: &Value) -> Value {
    let name = claim["metadata"]["name"].as_str().unwrap_or_default();
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": format!("{namespace}-{name}")},
        "spec": {
            "capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"],
            "hostPath": {"path": "/of-fake-pods"},
        },
    })
}

/// Who owns an object of this kind and name.
fn owner(objects: &mut BTreeMap<String, Option<String>>, kind: &str, metadata: &ObjectMeta) {
    let owner = metadata.owner_references.iter().flatten().find(|it| it.controller == Some(true));
    let name = format!("{kind} {}", metadata.name.as_deref().unwrap_or_default());
    objects.insert(name, owner.map(|owner| owner.uid.clone()));
}

async fn objects(tenant: &Tenant<'_>) -> Result<BTreeMap<String, Option<String>>> {
    let mut objects = BTreeMap::new();
    let all = ListParams::default();
    let secrets: Api<Secret> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
    let config_maps: Api<ConfigMap> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
    for secret in secrets.list(&all).await?.items {
        owner(&mut objects, "Secret", &secret.metadata);
    }
    for config_map in config_maps.list(&all).await?.items {
        owner(&mut objects, "ConfigMap", &config_map.metadata);
    }
    objects.remove("ConfigMap kube-root-ca.crt");
    for job_set in tenant.job_sets.list(&all).await?.items {
        owner(&mut objects, "JobSet", &job_set.metadata);
    }
    Ok(objects)
}

/// Waits until the operator knows a runtime. A job that has to wait for it tells that, and for a minute nothing else that
/// keeps it from its children.
async fn operator_knows(tenant: &Tenant<'_>, runtime: &str, spec: Value) -> Result<()> {
    tenant.create("first", runtime, spec).await?;
    until_ok("the operator has seen the runtime", PATIENCE, || async {
        tenant.config_maps.get("first-runtime-snapshot").await?;
        Ok(())
    })
    .await
}

/// An earlier JobSet makes no volumes. A job that needs some does not run without them, and its user is told.
async fn is_told(tenant: &Tenant<'_>, runtime: &str, spec: Value) -> Result<()> {
    operator_knows(tenant, runtime, spec.clone()).await?;
    tenant.create("job", runtime, spec).await?;
    let told = tenant.tells("job", CREATION_FAILED).await?;
    ensure!(told.contains("unknown field \"spec.volumeClaimPolicies\""), "{told}");
    ensure!(tenant.job_sets.get_opt("job").await?.is_none(), "it has a JobSet");
    Ok(())
}

#[tokio::test]
async fn a_job_on_each_runtime_that_ships_is_suspended_resumed_and_completes() -> Result<()> {
    for (file, beside) in RUNTIMES {
        let shipped = Shipped::read(file, "completes")?;
        let body = async |tenant: &Tenant<'_>| {
            shipped.install(tenant).await?;
            let spec = json!({
                "suspend": true,
                "runtimePatches": shipped.outcome(false),
                "trainer": {"numNodes": 2, "command": ["train"]},
            });
            if !shipped.is_known(tenant) {
                return is_told(tenant, &shipped.name, spec).await;
            }
            let job = tenant.create("job", &shipped.name, spec).await?;
            let job_set = tenant.has_job_set("job").await?;
            ensure!(job_set.data["spec"]["suspend"] == json!(true), "it is not suspended");

            let uid = job.uid();
            let mut expected: BTreeMap<String, Option<String>> =
                beside.iter().map(|name| ((*name).to_owned(), uid.clone())).collect();
            expected.insert("JobSet job".into(), uid.clone());
            expected.insert("ConfigMap job-runtime-snapshot".into(), uid);
            let made = objects(tenant).await?;
            ensure!(made == expected, "made {made:#?}, expected {expected:#?}");

            tenant.patch("job", &json!({"spec": {"suspend": false}})).await?;
            tenant.becomes("job", COMPLETE).await?;
            Ok(())
        };
        test("shipped", body).await.with_context(|| file.to_owned())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_job_on_each_runtime_that_ships_fails_when_its_training_does() -> Result<()> {
    for (file, _) in RUNTIMES {
        let shipped = Shipped::read(file, "fails")?;
        let body = async |tenant: &Tenant<'_>| {
            shipped.install(tenant).await?;
            let spec = json!({
                "runtimePatches": shipped.outcome(true),
                "trainer": {"numNodes": 2, "command": ["train"]},
            });
            if !shipped.is_known(tenant) {
                return is_told(tenant, &shipped.name, spec).await;
            }
            tenant.create("job", &shipped.name, spec).await?;
            let job = tenant.becomes("job", FAILED).await?;
            ensure!(conditions_of(&job).len() == 1, "{:?}", conditions_of(&job));
            Ok(())
        };
        test("fails", body).await.with_context(|| file.to_owned())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_of_somebody_else_is_left_alone_and_waited_for() -> Result<()> {
    let shipped = Shipped::read(RUNTIMES[7].0, "taken")?;
    test("taken", async |tenant| {
        shipped.install(tenant).await?;
        let secrets: Api<Secret> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
        let theirs: Secret = serde_json::from_value(json!({
            "metadata": {"name": "job-mpi-ssh-auth"}, "stringData": {"ssh-privatekey": "theirs"},
        }))?;
        let theirs = secrets.create(&PostParams::default(), &theirs).await?;
        let job = tenant.create("job", &shipped.name, json!({"trainer": {}})).await?;
        let waiting = tenant.waits_because("job", "NameConflict").await?;
        ensure!(waiting.message.contains("Secret job-mpi-ssh-auth"), "{waiting:?}");
        let kept = secrets.get("job-mpi-ssh-auth").await?;
        ensure!(kept.resource_version() == theirs.resource_version(), "it was changed");

        secrets.delete("job-mpi-ssh-auth", &DeleteParams::default()).await?;
        tenant.has_job_set("job").await?;
        until_ok("the job has its own", PATIENCE, || async {
            let own = secrets.get("job-mpi-ssh-auth").await?;
            ensure!(own.owner_references().first().map(|owner| &owner.uid) == job.uid().as_ref());
            Ok(())
        })
        .await
    })
    .await
}

/// D-20 of `docs/compatibility.md`.
#[tokio::test]
async fn a_name_that_jobset_would_refuse_is_reported_and_not_tried() -> Result<()> {
    let shipped = Shipped::read(RUNTIMES[0].0, "long")?;
    test("long", async |tenant| {
        shipped.install(tenant).await?;
        operator_knows(tenant, &shipped.name, json!({})).await?;
        let name = "a-name-that-is-good-enough-for-a-trainjob-but-not-for-its-pods";
        tenant.create(name, &shipped.name, json!({})).await?;
        let waiting = tenant.waits_because(name, "BuildFailed").await?;
        ensure!(waiting.message.contains("metadata.name"), "{waiting:?}");
        tenant.tells_of(name, CREATION_FAILED, "metadata.name").await?;
        consistently("it is not tried", Duration::from_secs(5), async || {
            let tried = tenant.requests("create", "jobsets", name)?;
            ensure!(tried.is_empty(), "{tried:?}");
            Ok(())
        })
        .await
    })
    .await
}
