//! What Kueue needs in a cluster before it starts, as its release installs it.

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::testenv::apply::{apply, established};
use crate::testenv::cluster::Cluster;
use crate::testenv::modules::ModuleFiles;
use crate::testenv::yaml;

/// Its namespace.
pub const NAMESPACE: &str = "kueue-system";
const DEFINITIONS: &str = "config/components/crd/bases";
const WEBHOOKS: &str = "config/components/webhook/manifests.yaml";
/// Its account and permissions.
const RIGHTS: &str = "config/components/rbac";
const ACCOUNT: [&str; 9] = [
    "service_account",
    "role",
    "role_binding",
    "leader_election_role",
    "leader_election_role_binding",
    "manager_secrets_role",
    "manager_secrets_role_binding",
    "manager_clusterprofiles_role",
    "manager_clusterprofiles_role_binding",
];
/// The groups whose kinds it is asked about here.
const GROUPS: [&str; 4] = ["kueue.x-k8s.io", "trainer.kubeflow.org", "jobset.x-k8s.io", "batch"];
/// The group of Pods.
const CORE: &str = "";

/// Brings its definitions, RBAC and webhook configurations into a cluster, for webhooks at `address`, which are asked about
/// every Pod if it manages Pods.
pub(super) async fn install(
    cluster: &Cluster,
    files: &ModuleFiles,
    address: &str,
    manages_pods: bool,
) -> Result<()> {
    let client = cluster.client().await?;
    let mut definitions = Vec::new();
    for file in files.yaml_files(DEFINITIONS)? {
        definitions.extend(yaml::documents(&files.read(&file)?)?);
    }
    let definitions = apply(&client, "default", definitions).await?;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
    });
    apply(&client, NAMESPACE, vec![namespace]).await?;
    apply(&client, NAMESPACE, account(files)?).await?;
    // It ends if a kind of its own is not served when it starts.
    established(&client, &definitions).await?;
    let mut groups = GROUPS.to_vec();
    groups.extend(manages_pods.then_some(CORE));
    let text = files.read(WEBHOOKS)?;
    let webhooks = webhook_configurations(&text, &groups, address, cluster.authority())?;
    apply(&client, "default", webhooks).await?;
    Ok(())
}

/// Its `ServiceAccount` with the permissions of the release, under the names that the release gives them.
fn account(files: &ModuleFiles) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for file in ACCOUNT {
        objects.extend(yaml::documents(&files.read(&format!("{RIGHTS}/{file}.yaml"))?)?);
    }
    for object in &mut objects {
        prefix(object, "/metadata/name")?;
        if object.get("roleRef").is_some() {
            prefix(object, "/roleRef/name")?;
            prefix(object, "/subjects/0/name")?;
        }
        for pointer in ["/metadata/namespace", "/subjects/0/namespace"] {
            if let Some(namespace) = object.pointer_mut(pointer) {
                *namespace = json!(NAMESPACE);
            }
        }
    }
    Ok(objects)
}

/// Puts the prefix of the release before the name at `pointer`.
fn prefix(object: &mut Value, pointer: &str) -> Result<()> {
    let name = object.pointer_mut(pointer).with_context(|| format!("no name at {pointer}"))?;
    *name = json!(format!("kueue-{}", name.as_str().unwrap_or_default()));
    Ok(())
}

/// Its webhook configurations for the kinds of these groups, pointed at `address`.
fn webhook_configurations(
    text: &str,
    groups: &[&str],
    address: &str,
    authority: &str,
) -> Result<Vec<Value>> {
    let mut objects = yaml::documents(text)?;
    let authority = ByteString(authority.into());
    for object in &mut objects {
        prefix(object, "/metadata/name")?;
        let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
        let webhooks = webhooks.context("a webhook configuration has no webhooks")?;
        webhooks.retain(|webhook| {
            let group = webhook.pointer("/rules/0/apiGroups/0").and_then(Value::as_str);
            group.is_some_and(|group| groups.contains(&group))
        });
        for webhook in webhooks {
            let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
            let url = format!("https://{address}{}", path.context("a webhook has no path")?);
            webhook["clientConfig"] = json!({"url": url, "caBundle": authority});
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registrations_of_kinds_that_the_box_has_point_at_the_webhook() {
        let webhook = |group: &str, name: &str| {
            json!({
                "name": name,
                "clientConfig": {"service": {"path": format!("/mutate-{name}")}},
                "rules": [{"apiGroups": [group]}],
            })
        };
        let webhooks = [webhook("ray.io", "rayjob"), webhook("trainer.kubeflow.org", "trainjob")];
        let given = json!({"metadata": {"name": "mutating"}, "webhooks": webhooks});
        let objects =
            webhook_configurations(&yaml::stream(&[given]), &GROUPS, "127.0.0.1:1", "PEM").unwrap();
        assert_eq!(objects[0]["metadata"]["name"], "kueue-mutating");
        let webhooks = objects[0]["webhooks"].as_array().unwrap();
        assert_eq!(webhooks.len(), 1);
        let config = json!({"url": "https://127.0.0.1:1/mutate-trainjob", "caBundle": "UEVN"});
        assert_eq!(webhooks[0]["clientConfig"], config);
    }
}
