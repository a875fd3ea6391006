//! What the operator may not do, or what is not installed.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{OPERATOR_USER, PATIENCE, RUNS, SYSTEM, World, runtime};
use e2e::operator::{SERVICE_ACCOUNT, install_operator_rbac};
use e2e::until::{until, until_ok};
use http::Request;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Error;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use serde_json::{Value, json};

use super::{health, logged, message, test, waits_quietly};

#[tokio::test]
async fn missing_rbac_permissions_are_logged_and_waited_for() -> Result<()> {
    test("powerless", async |tenant| {
        let bindings: Api<ClusterRoleBinding> = Api::all(tenant.client.clone());
        let name = format!("{SERVICE_ACCOUNT}-{SYSTEM}");
        bindings.delete(&name, &DeleteParams::default()).await?;
        let lost = until("the permissions are gone", PATIENCE, || async {
            may(tenant, "list", "trainer.kubeflow.org", "trainjobs").await.ok().filter(|may| !may)
        });
        lost.await?;
        let operator = tenant.world.launch_operator("").await?;
        until_ok("every kind is named", PATIENCE, || async {
            let said = logged(&operator, "ERROR")?.len();
            ensure!(said == 6, "{said} kinds are named");
            Ok(())
        })
        .await?;
        waits_quietly(&operator, 6).await?;
        for line in logged(&operator, "ERROR")? {
            let named = line.to_string();
            ensure!(named.contains("cannot list resource"), "which permission it is: {named}");
        }
        install_operator_rbac(&tenant.world.cluster, SYSTEM).await?;
        operator.wait_ready().await?;
        tenant.create("job", RUNS, json!({})).await?;
        tenant.has_job_set("job").await?;
        Ok(())
    })
    .await
}

/// Whether the operator has a permission in the whole cluster.
async fn may(tenant: &Tenant<'_>, verb: &str, group: &str, resource: &str) -> Result<bool> {
    let api: Api<SubjectAccessReview> = Api::all(tenant.client.clone());
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(OPERATOR_USER.to_owned()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.context("no verdict")?.allowed)
}

#[tokio::test]
async fn the_operator_is_no_administrator() -> Result<()> {
    test("rbac", async |tenant| {
        tenant.world.start_operator().await?;
        let trainer = "trainer.kubeflow.org";
        for (verb, group, resource, expected) in [
            ("delete", trainer, "trainjobs", true),
            ("create", trainer, "trainjobs", false),
            ("update", trainer, "trainjobs", false),
            ("patch", trainer, "trainjobs", false),
            ("list", "", "pods", true),
            ("watch", "", "pods", false),
            ("delete", "", "pods", false),
            ("get", "", "secrets", false),
            ("list", "", "secrets", false),
            ("list", "", "configmaps", false),
            ("update", "", "configmaps", false),
            ("patch", "", "configmaps", false),
            ("deletecollection", "", "configmaps", false),
            ("delete", "batch", "jobs", false),
            ("list", "", "nodes", false),
            ("*", "*", "*", false),
        ] {
            let may = may(tenant, verb, group, resource).await?;
            ensure!(may == expected, "{verb} {resource}: {may}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn missing_crds_are_logged_with_install_instructions_and_waited_for() -> Result<()> {
    let options = Options { nodes: None, controllers: false, ..Options::default() };
    let world = Box::pin(World::without_crds(options)).await?;
    let body = async |tenant: &Tenant<'_>| {
        let jobset = uninstall_jobset(tenant).await?;
        let operator = tenant.world.launch_operator("").await?;
        until_ok("every kind is named", PATIENCE, || async {
            let said = logged(&operator, "ERROR")?.len();
            ensure!(said == 4, "{said} kinds are named");
            Ok(())
        })
        .await?;
        waits_quietly(&operator, 4).await?;
        let said = logged(&operator, "ERROR")?;
        for kind in ["TrainJob", "TrainingRuntime", "ClusterTrainingRuntime", "JobSet"] {
            let of_kind = |line: &&Value| line.get("kind") == Some(&json!(kind));
            let line = said.iter().find(of_kind).with_context(|| format!("{kind} is not named"))?;
            let (told, jobset) = (message(line), "https://jobset.sigs.k8s.io");
            ensure!(told.contains("not installed"), "{told}");
            ensure!(told.contains(jobset) == (kind == "JobSet"), "{told}");
        }
        let (code, missing) = health(&operator, "/readyz")?;
        ensure!(code == 503 && missing.contains("JobSet"), "{code} {missing}");

        // As it says.
        let (_, command) = said
            .iter()
            .find_map(|line| message(line).split_once("install them with: kubectl "))
            .context("no command is given")?;
        run_kubectl(&tenant.world.cluster, command.split(". ").next().unwrap_or(command))?;
        definitions(tenant).create(&PostParams::default(), &jobset).await?;
        operator.wait_ready().await?;

        let runs = runtime(RUNS, &json!({}), 3, None).to_string();
        tenant.world.cluster.apply_yaml("default", &runs).await?;
        tenant.create("job", RUNS, json!({})).await?;
        tenant.has_job_set("job").await?;
        let said = logged(&operator, "ERROR")?;
        ensure!(said.len() == 4, "it said more: {said:#?}");
        Ok(())
    };
    world.test("bare", body).await
}

fn definitions(tenant: &Tenant<'_>) -> Api<CustomResourceDefinition> {
    Api::all(tenant.client.clone())
}

/// Removes the kind JobSet; returns what brings it back.
async fn uninstall_jobset(tenant: &Tenant<'_>) -> Result<CustomResourceDefinition> {
    let (api, name) = (definitions(tenant), "jobsets.jobset.x-k8s.io");
    let installed = api.get(name).await?;
    api.delete(name, &DeleteParams::default()).await?;
    // Its objects are served for a moment longer than the definition is there.
    until_ok("JobSets are served no more", PATIENCE, || async {
        let request = Request::get("/apis/jobset.x-k8s.io/v1alpha2/jobsets").body(Vec::new())?;
        let answer = tenant.client.request_text(request).await;
        ensure!(matches!(&answer, Err(Error::Api(said)) if said.code == 404), "{answer:?}");
        Ok(())
    })
    .await?;
    let metadata = ObjectMeta {
        name: installed.metadata.name,
        annotations: installed.metadata.annotations,
        ..ObjectMeta::default()
    };
    Ok(CustomResourceDefinition { metadata, spec: installed.spec, status: None })
}

/// Runs kubectl in the root of this repository, as a reader of the log would.
fn run_kubectl(cluster: &Cluster, arguments: &str) -> Result<()> {
    let output = Command::new(cluster.kubectl())
        .args(arguments.split_whitespace())
        .env("KUBECONFIG", cluster.kubeconfig())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {arguments}: {errors}");
    Ok(())
}
