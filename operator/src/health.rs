//! Health (signatures first; to be completed).
use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, sync::watch};

/// The paths health is served under, with their leading slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Whether the process can do its work; `/readyz`.
    pub ready: String,
    /// Whether the process serves; `/healthz`.
    pub live: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self { ready: "/readyz".to_owned(), live: "/healthz".to_owned() }
    }
}

/// What is still missing before the operator can do its work.
#[derive(Debug, Clone)]
pub struct Readiness(Arc<Mutex<BTreeSet<&'static str>>>);

impl Readiness {
    /// Not ready: every one of `conditions` is still to be met.
    pub fn awaiting(conditions: impl IntoIterator<Item = &'static str>) -> Self {
        Self(Arc::new(Mutex::new(conditions.into_iter().collect())))
    }
    /// Says whether the condition `name` is met now.
    pub fn set(&self, _name: &'static str, _ready: bool) {}
    /// Never ready again: the process is about to end.
    pub fn shutting_down(&self) {}
}

/// Listens on `address`.
///
/// # Errors
///
/// If that is not possible; the message names the address.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Answers until `shutdown` is true (or its sender is gone), then finishes what has begun.
///
/// # Errors
///
/// None yet.
pub async fn serve(
    _listener: TcpListener,
    _endpoints: Endpoints,
    _readiness: Readiness,
    mut shutdown: watch::Receiver<bool>,
) -> io::Result<()> {
    let _ = shutdown.wait_for(|stop| *stop).await;
    Ok(())
}
