//! The releases of Kubernetes and JobSet that the operator is shown with: the same tests on every one.
//!
//! What is run are the demo, parts of this acceptance, and integration tests that `cargo test` runs on the newest
//! releases. Each starts its own clusters, of the versions that its environment names.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::testenv::binaries::{Binaries, Program, Versions};
use crate::testenv::guard::Guard;
use crate::testenv::workspace;

/// Integration tests, and what they show.
const TESTS: [(&str, &str); 5] = [
    ("admission", "admission"),
    ("frozen", "snapshots, updates of suspended jobs"),
    ("retention_policies", "definitions of retention policies"),
    ("runtimes", "every runtime that ships"),
    ("version_skew", "definitions and webhook configurations of other versions"),
];
/// Parts of this acceptance, which take definitions and kubectl of these versions.
const PARTS: [&str; 2] = ["chart", "kubectl"];
/// How long the slowest of them may take on a busy machine. Each has limits of its own.
const PATIENCE: Duration = Duration::from_mins(30);
/// What Kubernetes 1.31 says of the definition of JobSet 0.12: it does not know what one of its rules is about.
const REFUSED: &str = "cannot apply CustomResourceDefinition jobsets.jobset.x-k8s.io";
/// How much of the output of one that failed is shown.
const SHOWN_LINES: usize = 60;

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let guard = Guard::new()?;
    let folder = guard.folder().to_owned();
    let prepare = move || {
        provide()?;
        programs(&folder)
    };
    let programs = tokio::task::spawn_blocking(prepare).await??;
    tell("the programs of all versions are there");
    for versions in Versions::ALL {
        let begun = Instant::now();
        if !versions.fit() {
            refused(&guard, versions).await?;
            tell(&format!("{versions}: Kubernetes refuses the definition of JobSets, as expected"));
            continue;
        }
        for program in &programs {
            let (since, name) = (Instant::now(), &program.name);
            let ran = program.run(&guard, versions).await;
            ran.with_context(|| format!("{versions}: {name}"))?;
            tell(&format!("{versions}: {name}, {:.0} s", since.elapsed().as_secs_f64()));
        }
        let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        let took = begun.elapsed().as_secs_f64();
        tell(&format!("{versions}: all is as it should be in {took:.0} s ({})", names.join(", ")));
    }
    Ok(())
}

/// Sees that JobSet cannot be installed, so that nobody waits for a cluster of these versions.
async fn refused(guard: &Guard, versions: Versions) -> Result<()> {
    let demo = Run::new("demo", workspace::demo()?, &[]);
    let Err(error) = demo.run(guard, versions).await else {
        bail!("{versions} go together by now: let the tests run on them, and say so in the docs");
    };
    let error = format!("{error:#}");
    ensure!(error.contains(REFUSED), "{versions}: {error}");
    Ok(())
}

/// Builds what clusters of all versions consist of, so that no test has to wait for it.
fn provide() -> Result<()> {
    use Program::{ApiServer, ControllerManager, Etcd, JobSet, Kubectl, Kwok, Scheduler};
    let all = [Etcd, ApiServer, ControllerManager, Scheduler, Kubectl, JobSet, Kwok];
    for versions in Versions::ALL {
        Binaries::provide_versions(&all, versions)?;
    }
    Binaries::provide(&[Program::Helm])?;
    Ok(())
}

/// What is run for each of the versions.
fn programs(folder: &Path) -> Result<Vec<Run>> {
    let own = std::env::current_exe()?;
    let mut programs = vec![Run::new("demo", workspace::demo()?, &[])];
    for part in PARTS {
        programs.push(Run::new(part, own.clone(), &["--only", part]));
    }
    let files = workspace::tests(&TESTS.map(|(test, _)| test), folder)?;
    for ((_, shows), file) in TESTS.into_iter().zip(files) {
        programs.push(Run::new(shows, file, &[]));
    }
    Ok(programs)
}

/// A program that shows something, whatever the versions.
struct Run {
    name: String,
    file: PathBuf,
    arguments: Vec<String>,
}

impl Run {
    fn new(name: &str, file: PathBuf, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { name: name.to_owned(), file, arguments }
    }

    /// Runs it on clusters of these versions; the end of its output tells why it failed.
    async fn run(&self, guard: &Guard, versions: Versions) -> Result<()> {
        let environment = versions.environment().map(|(name, to)| (name.into(), to.into()));
        let name = self.file.file_name().context("a program without a name")?.to_string_lossy();
        let process = guard.spawn(&name, &self.file, &self.arguments, &environment)?;
        let status = process.wait(PATIENCE).await?;
        let log = process.log()?;
        let lines: Vec<&str> = log.lines().collect();
        let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
        ensure!(status.success(), "{status}\n{}", shown.join("\n"));
        std::fs::remove_file(process.log_path())?;
        Ok(())
    }
}
