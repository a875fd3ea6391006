//! The RBAC rules of the operator.

use anyhow::{Result, ensure};
use e2e::apply::{apply, established};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{LITTLE_ROOM, PATIENCE, POOL, PooledBox, World};
use e2e::operator::{Operator, OperatorOptions, SERVICE_ACCOUNT};
use e2e::proxy::{Fault, Proxy, Scope};
use e2e::rbac::{Grant, account, of_operator};
use e2e::until::until_ok;
use invariants::Request;

use super::gangs::Scheduler;
use super::scenario::Scenario;
use super::{Play, Player, each_is_missed};

/// A leader has to renew its Lease soon, and on a slow machine it may be late.
const ELECTION: &str = "leaderElection:
  {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 500ms}";
const NO_ELECTION: &str = "leaderElection: {leaderElect: false}";

/// What is seen of no request: the admission plugin asks for it when children are made.
const FINALIZERS: &str = "trainjobs/finalizers";
/// What the admission plugin says then.
const FINALIZERS_REFUSED: &str = "cannot set blockOwnerDeletion";

/// An operator with permissions of its own, in a namespace of its own.
pub(crate) struct OperatorPlayer<'a> {
    scenario: Scenario,
    tenant: Tenant<'a>,
    proxy: Proxy,
    operator: Operator,
}

impl<'a> OperatorPlayer<'a> {
    async fn start(world: &'a World, scenario: Scenario, grants: &[Grant]) -> Result<Self> {
        let (tenant, cluster) = (world.tenant("rbac").await?, &world.cluster);
        let namespace = tenant.namespace.clone();
        scenario.prepare(&tenant).await?;
        let kubeconfig = account(cluster, &namespace, SERVICE_ACCOUNT, grants).await?;
        let proxy = Proxy::start(cluster, Scope::Namespace(namespace.clone())).await?;
        disturb(&proxy, scenario, &namespace);
        let election = if scenario.elects() { ELECTION } else { NO_ELECTION };
        let room = if scenario.lacks_room() { LITTLE_ROOM } else { "" };
        let options = OperatorOptions {
            config_yaml: format!("{election}\n{room}"),
            env: vec![("POD_NAMESPACE".to_owned(), namespace)],
            kubeconfig: Some(proxy.kubeconfig(&kubeconfig)?),
            ..OperatorOptions::default()
        };
        let operator = Operator::start(cluster, options).await?;
        Ok(Self { scenario, tenant, proxy, operator })
    }

    /// Waits until it has asked for news of the Lease.
    async fn follows(&self) -> Result<()> {
        until_ok("it follows the Lease", PATIENCE, async || {
            let watches = self.proxy.count(|call| call.is_watch() && call.resource == "leases");
            ensure!(watches > 0, "it does not");
            Ok(())
        })
        .await
    }
}

/// Keeps the scenarios of different operators apart where there are no namespaces, and keeps one from
/// seeing what it has to find out by itself.
fn disturb(proxy: &Proxy, scenario: Scenario, namespace: &str) {
    let own = namespace.to_owned();
    let of_others = move |call: &e2e::proxy::Call| {
        (call.verb, &*call.resource) == ("patch", "clustertrainingruntimes") && call.name != own
    };
    let conflict = Fault::Answer { status: 409, retry_after: None };
    proxy.inject(of_others, 1..=usize::MAX, conflict);
    if matches!(scenario, Scenario::TakenGang(_)) {
        let news = |call: &e2e::proxy::Call| call.is_watch() && call.resource == "podgroups";
        proxy.inject(news, 1..=usize::MAX, Fault::HoldRequest);
    }
}

impl Player for OperatorPlayer<'_> {
    async fn play(&self) -> Result<()> {
        self.operator.wait_ready().await?;
        if self.scenario == Scenario::Follows {
            self.follows().await?;
        }
        // On the heap: the future of a long scenario is large.
        Box::pin(self.scenario.play(&self.tenant)).await
    }

    fn said(&self) -> Result<String> {
        self.operator.log()
    }

    fn proxy(&self) -> &Proxy {
        &self.proxy
    }
}

impl Drop for OperatorPlayer<'_> {
    /// Dropping an operator would wait for it, and all lanes with it.
    fn drop(&mut self) {
        self.operator.kill9();
    }
}

/// A box with every kind that the operator knows.
async fn world() -> Result<PooledBox> {
    let world = POOL.take().await?.alone();
    let client = world.cluster.client().await?;
    let definitions = vec![Scheduler::Coscheduling.definition(), Scheduler::Volcano.definition()];
    let definitions = apply(&client, "default", definitions).await?;
    established(&client, &definitions).await?;
    Ok(world)
}

impl Play for World {
    type Scenario = Scenario;
    type Player<'a> = OperatorPlayer<'a>;
    const SCENARIOS: &'static [Scenario] = &Scenario::ALL;

    async fn start(&self, scenario: Scenario, grants: &[Grant]) -> Result<OperatorPlayer<'_>> {
        OperatorPlayer::start(self, scenario, grants).await
    }

    fn takes(scenario: Scenario, requests: &[Request], grant: &Grant) -> bool {
        // What the proxy has answered was about the scenario of another one. What is under way has no answer.
        let is_of_another =
            |request: &Request| request.answer.code.is_some() && request.answer.served.is_none();
        let takes = |request: &Request| grant.covers(request) && !is_of_another(request);
        match grant.resource.as_str() {
            FINALIZERS => scenario == Scenario::Ttl,
            _ => scenario.needs(grant) && requests.iter().any(takes),
        }
    }

    fn refusal(grant: &Grant) -> String {
        match grant.resource.as_str() {
            FINALIZERS => FINALIZERS_REFUSED.to_owned(),
            _ => grant.refusal(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_rbac_rules_are_sufficient_and_each_is_needed() -> Result<()> {
    each_is_missed(&*world().await?, &of_operator()?).await
}
