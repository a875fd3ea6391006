//! Every link of the documentation that stays in this repository leads somewhere.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PLACES: [&str; 4] = [".", "docs", "docs/runbooks", "charts/trainjob-operator"];

fn pages() -> Vec<PathBuf> {
    let folders = PLACES.iter().filter_map(|place| fs::read_dir(Path::new(ROOT).join(place)).ok());
    let files = folders.flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == "md")).collect()
}

/// The lines of a page that are not between fences.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The names by which headings are linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept =
                heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

fn targets(text: &str) -> Vec<String> {
    let links = prose(text).flat_map(|line| line.split("](").skip(1));
    links.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn every_link_within_the_repository_leads_somewhere() {
    let (mut dead, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text).into_iter().filter(|target| !target.contains("://")) {
            seen += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let leads = path.exists()
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&path).unwrap()).contains(anchor));
            if !leads {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(seen > 50, "only {seen} links");
    assert!(dead.is_empty(), "{dead:#?}");
}
