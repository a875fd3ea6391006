//! What all lives share, and how one of them is lived there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use invariants::{History, Terms};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use trainjob_api::constants::EVENT_REPORTER;

use super::blow::{Blow, InjectedFault};
use super::case::Case;
use super::disturb::{disturbed, made};
use super::left;
use super::life::Life;
use super::operator_slot::OperatorSlot;
use super::scenario::{Program, Scenario, Stage};
use super::{accounting, retention};
use crate::faults::proxy::{Proxy, Scope};
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::tenant::Tenant;
use crate::testenv::fixtures::{SYSTEM, World};
use crate::testenv::operator::SERVICE_ACCOUNT;
use crate::testenv::recorder::Recorder;

/// Seconds of a deadline that leave an operator the time to be killed and to come back before it.
const DEADLINE: i64 = 7;

/// How much more for one that is told three times to wait a second, or is denied three times, and tries again after 0.1, 0.8
/// and 6.4 s.
const PATIENCE: i64 = 4;

/// How much more for one that has two faults to get over.
const SECOND: i64 = 4;

/// How much more for one that has a brown-out to get over.
const BROWN_OUT: i64 = 10;

/// How late what is due may be, in milliseconds: an operator may be killed just before, and another one
/// has to start on a busy machine.
const ALLOWANCE: i64 = 30_000;

/// What all lives of a program share.
pub(super) enum Ground {
    /// Of the operator.
    Operator(Box<OperatorGround>),
    /// Of the retention engine.
    Retention(Arc<retention::Ground>),
    /// Of the accounting program.
    Accounting(Box<accounting::Ground>),
}

impl Ground {
    /// Starts the box.
    pub(super) async fn prepare(program: Program) -> Result<Self> {
        Ok(match program {
            Program::Operator => Self::Operator(Box::new(OperatorGround::prepare().await?)),
            Program::Retention => {
                Self::Retention(Arc::new(Box::pin(retention::Ground::start()).await?))
            }
            Program::Accounting => Self::Accounting(Box::default()),
        })
    }

    /// Lives one life, in a namespace and behind a proxy of its own.
    pub(super) async fn live(&self, scenario: Scenario, case: Option<&Case>) -> Result<Life> {
        match self {
            Self::Operator(ground) => ground.live(scenario, case).await,
            Self::Retention(ground) => retention::live(ground, scenario, case).await,
            Self::Accounting(ground) => accounting::live(ground, scenario, case).await,
        }
    }
}

/// A box without an operator of its own, and somebody who writes down what happens in it.
pub(super) struct OperatorGround {
    world: World,
    kubeconfig: PathBuf,
    recorder: Recorder,
}

impl OperatorGround {
    /// Starts the box.
    async fn prepare() -> Result<Self> {
        let world = Box::pin(World::without_operator(Options::default())).await?;
        let kubeconfig = world.cluster.service_account_kubeconfig(SYSTEM, SERVICE_ACCOUNT).await?;
        let recorder = Recorder::start(world.cluster.client().await?).await?;
        Ok(Self { world, kubeconfig, recorder })
    }

    async fn live(&self, scenario: Scenario, case: Option<&Case>) -> Result<Life> {
        let tenant = self.world.tenant(scenario.name()).await?;
        let cluster = &self.world.cluster;
        let proxy = Proxy::start(cluster, Scope::Namespace(tenant.namespace.clone())).await?;
        let slot = OperatorSlot::new(cluster, &proxy, &self.kubeconfig)?;
        let deadline = deadline(case);
        let stage = Stage { scenario, tenant: &tenant, slot: &slot, deadline };
        let (end, struck) = disturbed(&stage, &proxy, case).await;
        let mut life = self.look(&tenant, &proxy).await?;
        life.trouble = end.err().map(|error| format!("{error:#}"));
        life.struck = struck;
        let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
        namespaces.delete(&tenant.namespace, &DeleteParams::background()).await?;
        Ok(life)
    }

    async fn look(&self, tenant: &Tenant<'_>, proxy: &Proxy) -> Result<Life> {
        let left = left::objects(tenant).await?;
        let events = tenant.events.list(&ListParams::default()).await?.items;
        self.recorder.caught_up_in(&tenant.namespace).await?;
        let terms = Terms { allowance: ALLOWANCE, ..Terms::default() };
        let history = History {
            changes: self.recorder.changes(Some(&tenant.namespace)),
            requests: proxy.requests(),
            terms,
            end: i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?,
        };
        let calls = made(&proxy.calls(), &history.requests);
        let told = events.into_iter().filter(is_ours).filter_map(|event| event.reason).collect();
        Ok(Life { history, calls, left, told, ..Life::default() })
    }
}

fn deadline(case: Option<&Case>) -> i64 {
    let waits = |fault| matches!(fault, InjectedFault::Answer { status: 403 | 422 | 429, times } if times > 1);
    let blows = case.into_iter().flat_map(Case::blows);
    let patience = |(index, blow): (usize, &Blow)| {
        let second = if index > 0 { SECOND } else { 0 };
        second + if waits(blow.fault) { PATIENCE } else { 0 }
    };
    let brown_out = case.and_then(Case::brown_out).map_or(0, |_| BROWN_OUT);
    DEADLINE + brown_out + blows.enumerate().map(patience).sum::<i64>()
}

fn is_ours(event: &Event) -> bool {
    event.reporting_controller.as_deref() == Some(EVENT_REPORTER)
}
