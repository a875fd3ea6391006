//! What an image is built from. That the programs run with nothing beside them takes a build of their own.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use e2e::workspace;

#[test]
fn the_image_is_built_by_the_compiler_of_this_repository() {
    let toolchain = workspace::read("rust-toolchain.toml").unwrap();
    let channel = toolchain.split_once("channel = \"").unwrap().1.split('"').next().unwrap();
    let dockerfile = workspace::read("Dockerfile").unwrap();
    assert!(dockerfile.contains(&format!("\nARG RUST_VERSION={channel}\n")), "{channel}");
}

#[test]
fn ci_release_and_dockerfile_use_the_same_tools() {
    let version = |script: &str, name: &str| {
        let script = workspace::read(script).unwrap();
        let said = script.split_once(&format!("\n{name}=")).unwrap().1;
        said.lines().next().unwrap().to_owned()
    };
    let auditable = version(".ci/run", "AUDITABLE_VERSION");
    let dockerfile = workspace::read("Dockerfile").unwrap();
    assert!(dockerfile.contains(&format!("\nARG AUDITABLE_VERSION={auditable}\n")), "{auditable}");
    assert_eq!(version(".ci/release", "AUDITABLE_VERSION"), auditable);
    assert_eq!(version(".ci/advisories", "DENY_VERSION"), version(".ci/run", "DENY_VERSION"));
}

/// A tag may mean something else tomorrow.
#[test]
fn what_others_have_made_is_named_by_its_digest() {
    let is_hex =
        |it: &str, length| it.len() == length && it.bytes().all(|it| it.is_ascii_hexdigit());
    let mut actions = 0;
    for workflow in ["ci", "release", "advisories"] {
        let workflow = workspace::read(&format!(".github/workflows/{workflow}.yml")).unwrap();
        for action in workflow.lines().filter_map(|line| line.split_once("uses: ")).map(|it| it.1) {
            let commit = action.split_once('@').unwrap().1.split(' ').next().unwrap();
            assert!(is_hex(commit, 40), "{action}");
            actions += 1;
        }
    }
    assert!(actions > 5, "{actions} actions");
    let dockerfile = workspace::read("Dockerfile").unwrap();
    let bases = dockerfile.lines().filter(|it| it.starts_with("FROM ") && *it != "FROM scratch");
    let digests = bases.map(|base| base.split_once("@sha256:").expect(base).1.split(' ').next());
    assert!(digests.map(|it| is_hex(it.unwrap(), 64)).eq([true]));
}

/// Cargo wants every member of the workspace, also to build one of them.
#[test]
fn everything_that_the_workspace_consists_of_gets_into_the_build() {
    let ignored = workspace::read(".dockerignore").unwrap();
    let manifest = workspace::read("Cargo.toml").unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split(']').next().unwrap();
    let files = ["Cargo.toml", "Cargo.lock", ".cargo", ".ci", "LICENSE"];
    let folders = members.split('"').skip(1).step_by(2).map(|it| it.split('/').next().unwrap());
    for needed in folders.chain(files) {
        assert!(ignored.lines().any(|line| line == format!("!{needed}")), "{needed}");
    }
}
