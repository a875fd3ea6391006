//! Metrics, dashboards, alerts, runbooks and their tests name each other; here they are compared.
//!
//! What the programs really expose is compared with `docs/metrics.md` elsewhere, so that what holds for the page holds
//! for them.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod alerts;
mod dashboards;
mod promql;
mod series;

use std::fs;
use std::path::Path;

/// The names of the files of a folder of this repository.
fn files(folder: &str) -> Vec<String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(folder);
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
