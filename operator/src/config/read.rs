//! From the text of a file to its fields.
//!
//! Two steps: YAML to a tree of values, so that a value has the type that it is written with
//! (`"0"` is a string, `0` is not), then the tree to fields. Both know the path they are at.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::Value;
use serde_path_to_error::{Deserializer, Track};

use super::{ConfigError, error::Problem, file::Configuration, rules, value::section};

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> Result<Configuration, ConfigError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    tree(&text)
        .and_then(fields)
        .and_then(|file| rules::check(&file).map(|()| file))
        .map_err(|problem| ConfigError::Invalid { path: path.to_owned(), problem })
}

fn tree(yaml: &str) -> Result<Value, Problem> {
    let mut track = Track::new();
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::with_deserializer_from_str_with_options(yaml, options, |deserializer| {
        Value::deserialize(Deserializer::new(deserializer, &mut track))
    })
    .map_err(|error| {
        let place = error.location().map_or_else(String::new, |place| {
            format!(" at line {}, column {}", place.line(), place.column())
        });
        match error {
            serde_saphyr::Error::DuplicateMappingKey { key, .. } => {
                let section = field(&track);
                let dot = if section.is_empty() { "" } else { "." };
                let key = key.unwrap_or_default();
                Problem::new(
                    format!("{section}{dot}{key}"),
                    format!("duplicate field{place}, expected once"),
                )
            }
            serde_saphyr::Error::MultipleDocuments { .. } => {
                Problem::new("", format!("a second YAML document{place}, expected one"))
            }
            error => Problem::new("", format!("not valid YAML: {error}")),
        }
    })
}

fn fields(tree: Value) -> Result<Configuration, Problem> {
    let mut track = Track::new();
    match section(Deserializer::new(tree, &mut track)) {
        Ok(Some(configuration)) => Ok(configuration),
        Ok(None) => Err(Problem::new("", "empty, expected at least `apiVersion` and `kind`")),
        Err(error) => {
            let message = error.to_string().replacen("unknown variant", "unknown value", 1);
            Err(Problem::new(field(&track), message))
        }
    }
}

/// The path of the field that reading stopped at.
fn field(track: &Track) -> String {
    let path = track.path();
    if path.iter().next().is_some() { path.to_string() } else { String::new() }
}
