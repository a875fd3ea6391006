//! `docs/metrics.md`: what it says of each metric.

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

/// A label's values follow its name; several labels are separated by semicolons. A part that begins
/// otherwise goes on with the label before.
fn labels_of(cell: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut labels = BTreeMap::new();
    for part in cell.split("; ").filter(|part| !part.is_empty()) {
        let Some((name, values)) = part.strip_prefix('`').and_then(|part| part.split_once("`: "))
        else {
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
    let several = of("`code`: status, `none` without one; at most 20 values; `verb`: `get`")?;
    assert_eq!(several, [("code".to_owned(), vec![]), ("verb".to_owned(), owned(&["get"]))]);
    Ok(())
}
