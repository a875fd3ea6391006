//! The chart's CRDs are what the types say.

#![allow(missing_docs, reason = "a test")]

use std::{fs, path::Path};

use trainjob_api::crd;

#[test]
fn the_chart_s_crds_are_made_from_these_types() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/trainjob-operator/files");
    for (folder, name, content) in crd::files().unwrap() {
        let path = Path::new(directory).join(folder).join(&name);
        let shipped = fs::read_to_string(path).unwrap_or_default();
        // Not `assert_eq!`: two CRDs side by side are not a message anybody reads.
        assert!(
            shipped == content,
            "{name} has drifted; run: cargo run -p trainjob-api --bin crdgen"
        );
    }
}

/// What etcd and the API server accept of one object is 1.5 MiB by default.
#[test]
fn a_crd_is_far_smaller_than_what_the_api_server_stores() {
    for (_, name, content) in crd::files().unwrap() {
        assert!(content.len() < 450 * 1024, "{name}: {} bytes", content.len());
    }
}
