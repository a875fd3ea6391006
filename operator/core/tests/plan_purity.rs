//! The core stays pure: it has no clock, no network, no environment and no output.
//!
//! What it is compiled from is looked after by a test of the `trainjob-api` crate; here, what it says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What only somebody else may use, written without spaces.
const IMPURE: [&str; 15] = [
    "SystemTime",
    "Instant::now",
    "Utc::now",
    "Local::now",
    "Timestamp::now",
    "tokio",
    "kube::",
    "futures::",
    "asyncfn",
    "asyncmove",
    ".await",
    "println!",
    "print!",
    "dbg!",
    "staticmut",
];
/// Modules of the standard library that touch the world.
const WORLDLY: [&str; 6] = ["env", "fs", "io", "net", "process", "thread"];

#[test]
fn the_core_uses_no_clock_no_network_no_environment_and_no_output() {
    let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(files.len() > 20, "these are not the sources: {files:?}");
    let offences: Vec<_> = files.iter().flat_map(|file| offences(file)).collect();
    assert_eq!(offences, [""; 0]);
}

#[test]
fn an_offence_is_found_in_code_and_not_in_comments() {
    for (code, expected) in [
        ("let now =\n    SystemTime::now();", &["SystemTime"][..]),
        ("use kube::Client; // the client", &["kube::"]),
        ("use std::fs;", &["fs"]),
        ("use std::{\n    fmt,\n    net::IpAddr,\n};", &["net"]),
        ("//! No SystemTime::now here.\nlet due = start.plus(1); // not Utc::now()", &[]),
        ("use std::{collections::BTreeMap, fmt};\nlet environment = io;", &[]),
    ] {
        assert_eq!(impure(code), expected, "{code}");
    }
}

/// What a file uses that it should not.
fn offences(file: &Path) -> Vec<String> {
    let found = impure(&fs::read_to_string(file).unwrap());
    found.into_iter().map(|what| format!("{}: {what}", file.display())).collect()
}

/// What a text uses that it should not.
fn impure(text: &str) -> Vec<&'static str> {
    let lines = text.lines().filter_map(|line| line.split("//").next());
    let code: String = lines.flat_map(str::split_whitespace).collect();
    let words = IMPURE.into_iter().filter(|word| code.contains(word));
    words.chain(WORLDLY.into_iter().filter(|module| uses(&code, module))).collect()
}

/// Whether code without spaces names a module of the standard library, alone or in a list.
fn uses(code: &str, module: &str) -> bool {
    code.split("std::").skip(1).any(|rest| {
        let list = rest.split([';', '(', '<']).next().unwrap_or_default();
        list.split(['{', ',', '}']).any(|item| item.split("::").next() == Some(module))
    })
}

/// All Rust files in a directory and below.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => sources(&path),
            Some(extension) if extension == "rs" => vec![path],
            _ => vec![],
        })
        .collect()
}
