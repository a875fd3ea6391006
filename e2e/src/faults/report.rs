//! The table at the end: how many cases of each kind were run, and what was wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::blow::InjectedFault;
use super::brown_out::How;
use super::campaign::Campaign;
use super::case::Disturbance;
use super::scenario::Scenario;
use super::verdict::{Ran, Verdict};

/// Numbers of one cell.
#[derive(Debug, Default, Clone, Copy)]
struct Cell {
    struck: usize,
    violated: usize,
}

/// What a person wants to know first in one line, then the table.
#[must_use]
pub fn report(campaign: &Campaign) -> String {
    let violations = campaign.ran.iter().filter(|ran| ran.is_violation()).count();
    let struck = campaign.ran.iter().filter(|ran| ran.verdict != Verdict::NotStruck).count();
    let missed = campaign.ran.len() - struck;
    let mut text = format!(
        "{struck} cases in {} s: {violations} violations. {missed} more were tried, but their call did not come.\n",
        campaign.took.as_secs(),
    );
    let left = campaign.planned.saturating_sub(campaign.ran.len());
    if left > 0 {
        let _ = writeln!(text, "Time was up before {left} more.");
    }
    if campaign.ran.iter().any(|ran| matches!(ran.case.disturbance, Disturbance::Pair(..))) {
        text.push_str("A pair is counted in the columns of both its faults.\n");
    }
    text.push('\n');
    text.push_str(&table(&campaign.ran));
    for (scenario, error) in &campaign.failed_baselines {
        let _ =
            writeln!(text, "\n{scenario} was not run; undisturbed it is wrong already: {error}");
    }
    let again = campaign.ran.iter().filter(|ran| ran.is_violation());
    for ran in again {
        let _ = writeln!(text, "\n{ran}");
    }
    text
}

/// A row for each scenario, a column for each moment of a kill and each error; a cell says how many
/// cases were run, and how many of them were violations if any was.
fn table(ran: &[Ran]) -> String {
    let mut columns: Vec<String> = InjectedFault::all().map(InjectedFault::column).collect();
    columns.dedup();
    columns.push(How::Hangs.name().to_owned());
    columns.push(InjectedFault::Second.column());
    let mut cells: BTreeMap<(Scenario, String), Cell> = BTreeMap::new();
    for one in ran.iter().filter(|one| one.verdict != Verdict::NotStruck) {
        for column in one.case.columns() {
            let cell = cells.entry((one.case.scenario, column)).or_default();
            cell.struck += 1;
            cell.violated += usize::from(one.is_violation());
        }
    }
    let scenarios: BTreeSet<Scenario> = cells.keys().map(|(scenario, _)| *scenario).collect();
    let mut text = line("", &columns);
    for scenario in scenarios {
        let row = columns.iter().map(|column| {
            let cell = cells.get(&(scenario, column.clone())).copied().unwrap_or_default();
            match cell.violated {
                0 => cell.struck.to_string(),
                violated => format!("{} ({violated}!)", cell.struck),
            }
        });
        text.push_str(&line(scenario.name(), &row.collect::<Vec<_>>()));
    }
    text
}

fn line(head: &str, cells: &[String]) -> String {
    let mut text = format!("{head:<16}");
    for cell in cells {
        let _ = write!(text, "{cell:>9}");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_report_counts_what_was_run_and_shows_how_to_see_a_violation_again() {
        let ran = |name: &str, verdict| Ran {
            case: name.parse().unwrap(),
            verdict,
            took: Duration::ZERO,
        };
        let violated =
            Verdict::Violated { wrong: vec!["left: a Pod".into()], trace: vec!["list".into()] };
        let campaign = Campaign {
            ran: vec![
                ran("deadline/a 1/before", Verdict::Held),
                ran("deadline/a 1/409", Verdict::Held),
                ran("deadline/a 1/409x3", violated),
                ran("deadline/b 1/lost", Verdict::NotStruck),
                ran("ttl-zero/a 1/409+ttl-zero/b 1/lost", Verdict::Held),
                ran("ttl-zero/a 1/409+ttl-zero/c 1/409", Verdict::Held),
            ],
            planned: 8,
            failed_baselines: BTreeMap::new(),
            took: Duration::from_secs(7),
        };
        assert!(!campaign.holds());
        let report = report(&campaign);
        assert!(report.starts_with("5 cases in 7 s: 1 violations. 1 more"), "{report}");
        assert!(report.contains("before 2 more"), "{report}");
        let row = report.lines().find(|line| line.starts_with("deadline")).unwrap();
        let row: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(row[..6], ["deadline", "1", "0", "0", "2", "(1!)"]);
        let row = report.lines().find(|line| line.starts_with("ttl-zero")).unwrap();
        let row: Vec<&str> = row.split_whitespace().collect();
        assert_eq!((row[4], row[12], row.last()), ("2", "1", Some(&"0")), "{report}");
        assert!(report.contains("cargo faults --only 'deadline/a 1/409x3'"), "{report}");
        assert!(report.contains("left: a Pod"), "{report}");
    }
}
