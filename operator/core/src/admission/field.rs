//! Errors about fields, in the words of the Kubernetes API.
//!
//! | kind | text |
//! |---|---|
//! | invalid | `<path>: Invalid value: <value>: <detail>` |
//! | required | `<path>: Required value: <detail>` |
//! | forbidden | `<path>: Forbidden: <detail>` |
//! | internal | `<path>: Internal error: <detail>` |
//!
//! Strings are quoted as Go's `%q` quotes them, numbers and booleans bare, everything else is JSON as Go
//! writes it. One thing differs from Go: the order of fields within JSON is that of our types.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::{self, Write},
};

use serde::Serialize;
use serde_json::Value;

/// How many errors one text shows. A request of a megabyte may have a hundred thousand.
const SHOWN: usize = 100;

/// One error about one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Where, such as `spec.trainer.env[2]`.
    pub path: String,
    /// What kind of error.
    pub kind: Kind,
    /// What is wrong, or what would be right; may be empty.
    pub detail: String,
}

/// The kind of a [`FieldError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The value, as it is shown, is not a good one.
    Invalid(String),
    /// There has to be a value.
    Required,
    /// There must not be this value, or this change, whatever the value.
    Forbidden,
    /// It could not be found out whether the value is a good one.
    Internal,
}

impl FieldError {
    /// The value of the field is not a good one.
    #[must_use]
    pub fn invalid<T: Serialize + ?Sized>(
        path: impl Into<String>,
        value: &T,
        detail: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), kind: Kind::Invalid(shown(value)), detail: detail.into() }
    }

    /// The field has no value and needs one.
    #[must_use]
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: Kind::Required, detail: detail.into() }
    }

    /// The field must not be there, or not change.
    #[must_use]
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: Kind::Forbidden, detail: detail.into() }
    }

    /// The field could not be judged.
    #[must_use]
    pub fn internal(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: Kind::Internal, detail: detail.into() }
    }

    /// What stays the same of an error when something else changes: items before the one that it is
    /// about, or another part of the list or object that it shows.
    fn essence(&self) -> String {
        let path = without_indices(&self.path);
        match &self.kind {
            Kind::Invalid(value) if !value.starts_with(['{', '[']) => {
                format!("{path}: {value}: {}", self.detail)
            }
            _ => format!("{path}: {}", self.detail),
        }
    }
}

/// The path without the places in lists.
fn without_indices(path: &str) -> String {
    let mut parts = path.split('[');
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((index, after)) if index.bytes().all(|byte| byte.is_ascii_digit()) => {
                rest.push_str(after);
            }
            _ => {
                rest.push('[');
                rest.push_str(part);
            }
        }
    }
    rest
}

/// The errors that a change brings in: those of `errors` that are not among the `known` ones of what is
/// stored, each of which accounts for one.
pub(super) fn brought_in(mut errors: Vec<FieldError>, known: &[FieldError]) -> Vec<FieldError> {
    let mut left = HashMap::<_, usize>::new();
    for error in known {
        *left.entry(error.essence()).or_default() += 1;
    }
    errors.retain(|error| match left.get_mut(&error.essence()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    errors
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match &self.kind {
            Kind::Invalid(value) => write!(f, ": Invalid value: {value}")?,
            Kind::Required => f.write_str(": Required value")?,
            Kind::Forbidden => f.write_str(": Forbidden")?,
            Kind::Internal => f.write_str(": Internal error")?,
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

/// All errors in one text: a single one as it is, several in brackets, each text once, in their order;
/// `None` if there are none. Beyond the first hundred they are only counted.
#[must_use]
pub fn aggregate(errors: &[FieldError]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let texts = errors.iter().map(ToString::to_string);
    let mut texts: Vec<_> = texts.filter(|text| seen.insert(text.clone())).collect();
    let more = texts.len().saturating_sub(SHOWN);
    if more > 0 {
        texts.truncate(SHOWN);
        texts.push(format!("and {more} more"));
    }
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// A value as an error shows it. An absent one is the word `"null"`, in quotes, as in Kubernetes.
fn shown<T: Serialize + ?Sized>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => quoted(&text),
        Ok(Value::Null) | Err(_) => quoted("null"),
        Ok(scalar @ (Value::Bool(_) | Value::Number(_))) => scalar.to_string(),
        // Once more from the value itself, whose fields are in a better order than a map's.
        Ok(Value::Array(_) | Value::Object(_)) => {
            serde_json::to_string(value).map_or_else(|_| quoted("null"), |json| for_html(&json))
        }
    }
}

/// A string as Go's `%q` writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        // Writing to a String cannot fail.
        let _ = match c {
            '"' => quoted.write_str("\\\""),
            '\\' => quoted.write_str("\\\\"),
            '\n' => quoted.write_str("\\n"),
            '\r' => quoted.write_str("\\r"),
            '\t' => quoted.write_str("\\t"),
            '\u{7}' => quoted.write_str("\\a"),
            '\u{8}' => quoted.write_str("\\b"),
            '\u{b}' => quoted.write_str("\\v"),
            '\u{c}' => quoted.write_str("\\f"),
            c if c.is_ascii_control() => write!(quoted, "\\x{:02x}", u32::from(c)),
            c if is_printable(c) => quoted.write_char(c),
            c if u32::from(c) > 0xffff => write!(quoted, "\\U{:08x}", u32::from(c)),
            c => write!(quoted, "\\u{:04x}", u32::from(c)),
        };
    }
    quoted.push('"');
    quoted
}

/// Whether Go writes the character as it is. Go and Rust agree on which can be seen, but only behind
/// another character does Rust write a combining one as it is, too.
fn is_printable(c: char) -> bool {
    c.is_ascii() || format!("a{c}").escape_debug().nth(1) == Some(c)
}

/// JSON as Go writes it, which may be pasted into HTML. These characters occur only within strings.
fn for_html(json: &str) -> String {
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    escapes.into_iter().fold(json.to_owned(), |json, (c, escape)| json.replace(c, escape))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::EnvVar;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_has_its_text() {
        for (error, expected) in [
            (FieldError::invalid("a.b", "x", "no"), "a.b: Invalid value: \"x\": no"),
            (FieldError::required("a.b", "name it"), "a.b: Required value: name it"),
            (FieldError::required("a.b", ""), "a.b: Required value"),
            (FieldError::forbidden("a.b", "no"), "a.b: Forbidden: no"),
            (FieldError::internal("a.b", "timeout"), "a.b: Internal error: timeout"),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn values_are_shown_as_go_shows_them() {
        for (value, expected) in [
            (json!("node"), r#""node""#),
            (json!(""), r#""""#),
            (json!("a\"b\\c\nd\te\u{1}\u{85}é"), "\"a\\\"b\\\\c\\nd\\te\\x01\\u0085é\""),
            (
                json!("a'b e\u{301} \u{a0}\u{200b}\u{feff} 東 \u{e0001}"),
                "\"a'b e\u{301} \\u00a0\\u200b\\ufeff 東 \\U000e0001\"",
            ),
            (json!(["\u{2028}"]), r#"["\u2028"]"#),
            (json!(3), "3"),
            (json!(-1), "-1"),
            (json!(true), "true"),
            (json!(null), r#""null""#),
            (json!([]), "[]"),
            (json!({"a": "<&>"}), r#"{"a":"\u003c\u0026\u003e"}"#),
        ] {
            assert_eq!(shown(&value), expected);
        }
        let variable = EnvVar { name: "B".into(), value: Some("1".into()), ..EnvVar::default() };
        assert_eq!(shown(&[variable]), r#"[{"name":"B","value":"1"}]"#);
    }

    #[test]
    fn several_errors_are_one_text() {
        let error = |path: &str| FieldError::forbidden(path, "no");
        for (errors, expected) in [
            (vec![], None),
            (vec![error("b")], Some("b: Forbidden: no")),
            (vec![error("b"), error("b")], Some("b: Forbidden: no")),
            (
                vec![error("b"), error("a"), error("b")],
                Some("[b: Forbidden: no, a: Forbidden: no]"),
            ),
        ] {
            assert_eq!(aggregate(&errors).as_deref(), expected);
        }
    }

    #[test]
    fn beyond_a_hundred_errors_are_counted() {
        let error = |item: usize| FieldError::forbidden(format!("a[{item}]"), "no");
        for (count, more) in
            [(100, None), (101, Some("and 1 more]")), (1_234, Some("and 1134 more]"))]
        {
            let text = aggregate(&(0..count).map(error).collect::<Vec<_>>()).unwrap();
            assert_eq!(text.matches("Forbidden").count(), 100);
            assert_eq!(text.rsplit_once(", and").is_some(), more.is_some());
            assert!(text.ends_with(more.unwrap_or("a[99]: Forbidden: no]")), "{text}");
        }
    }

    #[test]
    fn what_is_stored_accounts_for_as_many_errors_as_it_has() {
        let at = |item: u32, value: &str| FieldError::invalid(format!("a[{item}].b"), value, "no");
        let shown = |image: &str| FieldError::invalid("a", &json!([{"image": image}]), "no node");
        for (known, errors, expected) in [
            (vec![at(0, "x")], vec![at(0, "x")], vec![]),
            // It has moved.
            (vec![at(0, "x")], vec![at(3, "x")], vec![]),
            // There is another.
            (vec![at(0, "x")], vec![at(0, "x"), at(1, "x")], vec![at(1, "x")]),
            (vec![at(0, "x")], vec![at(0, "y")], vec![at(0, "y")]),
            // The list it shows has changed, what is wrong with it has not.
            (vec![shown("old")], vec![shown("new")], vec![]),
            (
                vec![FieldError::forbidden("l[a.io/b]", "no")],
                vec![FieldError::forbidden("l[a.io/c]", "no")],
                vec![FieldError::forbidden("l[a.io/c]", "no")],
            ),
        ] {
            assert_eq!(brought_in(errors, &known), expected);
        }
    }

    #[test]
    fn as_many_errors_as_fit_into_a_request_are_compared() {
        // One by one that would be ten thousand million comparisons.
        let errors = |name: &str| -> Vec<_> {
            (0..100_000)
                .map(|item| {
                    FieldError::invalid(format!("a[{item}]"), &format!("{name}{item}"), "no")
                })
                .collect()
        };
        let known = errors("x");
        assert_eq!(brought_in(errors("x"), &known), []);
        assert_eq!(brought_in(errors("y"), &known).len(), 100_000);
    }
}
