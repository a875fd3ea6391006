//! What the chart says of settings: `manager.config` of its values, and the schema of that.

use serde_json::Value;

use super::{
    settings::{Schema, Settings, change_below, yaml},
    skip_to_end,
};

/// Where the chart wants something else than the programs do by default: names are made from those of the release, and
/// there are two replicas.
const DIFFERENT: [&str; 4] = [
    "certManagement.webhookSecretName",
    "certManagement.webhookServiceName",
    "controller.groupKindConcurrency",
    "leaderElection.leaderElect",
];
/// Sections that the chart writes from values of another place.
pub(crate) const ELSEWHERE: [&str; 1] = ["accounting"];
/// How many columns a line may have.
const WIDTH: usize = 120;
/// The first keywords of a schema; the others follow, sorted.
const FIRST: [&str; 5] = ["description", "type", "enum", "additionalProperties", "default"];

/// `manager.config` of the chart's values.
pub(crate) struct Defaults(Value);

impl Defaults {
    /// The default of a setting, if the values have one.
    pub(crate) fn of(&self, path: &str) -> Option<&Value> {
        self.0.pointer(&format!("/{}", path.replace('.', "/")))
    }
}

/// The defaults in the text of the chart's values, which are those of the programs but for a few.
pub(crate) fn defaults(values: &str, settings: &Settings) -> Result<Defaults, String> {
    let mut values: Value = serde_saphyr::from_str(values).map_err(|error| error.to_string())?;
    let config = values.pointer_mut("/manager/config").map(Value::take);
    let defaults = Defaults(config.ok_or("values.yaml has no manager.config")?);
    for setting in &settings.all {
        let Some(value) = defaults.of(&setting.path) else { continue };
        let differs = yaml(value) != yaml(&setting.default);
        if differs != DIFFERENT.contains(&setting.path.as_str()) {
            let (path, default) = (&setting.path, yaml(&setting.default));
            return Err(format!(
                "values.yaml: manager.config.{path} is {}, the default of the programs {default}; change it, or \
                 DIFFERENT of settingsgen",
                yaml(value)
            ));
        }
    }
    Ok(defaults)
}

/// The schema of the chart's values with `definitions.config` up to date.
pub(crate) fn schema(
    schema: &str,
    settings: &Settings,
    values: &Defaults,
) -> Result<String, String> {
    const BEGIN: &str = "    \"config\": ";
    let generated = printed(&of_values(settings.schema.clone(), "", values).into(), 4, BEGIN.len());
    let mut written = Vec::new();
    let mut lines = schema.lines();
    let mut is_definition = false;
    while let Some(line) = lines.next() {
        is_definition |= line == "  \"definitions\": {";
        if !is_definition || line != format!("{BEGIN}{{") {
            written.push(line.to_owned());
            continue;
        }
        let end = skip_to_end(&mut lines, |line| line.trim_end_matches(',') == "    }")?;
        let comma = if end.ends_with(',') { "," } else { "" };
        written.push(format!("{BEGIN}{generated}{comma}"));
    }
    let written = written.join("\n") + "\n";
    if written.contains(&generated) {
        Ok(written)
    } else {
        Err("no definition of config".to_owned())
    }
}

/// What the schema of the values says of `path`: descriptions without links, and the chart's defaults.
fn of_values(mut schema: Schema, path: &str, values: &Defaults) -> Schema {
    schema.remove("x-expected");
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = with_plain_links(description);
    }
    let default = schema.remove("default").filter(|it| !it.is_null());
    // That of a section is the sum of those of its fields.
    if let Some(default) = default.filter(|_| !schema.contains_key("properties")) {
        let default = values.of(path).cloned().unwrap_or(default);
        schema.insert("default".to_owned(), default);
    }
    change_below(&mut schema, |name, below| match name {
        Some(name) if path.is_empty() => of_values(below, name, values),
        Some(name) => of_values(below, &format!("{path}.{name}"), values),
        None => of_values(below, path, values),
    });
    schema
}

/// `[text](page.md#section)` as `text (docs/page.md)`; of the number of a rule, `docs/page.md, number`.
pub(crate) fn with_plain_links(markdown: &str) -> String {
    let mut parts = markdown.split("](");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or(("", part));
        let page = target.split('#').next().and_then(|path| path.rsplit('/').next());
        let page = page.filter(|page| !page.is_empty());
        if let Some(opened) = plain.rfind('[') {
            let text = plain.split_off(opened).split_off(1);
            let shown = match page {
                Some(page) if is_rule(&text) => format!("docs/{page}, {text}"),
                Some(page) => format!("{text} (docs/{page})"),
                None => text,
            };
            plain += &shown;
        }
        plain += rest;
    }
    plain
}

/// Whether this is how a page numbers its rules or sections, such as `AM0` or `5`.
fn is_rule(text: &str) -> bool {
    let number = text.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit())
}

/// JSON with as much in a line as fits, `indent` spaces from the left, in a line of which `used` columns are taken.
fn printed(value: &Value, indent: usize, used: usize) -> String {
    let short = in_one_line(value);
    // A comma may follow.
    if used + short.len() < WIDTH {
        return short;
    }
    let inner = " ".repeat(indent + 2);
    let (open, close, items): (_, _, Vec<_>) = match value {
        Value::Object(fields) => {
            let items = sorted(fields).into_iter().map(|(name, field)| {
                let name = format!("{inner}\"{name}\": ");
                let field = printed(field, indent + 2, name.len());
                name + &field
            });
            ('{', '}', items.collect())
        }
        Value::Array(items) => {
            let items = items.iter().map(|it| inner.clone() + &printed(it, indent + 2, indent + 2));
            ('[', ']', items.collect())
        }
        _ => return short,
    };
    format!("{open}\n{}\n{}{close}", items.join(",\n"), " ".repeat(indent))
}

fn in_one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = sorted(fields)
                .into_iter()
                .map(|(name, field)| format!("\"{name}\": {}", in_one_line(field)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(in_one_line).collect::<Vec<_>>().join(", "))
        }
        Value::Number(_) => yaml(value),
        other => other.to_string(),
    }
}

fn sorted(fields: &Schema) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    fields.sort_by_key(|(name, _)| (rank(name), *name));
    fields
}
