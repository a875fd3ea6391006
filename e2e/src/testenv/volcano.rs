//! The API of Volcano: definitions made from the types of its own release.
//!
//! Its scheduler is no module that Go can build outside Volcano's repository, and no definition comes with its
//! types. So the generator that Volcano's own definitions are made with runs over those types.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::testenv::binaries::{Binaries, Pins, Program};
use crate::testenv::yaml;

const TYPES: &str = "paths=volcano.sh/apis/pkg/apis/scheduling/v1beta1";

/// The definitions of PodGroups and Queues.
pub fn definitions() -> Result<Vec<Value>> {
    let binaries = Binaries::provide(&[Program::ControllerGen])?;
    let mut command = Command::new(binaries.path(Program::ControllerGen));
    // It asks Go for the source of the types, so it runs where they are pinned.
    command.args(["crd", TYPES, "output:crd:stdout"]).current_dir(Pins::Volcano.directory());
    let output = command.output().context("cannot run controller-gen")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "controller-gen: {}", complaint.trim());
    yaml::documents(std::str::from_utf8(&output.stdout)?)
}
