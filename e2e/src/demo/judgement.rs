//! Whether the run kept the rules that every run has to keep.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use invariants::{History, Terms, Violation};

use crate::demo::setup::Setup;
use crate::testenv::fixtures::noted_requests;
use crate::testenv::operator::rbac_rules;

/// What the rules say of a run.
#[derive(Debug)]
pub struct Judgement {
    /// One line, and one for each violation.
    pub lines: Vec<String>,
    /// Whether there is no violation.
    pub met: bool,
}

/// Judges everything that has happened in the demo's namespace.
pub async fn judge(setup: &Setup) -> Result<Judgement> {
    setup.recorder.caught_up().await?;
    let history = History {
        changes: setup.recorder.changes(Some(&setup.namespace)),
        requests: noted_requests(setup.release.cluster.folder(), &[])?,
        terms: Terms::default(),
        end: i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?,
    };
    let mut violations = invariants::check(&history);
    violations.extend(invariants::undeclared_requests(&history, &rbac_rules()?));
    Ok(Judgement::of(&history, &violations))
}

impl Judgement {
    fn of(history: &History, violations: &[Violation]) -> Self {
        let objects: HashSet<&str> =
            history.changes.iter().map(|change| change.object.uid.as_str()).collect();
        let (objects, requests) = (objects.len(), history.requests.len());
        let count = violations.len();
        let mut lines =
            vec![format!("invariants: {objects} objects, {requests} requests, {count} violations")];
        lines.extend(violations.iter().map(|violation| format!("  {violation}")));
        Self { lines, met: violations.is_empty() }
    }
}

#[cfg(test)]
mod tests {
    use invariants::Rule;

    use super::*;

    #[test]
    fn a_violation_is_told_and_not_met() {
        let object = "trainjobs ns/job".to_owned();
        let violation = Violation { rule: Rule::S1, object, at: 7, what: "was lost".into() };
        for (violations, line, met) in [
            (vec![], "invariants: 0 objects, 0 requests, 0 violations", true),
            (vec![violation], "  S1 no early delete: trainjobs ns/job was lost (at 7)", false),
        ] {
            let judgement = Judgement::of(&History::default(), &violations);
            assert_eq!(judgement.lines.last().map(String::as_str), Some(line));
            assert_eq!(judgement.met, met);
        }
    }
}
