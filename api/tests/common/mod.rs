//! The shipped CRDs, read as anybody would read them: from the chart, as YAML, by path.
//!
//! Nothing here knows how they were made.

#![allow(dead_code, reason = "each test uses a part")]

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Map, Value, json};

/// The facts of one field, by their names in `upstream-schema/README.md`.
pub(crate) type Facts = Map<String, Value>;

/// The file of a CRD in the chart.
pub(crate) fn shipped(plural: &str) -> Value {
    let file = format!("../charts/trainjob-operator/files/crds/{plural}.trainer.kubeflow.org.yaml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap()
}

/// The schema of a shipped CRD as lines: path and facts.
pub(crate) fn flattened(plural: &str) -> BTreeMap<String, Facts> {
    let mut lines = BTreeMap::new();
    flatten("", &shipped(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut lines);
    lines
}

fn flatten(path: &str, schema: &Value, lines: &mut BTreeMap<String, Facts>) {
    let mut facts = Facts::new();
    for (word, value) in schema.as_object().unwrap() {
        match word.as_str() {
            "description" | "required" => {}
            "properties" => {
                for (field, schema) in value.as_object().unwrap() {
                    flatten(&format!("{path}.{field}"), schema, lines);
                }
            }
            "items" => flatten(&format!("{path}[]"), value, lines),
            "additionalProperties" => flatten(&format!("{path}{{}}"), value, lines),
            "x-kubernetes-validations" => {
                let rules = value.as_array().unwrap().iter();
                let rules = rules.map(|rule| json!([rule["rule"], rule["message"]])).collect();
                facts.insert("cel".into(), rules);
            }
            word => {
                facts.insert(word.trim_start_matches("x-kubernetes-").into(), value.clone());
            }
        }
    }
    lines.entry(path.into()).or_default().extend(facts);
    for field in schema["required"].as_array().into_iter().flatten() {
        let field = format!("{path}.{}", field.as_str().unwrap());
        lines.entry(field).or_default().insert("required".into(), true.into());
    }
}
