//! What a bench found: a table for people, a line of JSON for machines, and which bars were missed.

use std::fmt::{self, Write as _};

use serde::Serialize;
use serde_json::{Value, json};

/// What a bench found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of the bench.
    pub bench: &'static str,
    /// What was done, in one line.
    pub title: String,
    /// Heading and rows of the table.
    pub table: Vec<Vec<String>>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// What had to be reached.
    pub bars: Vec<Bar>,
    /// All figures.
    pub figures: Value,
}

/// Something that had to be reached.
#[derive(Debug, Clone, Serialize)]
pub struct Bar {
    /// What is measured or counted.
    pub what: String,
    /// What it was.
    pub value: f64,
    /// What it had to be.
    pub bound: Bound,
    /// Whether it is a count, which must hold on any machine and at any size.
    pub counted: bool,
}

/// What a value has to be.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

impl Bar {
    /// A figure that depends on how the operator is built and on the size of the bench.
    pub fn measured(what: impl Into<String>, value: f64, bound: Bound) -> Self {
        Self { what: what.into(), value, bound, counted: false }
    }

    /// Something of which there must be none.
    pub fn none(what: impl Into<String>, count: usize) -> Self {
        let (value, bound) = (super::figures::float(count), Bound::AtMost(0.0));
        Self { what: what.into(), value, bound, counted: true }
    }

    /// Whether it was reached.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.value <= most,
            Bound::AtLeast(least) => self.value >= least,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value, .. } = self;
        let verdict = if self.is_met() { "met   " } else { "MISSED" };
        match self.bound {
            Bound::AtMost(0.0) => write!(f, "{verdict}  {what}: {value} (none)"),
            Bound::AtMost(most) => write!(f, "{verdict}  {what}: {value:.2} (at most {most})"),
            Bound::AtLeast(least) => write!(f, "{verdict}  {what}: {value:.2} (at least {least})"),
        }
    }
}

impl Report {
    /// The bars that were missed.
    pub fn missed(&self) -> impl Iterator<Item = &Bar> {
        self.bars.iter().filter(|bar| !bar.is_met())
    }

    /// The whole of it on one line.
    #[must_use]
    pub fn json(&self) -> Value {
        let met = self.missed().next().is_none();
        json!({"bench": self.bench, "met": met, "bars": self.bars, "figures": self.figures})
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}: {}\n", self.bench, self.title)?;
        f.write_str(&aligned(&self.table))?;
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        writeln!(f)?;
        for bar in &self.bars {
            writeln!(f, "{bar}")?;
        }
        writeln!(f, "\n{}", self.json())
    }
}

/// A table whose first column is text and whose others are figures, aligned to the right.
fn aligned(table: &[Vec<String>]) -> String {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let length = |cell: &String| cell.chars().count();
    let width_of = |column| table.iter().filter_map(|row| row.get(column)).map(length).max();
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in table {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// A row of a table.
pub(super) fn row<const N: usize>(cells: [&dyn fmt::Display; N]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_bar_is_named_and_makes_the_report_a_miss() {
        let bars = vec![
            Bar::measured("ratio", 0.9, Bound::AtLeast(0.85)),
            Bar::measured("memory in MB", 41.0, Bound::AtMost(40.0)),
            Bar::none("deletions that came early", 0),
            Bar::none("jobs lost", 2),
        ];
        let (title, table) = (String::new(), vec![row([&"a", &1])]);
        let (bench, notes, figures) = ("storm", Vec::new(), json!({}));
        let report = Report { bench, title, table, notes, bars, figures };
        let missed: Vec<&str> = report.missed().map(|bar| bar.what.as_str()).collect();
        assert_eq!(missed, ["memory in MB", "jobs lost"]);
        assert_eq!(report.json()["met"], false);
        assert!(report.to_string().contains("MISSED  jobs lost: 2 (none)"), "{report}");
    }

    #[test]
    fn figures_are_aligned_to_the_right() {
        let table = [row([&"", &"rate"]), row([&"raw", &9]), row([&"operator", &10])];
        assert_eq!(aligned(&table), "          rate\nraw          9\noperator    10\n");
    }
}
