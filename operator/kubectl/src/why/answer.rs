//! What is said of one TrainJob.

use std::fmt;

use serde::Serialize;

use crate::phase::Phase;

/// Why a TrainJob is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Cause {
    /// Another controller manages it.
    ManagedElsewhere,
    /// It is being deleted, and something keeps it.
    Deleting,
    /// Its deadline has failed it, and Pods or a JobSet of it are left.
    NotReleased,
    /// It has finished, and its TTL runs.
    TtlRunning,
    /// It has finished, its TTL has passed, and a hold keeps it.
    Held,
    /// It has finished, and its TTL has passed.
    TtlPassed,
    /// It has finished and has no TTL.
    KeptForEver,
    /// It has finished, and is a copy that MultiKueue removes.
    RemoteCopy,
    /// It cannot go on, as its condition `Waiting` says, or because a JobSet of its name belongs to somebody else.
    Waiting,
    /// It is suspended in a queue of Kueue.
    QueuedByKueue,
    /// It is suspended, and no queue would resume it.
    Suspended,
    /// What it needs cannot be made.
    CreationFailed,
    /// The operator has not made anything for it.
    NotStarted,
    /// No Pod of its JobSet runs, and none waits to.
    NoPods,
    /// Its Pods could not be read, so nobody can tell whether it runs.
    Unknown,
    /// Pods of it do not run.
    PodsPending,
    /// It runs.
    Running,
}

/// One cause, in sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The cause.
    pub cause: Cause,
    /// How the job is, as the end of a sentence about it.
    pub summary: String,
    /// What shows it, in whole sentences.
    pub because: Vec<String>,
    /// What the user can do, in whole sentences.
    pub next: Vec<String>,
}

/// What is said of one TrainJob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How it is, in a word.
    pub phase: Phase,
    /// Why.
    pub cause: Cause,
    /// The same in a sentence.
    pub summary: String,
    /// What shows it.
    pub because: Vec<String>,
    /// What the user can do; nothing, if there is nothing to do.
    pub next: Vec<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary)?;
        for (title, sentences) in [("Why:", &self.because), ("What you can do:", &self.next)] {
            if sentences.is_empty() {
                continue;
            }
            writeln!(f, "\n{title}")?;
            for sentence in sentences {
                writeln!(f, "  - {sentence}")?;
            }
        }
        Ok(())
    }
}
