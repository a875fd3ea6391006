//! The lines of a watch, each of which is an event.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// An object in short: which one, and in which version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Named<'a> {
    /// Its namespace; empty for an object of the cluster.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// Its name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its version.
    #[serde(borrow)]
    pub resource_version: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Bare<'a> {
    #[serde(borrow, default)]
    metadata: Named<'a>,
}

impl<'a> Named<'a> {
    /// Reads it from the text of an object.
    ///
    /// # Errors
    ///
    /// The text is no object.
    pub fn read(object: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Bare<'a>>(object).map(|bare| bare.metadata)
    }
}

/// An event of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// This is there, or is there in another version.
    Changed(&'a str, Named<'a>),
    /// This is gone, or does not fit the selection any more.
    Deleted(&'a str, Named<'a>),
    /// Nothing; all until this version has been told.
    Bookmark(Named<'a>),
    /// The watch cannot go on, for the reason of this HTTP status.
    Failed(u16),
}

/// How an event is written.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What an event of the type `ERROR` has as its object.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

impl<'a> Event<'a> {
    /// Reads a line. A type that is not known is taken for a failure, so that all is listed again.
    ///
    /// # Errors
    ///
    /// The line is no event.
    pub(super) fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        let Line { kind, object } = serde_json::from_str(line)?;
        let object = object.get();
        Ok(match &*kind {
            "ADDED" | "MODIFIED" => Self::Changed(object, Named::read(object)?),
            "DELETED" => Self::Deleted(object, Named::read(object)?),
            "BOOKMARK" => Self::Bookmark(Named::read(object)?),
            _ => Self::Failed(serde_json::from_str::<Status>(object)?.code),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(name: &'a str, version: &'a str) -> Named<'a> {
        Named { namespace: "a".into(), name: name.into(), resource_version: version.into() }
    }

    #[test]
    fn a_line_says_what_became_of_which_object() {
        let job = r#"{"metadata":{"namespace":"a","name":"j","resourceVersion":"7","uid":"u"},"spec":{"x":"\u00fc"}}"#;
        let failed = r#"{"kind":"Status","code":410,"reason":"Expired"}"#;
        let bookmark =
            r#"{"kind":"Job","metadata":{"resourceVersion":"9","creationTimestamp":null}}"#;
        let at_nine = Named { resource_version: "9".into(), ..Named::default() };
        for (kind, object, expected) in [
            ("ADDED", job, Event::Changed(job, named("j", "7"))),
            ("MODIFIED", job, Event::Changed(job, named("j", "7"))),
            ("DELETED", job, Event::Deleted(job, named("j", "7"))),
            ("BOOKMARK", bookmark, Event::Bookmark(at_nine)),
            ("ERROR", failed, Event::Failed(410)),
            ("NEW", "{}", Event::Failed(0)),
        ] {
            let line = format!(r#"{{"type":"{kind}","object":{object}}}"#);
            assert_eq!(Event::read(&line).unwrap(), expected, "{kind}");
        }
        for line in ["", "{}", r#"{"type":"ADDED"}"#, r#"{"type":"ADDED","object":7}"#] {
            assert!(Event::read(line).is_err(), "{line}");
        }
    }
}
