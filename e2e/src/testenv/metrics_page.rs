//! `docs/metrics.md`, `docs/retention.md` and `docs/accounting.md`: what they say of each metric.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};

use crate::testenv::workspace;

/// What the page says of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documented {
    /// Its type, such as `counter`.
    pub kind: String,
    /// What it says of itself.
    pub help: String,
    /// By label: all its values, or nothing where the page says what bounds them.
    pub labels: BTreeMap<String, BTreeSet<String>>,
}

/// All metrics of the page, by name.
pub fn read() -> Result<BTreeMap<String, Documented>> {
    let page = workspace::read("docs/metrics.md")?;
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let metrics = rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, name, kind, labels, help, _] = cells[..] else {
            anyhow::bail!("a row of other than four cells: {row}");
        };
        let labels = labels_of(labels).with_context(|| format!("labels of {name}"))?;
        let documented = Documented { kind: kind.to_owned(), help: help.to_owned(), labels };
        Ok((name.trim_matches('`').to_owned(), documented))
    });
    let metrics = metrics.collect::<Result<Vec<_>>>()?;
    let names = metrics.len();
    let metrics: BTreeMap<_, _> = metrics.into_iter().collect();
    ensure!(metrics.len() == names, "a metric is documented twice");
    Ok(metrics)
}

/// A program whose metrics are on a page of its own.
struct OtherProgram {
    /// The page.
    page: &'static str,
    /// What the metrics begin with.
    prefix: &'static str,
    /// Those that it has as the operator does. The page names them.
    alike: &'static [&'static str],
}

/// What the metrics of the operator begin with.
const OPERATOR: &str = "trainjob_operator_";
/// `docs/retention.md` (7).
const RETENTION: OtherProgram = OtherProgram {
    page: "docs/retention.md",
    prefix: "trainjob_retention_",
    alike: &[
        "api_request_duration_seconds",
        "api_requests_total",
        "build_info",
        "events_dropped_total",
        "leader",
        "queue_depth",
        "queue_oldest_seconds",
        "timers",
        "watch_restarts_total",
    ],
};
/// `docs/accounting.md` (11).
const ACCOUNTING: OtherProgram = OtherProgram {
    page: "docs/accounting.md",
    prefix: "trainjob_accounting_",
    alike: &[
        "api_request_duration_seconds",
        "api_requests_total",
        "build_info",
        "events_dropped_total",
        "leader",
        "watch_restarts_total",
    ],
};

/// All metrics of the retention engine, by name. `operator` are those of the operator.
pub fn of_retention(
    operator: &BTreeMap<String, Documented>,
) -> Result<BTreeMap<String, Documented>> {
    of_other(&RETENTION, operator)
}

/// All metrics of the accounting program, by name. `operator` are those of the operator.
pub fn of_accounting(
    operator: &BTreeMap<String, Documented>,
) -> Result<BTreeMap<String, Documented>> {
    of_other(&ACCOUNTING, operator)
}

/// Those of its own page, and those that it has as the operator does, whose labels are the operator's but for the lanes of
/// the queue.
fn of_other(
    program: &OtherProgram,
    operator: &BTreeMap<String, Documented>,
) -> Result<BTreeMap<String, Documented>> {
    let OtherProgram { page, prefix, alike } = program;
    let page = workspace::read(page)?;
    let mut metrics = BTreeMap::new();
    for row in page.lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, name, kind @ ("counter" | "gauge" | "histogram"), labels, help, _] = cells[..]
        else {
            continue;
        };
        let name = format!("{prefix}{}", name.trim_matches('`'));
        let labels = labels_of(labels).with_context(|| format!("labels of {name}"))?;
        // Rows of a table have no full stop there.
        let help = format!("{help}.");
        metrics.insert(name, Documented { kind: kind.to_owned(), help, labels });
    }
    for name in *alike {
        let alike = operator.get(&format!("{OPERATOR}{name}"));
        let mut alike = alike.with_context(|| format!("the operator has no {name}"))?.clone();
        for (label, values) in &mut alike.labels {
            values.clear();
            if label == "lane" {
                values.extend(["scheduled", "backlog"].map(str::to_owned));
            }
        }
        ensure!(metrics.insert(format!("{prefix}{name}"), alike).is_none(), "twice: {name}");
    }
    Ok(metrics)
}

/// A label's values follow its name; several labels are separated by semicolons. A part that begins
/// otherwise goes on with the label before. A name alone is a label of any values.
fn labels_of(cell: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut labels = BTreeMap::new();
    for part in cell.split("; ").filter(|part| !part.is_empty()) {
        let alone = part.strip_prefix('`').and_then(|part| Some((part.strip_suffix('`')?, "")));
        let alone = alone.filter(|(name, _)| !name.contains('`'));
        let with_values = part.strip_prefix('`').and_then(|part| part.split_once("`: "));
        let Some((name, values)) = with_values.or(alone) else {
            ensure!(!labels.is_empty(), "no label: {part}");
            continue;
        };
        let listed = values.starts_with('`').then(|| values.split(", "));
        let listed = listed.into_iter().flatten().map(|value| value.trim_matches('`').to_owned());
        labels.insert(name.to_owned(), listed.collect());
    }
    Ok(labels)
}

#[cfg(test)]
#[test]
fn labels_are_read_as_they_are_written() -> Result<()> {
    let of = |cell: &str| -> Result<Vec<(String, Vec<String>)>> {
        let labels = labels_of(cell)?.into_iter();
        Ok(labels.map(|(name, values)| (name, values.into_iter().collect())).collect())
    };
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(of("")?, []);
    assert_eq!(of("`lane`: `stop`, `live`")?, [("lane".to_owned(), owned(&["live", "stop"]))]);
    assert_eq!(of("`kind`; `lane`: `stop`")?.first(), Some(&("kind".to_owned(), vec![])));
    let several = of("`code`: status, `none` without one; at most 20 values; `verb`: `get`")?;
    assert_eq!(several, [("code".to_owned(), vec![]), ("verb".to_owned(), owned(&["get"]))]);
    Ok(())
}
