//! The name server of the cluster, by which Pods find each other.

use std::fs;

use anyhow::Result;
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::sandbox::ADDRESS;
use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::Cluster;
use crate::testenv::process::Process;
use crate::testenv::product::{Granted, grant};
use crate::testenv::ready::answers;

/// The domain of the cluster's Services.
pub(super) const DOMAIN: &str = "cluster.local";
/// Its namespace and its `ServiceAccount`.
const ACCOUNT: &str = "name-server";

/// Starts it on the address of the node and waits until it knows the Services.
pub(super) async fn start(cluster: &Cluster) -> Result<Process> {
    let read = |group: &str, resources: &[&str]| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources.iter().map(|&resource| resource.to_owned()).collect()),
        verbs: ["list", "watch"].map(str::to_owned).into(),
        ..PolicyRule::default()
    };
    let rules =
        vec![read("", &["namespaces", "services"]), read("discovery.k8s.io", &["endpointslices"])];
    let granted = Granted { cluster: rules, ..Granted::default() };
    grant(cluster, ACCOUNT, ACCOUNT, &granted).await?;
    let kubeconfig = cluster.service_account_kubeconfig(ACCOUNT, ACCOUNT).await?;
    let file = cluster.folder().join("name-server.conf");
    let ready = format!("{ADDRESS}:8181");
    fs::write(
        &file,
        format!(
            ".:53 {{
    bind {ADDRESS}
    errors
    ready {ready}
    kubernetes {DOMAIN} {{
        kubeconfig {}
    }}
}}
",
            kubeconfig.display()
        ),
    )?;
    let program = Program::NameServer;
    let provide = move || Binaries::provide(&[program]);
    let binaries = tokio::task::spawn_blocking(provide).await??;
    let arguments = ["-conf".to_owned(), file.display().to_string()];
    let process = cluster.spawn(program.name(), binaries.path(program), &arguments, &[])?;
    let server = format!("http://{ready}");
    process.ready_when(answers(&server, "/ready", cluster.authority())).await?;
    Ok(process)
}
