//! The lives that faults are put into: what users do in each, and what is left at the end.
//!
//! Every step of a user follows from a state that was seen, never from a time, so that the operator
//! makes the same calls each time, and may be dead for a moment anywhere. The one exception is what an operator that
//! takes over may put off until the user's next step.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueEnum;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::conditions;

use super::left;
use super::life::Player;
use super::operator_slot::OperatorSlot;
use crate::testenv::fixtures::status::{created_at, now};
use crate::testenv::fixtures::tenant::Tenant;
use crate::testenv::fixtures::{COMPLETES, FAILS, MPI, PATIENCE, RUNS};
use crate::testenv::until::{until, until_ok};

/// The TrainJob of most lives.
const JOB: &str = "job";

/// A label that a patch of the runtime gives the JobSet.
const LABEL: &str = "e2e.trainjob.dev/patched";

/// A kind of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// It completes, and its TTL deletes it.
    CompleteTtl,
    /// Its deadline fails it.
    Deadline,
    /// Its deadline fails it, and its TTL deletes it.
    DeadlineTtl,
    /// It is created suspended, changed, resumed, suspended, resumed and deleted.
    SuspendResume,
    /// It fails, and its TTL deletes it.
    FailureTtl,
    /// It completes, and is deleted at once.
    TtlZero,
    /// It has a Secret and a ConfigMap beside its JobSet, completes, and its TTL deletes it.
    MpiTtl,
    /// It is deleted while it runs, and another of its name completes and is deleted by its TTL.
    Recreated,
    /// The operator finds three at its start: one complete, one failed by its deadline, both with a TTL,
    /// and a new one.
    FoundAtStart,
    /// Jobs end under a retention policy with a TTL.
    PolicyTtl,
    /// The retention engine finds finished Jobs at its start, which are due.
    PolicyOverdue,
    /// A retention policy trips, and is acknowledged.
    PolicyTrip,
    /// A finished Job goes because its owner has finished.
    PolicyOwner,
    /// The Pods of a TrainJob that completes are counted.
    CountedComplete,
    /// Those of one whose JobSet is restarted once, and which fails.
    CountedRestart,
    /// Those of one that completes, and that its TTL deletes.
    CountedTtl,
    /// Those of one that is deleted while it runs.
    CountedDelete,
    /// Those of one that is suspended, resumed, and deleted while it runs.
    CountedSuspend,
    /// Those of one that its deadline fails.
    CountedDeadline,
    /// Those of one that is deleted while it runs, without a finalizer.
    ObservedDelete,
}

/// Which program lives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// The operator.
    Operator,
    /// The retention engine.
    Retention,
    /// The accounting program.
    Accounting,
}

/// Where a life of the operator is played.
pub struct Stage<'a> {
    /// Which life.
    pub scenario: Scenario,
    /// The namespace.
    pub tenant: &'a Tenant<'a>,
    /// The operator.
    pub slot: &'a OperatorSlot<'a>,
    /// Seconds of the deadline, in lives that have one.
    pub deadline: i64,
}

impl Scenario {
    /// Those of the operator.
    pub const OPERATOR: [Self; 9] = [
        Self::CompleteTtl,
        Self::Deadline,
        Self::DeadlineTtl,
        Self::SuspendResume,
        Self::FailureTtl,
        Self::TtlZero,
        Self::MpiTtl,
        Self::Recreated,
        Self::FoundAtStart,
    ];

    /// Those of the retention engine.
    pub const RETENTION: [Self; 4] =
        [Self::PolicyTtl, Self::PolicyOverdue, Self::PolicyTrip, Self::PolicyOwner];

    /// Those of the accounting program.
    pub const ACCOUNTING: [Self; 7] = [
        Self::CountedComplete,
        Self::CountedRestart,
        Self::CountedTtl,
        Self::CountedDelete,
        Self::CountedSuspend,
        Self::CountedDeadline,
        Self::ObservedDelete,
    ];

    /// Those of a program.
    #[must_use]
    pub const fn of(program: Program) -> &'static [Self] {
        match program {
            Program::Operator => &Self::OPERATOR,
            Program::Retention => &Self::RETENTION,
            Program::Accounting => &Self::ACCOUNTING,
        }
    }

    /// Which program lives it.
    #[must_use]
    pub const fn program(self) -> Program {
        match self {
            Self::CompleteTtl
            | Self::Deadline
            | Self::DeadlineTtl
            | Self::SuspendResume
            | Self::FailureTtl
            | Self::TtlZero
            | Self::MpiTtl
            | Self::Recreated
            | Self::FoundAtStart => Program::Operator,
            Self::PolicyTtl | Self::PolicyOverdue | Self::PolicyTrip | Self::PolicyOwner => {
                Program::Retention
            }
            Self::CountedComplete
            | Self::CountedRestart
            | Self::CountedTtl
            | Self::CountedDelete
            | Self::CountedSuspend
            | Self::CountedDeadline
            | Self::ObservedDelete => Program::Accounting,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CompleteTtl => "complete-ttl",
            Self::Deadline => "deadline",
            Self::DeadlineTtl => "deadline-ttl",
            Self::SuspendResume => "suspend-resume",
            Self::FailureTtl => "failure-ttl",
            Self::TtlZero => "ttl-zero",
            Self::MpiTtl => "mpi-ttl",
            Self::Recreated => "recreated",
            Self::FoundAtStart => "found-at-start",
            Self::PolicyTtl => "policy-ttl",
            Self::PolicyOverdue => "policy-overdue",
            Self::PolicyTrip => "policy-trip",
            Self::PolicyOwner => "policy-owner",
            Self::CountedComplete => "counted-complete",
            Self::CountedRestart => "counted-restart",
            Self::CountedTtl => "counted-ttl",
            Self::CountedDelete => "counted-delete",
            Self::CountedSuspend => "counted-suspend",
            Self::CountedDeadline => "counted-deadline",
            Self::ObservedDelete => "observed-delete",
        }
    }

    /// What is in the namespace when the life is over, besides what is in every namespace.
    #[must_use]
    pub const fn leaves(self) -> &'static [&'static str] {
        match self {
            Self::Deadline => &["configmap job-runtime-snapshot", "trainjob job"],
            Self::PolicyOwner => &["owner"],
            _ => &[],
        }
    }

    /// What there is before the operator starts.
    pub async fn before_the_operator(self, tenant: &Tenant<'_>) -> Result<()> {
        if self != Self::FoundAtStart {
            return Ok(());
        }
        let ttl = json!({"ttlSecondsAfterFinished": 1});
        let both = json!({"ttlSecondsAfterFinished": 1, "activeDeadlineSeconds": 1});
        tenant.create("complete", RUNS, ttl.clone()).await?;
        ends(tenant, "complete", conditions::COMPLETE, "JobsCompleted").await?;
        let stopped = tenant.create("stopped", RUNS, both).await?;
        until("its deadline has passed", PATIENCE, async || {
            (now() > created_at(&stopped)).then_some(())
        })
        .await?;
        ends(tenant, "stopped", conditions::FAILED, conditions::REASON_DEADLINE_EXCEEDED).await?;
        tenant.create("new", COMPLETES, ttl).await?;
        Ok(())
    }

    /// Plays it to its end, with an operator that has just been started.
    pub async fn play(self, stage: &Stage<'_>) -> Result<()> {
        stage.slot.ready().await?;
        let (tenant, deadline) = (stage.tenant, stage.deadline);
        match self {
            Self::CompleteTtl => lives_out(tenant, COMPLETES, 1).await,
            Self::FailureTtl => lives_out(tenant, FAILS, 1).await,
            Self::TtlZero => lives_out(tenant, COMPLETES, 0).await,
            Self::MpiTtl => lives_out(tenant, MPI, 1).await,
            Self::Deadline => {
                tenant.create(JOB, RUNS, json!({"activeDeadlineSeconds": deadline})).await?;
                tenant.becomes(JOB, conditions::FAILED).await?;
                tenant.released(JOB).await
            }
            Self::DeadlineTtl => {
                let spec = json!({"activeDeadlineSeconds": deadline, "ttlSecondsAfterFinished": 1});
                tenant.create(JOB, RUNS, spec).await?;
                tenant.gone(JOB).await
            }
            Self::SuspendResume => suspend_and_resume(stage).await,
            Self::Recreated => {
                tenant.create(JOB, RUNS, json!({})).await?;
                tenant.runs(JOB).await?;
                tenant.delete(JOB).await?;
                tenant.gone(JOB).await?;
                lives_out(tenant, COMPLETES, 1).await
            }
            Self::FoundAtStart => {
                tenant.gone("complete").await?;
                tenant.gone("stopped").await?;
                tenant.gone("new").await
            }
            Self::PolicyTtl
            | Self::PolicyOverdue
            | Self::PolicyTrip
            | Self::PolicyOwner
            | Self::CountedComplete
            | Self::CountedRestart
            | Self::CountedTtl
            | Self::CountedDelete
            | Self::CountedSuspend
            | Self::CountedDeadline
            | Self::ObservedDelete => bail!("{self} is not a life of the operator"),
        }
    }
}

impl Player for Stage<'_> {
    async fn begin(&self) -> Result<()> {
        self.scenario.before_the_operator(self.tenant).await
    }

    async fn launch(&self) -> Result<()> {
        self.slot.launch().await
    }

    fn kill(&self) {
        self.slot.kill();
    }

    async fn ready(&self) -> Result<()> {
        self.slot.ready().await
    }

    async fn play(&self) -> Result<()> {
        self.scenario.play(self).await
    }

    async fn ended(&self) -> Result<()> {
        left::nothing_but(self.tenant, self.scenario.leaves()).await
    }

    fn still_runs(&self) -> Result<()> {
        self.slot.still_runs()
    }
}

async fn lives_out(tenant: &Tenant<'_>, runtime: &str, ttl: i64) -> Result<()> {
    tenant.create(JOB, runtime, json!({"ttlSecondsAfterFinished": ttl})).await?;
    tenant.gone(JOB).await
}

/// How long an operator that has taken over is given to compare a suspended JobSet. It need not do so before the job is
/// resumed, unless one of the two changes (`docs/decisions.md`, 38).
const PUT_OFF: Duration = Duration::from_secs(5);

async fn suspend_and_resume(stage: &Stage<'_>) -> Result<()> {
    let tenant = stage.tenant;
    tenant.create(JOB, RUNS, json!({"suspend": true})).await?;
    tenant.becomes(JOB, conditions::SUSPENDED).await?;
    tenant.has_job_set(JOB).await?;
    tenant.patch(JOB, &labelled()).await?;
    let patched = Instant::now();
    until_ok("the JobSet is as its TrainJob says", PATIENCE, || async {
        let is_put_off = stage.slot.was_replaced() && patched.elapsed() >= PUT_OFF;
        if is_put_off { Ok(()) } else { is_labelled(tenant).await }
    })
    .await?;
    set_suspend(tenant, false).await?;
    tenant.runs(JOB).await?;
    is_labelled(tenant).await?;
    set_suspend(tenant, true).await?;
    tenant.becomes(JOB, conditions::SUSPENDED).await?;
    until_ok("its Pods are gone", PATIENCE, || async {
        let running = tenant.running_pods_of(JOB).await?;
        ensure!(running == 0, "{running} Pods run");
        Ok(())
    })
    .await?;
    set_suspend(tenant, false).await?;
    tenant.runs(JOB).await?;
    tenant.delete(JOB).await?;
    tenant.gone(JOB).await
}

async fn is_labelled(tenant: &Tenant<'_>) -> Result<()> {
    let job_set = tenant.job_sets.get(JOB).await?;
    ensure!(job_set.labels().contains_key(LABEL), "its labels are {:?}", job_set.labels());
    Ok(())
}

async fn set_suspend(tenant: &Tenant<'_>, suspend: bool) -> Result<()> {
    tenant.patch(JOB, &json!({"spec": {"suspend": suspend}})).await?;
    Ok(())
}

/// A patch of a TrainJob that patches its runtime.
fn labelled() -> Value {
    let template = json!({"metadata": {"labels": {LABEL: "yes"}}});
    let patch = json!({
        "manager": "e2e.trainjob.dev/user",
        "trainingRuntimeSpec": {"template": template},
    });
    json!({"spec": {"runtimePatches": [patch]}})
}

/// Stores the end of a TrainJob, as an operator that released it has.
async fn ends(tenant: &Tenant<'_>, name: &str, kind: &str, reason: &str) -> Result<()> {
    let condition = json!({
        "type": kind, "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": now().to_string(),
    });
    let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let patched = tenant.jobs.patch_status(name, &PatchParams::default(), &status).await;
    patched.with_context(|| format!("{name} does not finish"))?;
    Ok(())
}

impl Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::OPERATOR.into_iter().chain(Self::RETENTION).chain(Self::ACCOUNTING);
        let named = all.find(|scenario| scenario.name() == name);
        named.ok_or_else(|| anyhow!("no scenario is called {name:?}"))
    }
}
