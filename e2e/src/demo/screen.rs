//! Where the table appears: redrawn in place in a terminal, line by line in a log.
//!
//! In a terminal, lines that stay (what the demo does, what users are told) scroll above the table.
//! Lines of the table that are wider than the terminal are cut off by the terminal itself, so that
//! its size need not be known and may change. In a log, a job gets a line when something about it
//! has changed, and there is always a line within [`PATIENCE`].

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use launcher::PATIENCE;

use crate::demo::clock::Timestamp;
use crate::demo::row::Row;
use crate::demo::table::{self, wrapped};

/// Escape sequences: erase from here to the end of the screen; do not wrap lines, and do again;
/// bold, faint, and neither.
const ERASE: &str = "\x1b[J";
const CUT: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const BOLD: &str = "\x1b[1m";
const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// What every terminal has.
pub const WIDTH: usize = 80;

/// Where the text of a line begins that tells something of a job: after the time and its name.
const INDENT: usize = 24;

/// A terminal or a log.
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    terminal: bool,
    elapsed: fn() -> Duration,
    gpus: usize,
    /// The lines of the table that are on the terminal, to be drawn over.
    drawn: usize,
    /// The table: in a terminal as drawn, in a log as written.
    rows: Vec<Row>,
    spoke: Duration,
}

impl<W: Write> Screen<W> {
    /// A screen that shows jobs on so many `gpus`, and the time that has `elapsed`.
    #[must_use]
    pub fn new(out: W, terminal: bool, gpus: usize, elapsed: fn() -> Duration) -> Self {
        Self { out, terminal, elapsed, gpus, drawn: 0, rows: Vec::new(), spoke: elapsed() }
    }

    /// Writes a line that stays.
    pub fn say(&mut self, line: impl Display, now: Timestamp) -> io::Result<()> {
        let over = self.start_over();
        self.spoke = (self.elapsed)();
        let line = format!("{}  {line}", clock(self.spoke));
        // A log is for searching; a terminal breaks lines within words.
        let lines = if self.terminal { wrapped(&line, WIDTH, INDENT) } else { vec![line] };
        self.out.write_all(format!("{over}{}\n", lines.join("\n")).as_bytes())?;
        if self.terminal && !self.rows.is_empty() {
            self.draw(self.rows.clone(), now)?;
        }
        self.out.flush()
    }

    /// Takes in how things are, to be called whenever something has changed. A log tells at once
    /// what a person who reads along would want to know.
    pub fn changed(&mut self, rows: Vec<Row>, now: Timestamp) -> io::Result<()> {
        if self.terminal {
            return Ok(());
        }
        self.tell(rows, now, Row::is_news_after)
    }

    /// Shows how things are, to be called a few times a second.
    pub fn refresh(&mut self, rows: Vec<Row>, now: Timestamp) -> io::Result<()> {
        if self.terminal {
            self.draw(rows, now)?;
            return self.out.flush();
        }
        let total = table::total(&rows, self.gpus, now);
        self.tell(rows, now, |row, before| row != before)?;
        if (self.elapsed)().saturating_sub(self.spoke) >= PATIENCE {
            self.say(format_args!("... {total}"), now)?;
        }
        Ok(())
    }

    fn draw(&mut self, rows: Vec<Row>, now: Timestamp) -> io::Result<()> {
        let mut lines = vec![
            String::new(),
            format!("{}  {}", clock((self.elapsed)()), table::total(&rows, self.gpus, now)),
            String::new(),
            format!("{BOLD}{}{PLAIN}", table::heading()),
        ];
        lines.extend(rows.iter().map(|row| {
            let style = if row.is_gone() { FAINT } else { "" };
            format!("{style}{}{PLAIN}", table::cells(row, now))
        }));
        let over = self.start_over();
        (self.drawn, self.rows) = (lines.len(), rows);
        // At once, or it would flicker.
        self.out.write_all(format!("{over}{CUT}{}\n{WRAP}", lines.join("\n")).as_bytes())
    }

    /// What takes the table off the terminal.
    fn start_over(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r{ERASE}"),
        }
    }

    /// Writes a line for each row that differs from what was last written of it as `differs` says.
    fn tell(
        &mut self,
        rows: Vec<Row>,
        now: Timestamp,
        differs: fn(&Row, &Row) -> bool,
    ) -> io::Result<()> {
        for row in rows.into_iter().filter(Row::is_there) {
            let before = self.rows.iter_mut().find(|before| before.job == row.job);
            match before {
                Some(before) if !differs(&row, before) => continue,
                Some(before) => *before = row.clone(),
                None => self.rows.push(row.clone()),
            }
            self.say(table::sentence(&row, now), now)?;
        }
        Ok(())
    }

    /// Lets the table stand as it is, and writes the lines of a summary below it.
    pub fn conclude(&mut self, lines: &[String]) -> io::Result<()> {
        (self.drawn, self.rows) = (0, Vec::new());
        for line in lines {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }
}

/// The time at the beginning of a line.
#[must_use]
pub fn clock(elapsed: Duration) -> String {
    format!("{:>6.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::demo::row::{Next, Phase};
    use crate::demo::testing::at;

    thread_local! {
        static ELAPSED: Cell<u64> = const { Cell::new(0) };
    }

    fn screen(terminal: bool) -> Screen<Vec<u8>> {
        Screen::new(Vec::new(), terminal, 32, || Duration::from_secs(ELAPSED.get()))
    }

    fn row(phase: Phase, pods: usize) -> Vec<Row> {
        vec![Row { job: "job", phase, pods, gpus: 0, next: Next::Nothing }]
    }

    fn take(screen: &mut Screen<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut screen.out)).unwrap()
    }

    #[test]
    fn a_log_has_news_at_once_the_rest_soon_and_is_never_silent_for_long() {
        let mut log = screen(false);
        log.changed(row(Phase::Starting, 0), at(0.0)).unwrap();
        log.changed(row(Phase::Running, 1), at(0.0)).unwrap();
        assert_eq!(take(&mut log).lines().count(), 2);
        log.changed(row(Phase::Running, 2), at(0.0)).unwrap();
        assert_eq!(take(&mut log), "");
        log.refresh(row(Phase::Running, 2), at(0.0)).unwrap();
        assert_eq!(
            take(&mut log),
            "   0.0 s  job           Running                   Pods 2  GPUs 0\n"
        );
        for seconds in 1..5 {
            ELAPSED.set(seconds);
            log.refresh(row(Phase::Running, 2), at(0.0)).unwrap();
        }
        assert_eq!(take(&mut log), "");
        ELAPSED.set(5);
        log.refresh(row(Phase::Running, 2), at(0.0)).unwrap();
        assert_eq!(take(&mut log), "   5.0 s  ... GPUs held: 0 of 32; Pods running: 2\n");
    }

    #[test]
    fn a_terminal_is_drawn_over_and_lines_that_stay_go_above() {
        let mut terminal = screen(true);
        terminal.changed(row(Phase::Running, 1), at(0.0)).unwrap();
        assert_eq!(take(&mut terminal), "");
        terminal.refresh(row(Phase::Running, 1), at(0.0)).unwrap();
        let first = take(&mut terminal);
        assert_eq!(first.lines().count(), 5 + 1, "{first:?}");
        assert!(!first.contains(ERASE));
        terminal.say("a note", at(0.0)).unwrap();
        let second = take(&mut terminal);
        assert!(second.starts_with("\x1b[5A\r\x1b[J   0.0 s  a note\n"), "{second:?}");
        assert!(second.contains("Running"));
        terminal.conclude(&["the end".to_owned()]).unwrap();
        assert_eq!(take(&mut terminal), "the end\n");
    }
}
