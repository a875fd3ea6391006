//! The page itself: every line names tests, and all of them exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use e2e::workspace;
use e2e::yaml;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Where there are tests.
const SOURCES: [&str; 4] = ["api", "operator", "webhook", "e2e"];

/// The rows of the tables of the page whose last column names tests: the claim, and the names.
fn claims(page: &str) -> Vec<(String, Vec<String>)> {
    let mut is_about_claims = false;
    let mut claims = Vec::new();
    for line in page.lines() {
        let Some(row) = line.strip_prefix("| ") else {
            is_about_claims &= line.starts_with('|');
            continue;
        };
        let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
        let last = *cells.last().unwrap();
        if last == "shown by" {
            is_about_claims = true;
        } else if is_about_claims {
            let names = last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            claims.push((cells[0].to_owned(), names));
        }
    }
    claims
}

/// The functions that follow an attribute of a test in the sources.
fn tests(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut lines = text.lines().map(str::trim);
            while let Some(line) = lines.next() {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    let function = lines.find_map(|line| {
                        line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")
                    });
                    into.extend(function.and_then(|it| it.split('(').next()).map(str::to_owned));
                }
            }
        }
    }
}

#[test]
fn every_claim_names_tests_and_all_of_them_exist() {
    let claims = claims(&workspace::read("docs/security.md").unwrap());
    assert!(claims.len() > 15, "only {} claims", claims.len());
    let mut known = BTreeSet::new();
    for folder in SOURCES {
        tests(&Path::new(ROOT).join(folder), &mut known);
    }
    let without: Vec<_> = claims.iter().filter(|(_, names)| names.is_empty()).collect();
    assert!(without.is_empty(), "nothing shows {without:#?}");
    let names = claims.iter().flat_map(|(_, names)| names);
    let missing: Vec<_> = names.filter(|name| !known.contains(*name)).collect();
    assert!(missing.is_empty(), "there are no tests {missing:#?}");
}

/// By the `ClusterRoles` that the chart makes part of `view`, `edit` and `admin`.
#[test]
fn users_write_neither_a_status_nor_a_runtime_of_others_nor_a_record() {
    for file in ["user-rules", "retention-user-rules", "accounting-user-rules"] {
        let text = workspace::read(&format!("charts/trainjob-operator/files/{file}.yaml")).unwrap();
        let [roles] = yaml::documents(&text).unwrap().try_into().unwrap();
        for (role, rules) in roles.as_object().unwrap() {
            for rule in rules.as_array().unwrap() {
                let list = |field: &str| {
                    let texts = rule[field].as_array().unwrap().iter();
                    texts.map(|text| text.as_str().unwrap()).collect::<Vec<_>>()
                };
                let reads = list("verbs").iter().all(|it| ["get", "list", "watch"].contains(it));
                let kept = |resource: &&str| {
                    resource.contains('/')
                        || resource.contains('*')
                        || resource.starts_with("cluster")
                        || *resource == "trainjobrecords"
                        // By default: rbac.aggregate.editRuntimes gives `edit` the rules of `admin`.
                        || *resource == "trainingruntimes" && role == "edit"
                };
                let written = list("resources").into_iter().filter(kept).collect::<Vec<_>>();
                assert!(reads || written.is_empty(), "{file}: {role} writes {written:?}");
            }
        }
    }
}
