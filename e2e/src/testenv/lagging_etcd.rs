//! A way to etcd on which watches can be held, while everything else passes.
//!
//! An API server behind it reads and writes as ever, but what it keeps in its watch cache, and what it tells those who
//! watch, stays behind: so it is with an API server whose connection to etcd is slow.

use std::sync::Arc;

use anyhow::Result;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::testenv::ports::Port;

/// The call that etcd answers with everything that changes.
const WATCH: &str = "/etcdserverpb.Watch/Watch";

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// A proxy before etcd. Dropped, it closes everything.
#[derive(Debug)]
pub(crate) struct LaggingEtcd {
    port: Port,
    held: Arc<watch::Sender<bool>>,
    server: AbortHandle,
}

impl LaggingEtcd {
    /// Starts one for the etcd at this address; at first everything passes.
    pub(crate) async fn start(etcd: String) -> Result<Self> {
        let port = Port::take()?;
        let listener = TcpListener::bind(port.address()).await?;
        let held = Arc::new(watch::Sender::new(false));
        let server = tokio::spawn(serve(listener, etcd, Arc::clone(&held))).abort_handle();
        Ok(Self { port, held, server })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.port.address()
    }

    /// Passes on nothing of what etcd tells of changes any more, or all that was held and everything from now on.
    pub(crate) fn hold_watches(&self, hold: bool) {
        self.held.send_replace(hold);
    }
}

impl Drop for LaggingEtcd {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Serves until it is dropped, and all connections with it.
async fn serve(listener: TcpListener, etcd: String, held: Arc<watch::Sender<bool>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (etcd, held) = (etcd.clone(), Arc::clone(&held));
        connections.spawn(async move {
            // Whatever goes wrong with a connection is the client's to notice.
            let _ = talk(stream, &etcd, &held).await;
        });
    }
}

/// Serves one connection, with one of its own to etcd.
async fn talk(stream: TcpStream, etcd: &str, held: &Arc<watch::Sender<bool>>) -> Result<()> {
    stream.set_nodelay(true)?;
    let upstream = TcpStream::connect(etcd).await?;
    upstream.set_nodelay(true)?;
    let (etcd, connection) = handshake(TokioExecutor::new(), TokioIo::new(upstream)).await?;
    let service = service_fn(|request| forward(etcd.clone(), request, held.subscribe()));
    let server = auto::Builder::new(TokioExecutor::new()).http2_only();
    tokio::select! {
        // Neither end outlives the other.
        ended = connection => ended?,
        done = server.serve_connection(TokioIo::new(stream), service) => {
            done.map_err(anyhow::Error::from_boxed)?;
        }
    }
    Ok(())
}

async fn forward(
    mut etcd: SendRequest<Incoming>,
    request: http::Request<Incoming>,
    held: watch::Receiver<bool>,
) -> Result<http::Response<Body>, hyper::Error> {
    let watches = request.uri().path() == WATCH;
    let response = etcd.send_request(request).await?;
    Ok(response.map(|body| if watches { lagging(body, held) } else { body.boxed_unsync() }))
}

/// A body of which nothing is passed on while it is held.
fn lagging(body: Incoming, held: watch::Receiver<bool>) -> Body {
    let frames = stream::unfold((body, held), |(mut body, mut held)| async move {
        let frame = body.frame().await?;
        // Without the proxy, nobody reads on.
        let _ = held.wait_for(|held| !held).await;
        Some((frame, (body, held)))
    });
    StreamBody::new(frames).boxed_unsync()
}
