//! Rows as a table that fits on a terminal.

use crate::row::Row;

/// How wide a table is, in characters, unless it is to be as wide as its content.
pub const WIDTH: usize = 80;

/// What is between two columns.
const GAP: &str = "  ";

/// No name is cut to less than this.
const LEAST: usize = 9;

/// One column.
struct Column {
    cells: Vec<String>,
    /// Whether its cells may be cut.
    yields: bool,
}

/// The rows under a header. The namespace is shown if there may be several. Names and queues are cut in their middle until
/// each line has at most `width` characters, because generated names differ at their end.
#[must_use]
pub fn render(rows: &[Row], namespaces: bool, width: Option<usize>) -> String {
    let mut columns = columns(rows, namespaces);
    if let Some(width) = width {
        narrow(&mut columns, width);
    }
    let widths: Vec<usize> = columns.iter().map(Column::width).collect();
    let mut table = String::new();
    for line in 0..=rows.len() {
        let cells = columns.iter().zip(&widths).map(|(column, width)| {
            let cell = column.cells.get(line).map(String::as_str).unwrap_or_default();
            format!("{cell:<width$}")
        });
        table.push_str(cells.collect::<Vec<_>>().join(GAP).trim_end());
        table.push('\n');
    }
    table
}

fn columns(rows: &[Row], namespaces: bool) -> Vec<Column> {
    let column = |header: &str, yields: bool, cell: fn(&Row) -> String| {
        let cells = std::iter::once(header.to_owned()).chain(rows.iter().map(cell)).collect();
        Column { cells, yields }
    };
    let mut columns = Vec::new();
    if namespaces {
        columns.push(column("NAMESPACE", true, |row| row.namespace.clone()));
    }
    columns.extend([
        column("NAME", true, |row| row.name.clone()),
        column("PHASE", false, |row| row.phase.to_string()),
        column("DEADLINE", false, |row| row.deadline.to_string()),
        column("TTL", false, |row| row.ttl.to_string()),
        column("GPUS", false, |row| row.gpus.to_string()),
        column("QUEUE", true, |row| row.queue.clone().unwrap_or_else(|| "-".to_owned())),
    ]);
    columns
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default()
    }
}

/// Cuts the widest of the columns that yield, until the line fits or nothing can be cut any more.
fn narrow(columns: &mut [Column], width: usize) {
    loop {
        let gaps = GAP.len() * columns.len().saturating_sub(1);
        let whole: usize = columns.iter().map(Column::width).sum::<usize>() + gaps;
        let Some(excess) = whole.checked_sub(width).filter(|excess| *excess > 0) else { return };
        let yielding = columns.iter_mut().filter(|column| column.yields && column.width() > LEAST);
        let mut by_width: Vec<_> = yielding.collect();
        by_width.sort_by_key(|column| std::cmp::Reverse(column.width()));
        let next = by_width.get(1).map_or(LEAST, |column| column.width());
        let Some(widest) = by_width.first_mut() else { return };
        // Down to the next one at once; columns of the same width lose a character each in turn.
        let target = (widest.width() - 1).min(next.max(widest.width().saturating_sub(excess)));
        let target = target.max(LEAST);
        for cell in &mut widest.cells {
            *cell = shortened(cell, target);
        }
    }
}

/// A text of at most `longest` characters, with `…` for what is left out of its middle.
fn shortened(text: &str, longest: usize) -> String {
    let length = text.chars().count();
    if length <= longest {
        return text.to_owned();
    }
    // Of a text that was cut before, its mark is what is left out first.
    let bare: Vec<char> = text.chars().collect();
    let kept = longest.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let head = bare.iter().take(head);
    let tail = bare.iter().skip(length - tail);
    head.chain(['…'].iter()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use trainjob_api::time::Timestamp;

    use super::*;
    use crate::{deadline::Deadline, phase::Phase, ttl::Ttl};

    fn row(namespace: &str, name: &str, queue: Option<&str>) -> Row {
        let due = Timestamp(0);
        Row {
            namespace: namespace.into(),
            name: name.into(),
            phase: Phase::DeadlineExceeded,
            deadline: Deadline::Running { due, left_seconds: 86_399, exact: false },
            ttl: Ttl::Running { due, left_seconds: 86_399 },
            gpus: 1_024,
            queue: queue.map(str::to_owned),
        }
    }

    #[test]
    fn columns_are_aligned_and_as_wide_as_their_content() {
        let rows = [row("team", "a", None), row("team", "long-one", Some("gpu"))];
        let expected = "\
NAME      PHASE             DEADLINE  TTL     GPUS  QUEUE
a         DeadlineExceeded  ≥23h59m   23h59m  1024  -
long-one  DeadlineExceeded  ≥23h59m   23h59m  1024  gpu
";
        assert_eq!(render(&rows, false, Some(WIDTH)), expected);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_however_long_names_are() {
        let long = "sweep-of-the-learning-rate-and-the-batch-size-2026-11-x7k2p".to_owned();
        for (namespace, name, queue) in [
            (&*long, &*long, &*long),
            ("a", &*long, "q"),
            (&*long, "a", "q"),
            ("a", "b", &*long),
            ("team-of-nine", &*long, "queue-of-some-length"),
        ] {
            let rows = [row(namespace, name, Some(queue)), row("a", "b", None)];
            for namespaces in [false, true] {
                let table = render(&rows, namespaces, Some(WIDTH));
                let longest = table.lines().map(|line| line.chars().count()).max();
                assert!(longest <= Some(WIDTH), "{longest:?}\n{table}");
                // Nothing is cut further than it has to be.
                assert!(longest >= Some(WIDTH - 2) || !table.contains('…'), "{table}");
            }
        }
    }

    #[test]
    fn a_name_that_is_cut_keeps_its_end_and_a_wide_table_keeps_all_of_it() {
        let name = "sweep-of-the-learning-rate-and-the-batch-size-2026-11-x7k2p";
        let rows = [row("team", name, Some("gpu"))];
        let table = render(&rows, false, Some(WIDTH));
        assert!(table.contains("sweep-of-the-") && table.contains("…"), "{table}");
        assert!(table.contains("x7k2p"), "{table}");
        assert!(render(&rows, false, None).contains(name));
    }

    #[test]
    fn a_text_is_cut_in_its_middle() {
        for (text, longest, expected) in [
            ("abcdefghij", 10, "abcdefghij"),
            ("abcdefghij", 9, "abcd…ghij"),
            ("abcdefghij", 4, "ab…j"),
            ("äöüßéàèùç", 5, "äö…ùç"),
        ] {
            assert_eq!(shortened(text, longest), expected);
        }
    }
}
