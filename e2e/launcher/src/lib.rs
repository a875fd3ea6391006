//! Builds what is about to run and never falls silent while doing so.
//!
//! A first build takes minutes and prints nothing for long stretches. Whoever waits wants to know
//! that it is alive, in a terminal as well as in the log of a CI job, so every sign of life is a
//! plain line.

#![allow(clippy::missing_errors_doc, reason = "an error says itself what is wrong")]

use std::env;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest silence before a sign of life.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Prints one line on stderr. A closed stderr is no reason to stop.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Runs `command` to its end and hands each line of its stderr to `line`, which prints what is
/// worth it and returns whether it did. After [`PATIENCE`] without a print, what `beat` makes of
/// the time passed is printed.
pub fn run_with_heartbeat(
    command: &mut Command,
    mut line: impl FnMut(&str) -> bool,
    mut beat: impl FnMut(Duration) -> String,
) -> io::Result<ExitStatus> {
    let started = Instant::now();
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let (sender, lines) = channel();
    let reader = read_lines(&mut child, sender);

    let mut printed = Instant::now();
    loop {
        let silence_left = PATIENCE.saturating_sub(printed.elapsed());
        match lines.recv_timeout(silence_left) {
            Ok(text) => {
                if line(&text) {
                    printed = Instant::now();
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                say(beat(started.elapsed()));
                printed = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait()?;
    if let Some(reader) = reader {
        // It has sent its last line: it ended with the channel.
        let _ = reader.join();
    }
    Ok(status)
}

fn read_lines(child: &mut Child, lines: Sender<String>) -> Option<thread::JoinHandle<()>> {
    let stderr = child.stderr.take()?;
    Some(thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    }))
}

/// Builds some binaries of the workspace with `cargo`, in the profile whose output is `target`
/// (`target/debug`, `target/release`, …).
///
/// It is always from the whole workspace: a build of one package may choose other features for the
/// shared dependencies and would compile them all again.
pub fn build(cargo: &str, target: &Path, binaries: &[&str]) -> io::Result<()> {
    let mut arguments = vec!["build", "--workspace", "--profile", profile(target)];
    arguments.extend(binaries.iter().flat_map(|name| ["--bin", name]));
    run_cargo(cargo, target, &arguments, Stdio::inherit())
}

/// Builds some integration tests of the workspace likewise. What cargo has made is written to `messages`, one JSON
/// object a line.
pub fn build_tests(
    cargo: &str,
    target: &Path,
    tests: &[&str],
    messages: impl Into<Stdio>,
) -> io::Result<()> {
    let mut arguments = vec!["test", "--workspace", "--no-run"];
    arguments.push("--message-format=json-render-diagnostics");
    match profile(target) {
        // The profile of tests has the dependencies of this one.
        "dev" => {}
        other => arguments.extend(["--profile", other]),
    }
    arguments.extend(tests.iter().flat_map(|name| ["--test", name]));
    run_cargo(cargo, target, &arguments, messages.into())
}

/// The profile whose output is in this folder.
fn profile(target: &Path) -> &str {
    match target.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    }
}

fn run_cargo(cargo: &str, target: &Path, arguments: &[&str], stdout: Stdio) -> io::Result<()> {
    let mut command = Command::new(cargo);
    // What cargo told us of the package we belong to would be taken as a change by build scripts
    // that look at it (ring's does), and much would be built again at every turn.
    for (name, _) in env::vars_os() {
        let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_"];
        if name.to_str().is_some_and(|name| about_us.iter().any(|it| name.starts_with(it))) {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).stdout(stdout);
    if let Some(directory) = target.parent() {
        command.env("CARGO_TARGET_DIR", directory);
    }
    if io::stderr().is_terminal() {
        // Cargo sees a pipe, but what it says goes on to a terminal.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let forward = |line: &str| {
        say(line);
        true
    };
    let beat = |elapsed: Duration| format!("    … building, {} s so far", elapsed.as_secs());
    let status = run_with_heartbeat(&mut command, forward, beat)?;
    if status.success() { Ok(()) } else { Err(io::Error::other("the build failed")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_handed_on_and_the_status_is_the_commands_own() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one >&2; echo two >&2; exit 3"]);
        let collect = |line: &str| {
            lines.push(line.to_owned());
            true
        };
        let status = run_with_heartbeat(&mut command, collect, |_| String::new()).unwrap();
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(status.code(), Some(3));
    }
}
