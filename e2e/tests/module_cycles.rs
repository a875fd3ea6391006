//! No module of the product imports what imports it, at whatever distance.
//!
//! A module that can be read without those that use it can also be changed without them. Read are the `use`
//! declarations outside of tests; `pub use` of a child counts as an import of its parent's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The crates of the product, by their sources.
const CRATES: [&str; 6] = [
    "api/src",
    "operator/core/src",
    "operator/engine/src",
    "operator/process/src",
    "operator/src",
    "webhook/src",
];

/// Modules by their paths in a crate, and what each imports.
type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

#[test]
fn no_module_of_the_product_is_in_an_import_cycle() -> Result<()> {
    for sources in CRATES {
        let imports = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(sources))?;
        assert!(imports.len() > 5, "{sources} has few modules: {:?}", imports.keys());
        assert_eq!(cycle(&imports), None, "in {sources}");
    }
    Ok(())
}

#[test]
fn cycle_is_found_at_any_distance() {
    let module = |name: &str| vec![name.to_owned()];
    let imports = |pairs: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in pairs {
            imports.entry(module(from)).or_default().insert(module(to));
            imports.entry(module(to)).or_default();
        }
        imports
    };
    assert_eq!(cycle(&imports(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let found = cycle(&imports(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")]));
    assert_eq!(found.map(|cycle| cycle.len()), Some(3));
}

#[test]
fn paths_of_a_use_declaration_are_all_found() {
    let tree = "super::{a::B, c::{self, D as E}, f::*}";
    assert_eq!(paths(tree), ["super::a::B", "super::c::self", "super::c::D", "super::f::*"]);
    assert_eq!(paths("crate::a"), ["crate::a"]);
}

fn imports(sources: &Path) -> Result<Imports> {
    let files = files(sources)?;
    let mut modules = BTreeMap::new();
    for file in files {
        let name = file.strip_prefix(sources)?.with_extension("");
        let mut name: Vec<String> =
            name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if name.iter().any(|part| ["bin", "tests", "testing"].contains(&part.as_str())) {
            continue;
        }
        name.retain(|part| part != "lib" && part != "main");
        modules.insert(name, fs::read_to_string(&file)?);
    }
    let names: BTreeSet<_> = modules.keys().cloned().collect();
    let imported = |(module, text): (Vec<String>, String)| {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        let paths = declarations(&text).into_iter().flat_map(|tree| paths(&tree));
        let targets = paths.filter_map(|path| target(&path, &module, &names));
        let targets = targets.filter(|target| *target != module).collect();
        (module, targets)
    };
    Ok(modules.into_iter().map(imported).collect())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// What stands between `use` and `;`, without white space.
fn declarations(text: &str) -> Vec<String> {
    let code: Vec<&str> =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = format!("\n{}", code.join("\n"));
    let starts = ["\nuse ", "\npub use ", "\npub(crate) use ", "\npub(super) use "];
    starts
        .iter()
        .flat_map(|start| code.split(start).skip(1))
        .filter_map(|rest| rest.split_once(';'))
        .map(|(tree, _)| tree.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// The paths in a tree such as `a::{b, c::D}`.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        return if path.is_empty() { Vec::new() } else { vec![path.to_owned()] };
    };
    let body = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut parts) = (0_u32, vec![String::new()]);
    for c in body.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let paths = parts.iter().flat_map(|part| paths(part));
    paths.map(|path| format!("{}{path}", head.trim())).collect()
}

/// The module of this crate that a path leads into.
fn target(path: &str, module: &[String], names: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut target = match parts.peek().copied()? {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    while let Some(part) = parts.next_if(|part| ["crate", "self", "super"].contains(part)) {
        if part == "super" {
            target.pop();
        }
    }
    for part in parts {
        let mut deeper = target.clone();
        deeper.push(part.to_owned());
        if !names.contains(&deeper) {
            break;
        }
        target = deeper;
    }
    names.contains(&target).then_some(target)
}

/// Modules that import each other in turn, if there are any.
fn cycle(imports: &Imports) -> Option<Vec<Vec<String>>> {
    imports.keys().find_map(|start| way(imports, start, start, &mut BTreeSet::new()))
}

/// A way from `from` to `to`.
fn way(
    imports: &Imports,
    from: &Vec<String>,
    to: &Vec<String>,
    seen: &mut BTreeSet<Vec<String>>,
) -> Option<Vec<Vec<String>>> {
    for next in imports.get(from)? {
        if next == to {
            return Some(vec![from.clone()]);
        }
        if seen.insert(next.clone())
            && let Some(mut rest) = way(imports, next, to, seen)
        {
            rest.insert(0, from.clone());
            return Some(rest);
        }
    }
    None
}
