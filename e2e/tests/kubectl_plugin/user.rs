//! Somebody who uses the plugin in a namespace.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Result, ensure};
use e2e::fixtures::PATIENCE;
use e2e::fixtures::tenant::Tenant;
use e2e::until::until_ok;
use e2e::{workspace, yaml};
use kube::api::PostParams;
use serde_json::{Value, json};
use trainjob_api::TrainJob;

/// The `ServiceAccount` that stands for a user.
const USER: &str = "user";

/// Somebody in a namespace.
pub(super) struct User<'a> {
    pub(super) tenant: &'a Tenant<'a>,
    pub(super) kubeconfig: PathBuf,
}

impl<'a> User<'a> {
    /// The rights are those of docs/kubectl-plugin.md.
    pub(super) async fn new(tenant: &'a Tenant<'a>) -> Result<Self> {
        let (cluster, namespace) = (&tenant.world.cluster, &tenant.namespace);
        let group = "rbac.authorization.k8s.io";
        let rule = |groups: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [groups], "resources": resources, "verbs": verbs});
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": USER}}),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": USER},
                "rules": [
                    rule("trainer.kubeflow.org", &["trainjobs"], &["get", "list", "patch"]),
                    rule("", &["pods", "events"], &["list"]),
                    rule("jobset.x-k8s.io", &["jobsets"], &["get"]),
                    rule("kueue.x-k8s.io", &["workloads"], &["list"]),
                ],
            }),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": USER},
                "roleRef": {"apiGroup": group, "kind": "Role", "name": USER},
                "subjects": [{"kind": "ServiceAccount", "name": USER, "namespace": namespace}],
            }),
        ];
        cluster.apply_yaml(namespace, &yaml::stream(&objects)).await?;
        let kubeconfig = cluster.service_account_kubeconfig(namespace, USER).await?;
        let user = User { tenant, kubeconfig };
        // The API server hears of RBAC rules a moment after they were made.
        let status = || async { user.prints(&["status"]) };
        until_ok("a user may list TrainJobs", PATIENCE, status).await?;
        Ok(user)
    }

    fn run(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(workspace::kubectl_plugin()?);
        command.env_clear().env("KUBECONFIG", kubeconfig).args(arguments);
        Ok(command.args(["--namespace", &self.tenant.namespace]).output()?)
    }

    /// What a command prints that succeeds.
    pub(super) fn prints(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(&self.kubeconfig, arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// What a command says that fails.
    pub(super) fn fails(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(&self.kubeconfig, arguments)?;
        let (code, said) = (output.status.code(), String::from_utf8(output.stderr)?);
        ensure!(code == Some(1) && output.stdout.is_empty(), "{arguments:?}: {code:?} {said}");
        Ok(said)
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Result<Value> {
        let arguments = [arguments, &["--output", "json"]].concat();
        Ok(serde_json::from_str(&self.prints(&arguments)?)?)
    }

    /// Waits until the answer of `why` has this cause and contains these texts.
    pub(super) async fn is_told(&self, name: &str, cause: &str, texts: &[&str]) -> Result<()> {
        until_ok(format!("why {name}: {cause}"), PATIENCE, || async {
            let answer = self.json(&["why", name])?;
            ensure!(answer.get("cause") == Some(&json!(cause)), "{answer:#}");
            let page = self.prints(&["why", name])?;
            for text in texts {
                ensure!(page.contains(text), "{text:?} is not in\n{page}");
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn create(&self, job: Value) -> Result<TrainJob> {
        let job: TrainJob = serde_json::from_value(job)?;
        Ok(self.tenant.jobs.create(&PostParams::default(), &job).await?)
    }
}
