//! What the chart says of itself. That it can be installed takes Helm, and is shown elsewhere.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::collections::BTreeMap;

use e2e::workspace;
use e2e::yaml;
use serde_json::Value;

fn file(name: &str) -> String {
    workspace::read(&format!("charts/trainjob-operator/{name}")).unwrap()
}

fn document(text: &str) -> Value {
    yaml::documents(text).unwrap().pop().unwrap()
}

/// The values that the README has a line for, each with its default as it stands there.
fn documented() -> BTreeMap<String, String> {
    let readme = file("README.md");
    let rows = readme.split_once("## Values").unwrap().1.lines();
    let cells = rows.filter_map(|row| {
        let mut cells = row.strip_prefix("| `")?.split('|').map(str::trim);
        Some((cells.next()?, cells.next()?.trim_matches('`')))
    });
    cells
        .flat_map(|(names, default)| {
            let names = names.split(", ").map(|name| name.trim_matches('`').to_owned());
            names.map(move |name| (name, default.to_owned()))
        })
        .collect()
}

/// The paths of everything that the schema lets somebody set, below `path`.
fn allowed(schema: &Value, node: &Value, path: &str, into: &mut Vec<String>) {
    let node = match node.get("$ref").and_then(Value::as_str) {
        Some(name) => schema.pointer(name.trim_start_matches('#')).unwrap(),
        None => node,
    };
    // Beside a generated part stands what the chart demands of it. That only narrows it.
    if let Some([generated, narrower @ ..]) =
        node.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
    {
        let before = into.len();
        allowed(schema, generated, path, into);
        for name in narrower.iter().flat_map(|it| named(it, path)) {
            let section = format!("{name}.");
            let exists = |it: &String| *it == name || it.starts_with(&section);
            assert!(into[before..].iter().any(exists), "{name}: there is no such value");
        }
        return;
    }
    match node.get("properties").and_then(Value::as_object) {
        Some(fields) => {
            assert_eq!(node["additionalProperties"], false, "{path}: typing errors would pass");
            for (name, field) in fields {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                allowed(schema, field, &below, into);
            }
        }
        None => into.push(path.to_owned()),
    }
}

/// The paths that a part of the schema names, below `path`.
fn named(node: &Value, path: &str) -> Vec<String> {
    let fields = node.get("properties").and_then(Value::as_object);
    let below = fields.into_iter().flatten().flat_map(|(name, field)| {
        let below = format!("{path}.{name}");
        let mut names = named(field, &below);
        names.push(below);
        names
    });
    below.collect()
}

#[test]
fn every_value_is_documented_and_nothing_else_is() {
    let schema = document(&file("values.schema.json"));
    let mut allowed_paths = Vec::new();
    allowed(&schema, &schema, "", &mut allowed_paths);
    let documented = documented();
    // An image or the times of a probe are one value to a reader.
    let section = |path: &str| path.rsplit_once('.').map(|(section, _)| section.to_owned());
    let has_row = |path: &String| {
        documented.contains_key(path)
            || section(path).is_some_and(|it| documented.contains_key(&it))
    };
    let missing: Vec<_> = allowed_paths.iter().filter(|path| !has_row(path)).collect();
    assert!(missing.is_empty(), "no line in README.md: {missing:#?}");
    let exists = |name: &str| {
        allowed_paths.iter().any(|path| path == name || section(path).as_deref() == Some(name))
    };
    let stale: Vec<_> = documented.keys().filter(|name| !exists(name)).collect();
    assert!(stale.is_empty(), "README.md has what is no value: {stale:#?}");
}

#[test]
fn the_defaults_in_the_readme_are_those_of_the_chart() {
    let values = document(&file("values.yaml"));
    for (name, default) in documented() {
        let given = values.pointer(&format!("/{}", name.replace('.', "/")));
        let said = (!default.is_empty()).then(|| document(&default));
        assert_eq!(given, said.as_ref(), "{name}");
    }
}

/// The page is compared with the program's configuration by a test of the program.
#[test]
fn the_values_of_accounting_are_the_defaults_of_the_program() {
    let page = workspace::read("docs/accounting.md").unwrap();
    let section = page.split("\n### ").find(|it| it.starts_with("Configuration of the program"));
    let values = document(&file("values.yaml"));
    let mut count = 0;
    for row in section.unwrap().lines().filter_map(|row| row.strip_prefix("| `")) {
        let [field, default, ..] = row.split('|').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let field = field.trim().trim_matches('`');
        let path = match field.split_once('.').unwrap() {
            ("accounting", name) => format!("/accounting/{name}"),
            ("metrics", name @ ("byNamespace" | "maxNamespaces")) => {
                format!("/accounting/metrics/{name}")
            }
            // The chart gives them to all programs alike.
            _ => continue,
        };
        let default = document(default.trim().trim_matches('`'));
        assert_eq!(values.pointer(&path), Some(&default), "{field}");
        count += 1;
    }
    assert_eq!(count, 8, "settings");
}
