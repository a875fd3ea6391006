//! Service accounts of tenants that send requests as fast as they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use trainjob_process::client::connect;
use trainjob_process::metrics::Requests;
use trainjob_process::server_time::ServerTime;

use super::super::rig::Rig;
use super::load::{Beside, Round};
use crate::testenv::apply::apply;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::until::until_ok;

/// Namespaces of tenants.
const TENANTS: usize = 10;
/// Service accounts of each.
const ACCOUNTS: usize = 5;
/// The most requests that one of them sends, whatever becomes of the rest.
const MOST: usize = 20_000;
/// What each tenant may do, and reads again and again: every namespace has it.
const READ: &str = "kube-root-ca.crt";
const ROLE: &str = "floods";

/// What the API server said to all of them.
#[derive(Debug, Default)]
struct Answers {
    served: AtomicUsize,
    /// That there is too much to do.
    put_off: AtomicUsize,
    failed: AtomicUsize,
}

/// Measures the neighbour while tenants flood the API server.
pub(super) async fn beside(beside: &Beside<'_>) -> Result<Round> {
    let Beside { rig, neighbour, .. } = *beside;
    let _operator = rig.start_operator().await?;
    neighbour.settled(rig).await?;
    let tenants = tenants(rig).await?;
    let (answers, mut flood) = (Arc::new(Answers::default()), JoinSet::new());
    for tenant in &tenants {
        flood.spawn(floods(tenant.clone(), Arc::clone(&answers)));
    }
    let begun = tokio::time::Instant::now();
    let served = neighbour.lives(rig, &rig.raw).await?;
    // Those that had sent all that they may did not flood to the end.
    let ended = std::iter::from_fn(|| flood.try_join_next()).count();
    let [done, put_off, failed] = [&answers.served, &answers.put_off, &answers.failed]
        .map(|count| count.load(Ordering::Relaxed));
    let seconds = begun.elapsed().as_secs_f64();
    let load = format!(
        "{} service accounts had {done} requests served in {seconds:.0} s, {put_off} put off, {failed} failed",
        tenants.len()
    );
    let lacking = ended + usize::from(done == 0);
    Ok(Round { served, load, lacking })
}

/// The ConfigMaps of each account's namespace, as it sees them.
async fn tenants(rig: &Rig) -> Result<Vec<Api<ConfigMap>>> {
    rig.progress.step("accounts of tenants", TENANTS * ACCOUNTS);
    let group = "rbac.authorization.k8s.io";
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]}]);
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": rules,
    });
    apply(&rig.admin, "default", vec![role]).await?;
    let mut tenants = Vec::new();
    for _ in 0..TENANTS {
        let namespace = rig.cluster.namespace("tenant").await?;
        let names: Vec<String> = (0..ACCOUNTS).map(|number| format!("account-{number}")).collect();
        let account = |name: &String| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        let subject =
            |name: &String| json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
        let mut manifests: Vec<Value> = names.iter().map(account).collect();
        manifests.push(json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "RoleBinding",
            "metadata": {"name": ROLE},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": ROLE},
            "subjects": names.iter().map(subject).collect::<Vec<_>>(),
        }));
        apply(&rig.admin, &namespace, manifests).await?;
        for name in &names {
            let account = rig.cluster.service_account_kubeconfig(&namespace, name).await?;
            // Which sends everything at once and repeats nothing by itself.
            let (requests, time) = (Requests::new("tenant", &[])?, ServerTime::new(Duration::ZERO));
            let client: Client = connect(Some(&account), requests, time).await?.work;
            let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
            until_ok("a tenant may read", PATIENCE, || async { Ok(api.get(READ).await?) }).await?;
            tenants.push(api);
            rig.progress.one();
        }
    }
    Ok(tenants)
}

/// Sends one request after the other.
async fn floods(api: Api<ConfigMap>, answers: Arc<Answers>) {
    for number in 0..MOST {
        let outcome = match number % 3 {
            0 => api.list(&ListParams::default().limit(500)).await.map(drop),
            1 => api.get(READ).await.map(drop),
            _ => {
                let generate_name = Some("flood-".to_owned());
                let metadata = ObjectMeta { generate_name, ..ObjectMeta::default() };
                let new = ConfigMap { metadata, ..ConfigMap::default() };
                api.create(&PostParams::default(), &new).await.map(drop)
            }
        };
        let count = match outcome {
            Ok(()) => &answers.served,
            Err(Error::Api(status)) if status.code == 429 => &answers.put_off,
            Err(_) => &answers.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
