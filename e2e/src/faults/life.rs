//! One life, from an empty namespace to its end, with a fault in it or without, and what was seen of it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use invariants::History;
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
    /// How many calls the fault has struck.
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
    strike: Option<&Strike>,
) -> Result<()> {
    scenario.before_the_operator(stage.tenant).await?;
    stage.slot.launch().await?;
    match strike.filter(|strike| strike.kills()) {
        Some(strike) => Box::pin(with_crash(scenario, stage, proxy, strike)).await?,
        None => scenario.play(stage).await?,
    }
    left::nothing_but(stage.tenant, scenario.leaves()).await?;
    quiet(proxy).await?;
    stage.slot.still_runs()
}

/// Plays a life in which the operator is killed at one call, if that call comes.
async fn with_crash(
    scenario: Scenario,
    stage: &Stage<'_>,
    proxy: &Proxy,
    strike: &Strike,
) -> Result<()> {
    let mut crash = pin!(crash(stage.slot, strike));
    let mut played = pin!(scenario.play(stage));
    let crashed = tokio::select! {
        crashed = &mut crash => { crashed?; true }
        told = &mut played => { told?; false }
    };
    if crashed {
        played.await?;
    } else {
        // What users see is over, but the call may be one of the last.
        quiet(proxy).await?;
        if strike.count() == 0 {
            return Ok(());
        }
        crash.await?;
    }
    stage.slot.ready().await
}

async fn crash(slot: &OperatorSlot<'_>, strike: &Strike) -> Result<()> {
    strike.strikes().await;
    slot.kill();
    slot.launch().await
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
