//! No module imports what imports it, at whatever distance: neither of the product nor of the tests.
//!
//! A module that can be read without those that use it can also be changed without them. Every path outside of unit tests
//! counts, in a `use` declaration or not. A module that re-exports a child imports it, so the child takes what it needs
//! from its siblings and not from its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The crates of the product, by their sources.
const PRODUCT: [&str; 10] = [
    "api/src",
    "operator/accounting/core/src",
    "operator/core/src",
    "operator/engine/src",
    "operator/kubectl/src",
    "operator/process/src",
    "operator/retention/core/src",
    "operator/retention/src",
    "operator/src",
    "webhook/src",
];

/// The crates that it is tested with.
const TESTS: [&str; 3] = ["e2e/src", "e2e/explorer/src", "e2e/invariants/src"];

/// Modules by their paths in a crate, and what each imports.
type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

#[test]
fn no_module_of_the_product_is_in_an_import_cycle() -> Result<()> {
    PRODUCT.into_iter().try_for_each(no_cycle)
}

#[test]
fn no_module_of_the_tests_is_in_an_import_cycle() -> Result<()> {
    TESTS.into_iter().try_for_each(no_cycle)
}

fn no_cycle(sources: &str) -> Result<()> {
    let imports = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(sources))?;
    assert!(imports.len() > 5, "{sources} has few modules: {:?}", imports.keys());
    assert_eq!(cycle(&imports), None, "in {sources}");
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

#[test]
fn imports_of_children_siblings_and_in_expressions_are_found() {
    let path = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let modules = [
        ("a", "pub use b::B;\nuse self::{\n    c::C,\n};\nuse std::fmt;"),
        ("a::b", "pub(in crate::a) fn f() { super::c::g(); } // crate::d"),
        ("a::c", "use super::C;\n#[cfg(test)]\nmod tests { use crate::d; }"),
        ("d", "use crate::{\n    a::b,\n};\nfn f() -> crate::a::b::B { B }"),
    ];
    let modules = modules.into_iter().map(|(name, text)| (path(name), text.to_owned()));
    let imports = imports_of(modules.collect());
    let of = |name| imports[&path(name)].iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!([of("a"), of("a::b")], [vec!["a::b", "a::c"], vec!["a::c"]]);
    assert_eq!([of("a::c"), of("d")], [vec!["a"], vec!["a::b"]]);
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
    Ok(imports_of(modules))
}

/// What modules with these texts import of each other.
fn imports_of(modules: BTreeMap<Vec<String>, String>) -> Imports {
    let names: BTreeSet<_> = modules.keys().cloned().collect();
    let imported = |(module, text): (Vec<String>, String)| {
        let code = without_tests_and_comments(&text);
        let declared = declarations(&code).into_iter().flat_map(|tree| paths(&tree));
        let paths = declared.chain(expressions(&code));
        let targets = paths.filter_map(|path| target(&path, &module, &names));
        let targets = targets.filter(|target| *target != module).collect();
        (module, targets)
    };
    modules.into_iter().map(imported).collect()
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

fn without_tests_and_comments(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.fold(String::new(), |code, line| code + "\n" + line)
}

/// What stands between `use` and `;`, in one line.
fn declarations(code: &str) -> Vec<String> {
    let starts = ["\nuse ", "\npub use ", "\npub(crate) use ", "\npub(super) use "];
    starts
        .iter()
        .flat_map(|start| code.split(start).skip(1))
        .filter_map(|rest| rest.split_once(';'))
        .map(|(tree, _)| tree.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// The paths that begin in this crate, wherever they are. Visibility is none: `pub(in crate::a)`.
fn expressions(code: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_part(c)).scan("", |before, word| {
        let is_path = word.starts_with("crate::") || word.starts_with("super::");
        // What stands before the braces of a `use` declaration is no path yet.
        let is_whole = !word.ends_with("::") && *before != "in";
        let path = (is_path && is_whole).then(|| word.to_owned());
        *before = word;
        Some(path)
    });
    words.flatten().collect()
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
        first => {
            let child: Vec<_> = module.iter().map(String::as_str).chain([first]).collect();
            names.iter().any(|name| *name == child).then(|| module.to_vec())?
        }
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
