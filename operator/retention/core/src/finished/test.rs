//! Tests of single values of an object, by which a policy describes ends and guards.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use super::pruned::FieldPath;
use crate::{
    metadata::Metadata,
    operator::{Condition, Wanted},
};

/// A test of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// What is tested.
    pub subject: Subject,
    /// What it has to be. A value that is null or an empty text is none for `Exists`; numbers, true and false are compared
    /// as JSON writes them.
    pub condition: Condition,
}

/// What is tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A field.
    Field(FieldPath),
    /// A label.
    Label(Arc<str>),
    /// An annotation.
    Annotation(Arc<str>),
    /// All annotations whose keys begin so: one at least has to be what is wanted, or none where that is negated.
    Annotations(Arc<str>),
}

impl Test {
    /// Whether an object stands the test.
    pub(super) fn holds(&self, metadata: &Metadata, fields: &Value) -> bool {
        let Metadata { labels, annotations, .. } = metadata;
        let is_wanted = match &self.subject {
            Subject::Field(path) => path.find(fields).is_some_and(|value| self.wants(value)),
            Subject::Label(key) => labels.get(&**key).is_some_and(|text| self.wants_text(text)),
            Subject::Annotation(key) => {
                annotations.get(&**key).is_some_and(|text| self.wants_text(text))
            }
            Subject::Annotations(prefix) => {
                let mut all = annotations.iter().filter(|(key, _)| key.starts_with(&**prefix));
                all.any(|(_, text)| self.wants_text(text))
            }
        };
        is_wanted != self.condition.negated
    }

    fn wants(&self, value: &Value) -> bool {
        match (text(value), &self.condition.wanted) {
            (Some(text), _) => self.wants_text(&text),
            (None, Wanted::Any) => true,
            (None, Wanted::OneOf(_)) => false,
        }
    }

    fn wants_text(&self, text: &str) -> bool {
        match &self.condition.wanted {
            Wanted::OneOf(values) => values.contains(text),
            Wanted::Any => !text.is_empty(),
        }
    }

    /// The field that is tested.
    pub(super) const fn path(&self) -> Option<&FieldPath> {
        match &self.subject {
            Subject::Field(path) => Some(path),
            Subject::Label(_) | Subject::Annotation(_) | Subject::Annotations(_) => None,
        }
    }
}

/// The text of a value; lists and objects have none.
pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(flag) => Some(flag.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operator::Operator::{self, DoesNotExist, Exists, In, NotIn};

    fn holds(subject: Subject, (operator, values): (Operator, &[&str])) -> bool {
        let metadata = json!({
            "labels": {"team": "a", "empty": ""},
            "annotations": {"x.dev/a": "1", "x.dev/b": "2", "y.dev/c": ""},
        });
        let fields = json!({"text": "t", "none": "", "null": null, "number": 7, "ratio": 0.5, "yes": true,
            "list": ["t"], "object": {"in": "t"}});
        let condition = Condition::new(operator, values.iter().copied()).unwrap();
        let test = Test { subject, condition };
        test.holds(&serde_json::from_value(metadata).unwrap(), &fields)
    }

    #[test]
    fn a_field_is_compared_as_json_writes_it() {
        for (path, condition, expected) in [
            ("text", (In, &["s", "t"][..]), true),
            ("text", (NotIn, &["t"]), false),
            ("text", (Exists, &[]), true),
            ("none", (In, &[""]), true),
            ("none", (Exists, &[]), false),
            ("none", (DoesNotExist, &[]), true),
            ("null", (Exists, &[]), false),
            ("null", (In, &["null"]), false),
            ("number", (In, &["7"]), true),
            ("number", (In, &["7.0"]), false),
            ("ratio", (In, &["0.5"]), true),
            ("yes", (In, &["true"]), true),
            ("yes", (NotIn, &["true"]), false),
            ("list", (Exists, &[]), true),
            ("list", (In, &["t"]), false),
            ("list", (NotIn, &["t"]), true),
            ("object", (DoesNotExist, &[]), false),
            ("object.in", (In, &["t"]), true),
            ("absent", (Exists, &[]), false),
            ("absent", (NotIn, &["t"]), true),
            ("absent", (In, &["t"]), false),
        ] {
            let subject = Subject::Field(FieldPath::parse(path).unwrap());
            assert_eq!(holds(subject, condition), expected, "{path} {condition:?}");
        }
    }

    #[test]
    fn labels_and_annotations_are_tested_by_their_keys() {
        let label = |key: &str| Subject::Label(key.into());
        let annotation = |key: &str| Subject::Annotation(key.into());
        for (subject, condition, expected) in [
            (label("team"), (In, &["a"][..]), true),
            (label("team"), (NotIn, &["a"]), false),
            (label("empty"), (Exists, &[]), false),
            (label("absent"), (DoesNotExist, &[]), true),
            (annotation("x.dev/a"), (In, &["1"]), true),
            (annotation("x.dev/"), (Exists, &[]), false),
        ] {
            let description = format!("{subject:?} {condition:?}");
            assert_eq!(holds(subject, condition), expected, "{description}");
        }
    }

    #[test]
    fn of_many_annotations_one_has_to_be_what_is_wanted_or_none() {
        for (prefix, condition, expected) in [
            ("x.dev/", (In, &["2"][..]), true),
            ("x.dev/", (In, &["3"]), false),
            ("x.dev/", (NotIn, &["2"]), false),
            ("x.dev/", (NotIn, &["3"]), true),
            ("x.dev/", (Exists, &[]), true),
            ("x.dev/", (DoesNotExist, &[]), false),
            ("y.dev/", (Exists, &[]), false),
            ("z.dev/", (Exists, &[]), false),
            ("z.dev/", (NotIn, &["2"]), true),
            ("", (In, &["1"]), true),
        ] {
            let subject = Subject::Annotations(prefix.into());
            assert_eq!(holds(subject, condition), expected, "{prefix} {condition:?}");
        }
    }
}
