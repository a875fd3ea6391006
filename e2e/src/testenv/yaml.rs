//! Reading and writing manifests.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

/// From so many bytes on, a text is a definition that every box of a process installs.
const LARGE: usize = 16 * 1024;

/// The documents of a YAML stream; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    if text.len() < LARGE { read(text) } else { read_once(text) }
}

/// Without optimisation, a megabyte of definitions takes most of a second to read.
fn read_once(text: &str) -> Result<Vec<Value>> {
    static KNOWN: Mutex<BTreeMap<String, Vec<Value>>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(documents) = known().get(text).cloned() {
        return Ok(documents);
    }
    let documents = read(text)?;
    known().insert(text.to_owned(), documents.clone());
    Ok(documents)
}

fn read(text: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).context("not YAML")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

/// A YAML stream of `documents`: JSON is YAML.
#[must_use]
pub fn stream(documents: &[Value]) -> String {
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}
