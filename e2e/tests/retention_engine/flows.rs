//! A namespace in which all deletions are denied (R35).

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::fixtures::{LATE, PATIENCE, consistently};
use e2e::until::until_ok;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::place::Place;
use super::{TTL, WINDOW, condition, policy, status};

/// So many failures in a row, and the flow backs off.
const FAILURES: usize = 5;
/// So many requests may probe the flow until the window is over.
const MORE: usize = 6;

/// Denies the deletion of Jobs in this namespace.
fn denial(namespace: &str) -> Vec<Value> {
    let (group, name) = ("admissionregistration.k8s.io/v1", format!("deny-{namespace}"));
    let jobs = json!({"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"],
        "operations": ["DELETE"]});
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [jobs], "namespaceSelector": here},
        "validations": [{"expression": "false", "message": "denied by a test"}],
    });
    let binding = json!({"policyName": name, "validationActions": ["Deny"]});
    vec![
        json!({"apiVersion": group, "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name}, "spec": spec}),
        json!({"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": binding}),
    ]
}

#[tokio::test]
async fn where_all_deletions_are_denied_one_at_a_time_probes_and_others_are_on_time() -> Result<()>
{
    let (denied, other) = (Place::new("denied").await?, Place::new("allowed").await?);
    denied.create("probe", &json!({})).await?;
    apply(&denied.client(), denied.namespace(), denial(denied.namespace())).await?;
    until_ok("deletions are denied", PATIENCE, || async {
        let tried = denied.jobs().delete("probe", &DeleteParams::default().dry_run()).await;
        ensure!(tried.is_err(), "it would be deleted");
        Ok(())
    })
    .await?;

    let names: Vec<String> = (0..12).map(|index| format!("j{index:02}")).collect();
    let mut due = None;
    for place in [&denied, &other] {
        place.apply(policy("Enforce", TTL)).await?;
        status(place, |status| condition(status, "Enforcing").0 == "True").await?;
        for name in &names {
            place.create(name, &json!({})).await?;
            due = due.max(Some(place.finish(name).await?.plus(TTL)));
        }
    }
    other.becomes(&[]).await?;
    let late = other.deletions()?.iter().map(|deletion| Some(deletion.at)).max().flatten();
    let late = late.zip(due).map(|(last, due)| last.since(due));
    ensure!(late.is_some_and(|late| late <= LATE), "{late:?} s late: {:?}", other.deletions()?);

    until_ok("the flow backs off", PATIENCE, || async {
        let asked = denied.deletions()?.len();
        ensure!(asked >= FAILURES, "{asked} requests");
        Ok(())
    })
    .await?;
    consistently("one request at a time probes", WINDOW, async || {
        let asked = denied.deletions()?.len();
        // All may have been on their way by the time that the flow backed off.
        ensure!(asked <= names.len() + MORE, "{asked} requests");
        Ok(())
    })
    .await?;

    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(denied.client());
    bindings.delete(&format!("deny-{}", denied.namespace()), &DeleteParams::default()).await?;
    denied.becomes(&["probe"]).await
}
