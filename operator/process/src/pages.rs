//! A small HTTP server for what only machines ask for: health and metrics.
//!
//! Every answer is made from the path. Connections are few, short and used once. A newcomer always has a
//! [place](crate::connections): when all are taken, the connection that has waited longest without a request is closed. So
//! clients that say nothing lock nobody out, however many they are. An answer that takes long to make is
//! shared by all who ask for it.

mod shared;

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
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use self::shared::Shared;
use crate::{
    connections::{Connections, Place},
    metrics_auth::{MetricsAuth, Refusal},
};

/// Connections that are served at the same time; for one more, the oldest silent one is closed.
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
    pub body: Bytes,
}

impl Page {
    /// A line of text.
    #[must_use]
    pub fn text(status: StatusCode, body: String) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// The pages of a server.
pub trait Pages: Send + Sync + 'static {
    /// The page at a path; `None` where there is none.
    fn at(&self, path: &str) -> Option<Page>;

    /// Whether that takes so long that others must not wait for it, and that it is made at most once a second.
    fn takes_long(&self) -> bool {
        false
    }
}

/// Pages, and who may see them how.
pub struct Site {
    pages: Arc<dyn Pages>,
    shared: Shared<Page>,
    tls: Option<TlsAcceptor>,
    auth: Option<MetricsAuth>,
}

impl Site {
    /// Pages for everybody, without TLS.
    #[must_use]
    pub fn open(pages: Arc<dyn Pages>) -> Self {
        Self { pages, shared: Shared::default(), tls: None, auth: None }
    }

    /// Pages over TLS; with metrics auth, for readers that it authorizes.
    #[must_use]
    pub fn over_tls(pages: Arc<dyn Pages>, tls: TlsAcceptor, auth: Option<MetricsAuth>) -> Self {
        Self { pages, shared: Shared::default(), tls: Some(tls), auth }
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
    shutdown: watch::Receiver<bool>,
) -> io::Result<()> {
    serve_for(CONNECTION_TIME, listener, site, shutdown).await
}

/// Like [`serve`], where a connection may take so `long`.
pub(crate) async fn serve_for(
    long: Duration,
    listener: TcpListener,
    site: Site,
    mut shutdown: watch::Receiver<bool>,
) -> io::Result<()> {
    let (site, places) = (Arc::new(site), Connections::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut failures = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = shutdown.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                failures = 0;
                if let Some(place) = places.admit() {
                    connections.spawn(connection(Arc::clone(&site), stream, place, long));
                }
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

async fn connection(site: Arc<Site>, stream: TcpStream, place: Place, long: Duration) {
    let answered = async {
        match &site.tls {
            None => requests(&site, stream, &place, long).await,
            // Who does not speak TLS gets no answer.
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    requests(&site, stream, &place, long).await;
                }
            }
        }
    };
    // A client that goes away, takes too long or has to give way gets no answer; there is nobody else to tell.
    tokio::select! {
        _ = timeout(long, answered) => {}
        () = place.gives_way(long, long) => {}
    }
}

async fn requests(
    site: &Arc<Site>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    place: &Place,
    long: Duration,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (site, (head, _)) = (Arc::clone(site), request.into_parts());
        let under_way = place.request();
        async move {
            let _under_way = under_way;
            Ok::<_, Infallible>(site.answer(&head).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(long)
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
        let page = self.shared.at(path, move |path| pages.at(path)).await;
        page.unwrap_or_else(|error| {
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
