//! A small HTTP server for what only machines ask for: health and metrics.
//!
//! Every answer is made at once from the path. Connections are few, short and used once; so neither a
//! client that says nothing nor a hundred of them lock anybody out for long.

use std::{
    convert::Infallible,
    future::ready,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

/// Connections that are served at the same time; more have to wait.
pub const CONNECTIONS: usize = 64;
/// How long one may take, from its acceptance to the last byte of the answer: as long as probes wait.
pub const CONNECTION_TIME: Duration = Duration::from_secs(3);
/// How long connections may go on after the end.
const DRAIN: Duration = Duration::from_secs(1);
/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(500);
/// How often in a row accepting may fail.
const ATTEMPTS: u32 = 60;

/// What a path answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status of the answer.
    pub status: StatusCode,
    /// Its media type.
    pub content_type: &'static str,
    /// Its body.
    pub body: String,
}

impl Page {
    /// A line of text.
    #[must_use]
    pub const fn text(status: StatusCode, body: String) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// The pages of a server.
pub trait Pages: Send + Sync + 'static {
    /// The page at a path; `None` where there is none.
    fn at(&self, path: &str) -> Option<Page>;
}

/// Listens on `address`. `[::]` is every interface of a machine, also one without IPv6.
///
/// # Errors
///
/// If that is not possible; the message names the address.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    match TcpListener::bind(address).await {
        Err(error)
            if address.is_ipv6()
                && address.ip().is_unspecified()
                && error.kind() != io::ErrorKind::AddrInUse =>
        {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await.map_err(failed)
        }
        bound => bound.map_err(failed),
    }
}

/// Answers until `shutdown` is true or its sender is gone; then finishes, within a second, what has
/// begun.
///
/// # Errors
///
/// If no connection could be accepted for half a minute.
pub async fn serve(
    listener: TcpListener,
    pages: Arc<dyn Pages>,
    mut shutdown: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    let mut failures = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = shutdown.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < CONNECTIONS => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                failures = 0;
                connections.spawn(connection(Arc::clone(&pages), stream));
            }
            // The client has gone already, or the process has no file left for the moment.
            Err(_) if failures < ATTEMPTS => {
                failures += 1;
                sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    drop(listener);
    // What is still open after that is closed with the set.
    let _ = timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

async fn connection(pages: Arc<dyn Pages>, stream: TcpStream) {
    let service = service_fn(|request: Request<Incoming>| {
        ready(Ok::<_, Infallible>(answer(&*pages, request.method(), request.uri().path())))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIME)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A client that goes away or takes too long gets no answer; there is nobody else to tell.
    let _ = timeout(CONNECTION_TIME, connection).await;
}

fn answer(pages: &dyn Pages, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let Some(page) = pages.at(path) else {
        return response(Page::text(StatusCode::NOT_FOUND, "not found".to_owned()));
    };
    if method == Method::GET || method == Method::HEAD {
        return response(page);
    }
    let refusal = Page::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD".to_owned());
    let mut response = response(refusal);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn response(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page.body));
    *response.status_mut() = page.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    response
}
