//! One running program of a box.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::testenv::until::until;

/// Set to anything, this environment variable keeps the folder of a box, with all logs.
pub const KEEP: &str = "TRAINJOB_BOX_KEEP";

/// How many lines of a log an error shows.
const SHOWN_LINES: usize = 20;

/// Between two looks where no runtime is there to wait with.
const BLOCKING_PAUSE: Duration = Duration::from_millis(10);

const A_DAY: Duration = Duration::from_hours(24);

/// A program that was started in a box.
///
/// Dropping it kills it. It uses no feature of an async runtime, so it can outlive the runtime of
/// the test that started it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Mutex<Child>,
    log: PathBuf,
}

impl Process {
    pub(crate) fn new(name: &str, child: Child, log: PathBuf) -> Self {
        Self { name: name.to_owned(), child: Mutex::new(child), log }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// The most memory that it ever had, in bytes (`VmHWM`).
    pub fn peak_memory(&self) -> Result<usize> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|it| it.trim().strip_suffix("kB")).context("no VmHWM")?;
        Ok(kilobytes.trim().parse::<usize>()? * 1_024)
    }

    /// The file its output goes to.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Everything it has written so far.
    pub fn log(&self) -> Result<String> {
        let bytes =
            fs::read(&self.log).with_context(|| format!("cannot read the log of {}", self.name))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&self) -> Option<ExitStatus> {
        // An error means that somebody else reaped it, which nobody does.
        self.child().try_wait().ok().flatten()
    }

    /// Waits until it has ended.
    pub async fn wait(&self, timeout: Duration) -> Result<ExitStatus> {
        let what = format!("{} has ended", self.name);
        until(what, timeout, || async { self.ended() }).await
    }

    /// Sends `signal`; a process that has ended is left alone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let mut child = self.child();
        // Unreaped, its id cannot have been given to another process.
        if child.try_wait()?.is_none() {
            kill_process(Pid::from_child(&child), signal)
                .with_context(|| format!("cannot signal {}", self.name))?;
        }
        Ok(())
    }

    /// Stops it where it is, and waits until it stands still: some of its threads go on for a moment.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        let child = self.child();
        let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&child)), events)
            .with_context(|| format!("cannot wait for {}", self.name))?;
        Ok(())
    }

    /// Kills it at once, as a crash of its machine would, and waits until it is gone.
    pub fn kill(&self) {
        let mut child = self.child();
        // Fails only if it has ended already.
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Waits, without an async runtime, until it has ended, and kills it after `timeout`.
    pub fn wait_or_kill(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(BLOCKING_PAUSE);
        }
        self.kill();
    }

    /// Waits for `ready`, or fails with the end of the log as soon as the process has ended.
    pub async fn ready_when<T>(&self, ready: impl Future<Output = Result<T>>) -> Result<T> {
        let outcome = tokio::select! {
            outcome = ready => outcome,
            Ok(status) = self.wait(A_DAY) => {
                Err(anyhow!("{} ended: {status}", self.name))
            }
        };
        outcome.with_context(|| format!("{} is not ready. {}", self.name, self.last_words()))
    }

    fn last_words(&self) -> String {
        let log = self.log().unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let skipped = lines.len().saturating_sub(SHOWN_LINES);
        let shown: Vec<&str> = lines.into_iter().skip(skipped).collect();
        format!("The end of {} ({KEEP}=1 keeps it):\n{}\n", self.log.display(), shown.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
