//! The way into the network of a node, and out of it.

use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

use super::host::Node;
use super::packages::Packages;
use super::sandbox::Sandbox;
use crate::testenv::binaries::{Binaries, Program, Versions};
use crate::testenv::modules::Modules;
use crate::testenv::workspace;

/// Everything that runs there.
const PROGRAMS: [Program; 8] = [
    Program::Etcd,
    Program::ApiServer,
    Program::ControllerManager,
    Program::Scheduler,
    Program::Kubectl,
    Program::JobSet,
    Program::Kubelet,
    Program::NameServer,
];

/// Tells what has happened, from within.
#[derive(Debug, Clone)]
pub struct Tell(mpsc::UnboundedSender<String>);

impl Tell {
    /// Tells one line.
    pub fn say(&self, line: impl Into<String>) {
        // Whoever does not listen any more has stopped the visit.
        let _ = self.0.send(line.into());
    }
}

/// Starts a node and runs `body` in its network, with an async runtime of its own; `tell` hears of each step. What
/// `body` starts is in the network, too. Everything has ended when this returns or is dropped.
pub async fn visit<T, S>(tell: &(dyn Fn(&str) + Sync), body: S) -> Result<T>
where
    T: Send + 'static,
    S: AsyncFnOnce(&Node, &Tell) -> Result<T> + Send + 'static,
{
    // Where there are no other networks, nothing can be downloaded.
    let packages = tokio::task::spawn_blocking(provide).await??;
    tell("programs and packages are there");
    let sandbox = Sandbox::start(&packages).await?;
    let (sender, mut lines) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let (done, outcome) = oneshot::channel();
    let thread = thread::Builder::new().name("node".to_owned()).spawn(move || {
        let told = Tell(sender);
        // Nobody listens if the visit was stopped.
        let _ = done.send(within(sandbox, stopped, async |sandbox| {
            let node = Node::start(sandbox, &packages).await?;
            told.say("the node takes Pods");
            body(&node, &told).await
        }));
    })?;
    let _visit = Visit { stop: Some(stop), thread: Some(thread) };
    while let Some(line) = lines.recv().await {
        tell(&line);
    }
    outcome.await.context("the visit ended early")?
}

/// Dropped, it stops `body` and waits until all has ended that it started.
struct Visit {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of its own has been printed.
            let _ = thread.join();
        }
    }
}

/// Runs `body` in the network until it ends or is stopped.
fn within<T>(
    sandbox: Sandbox,
    stopped: oneshot::Receiver<()>,
    body: impl AsyncFnOnce(Sandbox) -> Result<T>,
) -> Result<T> {
    // Every thread that this one starts begins where it is.
    sandbox.enter_network()?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            outcome = Box::pin(body(sandbox)) => outcome,
            _ = stopped => Err(anyhow!("stopped")),
        }
    })
}

/// Makes sure that all is on this machine that runs there.
fn provide() -> Result<Packages> {
    Binaries::provide(&PROGRAMS)?;
    Modules::provide(Versions::default())?;
    workspace::operator()?;
    Packages::of_node()
}
