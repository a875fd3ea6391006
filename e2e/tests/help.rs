//! What the programs say of themselves, as somebody reads it who has nothing but the image.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::process::{Command, Output};

use e2e::workspace;

/// The parts of a manual page, in the order in which they come.
const PARTS: [&str; 10] = [
    "Usage:",
    "Options:",
    "Servers:",
    "Files:",
    "Environment:",
    "Signals:",
    "Exit status:",
    "Output:",
    "Examples:",
    "See also:",
];

fn programs() -> Vec<(&'static str, std::path::PathBuf)> {
    vec![
        ("trainjob-operator", workspace::operator().unwrap()),
        ("trainjob-webhook", workspace::webhook().unwrap()),
        ("trainjob-retention", workspace::retention().unwrap()),
        ("trainjob-accounting", workspace::accounting().unwrap()),
    ]
}

fn run(program: &std::path::Path, argument: &str) -> Output {
    Command::new(program).arg(argument).output().unwrap()
}

#[test]
fn help_is_a_manual_page_that_fits_on_a_terminal() {
    for (name, program) in programs() {
        let output = run(&program, "--help");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{name}");
        let places = PARTS.map(|part| text.find(&format!("\n{part}")).expect(part));
        assert!(places.is_sorted(), "{name}: {places:?}");
        assert!(text.contains(&format!("  {name} --kubeconfig ")), "{name}: no example");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
            assert_eq!(line.trim_end(), line, "{name}");
        }
    }
}

#[test]
fn short_help_is_short_and_tells_of_the_long_one() {
    for (name, program) in programs() {
        let text = String::from_utf8(run(&program, "-h").stdout).unwrap();
        assert!(text.lines().count() < 30, "{name}: {text}");
        assert!(
            text.trim_end()
                .ends_with("--help says more: files, environment, signals, exit status.")
        );
    }
}

#[test]
fn exit_status_is_as_help_documents() {
    for (name, program) in programs() {
        let version = run(&program, "--version");
        assert!(version.status.success(), "{name}");
        assert!(String::from_utf8(version.stdout).unwrap().starts_with(&format!("{name} ")));
        for wrong in ["--confg", "--config=/nowhere", "--kubeconfig=/nowhere"] {
            let output = run(&program, wrong);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{name} {wrong}");
            // Without a configuration one of them warns in its log that it has nothing to do.
            let mut complaints = said.lines().filter(|line| !line.contains("\"level\":\"WARN\""));
            let complaint = complaints.next().unwrap_or_default();
            assert!(output.stdout.is_empty(), "{name} {wrong}");
            assert!(complaint.starts_with(&format!("{name}: ")), "{name} {wrong}: {said}");
            assert_eq!(complaints.next(), None, "{name} {wrong}: {said}");
        }
    }
}
