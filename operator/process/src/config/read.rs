//! From the text of a file to its fields.
//!
//! Two steps: YAML to a tree of values, so that a value has the type that it is written with
//! (`"0"` is a string, `0` is not), then the tree to fields. Both know the path they are at.

use std::{fs, path::Path};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::{Deserializer, Segment, Track};
use serde_saphyr::NonFiniteFloatPolicy;

use super::{
    error::{ConfigError, Problem},
    value::section,
};

/// Reads the file at `path`, whose fields have to pass `check` together.
///
/// # Errors
///
/// If the file cannot be read, is not YAML, has a field that the format does not have, or does not pass.
pub fn read<T: DeserializeOwned>(
    path: &Path,
    check: impl FnOnce(&T) -> Result<(), Problem>,
) -> Result<T, ConfigError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    tree(&text)
        .and_then(fields)
        .and_then(|file| check(&file).map(|()| file))
        .map_err(|problem| ConfigError::Invalid { path: path.to_owned(), problem })
}

fn tree(yaml: &str) -> Result<Value, Problem> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        reject_unsupported_tags: true,
        // Whatever field it is given for then says what it expects instead.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    };
    let mut track = Track::new();
    serde_saphyr::with_deserializer_from_str_with_options(yaml, options, |deserializer| {
        Value::deserialize(Deserializer::new(deserializer, &mut track))
    })
    .map_err(|error| {
        let place = error.location().map_or_else(String::new, |place| {
            format!(" at line {}, column {}", place.line(), place.column())
        });
        match error {
            serde_saphyr::Error::DuplicateMappingKey { key, .. } => {
                let path = [field(track), key.unwrap_or_default()];
                let path: Vec<_> = path.into_iter().filter(|part| !part.is_empty()).collect();
                Problem::new(path.join("."), format!("given again{place}, expected once"))
            }
            serde_saphyr::Error::MultipleDocuments { .. } => {
                Problem::new("", format!("a second YAML document{place}, expected one"))
            }
            error => Problem::new(field(track), format!("not valid YAML: {error}")),
        }
    })
}

fn fields<T: DeserializeOwned>(tree: Value) -> Result<T, Problem> {
    let mut track = Track::new();
    match section(Deserializer::new(tree, &mut track)) {
        Ok(Some(configuration)) => Ok(configuration),
        Ok(None) => Err(Problem::new("", "empty, expected at least `apiVersion` and `kind`")),
        Err(error) => {
            let message = error.to_string().replacen("unknown variant", "unknown value", 1);
            Err(Problem::new(field(track), message))
        }
    }
}

/// The path of the field that reading stopped at; empty for the whole.
fn field(track: Track) -> String {
    let mut field = String::new();
    for segment in &track.path() {
        match segment {
            Segment::Seq { index } => field.extend(["[", &index.to_string(), "]"]),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                if !field.is_empty() {
                    field.push('.');
                }
                field.push_str(key);
            }
            // A key that is not known yet.
            Segment::Unknown => {}
        }
    }
    field
}
