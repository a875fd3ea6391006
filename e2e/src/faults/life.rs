//! One life, from an empty namespace to its end, with a fault in it or without, and what was seen of it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures::stream::{FuturesUnordered, StreamExt as _};
use invariants::History;
use tokio::sync::watch;
use tokio::time::Instant;

use super::left;
use super::operator_slot::OperatorSlot;
use super::scenario::{Scenario, Stage};
use super::strike::Strike;
use crate::faults::proxy::Proxy;
use crate::testenv::fixtures::{PATIENCE, consistently};

/// An operator that asks for nothing for so long has done its work.
const QUIET: Duration = Duration::from_secs(1);

/// What was seen of a life.
#[derive(Debug, Default)]
pub struct Life {
    /// Every change of an object, and every call.
    pub history: History,
    /// The calls in their order, but for watches and what asks for the time.
    pub calls: Vec<Made>,
    /// What was left in the namespace.
    pub left: Vec<String>,
    /// The reasons of the operator's events.
    pub told: BTreeSet<String>,
    /// How many of the faults have struck.
    pub struck: usize,
    /// Why it did not come to its end, if it did not.
    pub trouble: Option<String>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// What it was for.
    pub purpose: String,
    /// Whether it was done.
    pub done: bool,
}

/// Lives it to its end: until nothing is left that should not be, and nothing happens any more.
pub(super) async fn live(
    scenario: Scenario,
    stage: &Stage<'_>,
    proxy: &Proxy,
    strikes: &[Strike],
) -> Result<()> {
    scenario.before_the_operator(stage.tenant).await?;
    stage.slot.launch().await?;
    let kills: Vec<&Strike> = strikes.iter().filter(|strike| strike.kills()).collect();
    if kills.is_empty() {
        scenario.play(stage).await?;
    } else {
        Box::pin(with_crashes(scenario, stage, proxy, &kills)).await?;
    }
    left::nothing_but(stage.tenant, scenario.leaves()).await?;
    quiet(proxy).await?;
    stage.slot.still_runs()
}

/// Plays a life in which the operator is killed at some calls, those of them that come.
async fn with_crashes(
    scenario: Scenario,
    stage: &Stage<'_>,
    proxy: &Proxy,
    kills: &[&Strike],
) -> Result<()> {
    let killed = watch::Sender::new(0);
    let mut killing = pin!(crashes(stage.slot, kills, &killed));
    let mut played = pin!(scenario.play(stage));
    let all_crashed = tokio::select! {
        crashed = &mut killing => { crashed?; true }
        told = &mut played => { told?; false }
    };
    if all_crashed {
        played.await?;
    } else {
        // What users see is over, but a call may be one of the last.
        tokio::select! {
            crashed = killing => crashed?,
            settled = settled(proxy, kills, &killed) => settled?,
        }
    }
    stage.slot.ready().await
}

/// Kills the operator whenever one of these strikes, until all have.
async fn crashes(
    slot: &OperatorSlot<'_>,
    kills: &[&Strike],
    killed: &watch::Sender<usize>,
) -> Result<()> {
    let mut strikes: FuturesUnordered<_> = kills.iter().map(|strike| strike.strikes()).collect();
    while strikes.next().await.is_some() {
        slot.kill();
        slot.launch().await?;
        killed.send_modify(|killed| *killed += 1);
    }
    Ok(())
}

/// Waits until the operator is quiet, and was killed as often as something has struck to kill it.
async fn settled(proxy: &Proxy, kills: &[&Strike], killed: &watch::Sender<usize>) -> Result<()> {
    let mut killed = killed.subscribe();
    loop {
        quiet(proxy).await?;
        let struck = kills.iter().filter(|strike| strike.count() > 0).count();
        if *killed.borrow_and_update() >= struck {
            return Ok(());
        }
        killed.changed().await?;
    }
}

/// Waits until the operator has asked for nothing but watches and the time for a while.
async fn quiet(proxy: &Proxy) -> Result<()> {
    let asked = || proxy.count(|call| !call.is_watch() && !call.is_for_time());
    let end = Instant::now() + PATIENCE;
    loop {
        let before = asked();
        let silence = consistently("the operator is quiet", QUIET, async || {
            let now = asked();
            ensure!(now == before, "it asked {} times more", now - before);
            Ok(())
        });
        match silence.await {
            Ok(()) => return Ok(()),
            Err(noise) if Instant::now() > end => bail!(noise),
            Err(_) => {}
        }
    }
}
