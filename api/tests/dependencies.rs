//! The pure crates stay pure: no I/O and no async runtime in what they are compiled from.

#![allow(missing_docs, reason = "a test")]

use std::process::Command;

#[test]
fn neither_the_api_nor_a_decision_core_depends_on_an_async_runtime_or_a_client() {
    for package in ["trainjob-api", "trainjob-core", "trainjob-accounting-core"] {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--package", package])
            .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&tree.stderr);
        assert!(tree.status.success(), "{errors}");
        let packages = String::from_utf8(tree.stdout).unwrap();
        let names: Vec<_> = packages.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(names.contains(&"serde"), "this is not a dependency tree:\n{packages}");
        for impure in ["tokio", "hyper", "tower", "rustls", "kube-client", "kube-runtime"] {
            assert!(!names.contains(&impure), "{package} depends on {impure}");
        }
    }
}
