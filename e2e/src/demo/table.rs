//! The table as text: once for a terminal, where it stands under a heading, and once for a log,
//! where each line is read alone.

use crate::demo::clock::Timestamp;
use crate::demo::row::{Next, Row};

/// What the columns of [`cells`] are.
#[must_use]
pub fn heading() -> String {
    format!(
        "{:<12}  {:<24}  {:>4}  {:>4}  {:<12}  {:>7}",
        "JOB", "PHASE", "PODS", "GPUS", "NEXT", "IN"
    )
}

/// A row under the [`heading`].
#[must_use]
pub fn cells(row: &Row, now: Timestamp) -> String {
    let Row { job, phase, pods, gpus, next } = row;
    let (what, left) = (next.what(), next.left(now));
    format!("{job:<12}  {phase:<24}  {pods:>4}  {gpus:>4}  {what:<12}  {left:>7}")
}

/// A row as a line that needs no heading.
#[must_use]
pub fn sentence(row: &Row, now: Timestamp) -> String {
    let Row { job, phase, pods, gpus, next } = row;
    let next = match next {
        Next::Nothing => String::new(),
        next => format!("  {} in {}", next.what(), next.left(now)),
    };
    format!("{job:<12}  {phase:<24}  Pods {pods}  GPUs {gpus}{next}")
}

/// What all rows come to, and what happens first.
#[must_use]
pub fn total(rows: &[Row], gpus: usize, now: Timestamp) -> String {
    let held: i64 = rows.iter().map(|row| row.gpus).sum();
    let pods: usize = rows.iter().map(|row| row.pods).sum();
    format!("GPUs held: {held} of {gpus}; Pods running: {pods}{}", first(rows, now))
}

fn first(rows: &[Row], now: Timestamp) -> String {
    let due = |row: &Row| match row.next {
        Next::Nothing => None,
        Next::Deadline(due) | Next::Deletion(due) => Some((due, row.job, row.next)),
    };
    match rows.iter().filter_map(due).min_by_key(|(due, ..)| *due) {
        Some((_, job, next)) => format!("; next: {} of {job} in {}", next.what(), next.left(now)),
        None => String::new(),
    }
}

/// `text` in lines of at most `width` characters, broken between words; the lines after the first
/// begin with `indent` spaces.
#[must_use]
pub fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{:indent$}{word}", "")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::row::Phase;
    use crate::demo::scenario::Outcome;
    use crate::demo::testing::at;

    fn rows() -> [Row; 3] {
        let row = |job, phase, pods, gpus, next| Row { job, phase, pods, gpus, next };
        [
            row("my-training", Phase::Running, 2, 2, Next::Deadline(at(7_200.0))),
            row(
                "deadline",
                Phase::Finished(Outcome::DeadlineExceeded),
                0,
                0,
                Next::Deletion(at(20.0)),
            ),
            row("late-runtime", Phase::Waiting, 0, 0, Next::Nothing),
        ]
    }

    #[test]
    fn a_terminal_shows_a_table_of_less_than_eighty_columns() {
        let rows = rows().map(|row| cells(&row, at(12.5)));
        let expected = [
            "JOB           PHASE                     PODS  GPUS  NEXT               IN",
            "my-training   Running                      2     2  deadline      1:59:48",
            "deadline      Failed: DeadlineExceeded     0     0  TTL deletion     0:08",
            "late-runtime  Waiting                      0     0  -                   -",
        ];
        assert_eq!([heading()].into_iter().chain(rows).collect::<Vec<_>>(), expected);
        assert!(expected.iter().all(|line| line.len() < 80));
    }

    #[test]
    fn a_log_shows_lines_that_need_no_heading() {
        let expected = [
            "my-training   Running                   Pods 2  GPUs 2  deadline in 1:59:48",
            "deadline      Failed: DeadlineExceeded  Pods 0  GPUs 0  TTL deletion in 0:08",
            "late-runtime  Waiting                   Pods 0  GPUs 0",
        ];
        assert_eq!(rows().map(|row| sentence(&row, at(12.5))), expected);
    }

    #[test]
    fn the_total_tells_what_happens_first() {
        assert_eq!(
            total(&rows(), 32, at(12.5)),
            "GPUs held: 2 of 32; Pods running: 2; next: TTL deletion of deadline in 0:08"
        );
        assert_eq!(total(&[], 32, at(12.5)), "GPUs held: 0 of 32; Pods running: 0");
    }

    #[test]
    fn long_lines_are_broken_between_words_and_keep_the_spaces_within() {
        for (text, expected) in [
            ("a  bc def ghij", vec!["a  bc", "  def", "  ghij"]),
            ("a-word-too-long b", vec!["a-word-too-long", "  b"]),
            ("", vec![""]),
        ] {
            assert_eq!(wrapped(text, 6, 2), expected);
        }
    }
}
