//! Label selectors: which objects or namespaces a policy is about.
//!
//! A selector that the API server would refuse is an error here too. Taken literally it could select more than its
//! author meant: `NotIn` with a mistyped key selects everything.

use std::sync::Arc;

use crate::{
    labels::Labels,
    operator::{Condition, ConditionError, Operator, Wanted},
};

/// A label selector; without requirements it selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Box<[Requirement]>);

/// What one label has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: Arc<str>,
    condition: Condition,
}

/// Why something is no requirement for a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// No label can have this key.
    #[error("{0:?} is no key of a label")]
    Key(String),
    /// No label can have this value.
    #[error("{0:?} is no value of a label")]
    Value(String),
    /// Operator and values do not go together.
    #[error("label {key:?}: {source}")]
    Condition {
        /// The key.
        key: String,
        /// Why.
        source: ConditionError,
    },
}

impl Requirement {
    /// What the label of this key has to be.
    ///
    /// # Errors
    ///
    /// If the API server would not take it for a requirement.
    pub fn new(key: &str, operator: Operator, values: &[&str]) -> Result<Self, SelectorError> {
        let key = valid_key(key)?;
        let values = values.iter().map(|value| valid_value(value));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let condition = Condition::new(operator, values);
        let condition =
            condition.map_err(|source| SelectorError::Condition { key: key.to_owned(), source })?;
        Ok(Self { key: key.into(), condition })
    }

    fn fits(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let is_wanted = match &self.condition.wanted {
            Wanted::OneOf(values) => value.is_some_and(|value| values.contains(&**value)),
            Wanted::Any => value.is_some(),
        };
        is_wanted != self.condition.negated
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self(requirements.into_iter().collect())
    }
}

impl Selector {
    /// Whether labels fit all requirements.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.fits(labels))
    }

    /// Whether it asks for a label to have this value, maybe beside others. What only fails to exclude the value does not
    /// name it.
    #[must_use]
    pub fn names(&self, key: &str, value: &str) -> bool {
        self.0.iter().any(|requirement| match &requirement.condition {
            Condition { wanted: Wanted::OneOf(values), negated: false } => {
                &*requirement.key == key && values.contains(value)
            }
            Condition { .. } => false,
        })
    }

    /// The keys of the labels that it reads.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|requirement| &requirement.key)
    }
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
    use super::*;
    use crate::interner::Interner;

    type Parts<'a> = (&'a str, Operator, &'a [&'a str]);

    fn selector(requirements: &[Parts<'_>]) -> Selector {
        let parse = |(key, operator, values): &Parts<'_>| Requirement::new(key, *operator, values);
        requirements.iter().map(|parts| parse(parts).unwrap()).collect()
    }

    #[test]
    fn every_requirement_has_to_fit() {
        use Operator::{DoesNotExist, Exists, In, NotIn};
        let all = [("team", "a"), ("stage", "test"), ("empty", "")];
        let keys = ["team", "stage", "empty", "absent"].map(Arc::from).into_iter().collect();
        let all = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let labels = Labels::read(&all, &keys, &mut Interner::default());
        for (requirements, expected) in [
            (&[][..], true),
            (&[("team", In, &["b", "a"][..])], true),
            (&[("team", In, &["b", "c"])], false),
            (&[("absent", In, &["a"])], false),
            (&[("empty", In, &[""])], true),
            (&[("absent", In, &[""])], false),
            (&[("team", NotIn, &["b"])], true),
            (&[("team", NotIn, &["a", "b"])], false),
            (&[("absent", NotIn, &["a"])], true),
            (&[("empty", Exists, &[])], true),
            (&[("absent", Exists, &[])], false),
            (&[("absent", DoesNotExist, &[])], true),
            (&[("team", DoesNotExist, &[])], false),
            (&[("team", In, &["a"]), ("stage", Exists, &[])], true),
            (&[("team", In, &["a"]), ("stage", NotIn, &["test"])], false),
        ] {
            assert_eq!(selector(requirements).matches(&labels), expected, "{requirements:?}");
        }
    }

    #[test]
    fn what_the_api_server_would_refuse_is_no_requirement() {
        let long = "a".repeat(64);
        let keys = ["", "team ", "-team", "/team", "example.com/", "Example.com/team", "a/b/c"];
        for key in keys.into_iter().chain(["a..b/team", &long]) {
            let refused = Err(SelectorError::Key(key.to_owned()));
            assert_eq!(Requirement::new(key, Operator::NotIn, &["a"]), refused);
        }
        for value in ["a b", "a-", "ä", &long] {
            let refused = Err(SelectorError::Value(value.to_owned()));
            assert_eq!(Requirement::new("team", Operator::In, &["a", value]), refused);
        }
        assert!(Requirement::new("team", Operator::NotIn, &[]).is_err());
        assert!(Requirement::new("team", Operator::Exists, &["a"]).is_err());
        for key in ["team", "a", "A_b.c-9", "example.com/Team", "a/b", "1/2"] {
            assert!(Requirement::new(key, Operator::In, &["", "a", "A_b.c-9"]).is_ok(), "{key}");
        }
    }

    #[test]
    fn only_a_value_that_is_asked_for_is_named() {
        use Operator::{Exists, In, NotIn};
        let key = "kubernetes.io/metadata.name";
        for (requirements, expected) in [
            (&[(key, In, &["a", "kube-system"][..])][..], true),
            (&[(key, In, &["a"])], false),
            (&[(key, NotIn, &["a"])], false),
            (&[(key, NotIn, &["kube-system"])], false),
            (&[(key, Exists, &[])], false),
            (&[("team", In, &["kube-system"])], false),
            (&[], false),
        ] {
            let names = selector(requirements).names(key, "kube-system");
            assert_eq!(names, expected, "{requirements:?}");
        }
    }

    #[test]
    fn all_keys_that_are_read_are_known() {
        let all = [("a", Operator::In, &["1"][..]), ("b", Operator::DoesNotExist, &[])];
        assert_eq!(selector(&all).keys().map(|key| &**key).collect::<Vec<_>>(), ["a", "b"]);
    }
}
