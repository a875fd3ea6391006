//! The files that come with JobSet and KWOK: definitions, webhook registrations, stages.
//!
//! They are dependencies to run, like the programs: read from the Go modules that the programs were
//! built from, never copied into this repository.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use launcher::{run_with_heartbeat, say};

use crate::binaries::{Pins, go};

const NO_GO: &str = "cannot run `go`, which knows where the files of JobSet and KWOK are";

/// A Go module some files of which the box needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Module {
    JobSet,
    Kwok,
}

/// The directories of the modules that the programs were built from, where their custom resource
/// definitions, webhook registrations and stages are.
#[derive(Debug, Clone)]
pub(crate) struct Modules {
    jobset: PathBuf,
    kwok: PathBuf,
}

impl Modules {
    /// Finds them, and downloads them if they are not there.
    ///
    /// # Errors
    ///
    /// The Go toolchain is missing, or the download failed.
    pub(crate) fn provide() -> Result<Self> {
        const NAMES: [&str; 2] = ["sigs.k8s.io/jobset", "sigs.k8s.io/kwok"];
        let list = || -> Result<Vec<PathBuf>> {
            let mut command = go(Pins::ControlPlane);
            command.args(["list", "-m", "-f", "{{.Dir}}"]).args(NAMES);
            let output = command.output().context(NO_GO)?;
            let directories = String::from_utf8(output.stdout)?;
            Ok(directories.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect())
        };
        let mut directories = list()?;
        if directories.len() < NAMES.len() {
            let mut command = go(Pins::ControlPlane);
            command.args(["mod", "download"]).args(NAMES);
            let forward = |line: &str| {
                say(line);
                true
            };
            let beat = |elapsed: Duration| format!("    … downloading, {} s", elapsed.as_secs());
            let status = run_with_heartbeat(&mut command, forward, beat).context(NO_GO)?;
            if !status.success() {
                bail!("go mod download failed ({status})");
            }
            directories = list()?;
        }
        let [jobset, kwok] = <[PathBuf; 2]>::try_from(directories)
            .ok()
            .context("go does not say where the modules of JobSet and KWOK are")?;
        Ok(Self { jobset, kwok })
    }

    /// The text of one file of a module.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn read(&self, module: Module, file: &str) -> Result<String> {
        let directory = match module {
            Module::JobSet => &self.jobset,
            Module::Kwok => &self.kwok,
        };
        let path = directory.join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}
