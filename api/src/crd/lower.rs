//! From what schemars says of a type to what a structural schema may say of it.
//!
//! The lowering is a list of what is taken over; all else is dropped by not being on it: references,
//! titles, `null` (an absent field is absent), formats that only Rust knows, and the defaults that
//! serde applies when it reads (those a server applies are facts).
//!
//! A Rust enum is a choice. One of names becomes a string with these values. One of fields becomes an object with all
//! of them; that it has exactly one is a fact.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

use super::{
    fact::{self, Facts},
    field_updates::FieldUpdates,
    kubernetes, own, policies, records,
};

/// Formats that Kubernetes knows, of those that occur.
const FORMATS: [&str; 3] = ["date-time", "int32", "int64"];
/// Upstream cuts descriptions at this length too.
const LONGEST_DESCRIPTION: usize = 128;

/// How much of a doc comment a description has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Descriptions {
    /// The first sentence, cut off.
    Brief,
    /// All of it.
    Full,
}

/// The definitions of one type and of everything it is made of.
pub(super) struct Definitions {
    root: Value,
    by_name: Map<String, Value>,
    updates: FieldUpdates,
    descriptions: Descriptions,
}

impl Definitions {
    pub(super) fn of<T: JsonSchema>(updates: FieldUpdates) -> Self {
        let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
        let root = generator.subschema_for::<T>().to_value();
        let by_name = generator.take_definitions(true);
        Self { root, by_name, updates, descriptions: Descriptions::Brief }
    }

    /// The same with descriptions that are whole doc comments.
    pub(super) fn described_in_full(self) -> Self {
        Self { descriptions: Descriptions::Full, ..self }
    }

    /// The schema of the root type with every reference replaced by what it refers to.
    pub(super) fn inlined(&self) -> JSONSchemaProps {
        let definition = reference(&self.root).and_then(|name| self.by_name.get(name));
        let description = definition.and_then(|definition| self.description(definition));
        JSONSchemaProps { description, ..self.lower(&self.root, false) }
    }

    /// The definition `name` with its facts, references replaced.
    fn definition(&self, name: &str) -> JSONSchemaProps {
        // Kubernetes documents its own types; their descriptions would be most of the CRD.
        let described = !name.starts_with("io.k8s.");
        let mut schema =
            self.by_name.get(name).map(|body| self.lower(body, described)).unwrap_or_default();
        for facts in all_facts().filter(|facts| facts.definition == name) {
            fact::lay_over(&mut schema, facts, self.updates);
        }
        schema
    }

    fn description(&self, schema: &Value) -> Option<String> {
        let text = schema.get("description")?.as_str()?.replace('\n', " ");
        Some(match self.descriptions {
            Descriptions::Brief => brief(&text),
            Descriptions::Full => text.replace('`', ""),
        })
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
        let names = names(schema);
        JSONSchemaProps {
            type_: type_name(schema),
            enum_: (!names.is_empty()).then(|| names.into_iter().map(JSON).collect()),
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
            properties: self.fields(schema, described),
            required: schema
                .get("required")
                .and_then(Value::as_array)
                .map(|fields| fields.iter().filter_map(Value::as_str).map(Into::into).collect()),
            items: schema.get("items").map(|items| {
                JSONSchemaPropsOrArray::Schema(Box::new(self.lower(items, described)))
            }),
            additional_properties: schema
                .get("additionalProperties")
                .filter(|values| values.is_object())
                .map(|values| {
                    JSONSchemaPropsOrBool::Schema(Box::new(self.lower(values, described)))
                }),
            ..Default::default()
        }
    }

    /// The fields of an object, and those of its choices. What a choice says of itself is said of its field.
    fn fields(&self, schema: &Value, described: bool) -> Option<BTreeMap<String, JSONSchemaProps>> {
        let own = [(schema, None)].into_iter();
        let of_choices = choices(schema).map(|choice| (choice, self.description(choice)));
        let objects = own.chain(of_choices).filter_map(|(object, description)| {
            Some((object.get("properties")?.as_object()?, description))
        });
        let lowered = objects.flat_map(|(fields, of_choice)| {
            fields.iter().map(move |(field, schema)| {
                let description = of_choice.clone().or_else(|| self.description(schema));
                let description = description.filter(|_| described);
                let lowered = self.lower(schema, described);
                (field.clone(), JSONSchemaProps { description, ..lowered })
            })
        });
        let lowered: BTreeMap<_, _> = lowered.collect();
        (!lowered.is_empty()).then_some(lowered)
    }
}

/// All facts there are.
fn all_facts() -> impl Iterator<Item = &'static Facts> {
    own::FACTS.iter().chain(policies::FACTS).chain(records::FACTS).chain(kubernetes::FACTS)
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

/// The type, `null` aside. That of a choice is what it is a choice of.
fn type_name(schema: &Value) -> Option<String> {
    let Some(stated) = schema.get("type") else {
        return choices(schema).find_map(type_name);
    };
    let name = match stated {
        Value::Array(names) => names.iter().find(|name| *name != "null")?,
        name => name,
    };
    name.as_str().map(Into::into)
}

/// What a schema is one of, if it is a choice.
fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get("oneOf").and_then(Value::as_array).into_iter().flatten()
}

/// The names that a choice of names has.
fn names(schema: &Value) -> Vec<Value> {
    choices(schema).filter_map(|choice| choice.get("const").cloned()).collect()
}

/// The first sentence of a description, in plain text.
fn brief(text: &str) -> String {
    let sentence = text.split_once(". ").map_or(text, |(first, _)| first);
    let sentence = sentence.trim_end_matches('.').replace('`', "");
    sentence.chars().take(LONGEST_DESCRIPTION - 1).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lifecycle::v1alpha1::{
            policy::{ClusterRetentionPolicySpec, RetentionPolicySpec},
            record::{TrainJobRecordSpec, TrainJobRecordStatus},
            status::RetentionPolicyStatus,
        },
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
            Definitions::of::<RetentionPolicySpec>(updates),
            Definitions::of::<ClusterRetentionPolicySpec>(updates),
            Definitions::of::<RetentionPolicyStatus>(updates),
            Definitions::of::<TrainJobRecordSpec>(updates),
            Definitions::of::<TrainJobRecordStatus>(updates),
        ];
        for facts in all_facts() {
            let name = facts.definition;
            let found = all.iter().find_map(|all| Some((all, all.by_name.get(name)?)));
            let (definitions, body) = found.unwrap_or_else(|| panic!("{name} does not exist"));
            let known = definitions.fields(body, false).unwrap_or_default();
            for (field, _) in facts.fields {
                assert!(known.contains_key(*field), "{name} has no field {field}");
            }
        }
    }
}
