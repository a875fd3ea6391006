//! The files that come with JobSet, KWOK and the other programs: definitions, webhook configurations, stages.
//!
//! They are dependencies to run, like the programs: read from the Go modules that the programs were
//! built from, never copied into this repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use launcher::{run_with_heartbeat, say};

use crate::testenv::binaries::{JobSet, Pins, Versions, go};

/// A Go module some files of which are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    JobSet(JobSet),
    Kwok,
    Kueue,
    /// Kubeflow Trainer.
    Trainer,
    SchedulerPlugins,
}

impl Module {
    const fn path(self) -> &'static str {
        match self {
            Self::JobSet(_) => "sigs.k8s.io/jobset",
            Self::Kwok => "sigs.k8s.io/kwok",
            Self::Kueue => "sigs.k8s.io/kueue",
            Self::Trainer => "github.com/kubeflow/trainer/v2",
            Self::SchedulerPlugins => "sigs.k8s.io/scheduler-plugins",
        }
    }

    const fn pins(self) -> Pins {
        match self {
            Self::JobSet(version) => version.pins(),
            Self::Kwok => Pins::ControlPlane,
            Self::Kueue => Pins::Kueue,
            Self::Trainer => Pins::Trainer,
            Self::SchedulerPlugins => Pins::Coscheduling,
        }
    }
}

/// The directory of one module, as it was released.
#[derive(Debug, Clone)]
pub(crate) struct ModuleFiles {
    directory: PathBuf,
}

impl ModuleFiles {
    /// Finds it, and downloads it if it is not there.
    pub(crate) fn provide(module: Module) -> Result<Self> {
        let path = module.path();
        let run = |arguments: &[&str]| -> Command {
            let mut command = go(module.pins());
            command.args(arguments).arg(path);
            command
        };
        let no_go = || format!("cannot run `go`, which knows where the files of {path} are");
        let find = || -> Result<Option<PathBuf>> {
            let output = run(&["list", "-m", "-f", "{{.Dir}}"]).output().with_context(no_go)?;
            let directory = String::from_utf8(output.stdout)?.trim().to_owned();
            Ok((!directory.is_empty()).then(|| directory.into()))
        };
        if let Some(directory) = find()? {
            return Ok(Self { directory });
        }
        let forward = |line: &str| {
            say(line);
            true
        };
        let beat = |elapsed: Duration| format!("    … downloading, {} s", elapsed.as_secs());
        let status = run_with_heartbeat(&mut run(&["mod", "download"]), forward, beat)
            .with_context(no_go)?;
        if !status.success() {
            bail!("go mod download {path} failed ({status})");
        }
        let directory = find()?.with_context(|| format!("go does not say where {path} is"))?;
        Ok(Self { directory })
    }

    /// The text of one file.
    pub(crate) fn read(&self, file: &str) -> Result<String> {
        let path = self.directory.join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Where one of its files or folders is.
    pub(crate) fn path(&self, of: &str) -> PathBuf {
        self.directory.join(of)
    }

    /// The paths of the YAML files in one of its folders, in the order of their names.
    pub(crate) fn yaml_files(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.directory.join(folder);
        let entries =
            fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let names = names.collect::<Result<Vec<_>>>()?;
        let is_yaml = |name: &&String| Path::new(name).extension() == Some("yaml".as_ref());
        let mut files: Vec<String> =
            names.iter().filter(is_yaml).map(|name| format!("{folder}/{name}")).collect();
        files.sort();
        Ok(files)
    }
}

/// The files of the modules that every box needs.
#[derive(Debug, Clone)]
pub(crate) struct Modules {
    pub(crate) jobset: ModuleFiles,
    pub(crate) kwok: ModuleFiles,
}

impl Modules {
    /// Finds them, and downloads them if they are not there.
    pub(crate) fn provide(versions: Versions) -> Result<Self> {
        Ok(Self {
            jobset: ModuleFiles::provide(Module::JobSet(versions.jobset))?,
            kwok: ModuleFiles::provide(Module::Kwok)?,
        })
    }
}
