//! Says what a bench is doing, at least every few seconds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use launcher::say;
use tokio::task::JoinHandle;

/// The longest silence.
const EVERY: Duration = Duration::from_secs(4);

/// What is being done, and how far it has come. Shared by those who do it.
#[derive(Debug, Clone)]
pub(super) struct Progress(Arc<State>);

#[derive(Debug)]
struct State {
    begun: Instant,
    /// Whether anybody listens.
    aloud: bool,
    step: Mutex<Step>,
    done: AtomicUsize,
}

#[derive(Debug, Default)]
struct Step {
    what: String,
    of: usize,
}

impl Progress {
    /// Nothing is done yet. With `aloud` false, nothing is ever said.
    #[must_use]
    pub(super) fn new(aloud: bool) -> Self {
        let (begun, step, done) = (Instant::now(), Mutex::default(), AtomicUsize::new(0));
        Self(Arc::new(State { begun, aloud, step, done }))
    }

    /// Begins a step that has `of` parts; none if they cannot be counted.
    pub(super) fn step(&self, what: impl Into<String>, of: usize) {
        self.0.done.store(0, Ordering::Relaxed);
        *self.0.step.lock().unwrap_or_else(PoisonError::into_inner) =
            Step { what: what.into(), of };
        self.tell();
    }

    /// One more part of the step is done.
    pub(super) fn one(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }

    /// So many parts of the step are done.
    pub(super) fn at(&self, done: usize) {
        self.0.done.store(done, Ordering::Relaxed);
    }

    /// Tells of the current step again and again, until the handle is dropped.
    #[must_use]
    pub(super) fn keep_telling(&self) -> Telling {
        let progress = self.clone();
        Telling(tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                progress.tell();
            }
        }))
    }

    fn tell(&self) {
        if !self.0.aloud {
            return;
        }
        let seconds = self.0.begun.elapsed().as_secs();
        let step = self.0.step.lock().unwrap_or_else(PoisonError::into_inner);
        let what = &step.what;
        match (self.0.done.load(Ordering::Relaxed), step.of) {
            (_, 0) => say(format_args!("{seconds:>5} s  {what}")),
            (done, of) => say(format_args!("{seconds:>5} s  {what}: {done} of {of}")),
        }
    }
}

/// Says how far things are while it is there.
#[derive(Debug)]
pub(super) struct Telling(JoinHandle<()>);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}
