//! What happens while Prometheus looks on the accounting program and the retention engine: jobs with GPUs that end in every
//! way, objects that policies delete and keep, and what stands in their way.

use anyhow::Result;

use super::access::READERS;
use super::accounting::Accounting;
use super::alerts::{self, COMPANIONS};
use super::prometheus::{Prometheus, Span};
use super::refusals;
use super::replicas::Replicas;
use super::retention::Retention;
use super::site::Site;
use crate::acceptance::retention::TARGETS;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::release::Release;
use crate::testenv::release::programs::Program;

/// The limit is short, so that it ends while somebody looks on.
const SETS: [&str; 6] = [
    "accounting.program=true",
    "accounting.mode=Exact",
    "accounting.holdLimit=20s",
    "retention.enabled=true",
    TARGETS,
    READERS,
];

/// A cluster with a release that has both.
pub(super) async fn install() -> Result<Release> {
    let cluster = Cluster::start(Options::default()).await?;
    Release::install(cluster, &SETS).await
}

/// The programs of a release, and what they work on.
pub(super) struct Companions<'a> {
    site: Site<'a>,
    replicas: Replicas<'a>,
    accounting: Accounting<'a>,
    retention: Retention<'a>,
}

impl<'a> Companions<'a> {
    /// Starts the programs, one of each, but for the accounting program. All are scraped.
    pub(super) async fn start(release: &'a Release, prometheus: &'a Prometheus) -> Result<Self> {
        let mut replicas = Replicas::new(release, prometheus).await?;
        for (program, name) in [
            (Program::Operator, "operator-1"),
            (Program::Webhook, "webhook-1"),
            (Program::Retention, "retention-1"),
        ] {
            replicas.start(program, name).await?;
        }
        replicas.ready().await?;
        replicas.scraped().await?;
        let site = Site { release, prometheus };
        let accounting = Accounting::new(site).await?;
        let retention = Box::pin(Retention::new(site)).await?;
        Ok(Self { site, replicas, accounting, retention })
    }

    /// The programs.
    pub(super) const fn replicas(&self) -> &Replicas<'a> {
        &self.replicas
    }

    /// All of it, until there is something to see in every panel; `tell` hears of each act.
    pub(super) async fn play(&mut self, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        self.accounting.nobody_counts().await?;
        tell("a job is created while no program counts; alerts say so");
        self.replicas.start(Program::Accounting, "accounting-1").await?;
        self.replicas.start(Program::Sweeper, "sweeper-1").await?;
        self.replicas.ready().await?;
        self.replicas.scraped().await?;
        self.site.finds("trainjob_operator_accounting_alive == 1").await?;
        let [no_releases, no_records] = self.accounting.spoilt();
        refusals::begin(self.site.release, no_releases, no_records).await?;
        tokio::try_join!(self.accounting.play(tell), self.retention.play(tell))?;
        alerts::alerted(self.site.prometheus, COMPANIONS.by_faults).await?;
        tell(
            "alerts about Pods that are held, refused and lost, and about policies that trip, fail, loop and lack rights",
        );
        self.accounting.settles().await?;
        tell("counters are exactly what the records say, by namespace, and by cause of waste");
        self.accounting.holds_another().await
    }

    /// Compares what the dashboard shows at the end of a time with the records.
    pub(super) async fn agree_with_the_records(
        &self,
        span: Span,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<()> {
        for line in self.accounting.panels_agree(span).await? {
            tell(&line);
        }
        Ok(())
    }

    /// Stops all programs, and waits until somebody is told.
    pub(super) async fn end(self) -> Result<()> {
        self.replicas.stop();
        alerts::alerted(self.site.prometheus, COMPANIONS.by_absence).await
    }
}
