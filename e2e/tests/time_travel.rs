//! Time travel: behind a load balancer, the operator comes from an API server that is up to date to one that has seen
//! nothing for seconds, and back, in the middle of the lives of its jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use e2e::fixtures::{COMPLETES, PATIENCE, POOL, RUNS, Tenant};
use e2e::operator::OperatorOptions;
use e2e::proxy::{Call, Proxy, Scope};
use e2e::recorder::Recorder;
use e2e::stale_apiserver::StaleApiServer;
use e2e::until::until_ok;
use invariants::{Change, History, Millis, State, Terms};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt};
use launcher::say;
use serde::de::DeserializeOwned;
use serde_json::json;
use trainjob_api::{TrainJob, conditions};

/// Time enough for a job to run, and for an operator to change its API server before it.
const DEADLINE: i64 = 10;

const TTL: i64 = 3;

/// How often the operator travels there and back.
const ROUNDS: usize = 2;

/// How late what is due may be: while its API server is behind, the operator does not learn that a job has completed.
const ALLOWANCE: Millis = 30_000;

#[tokio::test]
async fn an_operator_sent_to_an_api_server_that_is_behind_does_nothing_early_twice_or_never()
-> Result<()> {
    POOL.test("time-travel", async |tenant| {
        let world = tenant.world;
        let recorder = Recorder::start(tenant.client.clone()).await?;
        let stale = StaleApiServer::start(&world.cluster).await?;
        let stale_client = stale.client(&world.cluster).await?;
        let proxy = Proxy::start(&world.cluster, Scope::Cluster).await?;
        let launch = || async {
            let options = OperatorOptions::default();
            world.launch(Some(&proxy), options).await?.wait_ready().await
        };
        launch().await?;

        for round in 0..ROUNDS {
            before_it_falls_behind(tenant, round).await?;
            knows(tenant, &stale_client, round).await?;
            stale.fall_behind(true);
            begin(tenant, round).await?;
            is_behind(tenant, &stale_client, round).await?;
            travels(&proxy, &stale.address()).await?;
            if round > 0 {
                // A new process knows nothing but what its API server says.
                world.kill_operator();
                proxy.process(u32::try_from(round)? + 1);
                launch().await?;
            }
            while_it_is_behind(tenant, round).await?;
            is_behind(tenant, &stale_client, round).await.context("it has caught up too soon")?;
            // Back to the present, and this one catches up.
            travels(&proxy, &world.cluster.address()).await?;
            stale.fall_behind(false);
            end(tenant, round).await?;
        }

        recorder.caught_up_in(&tenant.namespace).await?;
        let changes = recorder.changes(Some(&tenant.namespace));
        each_has_one_job_set(&changes)?;
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
        let terms = Terms { allowance: ALLOWANCE, ..Terms::default() };
        let history = History { changes, requests: proxy.requests(), terms, end: now };
        let broken: Vec<String> =
            invariants::check(&history).iter().map(ToString::to_string).collect();
        ensure!(broken.is_empty(), "{}", broken.join("\n"));
        Ok(())
    })
    .await
}

/// Jobs whose end, or whose successor, the API server that falls behind will not know of.
async fn before_it_falls_behind(tenant: &Tenant<'_>, round: usize) -> Result<()> {
    let (again, due) = (format!("again-{round}"), format!("due-{round}"));
    tenant.create(&again, RUNS, json!({})).await?;
    tenant.runs(&again).await?;
    // The last, because its time runs.
    tenant.create(&due, RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
    tenant.has_job_set(&due).await?;
    Ok(())
}

/// What it does not learn of: new jobs, and one that takes the name of another.
async fn begin(tenant: &Tenant<'_>, round: usize) -> Result<()> {
    let ttl = json!({"ttlSecondsAfterFinished": TTL});
    let again = format!("again-{round}");
    tenant.delete(&again).await?;
    tenant.gone(&again).await?;
    tenant.create(&again, COMPLETES, ttl.clone()).await?;
    tenant.create(&format!("leaves-{round}"), COMPLETES, ttl).await?;
    tenant.has_job_set(&again).await?;
    tenant.has_job_set(&format!("leaves-{round}")).await?;
    Ok(())
}

/// What comes about by time alone, and what comes about by a change that it has missed, but an operator may have seen.
async fn while_it_is_behind(tenant: &Tenant<'_>, round: usize) -> Result<()> {
    let due = format!("due-{round}");
    tenant.becomes(&due, conditions::FAILED).await?;
    tenant.job_set_gone(&due).await
}

async fn end(tenant: &Tenant<'_>, round: usize) -> Result<()> {
    tenant.released(&format!("due-{round}")).await?;
    tenant.gone(&format!("leaves-{round}")).await?;
    tenant.gone(&format!("again-{round}")).await
}

/// Waits until an API server keeps the jobs and their JobSets. It keeps none of a kind before it is asked for it.
async fn knows(tenant: &Tenant<'_>, stale: &Client, round: usize) -> Result<()> {
    let jobs: Api<TrainJob> = Api::namespaced(stale.clone(), &tenant.namespace);
    let kind = GroupVersionKind::gvk("jobset.x-k8s.io", "v1alpha2", "JobSet");
    let kind = ApiResource::from_gvk(&kind);
    let job_sets: Api<DynamicObject> =
        Api::namespaced_with(stale.clone(), &tenant.namespace, &kind);
    until_ok("the other API server knows the jobs", PATIENCE, || async {
        for names in [kept(&jobs).await?.0, kept(&job_sets).await?.0] {
            let new = ["again", "due"].map(|name| format!("{name}-{round}"));
            ensure!(new.iter().all(|name| names.contains(name)), "it knows {names:?}");
        }
        Ok(())
    })
    .await
}

/// The names of what an API server keeps, and the version that this is of, whatever version it has.
async fn kept<K>(api: &Api<K>) -> Result<(BTreeSet<String>, Option<u64>)>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug,
{
    let list = api.list(&ListParams::default().match_any()).await?;
    let version = list.metadata.resource_version.and_then(|version| version.parse().ok());
    Ok((list.items.iter().map(ResourceExt::name_any).collect(), version))
}

/// Sees that what an API server keeps is not what is stored: its list does not have a job that is there.
async fn is_behind(tenant: &Tenant<'_>, stale: &Client, round: usize) -> Result<()> {
    let (names, kept) =
        kept(&Api::<TrainJob>::namespaced(stale.clone(), &tenant.namespace)).await?;
    ensure!(!names.contains(&format!("leaves-{round}")), "it knows {names:?}");
    ensure!(names.contains(&format!("again-{round}")), "it knows only {names:?}");
    let stored = tenant.jobs.list(&ListParams::default()).await?;
    let stored = stored.metadata.resource_version.and_then(|version| version.parse().ok());
    say(format_args!(
        "round {round}: the list of the API server is of {kept:?}, stored is {stored:?}"
    ));
    ensure!(kept < stored, "it is not behind");
    Ok(())
}

/// Sends the operator to an API server, and waits until it watches TrainJobs there.
async fn travels(proxy: &Proxy, address: &str) -> Result<()> {
    let watches = || proxy.count(|call: &Call| call.is_watch() && call.resource == "trainjobs");
    proxy.send_to(address)?;
    let before = watches();
    proxy.end_watches();
    until_ok(format!("it watches at {address}"), PATIENCE, || async {
        ensure!(watches() > before, "it watches where it was");
        Ok(())
    })
    .await
}

/// Sees that every TrainJob was given one JobSet, and none a second.
fn each_has_one_job_set(changes: &[Change]) -> Result<()> {
    let mut job_sets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for change in changes {
        let object = &change.object;
        match (&object.state, &object.owner) {
            (State::TrainJob(_), _) => {
                job_sets.entry(&object.uid).or_default();
            }
            (State::JobSet(_), Some(owner)) => {
                job_sets.entry(owner).or_default().insert(&object.uid);
            }
            _ => {}
        }
    }
    let wrong: Vec<_> = job_sets.iter().filter(|(_, job_sets)| job_sets.len() != 1).collect();
    ensure!(wrong.is_empty(), "TrainJobs and their JobSets: {wrong:?}");
    ensure!(job_sets.len() == 4 * ROUNDS, "{} TrainJobs", job_sets.len());
    Ok(())
}
