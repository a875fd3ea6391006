//! The operator as it was before it knew marks, built from the history of this repository.
//!
//! It is built once, which takes minutes, and kept in the user's cache directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use launcher::{run_with_heartbeat, say};

use crate::testenv::{cache, workspace};

/// The file with which marks came.
const CAME_WITH: &str = "operator/core/src/mark.rs";
const OPERATOR: &str = "trainjob-operator";
/// How much of a commit is in the name of a folder.
const SHORT: usize = 16;

/// The file of that operator, and the commit that it is built from.
pub(super) fn provide() -> Result<(PathBuf, String)> {
    let commit = commit()?;
    let short = commit.get(..SHORT).context("a short commit")?.to_owned();
    let folder = cache::directory()?.join(format!("older-operator-{short}"));
    let file = folder.join(OPERATOR);
    if !file.is_file() {
        build(&commit, &folder, &file)?;
    }
    Ok((file, short))
}

/// The last commit without marks.
fn commit() -> Result<String> {
    let came = git(&["log", "--diff-filter=A", "--format=%H", "--", CAME_WITH])?;
    let came = came.lines().last().with_context(|| format!("nothing has added {CAME_WITH}"))?;
    let before = format!("{came}^");
    let parent = git(&["rev-parse", "--verify", "--quiet", &before]);
    let parent = parent.context("an older operator is built from the history, which is not here");
    Ok(parent?.trim().to_owned())
}

/// Builds it beside its final place, so that it appears there complete or not at all.
fn build(commit: &str, folder: &Path, file: &Path) -> Result<()> {
    let unfinished = folder.join("unfinished");
    // A build that was killed leaves hundreds of megabytes.
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    let (source, target) = (unfinished.join("source"), unfinished.join("target"));
    fs::create_dir_all(&source)?;
    let archive = unfinished.join("source.tar");
    git(&["archive", "--output", &archive.display().to_string(), commit])?;
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&source).status()?;
    ensure!(unpacked.success(), "tar: {unpacked}");
    say(format_args!(
        "Building the operator of {commit}. This happens once and takes some minutes; the result is kept in {}.",
        folder.display()
    ));
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["build", "--locked", "--package", OPERATOR, "--bin", OPERATOR]);
    // Nobody debugs it.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_TARGET_DIR", &target);
    command.current_dir(&source).stdin(Stdio::null());
    let mut lines = Vec::new();
    let keep = |line: &str| {
        lines.push(line.to_owned());
        false
    };
    let beat = |elapsed: Duration| format!("    … building, {} s so far", elapsed.as_secs());
    let status = run_with_heartbeat(&mut command, keep, beat)?;
    ensure!(status.success(), "cargo build: {status}\n{}", lines.join("\n"));
    fs::rename(target.join("debug").join(OPERATOR), file)?;
    fs::remove_dir_all(unfinished)?;
    Ok(())
}

/// What git says of this repository.
fn git(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    let output = command.args(arguments).current_dir(workspace::path(".")).output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), complaint.trim());
    Ok(String::from_utf8(output.stdout)?)
}
