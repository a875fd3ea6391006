//! A small HTTP server for what only machines ask for: health and metrics.
//!
//! Every answer is made from the path. Connections are few, short and used once; so neither a
//! client that says nothing nor a hundred of them lock anybody out for long.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::request::Parts;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::metrics_auth::{MetricsAuth, Refusal};

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

    /// Whether that takes so long that others must not wait for it.
    fn takes_long(&self) -> bool {
        false
    }
}

/// Pages, and who may see them how.
pub struct Site {
    pages: Arc<dyn Pages>,
    tls: Option<TlsAcceptor>,
    auth: Option<MetricsAuth>,
}

impl Site {
    /// Pages for everybody, without TLS.
    #[must_use]
    pub fn open(pages: Arc<dyn Pages>) -> Self {
        Self { pages, tls: None, auth: None }
    }

    /// Pages over TLS; with metrics auth, for readers that it authorizes.
    #[must_use]
    pub fn over_tls(pages: Arc<dyn Pages>, tls: TlsAcceptor, auth: Option<MetricsAuth>) -> Self {
        Self { pages, tls: Some(tls), auth }
    }
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
    site: Site,
    mut shutdown: watch::Receiver<bool>,
) -> io::Result<()> {
    let site = Arc::new(site);
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
                connections.spawn(connection(Arc::clone(&site), stream));
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

async fn connection(site: Arc<Site>, stream: TcpStream) {
    let answered = async {
        match &site.tls {
            None => requests(&site, stream).await,
            // Who does not speak TLS gets no answer.
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    requests(&site, stream).await;
                }
            }
        }
    };
    // A client that goes away or takes too long gets no answer; there is nobody else to tell.
    let _ = timeout(CONNECTION_TIME, answered).await;
}

async fn requests(site: &Arc<Site>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(|request: Request<Incoming>| {
        let (site, (head, _)) = (Arc::clone(site), request.into_parts());
        async move { Ok::<_, Infallible>(site.answer(&head).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIME)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Both ends may break a connection; there is nobody to tell.
    let _ = connection.await;
}

impl Site {
    async fn answer(&self, request: &Parts) -> Response<Full<Bytes>> {
        let path = request.uri.path();
        if let Some(auth) = &self.auth
            && let Err(refusal) = auth.admit(&request.headers, path).await
        {
            return refused(&refusal);
        }
        let Some(page) = self.page(path.to_owned()).await else {
            return response(Page::text(StatusCode::NOT_FOUND, "not found".to_owned()));
        };
        if request.method == Method::GET || request.method == Method::HEAD {
            return response(page);
        }
        let refusal = Page::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD".to_owned());
        let mut response = response(refusal);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        response
    }

    async fn page(&self, path: String) -> Option<Page> {
        if !self.pages.takes_long() {
            return self.pages.at(&path);
        }
        let pages = Arc::clone(&self.pages);
        let made = spawn_blocking(move || pages.at(&path)).await;
        made.unwrap_or_else(|error| {
            Some(Page::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        })
    }
}

fn refused(refusal: &Refusal) -> Response<Full<Bytes>> {
    let mut response = response(Page::text(refusal.status(), refusal.to_string()));
    if refusal.status() == StatusCode::UNAUTHORIZED {
        let how = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, how);
    }
    response
}

fn response(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page.body));
    *response.status_mut() = page.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    response
}
