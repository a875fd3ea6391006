//! Two or more operators that take turns, and what is seen of each.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::created_at;
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{LATE, PATIENCE, POOL, SYSTEM};
use e2e::operator::{Operator, OperatorOptions, SERVICE_ACCOUNT, rbac_rules};
use e2e::proxy::{Proxy, Scope};
use e2e::recorder::Recorder;
use e2e::until::until_ok;
use invariants::{History, Millis, Request, Terms};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, DeleteParams};

/// The Lease of Kubeflow Trainer.
pub(super) const LEASE: &str = "trainer.kubeflow.org";
/// The defaults of the durations are long for a test. A leader may stand still for seconds on a busy machine.
pub(super) const SHORT: Election = Election {
    yaml: "leaderElection:
  {leaderElect: true, leaseDuration: 6s, renewDeadline: 5s, retryPeriod: 500ms}",
    lease: 6_000,
};
/// Leaves a leader that cannot renew the time to end before the Lease expires, on a busy machine, too.
pub(super) const EARLY: Election = Election {
    yaml: "leaderElection:
  {leaderElect: true, leaseDuration: 15s, renewDeadline: 5s, retryPeriod: 500ms}",
    lease: 15_000,
};
pub(super) const DEFAULT: Election =
    Election { yaml: "leaderElection: {leaderElect: true}", lease: 15_000 };
/// How long there may be no leader after one that was asked to stop; less than a lease that this is shown with.
pub(super) const HANDOVER: Millis = 5_000;
/// How much longer than its lease there may be none after one that was killed, on a busy machine.
pub(super) const TAKEOVER: Millis = 5_000;
/// How soon a new leader does what came due before it led.
pub(super) const RIGHT_AFTER: Millis = LATE * 1_000;
/// How long a test looks on while nothing is to happen.
pub(super) const WINDOW: Duration = Duration::from_secs(4);
/// How late what is due may be: somebody has to notice first that nobody leads.
pub(super) const ALLOWANCE: Millis = 30_000;

pub(super) struct Election {
    pub(super) yaml: &'static str,
    pub(super) lease: Millis,
}

/// Runs a test in a box to itself, without an operator and without a Lease.
pub(super) async fn test(
    prefix: &str,
    body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>,
) -> Result<()> {
    POOL.test(prefix, async |tenant| {
        let deleted = leases(tenant).delete(LEASE, &DeleteParams::default()).await;
        ensure!(
            matches!(&deleted, Ok(_) | Err(kube::Error::Api(_))),
            "the Lease cannot be deleted: {deleted:?}"
        );
        body(tenant).await
    })
    .await
}

/// One of several operators.
pub(super) struct Replica {
    pub(super) name: &'static str,
    pub(super) operator: Operator,
    pub(super) proxy: Proxy,
}

impl Replica {
    pub(super) async fn start(
        tenant: &Tenant<'_>,
        name: &'static str,
        election: &Election,
    ) -> Result<Self> {
        let cluster = &tenant.world.cluster;
        let kubeconfig = cluster.service_account_kubeconfig(SYSTEM, SERVICE_ACCOUNT).await?;
        let proxy = Proxy::start(cluster, Scope::Cluster).await?;
        let options = OperatorOptions {
            config_yaml: election.yaml.to_owned(),
            env: [("HOSTNAME", name), ("POD_NAMESPACE", SYSTEM)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            kubeconfig: Some(proxy.kubeconfig(&kubeconfig)?),
            ..OperatorOptions::default()
        };
        let operator = Operator::start(cluster, options).await?;
        Ok(Self { name, operator, proxy })
    }

    /// One that is ready, whether or not it leads.
    pub(super) async fn ready(
        tenant: &Tenant<'_>,
        name: &'static str,
        election: &Election,
    ) -> Result<Self> {
        let replica = Self::start(tenant, name, election).await?;
        replica.operator.wait_ready().await?;
        Ok(replica)
    }

    /// Waits until it holds the Lease.
    pub(super) async fn leads(&self, tenant: &Tenant<'_>) -> Result<()> {
        until_ok(format!("{} leads", self.name), PATIENCE, || async {
            let holder = holder(tenant).await?;
            ensure!(holder.starts_with(&format!("{}_", self.name)), "{holder:?} leads");
            Ok(())
        })
        .await
    }

    /// Everything it has asked for that changes something, but for the Lease.
    pub(super) fn writes(&self) -> Vec<Request> {
        let mut requests = self.proxy.requests();
        requests.retain(|it| is_write(it) && it.resource != "leases");
        requests
    }

    /// When it had the Lease; the first time since `from`. That the Lease shows it may be seen before the answer is noted.
    pub(super) async fn took_over(&self, from: Millis) -> Result<Millis> {
        until_ok("the answer is noted", PATIENCE, || async {
            let requests = self.proxy.requests();
            let taken = requests.iter().find(|it| {
                let stored = it.answer.served.is_some_and(|code| code < 300);
                it.resource == "leases" && is_write(it) && stored && it.ended >= from
            });
            Ok(taken.with_context(|| format!("{} never had it", self.name))?.ended)
        })
        .await
    }

    /// What it serves as its metrics.
    pub(super) async fn metrics(&self) -> Result<String> {
        self.operator.metrics_page().await
    }

    pub(super) fn has_logged(&self, text: &str) -> Result<usize> {
        Ok(self.operator.log()?.lines().filter(|line| line.contains(text)).count())
    }
}

pub(super) fn is_write(request: &Request) -> bool {
    !matches!(request.verb.as_str(), "get" | "list" | "watch")
}

pub(super) fn leases(tenant: &Tenant<'_>) -> Api<Lease> {
    Api::namespaced(tenant.client.clone(), SYSTEM)
}

pub(super) async fn record(tenant: &Tenant<'_>) -> Result<LeaseSpec> {
    leases(tenant).get(LEASE).await?.spec.context("an empty Lease")
}

/// Who holds the Lease; empty when nobody does.
pub(super) async fn holder(tenant: &Tenant<'_>) -> Result<String> {
    Ok(record(tenant).await?.holder_identity.unwrap_or_default())
}

pub(super) fn now() -> Result<Millis> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis().try_into()?)
}

/// Looks on until so many milliseconds before the deadline of a job that runs.
pub(super) async fn runs_until(tenant: &Tenant<'_>, name: &str, before: Millis) -> Result<Millis> {
    tenant.runs(name).await?;
    let job = tenant.jobs.get(name).await?;
    let seconds = job.spec.active_deadline_seconds.context("it has no deadline")?;
    let due = created_at(&job).plus(seconds).0 * 1_000;
    let left = u64::try_from(due - before - now()?).context("it took too long to run")?;
    tokio::time::sleep(Duration::from_millis(left)).await;
    Ok(due)
}

/// Judges all that has happened in the namespace of the test, by the rules that hold for every run.
pub(super) async fn judge(
    tenant: &Tenant<'_>,
    recorder: &Recorder,
    replicas: &[&Replica],
) -> Result<()> {
    recorder.caught_up_in(&tenant.namespace).await?;
    let mut requests = Vec::new();
    for (number, replica) in (1..).zip(replicas) {
        let numbered = |request| Request { process: number, ..request };
        requests.extend(replica.proxy.requests().into_iter().map(numbered));
    }
    requests.sort_by_key(|request| request.sent);
    let all = History { requests: requests.clone(), ..History::default() };
    let mut violations = invariants::undeclared_requests(&all, &rbac_rules()?);
    requests.retain(|request| request.namespace == tenant.namespace);
    let history = History {
        changes: recorder.changes(Some(&tenant.namespace)),
        requests,
        terms: Terms { allowance: ALLOWANCE, ..Terms::default() },
        end: now()?,
    };
    violations.extend(invariants::check(&history));
    let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
    ensure!(violations.is_empty(), "{violations:#?}");
    Ok(())
}

pub(super) async fn recorder(tenant: &Tenant<'_>) -> Result<Recorder> {
    Recorder::start(tenant.world.cluster.client().await?).await
}
