//! One life, from an empty namespace to its end, with a fault in it or without, and what was seen of it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures::stream::{FuturesUnordered, StreamExt as _};
use invariants::History;
use tokio::sync::watch;
use tokio::time::Instant;

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
    /// The reasons of the program's events.
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

/// Who plays a life: what users do in it, and the program that runs meanwhile, which may be killed and replaced.
pub(super) trait Player {
    /// Stores what there is before the program starts.
    async fn begin(&self) -> Result<()>;
    /// Starts a program.
    async fn launch(&self) -> Result<()>;
    /// Kills it, as a crash of its machine would.
    fn kill(&self);
    /// Waits until the program that runs then is ready.
    async fn ready(&self) -> Result<()>;
    /// Plays the life, with a program that has just been started.
    async fn play(&self) -> Result<()>;
    /// Waits until nothing is left that should not be.
    async fn ended(&self) -> Result<()>;
    /// Sees that the program has not ended by itself.
    fn still_runs(&self) -> Result<()>;
}

/// Lives it to its end: until nothing is left that should not be, and nothing happens any more.
pub(super) async fn live(player: &impl Player, proxy: &Proxy, strikes: &[Strike]) -> Result<()> {
    player.begin().await?;
    player.launch().await?;
    let kills: Vec<&Strike> = strikes.iter().filter(|strike| strike.kills()).collect();
    if kills.is_empty() {
        player.play().await?;
    } else {
        Box::pin(with_crashes(player, proxy, &kills)).await?;
    }
    player.ended().await?;
    quiet(proxy).await?;
    player.still_runs()
}

/// Plays a life in which the operator is killed at some calls, those of them that come.
async fn with_crashes(player: &impl Player, proxy: &Proxy, kills: &[&Strike]) -> Result<()> {
    let killed = watch::Sender::new(0);
    let mut killing = pin!(crashes(player, kills, &killed));
    let mut playing = pin!(player.play());
    let all_crashed = tokio::select! {
        crashed = &mut killing => { crashed?; true }
        told = &mut playing => { told?; false }
    };
    if all_crashed {
        playing.await?;
    } else {
        // What users see is over, but a call may be one of the last.
        tokio::select! {
            crashed = killing => crashed?,
            settled = settled(proxy, kills, &killed) => settled?,
        }
    }
    player.ready().await
}

/// Kills the operator whenever one of these strikes, until all have.
async fn crashes(
    player: &impl Player,
    kills: &[&Strike],
    killed: &watch::Sender<usize>,
) -> Result<()> {
    let mut strikes: FuturesUnordered<_> = kills.iter().map(|strike| strike.strikes()).collect();
    while strikes.next().await.is_some() {
        player.kill();
        player.launch().await?;
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
