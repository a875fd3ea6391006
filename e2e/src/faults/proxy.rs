//! A TLS proxy between one operator and the API server, which counts calls and puts faults in their way.
//!
//! The operator under test is the shipped binary: it has no hook for tests. Everything that can go wrong
//! between it and the API server goes wrong here, at the call that the test names:
//!
//! ```no_run
//! # async fn test(cluster: &e2e::cluster::Cluster) -> anyhow::Result<()> {
//! use e2e::proxy::{Fault, Proxy, Scope};
//!
//! let proxy = Proxy::start(cluster, Scope::Cluster).await?;
//! let deletions = |call: &e2e::proxy::Call| call.verb == "delete" && call.resource == "trainjobs";
//! let first = proxy.inject(deletions, 1..=1, Fault::HoldRequest);
//! // … an operator with `proxy.kubeconfig(…)` comes to delete a job, which the test now changes.
//! first.reached().await?;
//! first.release();
//! # Ok(())
//! # }
//! ```
//!
//! It speaks HTTP/1.1 and HTTP/2 with the operator and HTTP/1.1 with the API server. Requests and their
//! replies are passed on whole, watches as they come.

mod call;
mod date;
mod dead_path;
mod fault;
mod log;
mod path;
mod serve;
mod status;
mod upstream;
mod watch;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::testenv::cluster::Cluster;
use crate::testenv::ports::Port;
use crate::testenv::yaml;
use serve::State;

pub use call::{Call, Scope};
pub use fault::{Fault, Injection};

/// A TLS proxy between one operator and the API server. Dropped, it closes everything.
#[derive(Debug)]
pub struct Proxy {
    state: Arc<State>,
    server: AbortHandle,
    port: Port,
}

impl Proxy {
    /// Starts a proxy for the API server of a cluster; whether that runs does not matter yet.
    pub async fn start(cluster: &Cluster, scope: Scope) -> Result<Self> {
        let port = Port::take()?;
        let tls = serve::tls(cluster)?;
        let state = Arc::new(State::new(cluster, scope)?);
        let listener = TcpListener::bind(port.address()).await?;
        let server = tokio::spawn(serve::serve(listener, tls, Arc::clone(&state))).abort_handle();
        Ok(Self { state, server, port })
    }

    /// Writes a kubeconfig with the credentials of the file `like`, for the address of the proxy.
    pub fn kubeconfig(&self, like: &Path) -> Result<PathBuf> {
        let text = fs::read_to_string(like).with_context(|| format!("no {}", like.display()))?;
        let mut config = yaml::documents(&text)?.pop().context("an empty kubeconfig")?;
        let clusters = config.get_mut("clusters").and_then(|it| it.as_array_mut());
        for cluster in clusters.context("a kubeconfig without clusters")? {
            let cluster = cluster.get_mut("cluster").context("a cluster without content")?;
            let cluster = cluster.as_object_mut().context("a cluster that is no map")?;
            cluster.insert("server".into(), json!(format!("https://{}", self.address())));
        }
        let stem = like.file_stem().context("a kubeconfig is a file")?.display();
        let path = like.with_file_name(format!("{stem}-via-{}.kubeconfig", self.port.number()));
        fs::write(&path, yaml::stream(&[config]))?;
        Ok(path)
    }

    /// Where it listens: `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.port.address()
    }

    /// The operator process that calls come from from now on; 1 at first.
    pub fn process(&self, number: u32) {
        self.state.process(number);
    }

    /// Puts a fault in the way of the calls that match, numbered from 1 and counted from now: those
    /// whose number is in `which`. Of several faults that are meant for one call, the one injected first
    /// befalls it.
    ///
    /// `matches` is asked once a call, while other calls wait: it must not use the proxy.
    pub fn inject(
        &self,
        matches: impl Fn(&Call) -> bool + Send + Sync + 'static,
        which: RangeInclusive<usize>,
        fault: Fault,
    ) -> Injection {
        self.state.inject(Box::new(matches), which, fault)
    }

    /// Breaks the paths of all connections that are open, without a word: nothing passes any more and none is closed. What a
    /// client sends gets no acknowledgement. New connections work.
    pub async fn break_paths(&self) {
        self.state.paths.break_all().await;
    }

    /// Ends the watches that are under way, as the API server does when their time has come. Those that are frozen stay so.
    pub fn end_watches(&self) {
        self.state.ends.send_replace(());
    }

    /// Moves the `Date` of all answers from now on by so many seconds, as if the API server's clock had been set.
    pub fn shift_dates(&self, seconds: i64) {
        self.state.dates.set(seconds, seconds);
    }

    /// Moves the `Date` of every other answer from now on by so many seconds, as if two API servers with different clocks
    /// answered in turn.
    pub fn shift_every_other_date(&self, seconds: i64) {
        self.state.dates.set(0, seconds);
    }

    /// Sends the calls that come from now on to another API server of the same cluster. Those under way, watches too,
    /// stay where they are.
    pub fn send_to(&self, address: &str) -> Result<()> {
        self.state.upstream.send_to(address)
    }

    /// Every call so far, watches included, in the order in which they came. Of those that are still
    /// under way, `ended` is the present.
    #[must_use]
    pub fn requests(&self) -> Vec<invariants::Request> {
        self.state.log.requests()
    }

    /// The same calls, with what they sent.
    #[must_use]
    pub fn calls(&self) -> Vec<Arc<Call>> {
        self.state.log.calls()
    }

    /// Number of calls so far that match.
    #[must_use]
    pub fn count(&self, matches: impl Fn(&Call) -> bool) -> usize {
        self.state.log.count(matches)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
        self.state.abort();
    }
}
