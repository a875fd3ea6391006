//! Several operators on one cluster: one acts, and another takes its place, whatever becomes of it.
//!
//! Each operator has a proxy of its own, which tells who asked for what. It runs on the threads of the test, hence more than
//! one of them.

mod replica;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::component::Component;
use e2e::fixtures::status::{conditions_of, finished_at, is_failed_by_deadline};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{PATIENCE, RUNS, SYSTEM, consistently, runtime};
use e2e::operator::{SERVICE_ACCOUNT, install_operator_rbac};
use e2e::until::{until, until_ok};
use invariants::Millis;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use rustix::process::Signal;
use serde_json::{Value, json};
use trainjob_api::conditions::FAILED;
use trainjob_api::constants::LEGACY_FINALIZER;
use trainjob_api::{ClusterTrainingRuntime, TrainJob};

use replica::{
    DEFAULT, EARLY, Election, HANDOVER, LEASE, RIGHT_AFTER, Replica, SHORT, TAKEOVER, WINDOW,
    holder, judge, leases, now, record, recorder, runs_until, test,
};

/// Long enough for a job to run before, on a busy machine.
const DEADLINE: i64 = 20;
/// How many seconds the Lease of somebody else lasts: longer than a handover, and than a busy machine stands still.
const FOREIGN: i32 = 8;
/// Who waits for so long waits because that Lease is renewed.
const LONGER_THAN_FOREIGN: Duration = Duration::from_secs(10);

/// Waits until the job was stopped by its deadline, whoever led then.
async fn is_stopped(tenant: &Tenant<'_>, due: Millis) -> Result<()> {
    let job = tenant.becomes("stopped", FAILED).await?;
    ensure!(is_failed_by_deadline(&job), "{:?}", conditions_of(&job));
    ensure!(finished_at(&job)?.0 * 1_000 >= due, "it was stopped early");
    tenant.released("stopped").await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_leader_of_two_replicas_writes_and_both_are_ready() -> Result<()> {
    test("two", async |tenant| {
        let recorder = recorder(tenant).await?;
        // Everything that an operator writes without being asked by a job, too.
        let mut held = runtime("held", &json!({}), 3, None);
        held["metadata"]["finalizers"] = json!([LEGACY_FINALIZER]);
        tenant.world.cluster.apply_yaml("default", &held.to_string()).await?;
        let first = Replica::ready(tenant, "first", &SHORT).await?;
        first.leads(tenant).await?;
        let second = Replica::ready(tenant, "second", &SHORT).await?;
        until("it says who leads", PATIENCE, || async {
            (second.has_logged("waiting: first_").ok()? == 1).then_some(())
        })
        .await?;
        let runtimes: Api<ClusterTrainingRuntime> = Api::all(tenant.client.clone());
        let late = json!({"metadata": {"finalizers": [LEGACY_FINALIZER]}});
        runtimes.patch("runs", &PatchParams::default(), &Patch::Merge(late)).await?;
        tenant.create("stopped", RUNS, json!({"activeDeadlineSeconds": 4})).await?;
        tenant.create("waits", "no-such-runtime", json!({})).await?;
        tenant.create("job", "held", json!({})).await?;
        tenant.has_job_set("job").await?;
        tenant.fails_by_deadline("stopped").await?;
        tenant.released("stopped").await?;
        until_ok("both runtimes lose the finalizer", PATIENCE, || async {
            for name in ["held", "runs"] {
                let finalizers = runtimes.get(name).await?.metadata.finalizers;
                ensure!(finalizers.unwrap_or_default().is_empty(), "{name} has one");
            }
            Ok(())
        })
        .await?;

        ensure!(!first.writes().is_empty(), "the leader wrote nothing");
        ensure!(second.writes().is_empty(), "the other one wrote {:#?}", second.writes());
        second.operator.wait_ready().await?;
        // How jobs are is what the leader sees; what the caches hold is what both do. There may be jobs of
        // earlier tests.
        let jobs = Api::<TrainJob>::all(tenant.client.clone()).list(&ListParams::default()).await?;
        let is_here = |job: &&TrainJob| job.metadata.deletion_timestamp.is_none();
        let stopped = jobs.iter().filter(is_here).filter(|job| is_failed_by_deadline(job)).count();
        for (replica, leads) in [(&first, 1), (&second, 0)] {
            let metrics = replica.metrics().await?;
            for line in [
                format!("trainjob_operator_leader {leads}\n"),
                format!("trainjob_deadline_exceeded_total {leads}\n"),
                format!("trainjob_jobs{{state=\"deadline_exceeded\"}} {}\n", leads * stopped),
                format!(
                    "trainjob_operator_cached_objects{{kind=\"TrainJob\"}} {}\n",
                    jobs.items.len()
                ),
            ] {
                ensure!(metrics.contains(&line), "{}: no {line} in {metrics}", replica.name);
            }
        }
        ensure!(
            first.has_logged("waiting")? == 0 && second.has_logged("\"leading\"")? == 0,
            "mixed up"
        );
        judge(tenant, &recorder, &[&first, &second]).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_leader_releases_its_lease_at_once() -> Result<()> {
    test("handover", async |tenant| {
        let recorder = recorder(tenant).await?;
        let first = Replica::ready(tenant, "first", &DEFAULT).await?;
        first.leads(tenant).await?;
        let second = Replica::ready(tenant, "second", &DEFAULT).await?;
        tenant.create("job", RUNS, json!({})).await?;
        let before = tenant.has_job_set("job").await?;
        tenant.create("stopped", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;

        let due = runs_until(tenant, "stopped", 20).await?;
        let asked = now()?;
        first.operator.sigterm()?;
        let status = first.operator.wait(PATIENCE).await?;
        ensure!(status.code() == Some(0), "{status}");
        second.leads(tenant).await?;
        let gap = second.took_over(asked).await? - asked;
        ensure!(gap < HANDOVER, "nobody led for {gap} ms");
        let record = record(tenant).await?;
        ensure!(record.lease_transitions == Some(1), "{record:?}");

        is_stopped(tenant, due).await?;
        let failed = [first.writes(), second.writes()].concat();
        let failed = failed.iter().find(|it| it.subresource == "status" && it.sent >= due);
        let late = failed.context("nobody failed it")?.sent - due.max(asked + gap);
        ensure!(late < RIGHT_AFTER, "its deadline was met {late} ms after somebody led");
        println!("after SIGTERM, nobody led for {gap} ms; a deadline was met {late} ms later");

        tenant.create("next", RUNS, json!({})).await?;
        tenant.has_job_set("next").await?;
        let after = tenant.has_job_set("job").await?;
        ensure!(after.metadata.uid == before.metadata.uid, "its JobSet was made again");
        judge(tenant, &recorder, &[&first, &second]).await
    })
    .await
}

/// Kills a leader a second before a deadline, and sees that the other one meets it; says how soon.
async fn is_killed(tenant: &Tenant<'_>, election: &Election) -> Result<String> {
    let recorder = recorder(tenant).await?;
    let first = Replica::ready(tenant, "first", election).await?;
    first.leads(tenant).await?;
    let second = Replica::ready(tenant, "second", election).await?;
    tenant.create("job", RUNS, json!({})).await?;
    let before = tenant.has_job_set("job").await?;
    tenant.create("stopped", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;

    let due = runs_until(tenant, "stopped", 1_000).await?;
    let killed = now()?;
    first.operator.kill9();
    second.leads(tenant).await?;
    let gap = second.took_over(killed).await? - killed;
    let longest = election.lease + TAKEOVER;
    ensure!(gap < longest, "nobody led for {gap} ms");

    is_stopped(tenant, due).await?;
    let writes = second.writes();
    let failed = writes.iter().find(|it| it.subresource == "status" && it.name == "stopped");
    let late = failed.context("it did not fail it")?.sent - due.max(killed + gap);
    ensure!(late < RIGHT_AFTER, "its deadline was met {late} ms after somebody led");
    let after = tenant.has_job_set("job").await?;
    ensure!(after.metadata.uid == before.metadata.uid, "its JobSet was made again");
    judge(tenant, &recorder, &[&first, &second]).await?;
    let lease = election.lease;
    Ok(format!(
        "after kill -9, nobody led for {gap} ms with a lease of {lease} ms; a deadline was met \
         {late} ms later"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_leader_is_replaced_when_its_lease_expires() -> Result<()> {
    test("killed", async |tenant| {
        println!("{}", is_killed(tenant, &SHORT).await?);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_leader_is_replaced_with_default_lease_durations() -> Result<()> {
    test("default", async |tenant| {
        println!("{}", is_killed(tenant, &DEFAULT).await?);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_leader_exits_without_a_write_when_it_resumes() -> Result<()> {
    test("frozen", async |tenant| {
        let recorder = recorder(tenant).await?;
        let first = Replica::ready(tenant, "first", &SHORT).await?;
        first.leads(tenant).await?;
        let second = Replica::ready(tenant, "second", &SHORT).await?;
        tenant.create("stopped", RUNS, json!({"activeDeadlineSeconds": DEADLINE})).await?;
        runs_until(tenant, "stopped", 1_000).await?;
        first.operator.process().pause()?;
        tenant.create("job", RUNS, json!({})).await?;
        second.leads(tenant).await?;
        // Both have seen that the job is there and that the other is due.
        tenant.has_job_set("job").await?;
        tenant.becomes("stopped", FAILED).await?;
        let known = first.writes().len();
        first.operator.process().signal(Signal::CONT)?;
        let status = first.operator.wait(PATIENCE).await?;
        ensure!(status.code() == Some(1), "{status}");
        ensure!(first.has_logged("leader election lost")? > 0, "it does not say why");
        tenant.released("stopped").await?;
        let more = first.writes().split_off(known);
        ensure!(more.is_empty(), "it wrote {more:#?}");
        ensure!(holder(tenant).await?.starts_with("second_"), "it took the Lease with it");
        judge(tenant, &recorder, &[&first, &second]).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_without_api_server_exits_with_an_error_before_its_lease_expires() -> Result<()> {
    test("outage", async |tenant| {
        let first = Replica::ready(tenant, "first", &EARLY).await?;
        first.leads(tenant).await?;
        tenant.world.cluster.pause(Component::ApiServer)?;
        let begin = now()?;
        let status = first.operator.wait(PATIENCE).await;
        let took = now()? - begin;
        tenant.world.cluster.resume(Component::ApiServer)?;
        let status = status?;
        ensure!(status.code() == Some(1), "{status}");
        // Before anybody else may lead.
        ensure!(took < EARLY.lease, "it ended after {took} ms");
        let log = first.operator.log()?;
        let last = log.lines().last().unwrap_or_default();
        let lease = format!("the Lease {SYSTEM}/{LEASE} was not renewed within 5s: no answer");
        ensure!(last.contains("leader election lost") && last.contains(&lease), "it says {last}");
        println!("without an API server, the leader ended after {took} ms");

        let second = Replica::ready(tenant, "second", &SHORT).await?;
        tenant.create("job", RUNS, json!({})).await?;
        second.leads(tenant).await?;
        tenant.has_job_set("job").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_running_trainer_an_operator_waits_and_says_who_leads() -> Result<()> {
    test("trainer", async |tenant| {
        let api = leases(tenant);
        let holder = "kubeflow-trainer-controller-manager-6f4d7_0c5f";
        let trainer = Lease {
            metadata: ObjectMeta { name: Some(LEASE.into()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.into()),
                lease_duration_seconds: Some(FOREIGN),
                lease_transitions: Some(4),
                // Its clock is wrong; nobody minds.
                renew_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
                ..LeaseSpec::default()
            }),
        };
        api.create(&PostParams::default(), &trainer).await?;
        let renewing = tokio::spawn({
            let api = api.clone();
            async move {
                for time in 1.. {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    let renewed = MicroTime(Timestamp::from_second(time).unwrap_or_default());
                    let patch = json!({"spec": {"renewTime": renewed}});
                    let how = PatchParams::default();
                    // After one that fails, the next is still in time.
                    let _ = api.patch(LEASE, &how, &Patch::Merge(patch)).await;
                }
            }
        });
        let replica = Replica::ready(tenant, "replica", &SHORT).await?;
        tenant.create("job", RUNS, json!({})).await?;
        consistently("it waits", LONGER_THAN_FOREIGN, async || {
            ensure!(replica.writes().is_empty(), "it wrote {:#?}", replica.writes());
            Ok(())
        })
        .await?;
        let log = replica.operator.log()?;
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let said: Vec<Value> = lines.filter(|line| line.get("holder").is_some()).collect();
        let (lease, line) = (format!("{SYSTEM}/{LEASE}"), said.first().context("it says nothing")?);
        ensure!(said.len() == 1 && line["holder"] == holder && line["lease"] == lease, "{said:#?}");

        renewing.abort();
        // A trainer also sets the duration to a second, which would be over within a handover.
        let given = json!({"spec": {"holderIdentity": ""}});
        let asked = now()?;
        api.patch(LEASE, &PatchParams::default(), &Patch::Merge(given)).await?;
        replica.leads(tenant).await?;
        let gap = replica.took_over(asked).await? - asked;
        ensure!(gap < HANDOVER, "nobody led for {gap} ms");
        let record = record(tenant).await?;
        ensure!(record.lease_transitions == Some(5), "{record:?}");
        tenant.has_job_set("job").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_without_lease_permissions_logs_them_and_waits() -> Result<()> {
    test("powerless", async |tenant| {
        let bindings: Api<RoleBinding> = Api::namespaced(tenant.client.clone(), SYSTEM);
        bindings.delete(SERVICE_ACCOUNT, &DeleteParams::default()).await?;
        let cluster = &tenant.world.cluster;
        let operator = cluster.service_account_client(SYSTEM, SERVICE_ACCOUNT).await?;
        let seen: Api<Lease> = Api::namespaced(operator, SYSTEM);
        // The API server hears of it a moment later.
        until("it may not read the Lease", PATIENCE, || async {
            let answer = seen.get(LEASE).await;
            matches!(answer, Err(kube::Error::Api(status)) if status.code == 403).then_some(())
        })
        .await?;
        let replica = Replica::ready(tenant, "replica", &SHORT).await?;
        tenant.create("job", RUNS, json!({})).await?;
        let errors = || replica.has_logged("\"level\":\"ERROR\"");
        until_ok("both are named", PATIENCE, || async {
            let said = (replica.has_logged("cannot get resource")?, errors()?);
            ensure!(said == (1, 2), "it says {said:?}");
            Ok(())
        })
        .await?;
        consistently("it waits", WINDOW, async || {
            ensure!(replica.writes().is_empty(), "it wrote {:#?}", replica.writes());
            ensure!(errors()? == 2, "it says more: {}", replica.operator.log()?);
            Ok(())
        })
        .await?;
        install_operator_rbac(cluster, SYSTEM).await?;
        replica.leads(tenant).await?;
        tenant.has_job_set("job").await?;
        Ok(())
    })
    .await
}
