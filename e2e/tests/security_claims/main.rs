//! What `docs/security.md` says of who may do what and who can cost whom what. Each line there names the tests that show
//! it; those that belong to no other suite are here.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test; what is not in a JSON value is null, which none expects"
)]

mod label;
mod limits;
mod page;
mod parts;
mod tenants;

use anyhow::{Result, ensure};
use e2e::answer::{Answer, ask};
use e2e::cluster::Cluster;
use e2e::rbac::{Grant, account};
use http::Method;
use kube::Client;
use serde_json::Value;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The API group of TrainJobs.
const GROUP: &str = "trainer.kubeflow.org";

/// The right to do this with all objects of a resource of TrainJobs' group, in one namespace or everywhere.
fn grants(everywhere: bool, verbs: &[&str], resource: &str) -> Vec<Grant> {
    let grant = |verb: &&str| Grant {
        everywhere,
        verb: (*verb).to_owned(),
        group: GROUP.to_owned(),
        resource: resource.to_owned(),
        names: Vec::new(),
    };
    verbs.iter().map(grant).collect()
}

/// Somebody who may create and change TrainJobs in a namespace, and nothing else.
async fn author(cluster: &Cluster, namespace: &str) -> Result<Client> {
    let rights = grants(false, &["create", "get", "update", "patch"], "trainjobs");
    account(cluster, namespace, "author", &rights).await?;
    cluster.service_account_client(namespace, "author").await
}

/// The path of TrainJobs of a namespace, or of one.
fn path(namespace: &str, name: &str) -> String {
    format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/trainjobs{name}")
}

/// Somebody creates a TrainJob.
async fn create(user: &Client, namespace: &str, job: &Value) -> Result<Answer> {
    ask(user, Method::POST, &path(namespace, ""), JSON, job).await
}

/// Sees that this was forbidden, and that it was said why.
fn forbidden(answer: &Answer, why: &str) -> Result<()> {
    ensure!(answer.code == 403 && answer.message().contains(why), "not {why}: {answer:?}");
    Ok(())
}
