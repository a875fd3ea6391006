//! Whether a round kept the rules that every run has to keep (`docs/reliability.md`).

use anyhow::Result;
use invariants::{History, Rule, Terms};

use super::calls::Micros;
use super::report::Bar;
use super::rig::Rig;
use crate::testenv::fixtures::noted_requests;
use crate::testenv::recorder::Recorder;

/// How late anything may be. How late it is, is what benches measure, so this is out of reach.
const ALLOWANCE: i64 = 600_000;

/// Watches a round from now on.
pub(super) async fn watch(rig: &Rig) -> Result<Recorder> {
    Recorder::start(rig.admin.clone()).await
}

/// The rules that were broken in what was watched, one line each.
pub(super) async fn violations(rig: &Rig, watched: &Recorder) -> Result<Vec<String>> {
    rig.progress.step("judging what happened", 0);
    watched.caught_up().await?;
    let history = History {
        changes: watched.changes(None),
        requests: noted_requests(rig.cluster.folder(), &[])?,
        terms: Terms { allowance: ALLOWANCE, ..Terms::default() },
        end: Micros::now().0 / 1_000,
    };
    // The API server notes a watch when it ends, so those that go on are missing, and L4 cannot be judged.
    let broken = invariants::check(&history).into_iter().filter(|it| it.rule != Rule::L4);
    Ok(broken.map(|it| it.to_string()).collect())
}

/// What is said of them in a report.
pub(super) fn note(violations: &[String]) -> String {
    let count = format!("invariants: {} violations", violations.len());
    let shown = violations.iter().take(10).map(|it| format!("  {it}"));
    [count].into_iter().chain(shown).collect::<Vec<_>>().join("\n")
}

/// There must be none.
pub(super) fn bar(violations: &[String]) -> Bar {
    Bar::none("violations of invariants", violations.len())
}
