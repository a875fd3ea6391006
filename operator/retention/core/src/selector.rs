//! Label selectors: which objects or namespaces a policy is about.
//!
//! A selector that the API server would refuse is an error here too. Taken literally it could select more than its
//! author meant: `NotIn` with a mistyped key selects everything.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::labels::Labels;

/// A label selector; without requirements it selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Box<[Requirement]>);

/// What one label has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: Arc<str>,
    condition: Condition,
}

/// What a label has to be, by the operators of Kubernetes. An absent label is in no set, so it fits `NotIn`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    In(BTreeSet<Box<str>>),
    NotIn(BTreeSet<Box<str>>),
    Exists,
    DoesNotExist,
}

/// Why a label selector is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// No label can have this key.
    #[error("{0:?} is no key of a label")]
    Key(String),
    /// No label can have this value.
    #[error("{0:?} is no value of a label")]
    Value(String),
    /// The operator is not one of the four.
    #[error("{0:?} is no operator: In, NotIn, Exists, DoesNotExist")]
    Operator(String),
    /// `In` and `NotIn` need values.
    #[error("{operator} of {key:?} needs values")]
    NoValues {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
    /// `Exists` and `DoesNotExist` have none.
    #[error("{operator} of {key:?} takes no values")]
    SuperfluousValues {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
}

impl Selector {
    /// Reads a label selector as it is stored.
    ///
    /// # Errors
    ///
    /// If the API server would not take it for one.
    pub fn parse(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let labels = selector.match_labels.iter().flatten().map(|(key, value)| {
            let values = BTreeSet::from([valid_value(value)?.into()]);
            Ok(Requirement { key: valid_key(key)?.into(), condition: Condition::In(values) })
        });
        let expressions = selector.match_expressions.iter().flatten().map(requirement);
        labels.chain(expressions).collect::<Result<_, _>>().map(Self)
    }

    /// Whether labels fit all requirements.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match &requirement.condition {
                Condition::In(values) => value.is_some_and(|value| values.contains(&**value)),
                Condition::NotIn(values) => !value.is_some_and(|value| values.contains(&**value)),
                Condition::Exists => value.is_some(),
                Condition::DoesNotExist => value.is_none(),
            }
        })
    }

    /// Whether it asks for a label to have this value, maybe beside others. What only fails to exclude the value does not
    /// name it.
    #[must_use]
    pub fn names(&self, key: &str, value: &str) -> bool {
        self.0.iter().any(|requirement| match &requirement.condition {
            Condition::In(values) => &*requirement.key == key && values.contains(value),
            Condition::NotIn(_) | Condition::Exists | Condition::DoesNotExist => false,
        })
    }

    /// The keys of the labels that it reads.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|requirement| &requirement.key)
    }
}

fn requirement(expression: &LabelSelectorRequirement) -> Result<Requirement, SelectorError> {
    let LabelSelectorRequirement { key, operator, values } = expression;
    let values: BTreeSet<Box<str>> = values
        .iter()
        .flatten()
        .map(|value| valid_value(value).map(Into::into))
        .collect::<Result<_, _>>()?;
    let condition = match (operator.as_str(), values.is_empty()) {
        ("In", false) => Condition::In(values),
        ("NotIn", false) => Condition::NotIn(values),
        ("Exists", true) => Condition::Exists,
        ("DoesNotExist", true) => Condition::DoesNotExist,
        ("In" | "NotIn", true) => {
            let (key, operator) = (key.clone(), operator.clone());
            return Err(SelectorError::NoValues { key, operator });
        }
        ("Exists" | "DoesNotExist", false) => {
            let (key, operator) = (key.clone(), operator.clone());
            return Err(SelectorError::SuperfluousValues { key, operator });
        }
        _ => return Err(SelectorError::Operator(operator.clone())),
    };
    Ok(Requirement { key: valid_key(key)?.into(), condition })
}

/// The key, if a label can have it: a name, maybe after the name of a domain and a slash.
pub(crate) fn valid_key(key: &str) -> Result<&str, SelectorError> {
    let (domain, name) =
        key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| {
        let is_label = |label: &str| {
            is_word(label, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), b"-")
        };
        domain.len() <= 253 && domain.split('.').all(is_label)
    };
    let valid = is_name(name) && domain.is_none_or(is_domain);
    valid.then_some(key).ok_or_else(|| SelectorError::Key(key.to_owned()))
}

fn valid_value(value: &str) -> Result<&str, SelectorError> {
    let valid = value.is_empty() || is_name(value);
    valid.then_some(value).ok_or_else(|| SelectorError::Value(value.to_owned()))
}

fn is_name(name: &str) -> bool {
    name.len() <= 63 && is_word(name, u8::is_ascii_alphanumeric, b"-_.")
}

/// Whether a text has only such characters, and others only inside.
fn is_word(text: &str, is_outer: impl Fn(&u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&is_outer)
        && bytes.last().is_some_and(&is_outer)
        && bytes.iter().all(|byte| is_outer(byte) || inner.contains(byte))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::interner::Interner;

    fn parse(selector: Value) -> Result<Selector, SelectorError> {
        Selector::parse(&serde_json::from_value(selector).unwrap())
    }

    fn expression(key: &str, operator: &str, values: &Value) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    #[test]
    fn every_requirement_has_to_fit() {
        let all = [("team", "a"), ("stage", "test"), ("empty", "")];
        let keys = ["team", "stage", "empty", "absent"].map(Arc::from).into_iter().collect();
        let all = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let labels = Labels::read(&all, &keys, &mut Interner::default());
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"team": "a"}}), true),
            (json!({"matchLabels": {"team": "b"}}), false),
            (json!({"matchLabels": {"team": "a", "absent": "x"}}), false),
            (json!({"matchLabels": {"empty": ""}}), true),
            (json!({"matchLabels": {"absent": ""}}), false),
            (expression("team", "In", &json!(["b", "a"])), true),
            (expression("team", "In", &json!(["b", "c"])), false),
            (expression("absent", "In", &json!(["a"])), false),
            (expression("team", "NotIn", &json!(["b"])), true),
            (expression("team", "NotIn", &json!(["a", "b"])), false),
            (expression("absent", "NotIn", &json!(["a"])), true),
            (expression("empty", "Exists", &json!(null)), true),
            (expression("absent", "Exists", &json!([])), false),
            (expression("absent", "DoesNotExist", &json!(null)), true),
            (expression("team", "DoesNotExist", &json!(null)), false),
            (
                json!({"matchLabels": {"team": "a"}, "matchExpressions": [
                    {"key": "stage", "operator": "Exists"},
                    {"key": "stage", "operator": "NotIn", "values": ["test"]},
                ]}),
                false,
            ),
        ] {
            assert_eq!(parse(selector.clone()).unwrap().matches(&labels), expected, "{selector}");
        }
    }

    #[test]
    fn what_the_api_server_would_refuse_is_no_selector() {
        let long = "a".repeat(64);
        for selector in [
            json!({"matchLabels": {"": "a"}}),
            json!({"matchLabels": {"team ": "a"}}),
            json!({"matchLabels": {"-team": "a"}}),
            json!({"matchLabels": {"/team": "a"}}),
            json!({"matchLabels": {"example.com/": "a"}}),
            json!({"matchLabels": {"Example.com/team": "a"}}),
            json!({"matchLabels": {"a/b/c": "a"}}),
            json!({"matchLabels": {"a..b/team": "a"}}),
            json!({"matchLabels": {&long: "a"}}),
            json!({"matchLabels": {"team": "a b"}}),
            json!({"matchLabels": {"team": "a-"}}),
            json!({"matchLabels": {"team": &long}}),
            expression("team", "In", &json!([])),
            expression("team", "NotIn", &json!(null)),
            expression("team", "NotIn", &json!(["ä"])),
            expression("team ", "NotIn", &json!(["a"])),
            expression("team", "Exists", &json!(["a"])),
            expression("team", "DoesNotExist", &json!(["a"])),
            expression("team", "in", &json!(["a"])),
            expression("team", "", &json!(null)),
        ] {
            assert!(parse(selector.clone()).is_err(), "{selector}");
        }
        for key in ["team", "a", "A_b.c-9", "example.com/Team", "a/b", "1/2"] {
            assert!(parse(json!({"matchLabels": {key: "a"}})).is_ok(), "{key}");
        }
    }

    #[test]
    fn only_a_value_that_is_asked_for_is_named() {
        let key = "kubernetes.io/metadata.name";
        for (selector, expected) in [
            (json!({"matchLabels": {key: "kube-system"}}), true),
            (expression(key, "In", &json!(["a", "kube-system"])), true),
            (expression(key, "In", &json!(["a"])), false),
            (expression(key, "NotIn", &json!(["a"])), false),
            (expression(key, "Exists", &json!(null)), false),
            (json!({"matchLabels": {"team": "kube-system"}}), false),
            (json!({}), false),
        ] {
            let names = parse(selector.clone()).unwrap().names(key, "kube-system");
            assert_eq!(names, expected, "{selector}");
        }
    }

    #[test]
    fn all_keys_that_are_read_are_known() {
        let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "DoesNotExist"}, {"key": "a", "operator": "Exists"},
        ]});
        let selector = parse(selector).unwrap();
        assert_eq!(selector.keys().map(|key| &**key).collect::<Vec<_>>(), ["a", "b", "a"]);
    }
}
