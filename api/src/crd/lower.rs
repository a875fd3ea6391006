//! From what schemars says of a type to what a structural schema may say of it.
//!
//! The lowering is a list of what is taken over; all else is dropped by not being on it: references,
//! titles, `null` (an absent field is absent), formats that only Rust knows, and the defaults that
//! serde applies when it reads (those a server applies are facts).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

use super::{fact, field_updates::FieldUpdates, kubernetes, own};

/// Formats that Kubernetes knows, of those that occur.
const FORMATS: [&str; 3] = ["date-time", "int32", "int64"];
/// Upstream cuts descriptions at this length too.
const LONGEST_DESCRIPTION: usize = 128;

/// The definitions of one type and of everything it is made of.
pub(super) struct Definitions {
    root: Value,
    by_name: Map<String, Value>,
    updates: FieldUpdates,
}

impl Definitions {
    pub(super) fn of<T: JsonSchema>(updates: FieldUpdates) -> Self {
        let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
        let root = generator.subschema_for::<T>().to_value();
        Self { root, by_name: generator.take_definitions(true), updates }
    }

    /// The schema of the root type with every reference replaced by what it refers to.
    pub(super) fn inlined(&self) -> JSONSchemaProps {
        let definition = reference(&self.root).and_then(|name| self.by_name.get(name));
        JSONSchemaProps { description: definition.and_then(brief), ..self.lower(&self.root, false) }
    }

    /// The definition `name` with its facts, references replaced.
    fn definition(&self, name: &str) -> JSONSchemaProps {
        // Kubernetes documents its own types; their descriptions would be most of the CRD.
        let described = !name.starts_with("io.k8s.");
        let mut schema =
            self.by_name.get(name).map(|body| self.lower(body, described)).unwrap_or_default();
        for facts in own::FACTS.iter().chain(kubernetes::FACTS).filter(|f| f.definition == name) {
            fact::lay_over(&mut schema, facts, self.updates);
        }
        schema
    }

    /// Lowers one schema; its fields get descriptions if `described`.
    fn lower(&self, schema: &Value, described: bool) -> JSONSchemaProps {
        if let Some(name) = reference(schema) {
            return self.definition(name);
        }
        if let Some(inner) = nullable(schema) {
            return self.lower(inner, described);
        }
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let count = |key: &str| schema.get(key).and_then(Value::as_i64);
        let int_or_string = schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool);
        JSONSchemaProps {
            type_: type_name(schema),
            format: schema
                .get("format")
                .and_then(Value::as_str)
                .filter(|format| FORMATS.contains(format))
                .map(Into::into),
            minimum: number("minimum"),
            maximum: number("maximum"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            x_kubernetes_int_or_string: int_or_string,
            any_of: int_or_string.map(|_| ["integer", "string"].map(of_type).into()),
            properties: schema.get("properties").and_then(Value::as_object).map(|fields| {
                let lowered = fields.iter().map(|(field, schema)| {
                    let description = described.then(|| brief(schema)).flatten();
                    let lowered = self.lower(schema, described);
                    (field.clone(), JSONSchemaProps { description, ..lowered })
                });
                lowered.collect()
            }),
            required: schema
                .get("required")
                .and_then(Value::as_array)
                .map(|fields| fields.iter().filter_map(Value::as_str).map(Into::into).collect()),
            items: schema.get("items").map(|items| {
                JSONSchemaPropsOrArray::Schema(Box::new(self.lower(items, described)))
            }),
            additional_properties: schema.get("additionalProperties").map(|values| {
                JSONSchemaPropsOrBool::Schema(Box::new(self.lower(values, described)))
            }),
            ..Default::default()
        }
    }
}

fn of_type(name: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(name.into()), ..Default::default() }
}

/// The definition a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The schema of the value of an `Option`, where schemars writes it as "this or null".
fn nullable(schema: &Value) -> Option<&Value> {
    schema
        .get("anyOf")?
        .as_array()?
        .iter()
        .find(|choice| type_name(choice).as_deref() != Some("null"))
}

/// The type, `null` aside.
fn type_name(schema: &Value) -> Option<String> {
    let name = match schema.get("type")? {
        Value::Array(names) => names.iter().find(|name| *name != "null")?,
        name => name,
    };
    name.as_str().map(Into::into)
}

/// The first sentence of a description, in plain text.
fn brief(schema: &Value) -> Option<String> {
    let text = schema.get("description")?.as_str()?.replace('\n', " ");
    let sentence = text.split_once(". ").map_or(text.as_str(), |(first, _)| first);
    let sentence = sentence.trim_end_matches('.').replace('`', "");
    Some(sentence.chars().take(LONGEST_DESCRIPTION - 1).chain(['.']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        v1alpha1::runtime::TrainingRuntimeSpec,
        v1alpha1::train_job::{TrainJobSpec, TrainJobStatus},
    };

    #[test]
    fn every_fact_is_about_something_there_is() {
        let updates = FieldUpdates::default();
        let all = [
            Definitions::of::<TrainJobSpec>(updates),
            Definitions::of::<TrainJobStatus>(updates),
            Definitions::of::<TrainingRuntimeSpec>(updates),
        ];
        for facts in own::FACTS.iter().chain(kubernetes::FACTS) {
            let name = facts.definition;
            let body = all.iter().find_map(|definitions| definitions.by_name.get(name));
            let body = body.unwrap_or_else(|| panic!("{name} does not exist"));
            for (field, _) in facts.fields {
                assert!(body["properties"].get(field).is_some(), "{name} has no field {field}");
            }
        }
    }
}
