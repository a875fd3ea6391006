//! The cgroups of a node: one in every hierarchy, below that of whoever starts it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::testenv::guard::Guard;

/// Where the hierarchies are mounted.
const HIERARCHIES: &str = "/sys/fs/cgroup";
/// What a group without these takes no process.
const INHERITED: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];
/// Whose processes are listed there.
const PROCESSES: &str = "cgroup.procs";

/// A group in each hierarchy.
#[derive(Debug)]
pub(super) struct Groups {
    folders: Vec<PathBuf>,
    pids: PathBuf,
}

impl Groups {
    /// Creates them. The guard removes them.
    pub(super) fn create(guard: &Guard) -> Result<Self> {
        let name = guard.folder().file_name().context("a box without a name")?;
        let own = fs::read_to_string("/proc/self/cgroup").context("no cgroups")?;
        let (mut folders, mut pids) = (Vec::new(), None);
        for line in own.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = parts.next().zip(parts.next()).context("a strange line")?;
            if controllers.is_empty() {
                // Version 2, where the kubelet of a version 1 puts nothing.
                continue;
            }
            let hierarchy = controllers.strip_prefix("name=").unwrap_or(controllers);
            let parent = Path::new(HIERARCHIES).join(hierarchy).join(path.trim_start_matches('/'));
            let folder = parent.join(name);
            guard.create_cgroup(&folder)?;
            for file in INHERITED.iter().filter(|file| parent.join(file).exists()) {
                fs::write(folder.join(file), fs::read(parent.join(file))?)?;
            }
            if controllers == "pids" {
                pids = Some(folder.clone());
            }
            folders.push(folder);
        }
        Ok(Self { folders, pids: pids.context("nothing counts processes here")? })
    }

    /// Their folders.
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The processes in the groups of these Pods, which the kubelet has made below.
    pub(super) fn processes(&self, pods: &[String]) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        let mut folders = vec![self.pids.join("kubepods")];
        while let Some(folder) = folders.pop() {
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.strip_prefix("pod").is_some_and(|uid| !pods.iter().any(|it| it == uid)) {
                continue;
            }
            folders.extend(present(children(&folder))?.unwrap_or_default());
            let text = present(fs::read_to_string(folder.join(PROCESSES)))?.unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        Ok(found)
    }
}

fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// What was read, or nothing if the group was removed meanwhile.
fn present<T>(read: io::Result<T>) -> Result<Option<T>> {
    /// No such device: what a file of a removed group says.
    const ENODEV: i32 = 19;
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(ENODEV) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
