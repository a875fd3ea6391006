//! The JobSet controller, with the definitions and webhook configurations of its own release.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::ByteString;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::testenv::apply::{apply, established};
use crate::testenv::credentials::Identity;
use crate::testenv::kinds::job_sets;
use crate::testenv::site::Site;
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// The file of its configuration in the box.
pub(crate) const CONFIGURATION: &str = "jobset.yaml";

const DEFINITION: &str = "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml";
const WEBHOOKS: &str = "config/components/webhook/manifests.yaml";
const ROLE: &str = "config/components/rbac/role.yaml";

/// Writes its configuration and brings everything it needs into the cluster.
pub(crate) async fn install(client: &Client, site: &Site) -> Result<()> {
    let ports = &site.ports;
    let configuration = json!({
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": false},
        "internalCertManagement": {"enable": false},
        "clientConnection": {"qps": 500, "burst": 1000},
        "webhook": {
            "host": "127.0.0.1",
            "port": ports.jobset_webhook.number(),
            "certDir": site.credentials.folder(),
        },
        "health": {"healthProbeBindAddress": ports.jobset_health.address()},
        "metrics": {"bindAddress": ports.jobset_metrics.address()},
    });
    fs::write(site.folder.join(CONFIGURATION), configuration.to_string())?;

    let definition = site.modules()?.jobset.read(DEFINITION)?;
    let definitions = apply(client, "default", yaml::documents(&definition)?).await?;
    apply(client, "default", rbac(site)?).await?;
    apply(client, "default", webhook_configurations(site)?).await?;
    established(client, &definitions).await
}

/// The permissions its release asks for, for the user that it is here.
fn rbac(site: &Site) -> Result<Vec<Value>> {
    let mut objects = yaml::documents(&site.modules()?.jobset.read(ROLE)?)?;
    let role = objects.first_mut().context("JobSet has no role")?;
    let name = "jobset-manager";
    *role.pointer_mut("/metadata/name").context("JobSet's role has no name")? = json!(name);
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "User",
            "name": Identity::JobSet.user(),
        }],
    }));
    Ok(objects)
}

/// Its webhook configurations, pointed at the port it has here.
fn webhook_configurations(site: &Site) -> Result<Vec<Value>> {
    let mut objects = yaml::documents(&site.modules()?.jobset.read(WEBHOOKS)?)?;
    let authority = ByteString(site.credentials.authority().into());
    let address = site.ports.jobset_webhook.address();
    for object in &mut objects {
        let name =
            object.pointer_mut("/metadata/name").context("a webhook configuration has no name")?;
        *name = json!(format!("jobset-{}", name.as_str().unwrap_or_default()));
        let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.context("a webhook configuration has no webhooks")? {
            let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
            let url = format!("https://{address}{}", path.context("a webhook has no path")?);
            let of_pods = webhook.pointer("/rules/0/resources/0") == Some(&json!("pods"));
            webhook["clientConfig"] = json!({"url": url, "caBundle": authority});
            if of_pods {
                // The release adds this with a patch: no other Pod is JobSet's business.
                webhook["objectSelector"] = json!({"matchExpressions": [
                    {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"},
                ]});
            }
        }
    }
    Ok(objects)
}

/// Waits until the API server asks the webhooks: defaults are set, and nonsense is refused.
pub(crate) async fn webhooks_answer(client: &Client) -> Result<()> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &job_sets());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    until_ok("JobSet's webhooks answer", Duration::from_mins(1), || async {
        let made = api.create(&dry_run, &probe(None)?).await?;
        if made.data.pointer("/spec/network/enableDNSHostnames").is_none() {
            bail!("defaults are not set yet");
        }
        let nonsense = json!({"targetReplicatedJobs": ["nowhere"], "operator": "All"});
        match api.create(&dry_run, &probe(Some(&nonsense))?).await {
            Err(kube::Error::Api(refusal)) if refusal.message.contains("vjobset.kb.io") => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => bail!("nonsense is not refused yet"),
        }
    })
    .await
}

/// The smallest JobSet, with or without a success policy.
fn probe(success_policy: Option<&Value>) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe"},
        "spec": {"successPolicy": success_policy, "replicatedJobs": [{
            "name": "a",
            "template": {"spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "a", "image": "a"}],
            }}}},
        }]},
    }))?)
}
