//! The namespaces of a node, and how programs get into them.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::groups::Groups;
use super::packages::Packages;
use crate::testenv::guard::Guard;
use crate::testenv::process::Process;
use crate::testenv::until::until;
use crate::testenv::workspace;

/// The address of the node, on which Pods reach the name server.
pub(super) const ADDRESS: &str = "10.77.0.1";
/// What runs as process 1 in them.
const INIT: &str = "e2e/node/init.sh";
/// How long that takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Moves itself into the groups before `--`, then becomes the program behind it.
const JOIN: &str = r#"
while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit; shift; done
shift
exec "$@"
"#;
const SHELL: &str = "/bin/sh";

/// Namespaces with nothing in them but their process 1. Dropped, everything in them ends.
#[derive(Debug)]
pub(super) struct Sandbox {
    init: Process,
    groups: Groups,
    guard: Guard,
}

impl Sandbox {
    /// Makes them.
    pub(super) async fn start(packages: &Packages) -> Result<Self> {
        let guard = Guard::new()?;
        let groups = Groups::create(&guard)?;
        let namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup"];
        let how = ["--fork", "--kill-child", "--mount-proc", "--propagation", "private"];
        let mut command: Vec<String> = vec!["unshare".to_owned()];
        command.extend(namespaces.iter().chain(&how).map(|&flag| flag.to_owned()));
        let folders = [guard.folder(), packages.folder()].map(|it| it.display().to_string());
        command.extend([SHELL.to_owned(), workspace::path(INIT).display().to_string()]);
        command.extend(folders);
        command.push(format!("{ADDRESS}/24"));
        let init = spawn(&guard, &groups, "init", command)?;
        let (ready, what) = (guard.folder().join("ready"), "the namespaces are there");
        init.ready_when(until(what, PATIENCE, || async { ready.exists().then_some(()) })).await?;
        Ok(Self { init, groups, guard })
    }

    /// A folder for what the node writes, the same within and without.
    pub(super) fn folder(&self) -> &Path {
        self.guard.folder()
    }

    pub(super) const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Moves the calling thread, and all that is started from it, into the network.
    pub(super) fn enter_network(&self) -> Result<()> {
        let link = self.namespace("net");
        let file = File::open(&link).with_context(|| format!("no {}", link.display()))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .context("cannot enter the network of the node")
    }

    /// Starts a program inside. Its log is `NAME.log`, in [`Sandbox::folder`].
    pub(super) fn spawn(&self, name: &str, program: &[&str]) -> Result<Process> {
        spawn(&self.guard, &self.groups, name, self.within(program))
    }

    /// What a program inside prints.
    pub(super) async fn output(&self, program: &[&str]) -> Result<String> {
        let what = program.join(" ");
        let mut command = Command::new(SHELL);
        command.args(joining(&self.groups, self.within(program))).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await?;
        let output = output.with_context(|| format!("cannot run {what}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{what}: {}", complaint.trim());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The command line that runs a program inside. It ends with the process that waits for it, so that killing that
    /// is killing the program.
    fn within(&self, program: &[&str]) -> Vec<String> {
        // Its own process namespace is not that of its child, which is process 1.
        let pid = format!("--pid={}", self.namespace("pid_for_children").display());
        let target = format!("--target={}", self.init.id());
        let enter = ["nsenter", &target, "--mount", "--net", "--ipc", "--uts", "--cgroup", &pid];
        let follow = ["setpriv", "--pdeathsig", "KILL"];
        let parts = [&enter[..], &follow, program];
        parts.concat().into_iter().map(str::to_owned).collect()
    }

    fn namespace(&self, name: &str) -> PathBuf {
        ["/proc", &self.init.id().to_string(), "ns", name].iter().collect()
    }
}

fn spawn(guard: &Guard, groups: &Groups, name: &str, program: Vec<String>) -> Result<Process> {
    guard.spawn(name, Path::new(SHELL), joining(groups, program), &[])
}

/// What the shell is told that runs `program` in the groups.
fn joining(groups: &Groups, program: Vec<String>) -> Vec<String> {
    let mut arguments: Vec<String> = ["-c", JOIN, "join"].map(str::to_owned).into();
    arguments.extend(groups.folders().iter().map(|folder| folder.display().to_string()));
    arguments.push("--".to_owned());
    arguments.extend(program);
    arguments
}
