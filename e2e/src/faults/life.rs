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
    /// What its record says in the end, where there is one and nothing was lost.
    pub receipt: Option<String>,
    /// What breaks a rule, of those that depend on more than the history.
    pub broken: Vec<String>,
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
    /// Starts another one, which acts beside the first, and waits until it does.
    async fn launch_second(&self) -> Result<()> {
        bail!("only one of these programs acts at a time")
    }
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
    let acts = |strike: &&Strike| strike.kills() || strike.doubles();
    let acts: Vec<&Strike> = strikes.iter().filter(acts).collect();
    if acts.is_empty() {
        player.play().await?;
    } else {
        Box::pin(with_changes(player, proxy, &acts)).await?;
    }
    player.ended().await?;
    quiet(proxy).await?;
    player.still_runs()
}

/// Plays a life in which programs are killed, or started beside the first, at some calls, those of them that come.
async fn with_changes(player: &impl Player, proxy: &Proxy, strikes: &[&Strike]) -> Result<()> {
    let done = watch::Sender::new(0);
    let mut changing = pin!(changes(player, strikes, &done));
    let mut playing = pin!(player.play());
    let all_changed = tokio::select! {
        changed = &mut changing => { changed?; true }
        told = &mut playing => { told?; false }
    };
    if all_changed {
        playing.await?;
    } else {
        // What users see is over, but a call may be one of the last.
        tokio::select! {
            changed = changing => changed?,
            settled = settled(proxy, strikes, &done) => settled?,
        }
    }
    player.ready().await
}

/// Kills the program, or starts another one, whenever one of these strikes, until all have.
async fn changes(
    player: &impl Player,
    strikes: &[&Strike],
    done: &watch::Sender<usize>,
) -> Result<()> {
    let mut striking: FuturesUnordered<_> = strikes
        .iter()
        .map(async |strike| {
            strike.strikes().await;
            *strike
        })
        .collect();
    while let Some(strike) = striking.next().await {
        if strike.doubles() {
            player.launch_second().await?;
            strike.end();
        } else {
            player.kill();
            player.launch().await?;
        }
        done.send_modify(|done| *done += 1);
    }
    Ok(())
}

/// Waits until the program is quiet, and was killed or joined as often as something has struck to do so.
async fn settled(proxy: &Proxy, strikes: &[&Strike], done: &watch::Sender<usize>) -> Result<()> {
    let mut done = done.subscribe();
    loop {
        quiet(proxy).await?;
        let struck = strikes.iter().filter(|strike| strike.count() > 0).count();
        if *done.borrow_and_update() >= struck {
            return Ok(());
        }
        done.changed().await?;
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
