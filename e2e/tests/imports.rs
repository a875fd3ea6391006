//! The imports at the top of every file are in three groups: the standard library, other crates, this crate.
//!
//! `rustfmt` sorts within a group; the option that makes the groups is not stable yet. Re-exports are left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// The folders of the workspace that have sources.
const FOLDERS: [&str; 4] = ["api", "operator", "webhook", "e2e"];

/// Where an import comes from, in the order of the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Std,
    OtherCrate,
    ThisCrate,
}

#[test]
fn imports_of_every_file_are_in_three_groups() -> Result<()> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&Path::new(ROOT).join(folder), &mut files)?;
    }
    assert!(files.len() > 300, "only {} files", files.len());
    for file in files {
        let groups = groups(&fs::read_to_string(&file)?);
        assert!(in_order(&groups), "{}: {groups:?}", file.display());
    }
    Ok(())
}

#[test]
fn order_and_blank_lines_of_imports_matter() {
    for (text, expected) in [
        ("use std::fs;\n\nuse serde::{\n    A,\n};\nuse zebra::B;\n\nuse super::c;\n", true),
        ("mod part;\n\nuse std::fs;\n\nuse part::Part;\n\npub use part::Other;\n", true),
        ("use std::fs;\n\nuse self::a::A;\npub use self::b::B;\nuse crate::c;\n", true),
        ("use serde::A;\n\nuse std::fs;\n", false),
        ("use std::fs;\nuse serde::A;\n", false),
        ("use crate::a;\n\nuse super::b;\n", false),
        ("fn f() {}\nuse crate::a;\n\nuse std::fs;\n", true),
    ] {
        assert_eq!(in_order(&groups(text)), expected, "{text}");
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The imports before the first item, by the blank lines between them.
fn groups(text: &str) -> Vec<Vec<Origin>> {
    let module = |line: &str| {
        let line = line.strip_prefix("pub").unwrap_or(line);
        let line = line.trim_start_matches("(crate)").trim_start_matches("(super)").trim_start();
        line.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
    };
    let modules: BTreeSet<String> = text.lines().filter_map(module).collect();
    let (mut groups, mut adjoins) = (Vec::<Vec<Origin>>::new(), false);
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("use ") {
            let origin = origin(path, &modules);
            match groups.last_mut() {
                Some(group) if adjoins => group.push(origin),
                _ => groups.push(vec![origin]),
            }
            adjoins = true;
        } else if line.is_empty() {
            adjoins = false;
        } else if !may_stand_between(line) && module(line).is_none() {
            break;
        }
    }
    groups
}

/// Whether imports may follow: it is a re-export, or belongs to what came before.
fn may_stand_between(line: &str) -> bool {
    line.starts_with([' ', '}', '/', '#', ']', ')'])
        || line.starts_with("pub") && line.contains(" use ")
}

fn origin(path: &str, modules: &BTreeSet<String>) -> Origin {
    match path.split([':', ';', ' ', '{']).next().unwrap_or_default() {
        "std" | "core" | "alloc" => Origin::Std,
        "crate" | "super" | "self" => Origin::ThisCrate,
        first if modules.contains(first) => Origin::ThisCrate,
        _ => Origin::OtherCrate,
    }
}

fn in_order(groups: &[Vec<Origin>]) -> bool {
    let uniform = groups.iter().all(|group| group.iter().all(|it| Some(it) == group.first()));
    uniform && groups.iter().map(|group| group.first()).is_sorted_by(|one, next| one < next)
}
