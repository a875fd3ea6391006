//! Facts of a schema that Rust types do not state.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use serde_json::{Map, Value};

use super::field_updates::FieldUpdates;

/// What is true of one definition: of the whole, and of fields by their names in JSON.
pub(super) struct Facts {
    pub(super) definition: &'static str,
    pub(super) whole: &'static [Fact],
    pub(super) fields: &'static [(&'static str, &'static [Fact])],
}

/// The facts of one definition, for tables.
pub(super) const fn of(
    definition: &'static str,
    whole: &'static [Fact],
    fields: &'static [(&'static str, &'static [Fact])],
) -> Facts {
    Facts { definition, whole, fields }
}

/// One fact.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fact {
    /// The field must be there.
    Required,
    /// The field may be absent.
    Optional,
    /// The server fills the field in, so it may be absent.
    Default(Literal),
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A string of this form.
    Pattern(&'static str),
    /// A string of at least this many characters.
    MinLength(i64),
    /// A string of at most this many characters.
    MaxLength(i64),
    /// A number of at least this.
    Minimum(f64),
    /// A number of at most this.
    Maximum(f64),
    /// An object with at least this many fields.
    MinProperties(i64),
    /// An object with at most this many fields.
    MaxProperties(i64),
    /// An integer of no fixed width.
    AnyWidth,
    /// A list whose items are merged by these fields.
    MapBy(&'static [&'static str]),
    /// A list of distinct values.
    Set,
    /// A list that is replaced as a whole.
    AtomicList,
    /// An object that is replaced as a whole.
    AtomicMap,
    /// A map whose entries are merged one by one, said outright.
    GranularMap,
    /// A CEL rule and its message.
    Rule(&'static str, &'static str),
    /// A CEL rule and its message, under [`FieldUpdates::Immutable`].
    RuleWhileImmutable(&'static str, &'static str),
    /// A CEL rule, its message, and the field, from here, that the refusal names, with its reason.
    RuleAt { rule: &'static str, message: &'static str, path: &'static str, reason: &'static str },
    /// Facts of a list's items.
    Items(&'static [Fact]),
    /// Facts of a map's values.
    Values(&'static [Fact]),
    /// Of an object's fields, only these.
    Only(&'static [&'static str]),
}

/// A list whose items are merged by name, as most are.
pub(super) const BY_NAME: Fact = Fact::MapBy(&["name"]);

/// A value to fill in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Literal {
    Bool(bool),
    Int(i64),
    Str(&'static str),
    EmptyObject,
}

/// Lays the facts of a definition over its schema.
pub(super) fn lay_over(schema: &mut JSONSchemaProps, facts: &Facts, updates: FieldUpdates) {
    apply_all(schema, facts.whole, updates);
    for (field, facts) in facts.fields {
        let required = schema.required.get_or_insert_default();
        for fact in *facts {
            match fact {
                Fact::Required if !required.iter().any(|name| name == field) => {
                    required.push((*field).into());
                }
                Fact::Optional | Fact::Default(_) => required.retain(|name| name != field),
                _ => {}
            }
        }
        required.sort_unstable();
        if required.is_empty() {
            schema.required = None;
        }
        let Some(schema) = schema.properties.as_mut().and_then(|fields| fields.get_mut(*field))
        else {
            continue;
        };
        apply_all(schema, facts, updates);
    }
}

fn apply(schema: &mut JSONSchemaProps, fact: Fact, updates: FieldUpdates) {
    match fact {
        // Said in the object that has the field.
        Fact::Required | Fact::Optional => {}
        Fact::Default(value) => schema.default = Some(JSON(value.into())),
        Fact::OneOf(values) => {
            schema.enum_ = Some(values.iter().map(|value| JSON((*value).into())).collect());
        }
        Fact::Pattern(pattern) => schema.pattern = Some(pattern.into()),
        Fact::MinLength(length) => schema.min_length = Some(length),
        Fact::MaxLength(length) => schema.max_length = Some(length),
        Fact::Minimum(value) => schema.minimum = Some(value),
        Fact::Maximum(value) => schema.maximum = Some(value),
        Fact::MinProperties(count) => schema.min_properties = Some(count),
        Fact::MaxProperties(count) => schema.max_properties = Some(count),
        Fact::AnyWidth => schema.format = None,
        Fact::MapBy(keys) => {
            schema.x_kubernetes_list_type = Some("map".into());
            schema.x_kubernetes_list_map_keys =
                Some(keys.iter().copied().map(Into::into).collect());
        }
        Fact::Set => schema.x_kubernetes_list_type = Some("set".into()),
        Fact::AtomicList => schema.x_kubernetes_list_type = Some("atomic".into()),
        Fact::AtomicMap => schema.x_kubernetes_map_type = Some("atomic".into()),
        Fact::GranularMap => schema.x_kubernetes_map_type = Some("granular".into()),
        Fact::RuleWhileImmutable(..) if updates == FieldUpdates::Mutable => {}
        Fact::Rule(text, message) | Fact::RuleWhileImmutable(text, message) => {
            schema.x_kubernetes_validations.get_or_insert_default().push(rule((text, message)));
        }
        Fact::RuleAt { rule: text, message, path, reason } => {
            schema.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
                field_path: Some(path.into()),
                reason: Some(reason.into()),
                ..rule((text, message))
            });
        }
        Fact::Items(facts) => {
            if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
                apply_all(items, facts, updates);
            }
        }
        Fact::Values(facts) => {
            if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
                apply_all(values, facts, updates);
            }
        }
        Fact::Only(fields) => {
            if let Some(properties) = &mut schema.properties {
                properties.retain(|name, _| fields.contains(&name.as_str()));
            }
        }
    }
}

fn apply_all(schema: &mut JSONSchemaProps, facts: &[Fact], updates: FieldUpdates) {
    for fact in facts {
        apply(schema, *fact, updates);
    }
}

impl From<Literal> for Value {
    fn from(literal: Literal) -> Self {
        match literal {
            Literal::Bool(value) => value.into(),
            Literal::Int(value) => value.into(),
            Literal::Str(value) => value.into(),
            Literal::EmptyObject => Self::Object(Map::new()),
        }
    }
}

/// A CEL rule and its message, as a schema has them.
pub(super) fn rule((rule, message): (&str, &str)) -> ValidationRule {
    ValidationRule { rule: rule.into(), message: Some(message.into()), ..Default::default() }
}
