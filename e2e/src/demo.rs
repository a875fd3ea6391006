//! `cargo demo`: the examples on a real control plane, and whether each keeps its promise; then their
//! [`receipts`], which the accounting program has written; then retention policies, in [`cleanup`].
//!
//! The way of data: [`watch`] → [`seen`] → [`scenario`] (one for each job, in a [`model`]) → [`row`] for
//! the eye, and [`lateness`] and [`verdict`] for the [`summary`]. All of it but the first and the
//! [`screen`] is pure. The demo shares no code with the operator: it sees what any user could see,
//! and draws its own conclusions.

pub mod cleanup;
pub mod clock;
pub mod judgement;
pub mod lateness;
pub mod leftovers;
pub mod model;
pub mod receipts;
pub mod row;
pub mod scenario;
pub mod scenarios;
pub mod screen;
pub mod seen;
pub mod setup;
pub mod show;
pub mod summary;
pub mod table;
pub mod verdict;
pub mod watch;

#[cfg(test)]
mod testing;

use std::io::{self, Write};

use anyhow::Result;

use crate::demo::clock::elapsed;
use crate::demo::setup::{GPUS_OF_NODE, Setup, audibly};
use crate::demo::show::Show;
use crate::demo::summary::Summary;
use crate::testenv::kueue::Kueue;
use crate::testenv::release::programs::Programs;

/// How much of a program's log is shown when something went wrong.
const LOG_LINES: usize = 20;

/// A demo that has been played, with everything still running.
pub struct Played {
    /// What it was played on.
    pub setup: Setup,
    /// The queue that has joined.
    pub kueue: Kueue,
    /// Whether everything was as promised.
    pub met: bool,
}

/// Plays the demo on a cluster of so many nodes, which it starts.
pub async fn play(nodes: usize) -> Result<Played> {
    let setup = Setup::start(nodes).await?;
    let outcome = conclude(&setup, nodes).await;
    if !matches!(outcome, Ok((true, _))) {
        // What went wrong matters more than whether this can be shown.
        let _ = show_log(&setup);
    }
    let (met, kueue) = outcome?;
    Ok(Played { setup, kueue, met })
}

async fn conclude(setup: &Setup, nodes: usize) -> Result<(bool, Kueue)> {
    let (model, mut screen) = Show::new(setup, nodes * GPUS_OF_NODE).play().await?;
    let left = leftovers::find(&setup.client, &setup.namespace);
    let left = audibly("waiting for the last objects to go", left).await?;
    let judgement = judgement::judge(setup).await?;
    let mut summary = Summary::of(&model, &left);
    summary.lines.extend(judgement.lines);
    screen.conclude(&summary.lines)?;
    let receipts = receipts::compare(setup, &model);
    let receipts = audibly("waiting until every record is final", receipts).await?;
    receipts.lines.iter().for_each(|line| tell(line));
    let (verdict, kueue) = Box::pin(cleanup::play(setup)).await?;
    verdict.lines.iter().for_each(|line| tell(line));
    tell(&format!("It took {:.1} s.", elapsed().as_secs_f64()));
    Ok((summary.met && judgement.met && receipts.met && verdict.met, kueue))
}

/// Writes a line of a summary. A reader that has gone is noticed later.
fn tell(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

fn show_log(setup: &Setup) -> Result<()> {
    let mut out = io::stdout().lock();
    let Programs { operator, retention, accounting, .. } = &setup.programs;
    let all = [
        ("operator", Some(operator)),
        ("accounting program", accounting.as_ref()),
        ("retention engine", retention.as_ref()),
    ];
    for (name, program) in all.into_iter().filter_map(|(name, it)| Some((name, it?))) {
        let log = program.log()?;
        let lines: Vec<&str> = log.lines().collect();
        writeln!(out, "\nThe end of the log of the {name}:")?;
        for line in lines.iter().skip(lines.len().saturating_sub(LOG_LINES)) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out.flush()?)
}
