//! The settings, as the JSON Schema of the file's types has them.

use std::mem;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use trainjob_process::config::file::Configuration;

/// A JSON Schema, or a part of one.
pub(crate) type Schema = Map<String, Value>;

/// Every setting of the file.
pub(crate) struct Settings {
    /// The schema of the file, without what every file begins with. Links are in it, and `x-expected`.
    pub(crate) schema: Schema,
    /// The settings by path.
    pub(crate) all: Vec<Setting>,
}

/// What is to be known of a setting.
pub(crate) struct Setting {
    /// Its path, with dots.
    pub(crate) path: String,
    /// What applies where the file does not have it; `null`: nothing.
    pub(crate) default: Value,
    /// What is allowed, in Markdown.
    pub(crate) allowed: String,
    /// What it means, in Markdown, in one line.
    pub(crate) meaning: String,
}

impl Settings {
    /// The settings of the configuration file.
    pub(crate) fn of_the_file() -> Self {
        let settings = SchemaSettings::draft07().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let root = settings.into_generator().into_root_schema_for::<Configuration>();
        let mut schema = root.as_object().cloned().map(cleaned).unwrap_or_default();
        schema.retain(|keyword, _| {
            ["type", "additionalProperties", "properties"].contains(&keyword.as_str())
        });
        if let Some(sections) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            sections.retain(|name, _| !["apiVersion", "kind"].contains(&name.as_str()));
        }
        let mut all = Vec::new();
        collect(&schema, "", &mut all);
        all.sort_by(|one, other| one.path.cmp(&other.path));
        Self { schema, all }
    }

    /// All but those of these sections.
    pub(crate) fn without(mut self, sections: &[&str]) -> Self {
        self.all.retain(|it| !sections.iter().any(|name| it.path.split('.').next() == Some(*name)));
        if let Some(properties) = self.schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !sections.contains(&name.as_str()));
        }
        self
    }
}

/// Adds the settings below `path`, which is that of a section.
fn collect(section: &Schema, path: &str, into: &mut Vec<Setting>) {
    let properties = section.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let Some(schema) = schema.as_object() else { continue };
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if schema.contains_key("properties") {
            collect(schema, &path, into);
        } else {
            into.push(Setting {
                default: schema.get("default").cloned().unwrap_or_default(),
                allowed: allowed(schema),
                meaning: text(schema, "description").to_owned(),
                path,
            });
        }
    }
}

/// The schema of what may be written: one that may be `null` is as if it could not, the values of an
/// enumeration are in one list, and a description is in one line.
fn cleaned(mut schema: Schema) -> Schema {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|it| it == "null");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|it| it != "null");
        let only = types.pop();
        schema.insert("type".to_owned(), only.unwrap_or_default());
    }
    if let Some(Value::Array(alternatives)) = schema.remove("anyOf") {
        let given = alternatives.into_iter().find(|it| !is_null(it));
        for (keyword, value) in given.iter().filter_map(Value::as_object).flatten() {
            schema.entry(keyword).or_insert_with(|| value.clone());
        }
    }
    if let Some(Value::Array(alternatives)) = schema.remove("oneOf") {
        let values = alternatives.iter().filter_map(|it| it.get("const")).cloned();
        schema.insert("enum".to_owned(), values.collect());
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    schema.remove("format");
    change_below(&mut schema, |_, below| cleaned(below));
    schema
}

/// Changes every schema right below this one, given the name of the field that it is of, or `None`.
pub(crate) fn change_below(schema: &mut Schema, change: impl Fn(Option<&str>, Schema) -> Schema) {
    let changed = |name: Option<&str>, below: &mut Value| {
        if let Value::Object(fields) = below {
            *fields = change(name, mem::take(fields));
        }
    };
    for keyword in ["properties", "patternProperties"] {
        let fields = schema.get_mut(keyword).and_then(Value::as_object_mut);
        fields.into_iter().flatten().for_each(|(name, field)| changed(Some(name), field));
    }
    for keyword in ["items", "additionalProperties"] {
        schema.get_mut(keyword).into_iter().for_each(|items| changed(None, items));
    }
}

fn text<'a>(schema: &'a Schema, keyword: &str) -> &'a str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

/// What is allowed, in Markdown.
fn allowed(schema: &Schema) -> String {
    let of = |keyword: &str| schema.get(keyword).and_then(Value::as_object);
    let values = schema.get("enum").and_then(Value::as_array);
    let each = of("items").or_else(|| of("additionalProperties"));
    let each = each.or_else(|| of("patternProperties")?.values().next()?.as_object());
    match (text(schema, "x-expected"), text(schema, "type")) {
        ("", _) if values.is_some() => {
            let values: Vec<_> =
                values.into_iter().flatten().map(|it| format!("`{}`", yaml(it))).collect();
            values.join(" or ")
        }
        ("", "boolean") => "`true` or `false`".to_owned(),
        ("", "array") => format!("a list, each {}", each.map(allowed).unwrap_or_default()),
        ("", "object") => format!("a map, each {}", each.map(allowed).unwrap_or_default()),
        ("", other) => format!("a {other}"),
        (expected, _) => expected.to_owned(),
    }
}

/// A value as YAML has it in one line.
pub(crate) fn yaml(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_plain = serde_saphyr::from_str::<Value>(text).is_ok_and(|it| &it == value);
            if is_plain { text.clone() } else { value.to_string() }
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(yaml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| format!("{name}: {}", yaml(field)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        // Without a fraction that is none.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}
