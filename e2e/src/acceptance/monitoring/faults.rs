//! What goes wrong in the scenario: missing RBAC permissions, requests that a policy denies, a body that is none.

use anyhow::{Context, Result, ensure};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::testenv::operator::SERVICE_ACCOUNT;
use crate::testenv::release::{NAMESPACE, PATIENCE, Release};
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// The `ClusterRole` of the operator.
const ROLE: &str = "trainjob-operator";
/// The permissions that are taken away: those to delete anything, and those that a replica needs to become ready.
const TAKEN: [(&str, &[&str]); 3] = [
    ("trainjobs", &["delete"]),
    ("jobsets", &["delete"]),
    ("clustertrainingruntimes", &["list", "watch"]),
];

/// The policy that denies.
const VETO: &str = "e2e-veto";
/// With this label the operator may not do to a job what its value names: `deletion` or `status`.
pub(super) const VETOED: &str = "e2e.trainjob.dev/veto";
/// A finalizer of somebody else.
const HOLD: &str = "e2e.trainjob.dev/hold";

/// The `ClusterRole` of the operator, as it was before permissions were taken away.
pub(super) struct RbacBackup(Value);

impl RbacBackup {
    /// Takes permissions away, and returns when that is so.
    pub(super) async fn take(release: &Release) -> Result<Self> {
        let text = release.tools.kubectl(&["get", "clusterrole", ROLE, "-o", "json"], None).await?;
        let before: Value = serde_json::from_str(&text)?;
        let mut rest = before.clone();
        let rules = rest.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.context("no rules")? {
            for (resource, verbs) in TAKEN {
                if lists(rule, "resources", resource) {
                    let left = rule.get_mut("verbs").and_then(Value::as_array_mut);
                    left.context("no verbs")?.retain(|verb| !verbs.iter().any(|it| verb == it));
                }
            }
        }
        replace(release, &rest).await?;
        may_delete(release, false).await?;
        Ok(Self(before))
    }

    /// Restores them, and returns when that is so.
    pub(super) async fn restore(mut self, release: &Release) -> Result<()> {
        // Whatever its version is now.
        if let Some(metadata) = self.0.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        replace(release, &self.0).await?;
        may_delete(release, true).await
    }
}

async fn replace(release: &Release, role: &Value) -> Result<()> {
    release.tools.kubectl(&["replace", "-f", "-"], Some(role.to_string())).await?;
    Ok(())
}

/// Waits until the API server gives this answer to whether the operator may delete TrainJobs.
async fn may_delete(release: &Release, expected: bool) -> Result<()> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": operator(),
            "resourceAttributes":
                {"verb": "delete", "group": "trainer.kubeflow.org", "resource": "trainjobs"},
        },
    });
    let create = ["create", "-f", "-", "-o", "jsonpath={.status.allowed}"];
    until_ok(format!("that it may delete TrainJobs is {expected}"), PATIENCE, || async {
        let said = release.tools.kubectl(&create, Some(review.to_string())).await?;
        ensure!(said == expected.to_string(), "it is {said}");
        Ok(())
    })
    .await
}

fn lists(rule: &Value, field: &str, name: &str) -> bool {
    let listed = rule.get(field).and_then(Value::as_array);
    listed.is_some_and(|listed| listed.iter().any(|it| it == name))
}

/// The user that the operator is.
fn operator() -> String {
    format!("system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}")
}

/// Denies the operator what the labels of jobs say. It is not 403, but a request that is wrong in somebody's eyes.
pub(super) async fn veto(release: &Release) -> Result<()> {
    let version = "admissionregistration.k8s.io/v1";
    let vetoed = format!("oldObject.metadata.?labels[?'{VETOED}'].orValue('')");
    let asked = "request.operation == 'DELETE' ? 'deletion' : 'status'";
    let by_the_operator = format!("request.userInfo.username == '{}'", operator());
    let policy = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": VETO},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["trainer.kubeflow.org"],
                "apiVersions": ["*"],
                "operations": ["UPDATE", "DELETE"],
                "resources": ["trainjobs", "trainjobs/status"],
            }]},
            "matchConditions": [{"name": "by-the-operator", "expression": by_the_operator}],
            "validations": [{
                "expression": format!("{vetoed} != ({asked})"),
                "message": "denied by a test",
                "reason": "Invalid",
            }],
        },
    });
    let binding = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": VETO},
        "spec": {"policyName": VETO, "validationActions": ["Deny"]},
    });
    release.cluster.apply_yaml(NAMESPACE, &yaml::stream(&[policy, binding])).await?;
    Ok(())
}

/// Lifts the denial.
pub(super) async fn lift_veto(release: &Release) -> Result<()> {
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        release.tools.kubectl(&["delete", kind, VETO], None).await?;
    }
    Ok(())
}

/// Keeps a JobSet from going when it is deleted, as soon as it is there.
pub(super) async fn hold(release: &Release, namespace: &str, name: &str) -> Result<()> {
    let patch = json!({"metadata": {"finalizers": [HOLD]}}).to_string();
    until_ok(format!("{name} has a JobSet to hold"), PATIENCE, || {
        patch_job_set(release, namespace, name, &patch)
    })
    .await
}

/// Lets it go.
pub(super) async fn let_go(release: &Release, namespace: &str, name: &str) -> Result<()> {
    patch_job_set(release, namespace, name, r#"{"metadata": {"finalizers": null}}"#).await
}

async fn patch_job_set(release: &Release, namespace: &str, name: &str, patch: &str) -> Result<()> {
    let arguments =
        ["patch", "jobset", name, "--namespace", namespace, "--type=merge", "--patch", patch];
    release.tools.kubectl(&arguments, None).await?;
    Ok(())
}

/// Sends the webhook what is no admission request.
pub(super) async fn malformed(release: &Release) -> Result<()> {
    let mut config = Config::new(format!("https://{}", release.webhook_address()).parse()?);
    // Its certificate is for the API server to judge.
    config.accept_invalid_certs = true;
    let path = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob";
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(kube::client::Body::from(b"nothing".to_vec()))?;
    let answer = Client::try_from(config)?.send(request).await?;
    ensure!(answer.status() == 400, "it says {}", answer.status());
    Ok(())
}
