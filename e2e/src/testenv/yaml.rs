//! Reading and writing manifests.

use anyhow::{Context, Result};
use serde_json::Value;

/// The documents of a YAML stream; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).context("not YAML")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

/// A YAML stream of `documents`: JSON is YAML.
#[must_use]
pub fn stream(documents: &[Value]) -> String {
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}
