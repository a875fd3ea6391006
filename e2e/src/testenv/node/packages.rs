//! Debian's packages, unpacked and not installed: no service of theirs is wanted, and nothing of the machine changes.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use launcher::{run_with_heartbeat, say};

use crate::testenv::cache;

/// What a node consists of, and the shell of small images.
pub(super) const NODE: [&str; 5] =
    ["containerd", "runc", "libseccomp2", "containernetworking-plugins", "busybox-static"];

/// A folder with some packages in it.
#[derive(Debug, Clone)]
pub struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// Finds the packages in the user's cache directory; downloads and unpacks them where they are missing. `finish`
    /// is called with their folder before it is kept; what it depends on is `more`.
    pub fn provide(
        name: &str,
        packages: &[&str],
        more: &str,
        finish: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Self> {
        let mut hasher = DefaultHasher::new();
        (packages, more).hash(&mut hasher);
        let folder = cache::directory()?.join(format!("{name}-{:016x}", hasher.finish()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let root = folder.join("root");
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        if !root.exists() {
            say(format_args!("Unpacking {} into {}.", packages.join(", "), folder.display()));
            let unfinished = folder.join("unfinished");
            remove(&unfinished)?;
            fs::create_dir(&unfinished)?;
            let files = download(&unfinished, packages)?;
            let unpacked = unfinished.join("root");
            for file in files {
                run(Command::new("dpkg-deb").arg("--extract").arg(file).arg(&unpacked))?;
            }
            merge(&unpacked)?;
            finish(&unpacked)?;
            fs::rename(&unpacked, &root)?;
            remove(&unfinished)?;
        }
        Ok(Self { folder: root })
    }

    /// Those of the node itself.
    pub(super) fn of_node() -> Result<Self> {
        Self::provide("node-packages", &NODE, "", |_| Ok(()))
    }

    /// The folder that stands for `/`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Downloads packages into a folder and returns their files. What is to be had is asked anew, and kept in that folder:
/// the lists of the system may be old, and are not to be changed.
fn download(folder: &Path, packages: &[&str]) -> Result<Vec<PathBuf>> {
    let (lists, caches) = (folder.join("lists"), folder.join("cache"));
    for needed in [lists.join("partial"), caches.join("archives/partial")] {
        fs::create_dir_all(needed)?;
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(folder).args(["--quiet=2", "-o", "APT::Sandbox::User=root"]);
        command.arg("-o").arg(format!("Dir::State::lists={}", lists.display()));
        command.arg("-o").arg(format!("Dir::Cache={}", caches.display()));
        command.args(arguments);
        run(&mut command)
    };
    apt(&["update"])?;
    apt(&[&["download"][..], packages].concat())?;
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let files = files.collect::<Result<Vec<_>>>()?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|it| it == "deb");
    Ok(files.into_iter().filter(is_package).collect())
}

/// Moves what is beside `usr` into it, as it is on every system of today.
fn merge(root: &Path) -> Result<()> {
    for name in ["bin", "sbin", "lib", "lib64"] {
        let (from, to) = (root.join(name), root.join("usr").join(name));
        if from.is_dir() && !from.is_symlink() {
            fs::create_dir_all(&to)?;
            run(Command::new("cp").arg("--archive").arg(from.join(".")).arg(&to))?;
            fs::remove_dir_all(&from)?;
        }
        if to.is_dir() {
            std::os::unix::fs::symlink(Path::new("usr").join(name), &from)?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Runs a command to its end, with a sign of life.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut complaints = Vec::new();
    let collect = |line: &str| {
        complaints.push(line.to_owned());
        false
    };
    let beat = |elapsed: Duration| format!("    … {program}, {} s so far", elapsed.as_secs());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    let status = run_with_heartbeat(command, collect, beat);
    let status = status.with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!("{command:?} failed ({status}):\n{}", complaints.join("\n"));
    }
    Ok(())
}
