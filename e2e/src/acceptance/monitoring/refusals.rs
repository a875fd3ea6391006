//! What is refused to accounting program and retention engine while Prometheus looks on.

use anyhow::{Result, bail, ensure};
use serde_json::json;

use crate::testenv::release::{NAMESPACE, PATIENCE, Release};
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// A Job with this label may not be deleted by them.
pub(super) const REFUSED: &str = "e2e.trainjob.dev/refused";

const NAME: &str = "e2e-refusals";
const SAID: &str = "refused by a test";

/// Refuses the accounting program to release Pods in one namespace and to create records in another, and the retention
/// engine to delete what has the label. Returns when that is so.
pub(super) async fn begin(release: &Release, no_releases: &str, no_records: &str) -> Result<()> {
    let version = "admissionregistration.k8s.io/v1";
    let rule = |group: &str, resource: &str, operation: &str| {
        json!({
            "apiGroups": [group], "apiVersions": ["*"], "resources": [resource],
            "operations": [operation],
        })
    };
    let theirs = ["accounting", "retention"].map(|program| format!("'{}'", user(program)));
    let is_theirs = format!("request.userInfo.username in [{}]", theirs.join(", "));
    let is_refused = format!(
        "request.resource.resource == 'pods' ? request.namespace == '{no_releases}' : \
         request.resource.resource == 'trainjobrecords' ? request.namespace == '{no_records}' : \
         oldObject.metadata.?labels[?'{REFUSED}'].hasValue()"
    );
    let policy = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "matchConstraints": {"resourceRules": [
                rule("", "pods", "UPDATE"),
                rule("lifecycle.trainjob.dev", "trainjobrecords", "CREATE"),
                rule("batch", "jobs", "DELETE"),
            ]},
            "matchConditions": [
                {"name": "theirs", "expression": is_theirs},
                {"name": "refused", "expression": is_refused},
            ],
            "validations": [{"expression": "false", "message": SAID}],
        },
    });
    let binding = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    });
    release.cluster.apply_yaml(NAMESPACE, &yaml::stream(&[policy, binding])).await?;
    holds(release, no_records).await
}

/// Waits until the policy is in effect, which it is a moment after it was made.
async fn holds(release: &Release, no_records: &str) -> Result<()> {
    let record = json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1", "kind": "TrainJobRecord",
        "metadata": {"name": "probe"}, "spec": {"trainJob": {"name": "probe", "uid": "probe"}},
    });
    let who = format!("--as={}", user("accounting"));
    let create = ["create", "--dry-run=server", &who, "--namespace", no_records, "-f", "-"];
    until_ok("records are refused", PATIENCE, || async {
        let Err(refusal) = release.tools.kubectl(&create, Some(record.to_string())).await else {
            bail!("it is still allowed");
        };
        ensure!(format!("{refusal:#}").contains(SAID), "{refusal:#}");
        Ok(())
    })
    .await
}

/// Who a program is.
fn user(program: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:trainjob-operator-{program}")
}
