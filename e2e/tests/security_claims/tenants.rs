//! What creating a TrainJob, and what creating a JobSet anywhere, amounts to; and what bounds it.

use anyhow::{Result, ensure};
use e2e::answer::ask;
use e2e::apply::apply;
use e2e::fixtures::{PATIENCE, RUNS, SYSTEM, Tenant, World, train_job};
use e2e::operator::SERVICE_ACCOUNT;
use e2e::until::until_ok;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::{JSON, MERGE, author, create, forbidden};

const SECRET: &str = "key";

/// A Secret, and an account that somebody else uses.
async fn prepare(tenant: &Tenant<'_>) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "stringData": {"a": "b"},
    });
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "powerful"}});
    apply(&tenant.client, &tenant.namespace, vec![secret, account]).await?;
    Ok(())
}

/// A Pod spec with that Secret and that account.
fn takes_both() -> Value {
    json!({
        "serviceAccountName": "powerful",
        "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
    })
}

fn has_both(pod: &Pod) -> bool {
    let spec = pod.spec.clone().unwrap_or_default();
    let mut secrets = spec.volumes.iter().flatten().filter_map(|volume| volume.secret.as_ref());
    spec.service_account_name.as_deref() == Some("powerful")
        && secrets.any(|secret| secret.secret_name.as_deref() == Some(SECRET))
}

#[tokio::test]
async fn who_may_create_a_train_job_may_use_every_secret_and_account_of_its_namespace() -> Result<()>
{
    World::shared()
        .await?
        .test("author", async |tenant| {
            prepare(tenant).await?;
            let user = author(&tenant.world.cluster, &tenant.namespace).await?;
            let path = format!("/api/v1/namespaces/{}/secrets/{SECRET}", tenant.namespace);
            let read = ask(&user, Method::GET, &path, JSON, &Value::Null).await?;
            forbidden(&read, "cannot get resource \"secrets\"")?;

            let jobs = json!([{
                "name": "node", "template": {"spec": {"template": {"spec": takes_both()}}},
            }]);
            let template = json!({"spec": {"replicatedJobs": jobs}});
            let patches = json!([{
                "manager": "e2e.trainjob.dev/user", "trainingRuntimeSpec": {"template": template},
            }]);
            let job = train_job("job", RUNS, &json!({"runtimePatches": patches}));
            let made = create(&user, &tenant.namespace, &job).await?;
            ensure!(made.code == 201, "{made:?}");
            let pod = tenant.runs("job").await?;
            ensure!(has_both(&pod), "{pod:?}");
            Ok(())
        })
        .await
}

/// Whoever has the operator's token, or may run a Pod with its account, has all of that.
#[tokio::test]
async fn the_account_of_the_operator_may_run_any_pod_in_any_namespace() -> Result<()> {
    World::shared()
        .await?
        .test("anywhere", async |tenant| {
            prepare(tenant).await?;
            let operator =
                tenant.world.cluster.service_account_client(SYSTEM, SERVICE_ACCOUNT).await?;
            let path = format!("/api/v1/namespaces/{}/secrets/{SECRET}", tenant.namespace);
            let read = ask(&operator, Method::GET, &path, JSON, &Value::Null).await?;
            forbidden(&read, "cannot get resource \"secrets\"")?;

            let mut pod = takes_both();
            pod["restartPolicy"] = json!("Never");
            pod["containers"] = json!([{"name": "any", "image": "example.com/any:1"}]);
            let group = "jobset.x-k8s.io/v1alpha2";
            let job_set = json!({
                "apiVersion": group, "kind": "JobSet", "metadata": {"name": "any"},
                "spec": {"replicatedJobs": [
                    {"name": "any", "template": {"spec": {"template": {"spec": pod}}}},
                ]},
            });
            let path = format!("/apis/{group}/namespaces/{}/jobsets", tenant.namespace);
            let made = ask(&operator, Method::POST, &path, JSON, &job_set).await?;
            ensure!(made.code == 201, "{made:?}");
            let pod = tenant.runs("any").await?;
            ensure!(has_both(&pod), "{pod:?}");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn pod_security_of_a_namespace_holds_for_the_pods_of_its_jobs() -> Result<()> {
    World::shared()
        .await?
        .test("restricted", async |tenant| {
            let label = json!({"pod-security.kubernetes.io/enforce": "restricted"});
            let change = json!({"metadata": {"labels": label}});
            let one = format!("/api/v1/namespaces/{}", tenant.namespace);
            let changed = ask(&tenant.client, Method::PATCH, &one, MERGE, &change).await?;
            ensure!(changed.code == 200, "{changed:?}");
            // The Pods of this runtime do not say that they are not root.
            tenant.create("job", RUNS, json!({})).await?;
            until_ok("its Pod is refused", PATIENCE, || async {
                let events = tenant.events.list(&ListParams::default()).await?;
                let notes = events.items.into_iter().filter_map(|event| event.note);
                let notes: Vec<_> = notes.collect();
                let is_refusal = |note: &String| note.contains("violates PodSecurity \"restricted");
                ensure!(notes.iter().any(is_refusal), "{notes:?}");
                Ok(())
            })
            .await?;
            let pods = tenant.pods.list(&ListParams::default()).await?;
            ensure!(pods.items.is_empty(), "{:?}", pods.items);
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_quota_bounds_how_many_train_jobs_a_namespace_has() -> Result<()> {
    World::shared()
        .await?
        .test("quota", async |tenant| {
            let hard = json!({"count/trainjobs.trainer.kubeflow.org": "1"});
            let quota = json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "jobs"},
                "spec": {"hard": hard},
            });
            apply(&tenant.client, &tenant.namespace, vec![quota]).await?;
            let user = author(&tenant.world.cluster, &tenant.namespace).await?;
            let job = |name: &str| train_job(name, RUNS, &json!({"suspend": true}));
            until_ok("the quota is known", PATIENCE, || async {
                let made = create(&user, &tenant.namespace, &job("first")).await?;
                ensure!([201, 409].contains(&made.code), "{made:?}");
                Ok(())
            })
            .await?;
            until_ok("the second is refused", PATIENCE, || async {
                let second = create(&user, &tenant.namespace, &job("second")).await?;
                forbidden(&second, "exceeded quota: jobs")
            })
            .await
        })
        .await
}
