//! The program that runs in a life. It may be killed and replaced.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::testenv::product::Product;
use crate::testenv::until::until_ok;

/// Holds the running program; programs follow one another behind one proxy. Dropped, it kills the program: dropping that would
/// wait for it, and all lanes with it.
pub(super) struct Running<P: Deref<Target = Product>>(Mutex<State<P>>);

struct State<P> {
    program: Option<Arc<P>>,
    /// How many have been started.
    count: u32,
}

impl<P: Deref<Target = Product>> Running<P> {
    /// None yet.
    pub(super) const fn none() -> Self {
        Self(Mutex::new(State { program: None, count: 0 }))
    }

    /// The number of the next program.
    pub(super) fn next(&self) -> u32 {
        self.state().count + 1
    }

    /// Whether another one has taken the place of the first.
    pub(super) fn was_replaced(&self) -> bool {
        self.state().count > 1
    }

    /// A program was started.
    pub(super) fn started(&self, program: P) {
        let count = self.next();
        *self.state() = State { program: Some(Arc::new(program)), count };
    }

    /// Kills the program, as a crash of its machine would.
    pub(super) fn kill(&self) {
        if let Some(program) = self.state().program.take() {
            program.kill9();
        }
    }

    /// The program that runs.
    pub(super) fn program(&self) -> Result<Arc<P>> {
        self.state().program.clone().context("no program runs")
    }

    /// Waits until the program that runs then is ready.
    pub(super) async fn ready(&self, patience: Duration) -> Result<()> {
        until_ok("a program is ready", patience, || async { self.program()?.wait_ready().await })
            .await
    }

    /// Sees that the program has not ended by itself.
    pub(super) fn still_runs(&self) -> Result<()> {
        let program = self.program()?;
        match program.process().ended() {
            None => Ok(()),
            Some(status) => bail!("the program ended by itself: {status}\n{}", program.log()?),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<P>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Deref<Target = Product>> Drop for Running<P> {
    fn drop(&mut self) {
        self.kill();
    }
}
