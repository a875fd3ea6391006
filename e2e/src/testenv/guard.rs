//! Nothing survives its owner.
//!
//! A box is a folder and the processes that work in it. A small shell process, the guard, holds
//! the reading end of a pipe whose writing end only its owner has. When the owner drops it, panics,
//! is interrupted or killed, the pipe closes, and the guard ends every process it was told of and
//! removes the folder. It needs no signal handler and no cooperation of a dying process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

use crate::testenv::process::{KEEP, Process};

/// Reads process ids and cgroups until the pipe closes, then ends those processes and removes the cgroups and the
/// folder.
///
/// The working directory tells whether an id is still the process it was: every process of a box
/// runs in the box's folder, or below where that is all it sees. First SIGTERM in the reverse order of start, SIGKILL a second later.
/// A cgroup can be removed when nothing is left in it: what those processes had started ends a moment after them.
const GUARD: &str = r#"
trap '' INT TERM HUP
dir=$1 keep=$2 pids= groups=
while read -r line; do
    case $line in
        /*) groups="$line $groups" ;;
        *) pids="$line $pids" ;;
    esac
done
signal() {
    left=
    for pid in $pids; do
        case $(readlink "/proc/$pid/cwd") in
            "$dir" | "$dir"/*) kill "-$1" "$pid" && left="$left $pid" ;;
        esac
    done
    pids=$left
}
signal TERM
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -z "$pids" ] && break
    sleep 0.05
    signal 0
done
signal KILL
while [ -n "$pids" ]; do sleep 0.02; signal 0; done
for group in $groups; do
    while [ -d "$group" ] && ! find "$group" -depth -type d -exec rmdir {} +; do sleep 0.02; done
done
[ -n "$keep" ] || rm -rf "$dir"
"#;

/// Tells the guard the process id before it becomes the program: however early the owner is
/// killed, either the guard has read the id or the program was never started.
const ANNOUNCE: &str = r#"echo "$$"; log=$1; shift; exec "$@" >>"$log" 2>&1"#;

/// A folder and the processes in it; both go when this value does.
#[derive(Debug)]
pub struct Guard {
    folder: PathBuf,
    script: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Creates the folder and starts the guard.
    pub fn new() -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("trainjob-box-")
            .tempdir()
            .context("cannot create a folder for the box")?;
        // Resolved, because the guard compares it with what the kernel says.
        let path = folder.path().canonicalize()?;
        let keep = std::env::var_os(KEEP).unwrap_or_default();
        let mut script = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .args([path.as_os_str(), &keep])
            .current_dir("/")
            // Ctrl-C goes to the whole foreground group; the guard is not to be part of it.
            .process_group(0)
            .stdin(Stdio::piped())
            // Whoever reads our output to its end must not wait for the guard.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run sh")?;
        let pipe = script.stdin.take();
        // From here on, removing the folder is the guard's work.
        let _ = folder.keep();
        Ok(Self { folder: path, script, pipe })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts `program` in the folder, in a process group of its own, with its output appended to
    /// `NAME.log` there.
    pub fn spawn<A: AsRef<OsStr>>(
        &self,
        name: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        environment: &[(String, String)],
    ) -> Result<Process> {
        let log = self.folder.join(format!("{name}.log"));
        File::options().append(true).create(true).open(&log)?;
        fs::metadata(program).with_context(|| format!("no {}", program.display()))?;
        let pipe = self.pipe.as_ref().context("the box is being stopped")?;
        let announce: OwnedFd = pipe.as_fd().try_clone_to_owned()?;
        let child = Command::new("sh")
            .args(["-c", ANNOUNCE, name])
            .arg(&log)
            .arg(program)
            .args(arguments)
            .envs(environment.iter().map(|(key, value)| (key, value)))
            .current_dir(&self.folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(announce)
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Process::new(name, child, log))
    }

    /// Creates a cgroup, which is removed before the folder is, when everything in it has ended.
    pub(crate) fn create_cgroup(&self, group: &Path) -> Result<()> {
        let mut pipe = self.pipe.as_ref().context("the box is being stopped")?;
        writeln!(pipe, "{}", group.display())?;
        fs::create_dir(group).with_context(|| format!("cannot create {}", group.display()))
    }

    /// Ends every process and removes the folder; returns when that is done.
    pub fn stop(&mut self) {
        self.pipe = None;
        let _ = self.script.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop();
    }
}
