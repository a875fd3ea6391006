//! What is said of settings outside of the types that the file is read with.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{collections::BTreeSet, fs, process::Command};

use trainjob_process::config::{Flags, load};

/// A name that no section has.
const UNKNOWN: &str = "noSuchField";
const HEADER: &str = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n";

/// The names of what a section may have, as the error about one that it may not have lists them; `None`
/// if this is no section.
fn fields(section: &str) -> Option<Vec<String>> {
    let nested = section.split('.').filter(|name| !name.is_empty());
    let (open, close) = nested.fold((String::new(), String::new()), |(open, close), name| {
        (format!("{open}{name}: {{"), format!("{close}}}"))
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    fs::write(&path, format!("{HEADER}{open}{UNKNOWN}: 1{close}\n")).unwrap();
    let flags = Flags { config: Some(path), ..Flags::default() };
    let error = load(&flags).err()?.to_string();
    let (_, expected) = error.split_once(&format!("unknown field `{UNKNOWN}`, expected "))?;
    Some(expected.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

/// The paths of everything that is no section, below `section`.
fn settings(section: &str, into: &mut BTreeSet<String>) {
    for name in fields(section).unwrap() {
        let path = if section.is_empty() { name } else { format!("{section}.{name}") };
        if fields(&path).is_some() {
            settings(&path, into);
        } else {
            into.insert(path);
        }
    }
}

/// The fields that tables have a row for; what stands behind a name in brackets is a key of a map.
fn documented(page: &str) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let mut is_of_fields = false;
    for line in page.lines() {
        let Some(row) = line.strip_prefix("| ") else {
            is_of_fields &= line.starts_with('|');
            continue;
        };
        let cell = row.split(" |").next().unwrap();
        if cell == "field" {
            is_of_fields = true;
        } else if is_of_fields {
            let names = cell.split('`').skip(1).step_by(2);
            fields.extend(names.map(|name| name.split('[').next().unwrap().to_owned()));
        }
    }
    fields
}

/// Field by field: name, default, bounds and description, in `docs/configuration.md`, the chart's README and the
/// schema of its values; and the defaults in its values.
#[test]
fn documentation_and_chart_say_what_the_types_say() {
    let check = Command::new(env!("CARGO_BIN_EXE_settingsgen")).arg("--check").output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

#[test]
fn every_setting_is_documented_and_nothing_else_is() {
    let mut expected = BTreeSet::new();
    settings("", &mut expected);
    assert!(expected.len() > 40, "{expected:?}");
    // The example at the top of the page has them.
    for head in ["apiVersion", "kind"] {
        assert!(expected.remove(head), "{head}");
    }
    let page = include_str!("../../../docs/configuration.md");
    assert!(page.contains(HEADER.lines().next().unwrap()));
    assert_eq!(documented(page), expected);
}
