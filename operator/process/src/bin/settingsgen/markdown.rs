//! The tables of settings in the documentation.
//!
//! A table stands between the lines `<!-- settings: SECTION … -->` and `<!-- end of settings -->`.

use serde_json::Value;

use super::{
    chart::Defaults,
    settings::{Setting, Settings, yaml},
    skip_to_end,
};

const BEGIN: &str = "<!-- settings: ";
const END: &str = "<!-- end of settings -->";
/// What stands for every section.
const ALL: &str = "all";
/// Where links in descriptions begin, as the chart's README sees it.
const FROM_README: &str = "](../../docs/";

/// `docs/configuration.md` with its tables up to date.
pub(crate) fn page(page: &str, settings: &Settings) -> Result<String, String> {
    with_tables(page, settings, "field", |Setting { path, default, allowed, meaning }| {
        let default = match default {
            Value::Null => "none".to_owned(),
            default => format!("`{}`", yaml(default)),
        };
        format!("| `{path}` | {default} | {allowed} | {meaning} |")
    })
}

/// The chart's README with its table up to date.
pub(crate) fn readme(page: &str, settings: &Settings, values: &Defaults) -> Result<String, String> {
    with_tables(page, settings, "value", |Setting { path, default, allowed, meaning }| {
        let meaning = meaning.replace("](", FROM_README);
        let (value, otherwise) = match (values.of(path), default) {
            (Some(value), _) => (format!(" `{}`", yaml(value)), String::new()),
            (None, Value::Null) => (String::new(), String::new()),
            (None, default) => (String::new(), format!(" Without it: `{}`.", yaml(default))),
        };
        format!("| `manager.config.{path}` |{value} | {allowed} | {meaning}{otherwise} |")
    })
}

/// The page with its tables up to date, in which a setting is called `noun` and has a `row`.
fn with_tables(
    page: &str,
    settings: &Settings,
    noun: &str,
    row: impl Fn(&Setting) -> String,
) -> Result<String, String> {
    let mut missing: Vec<_> = settings.all.iter().collect();
    let mut written = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        written.push(line.to_owned());
        let Some(sections) = line.strip_prefix(BEGIN) else { continue };
        let sections: Vec<_> = sections.trim_end_matches(" -->").split(' ').collect();
        let is_here = |it: &&Setting| {
            let section = it.path.split('.').next();
            sections.iter().any(|name| *name == ALL || Some(*name) == section)
        };
        let (here, elsewhere): (Vec<_>, _) = missing.into_iter().partition(is_here);
        missing = elsewhere;
        let end = skip_to_end(&mut lines, |line| line == END)?;
        written.push(format!("| {noun} | default | allowed | meaning |"));
        written.push("|---|---|---|---|".to_owned());
        written.extend(here.into_iter().map(&row));
        written.push(end.to_owned());
    }
    match missing.first() {
        Some(setting) => Err(format!("no table has the section of {}", setting.path)),
        None => Ok(written.join("\n") + "\n"),
    }
}
