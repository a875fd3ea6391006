//! The server: TLS and HTTP around the admission handler.
//!
//! Made so that nobody can close it: every step has a time limit, [bodies](crate::bodies) have limits one by one and
//! together, [large reviews](crate::large) yield to usual ones, and a newcomer always finds a
//! [place](trainjob_process::connections). Who has begun a request when the server is told to stop gets an answer.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use trainjob_process::connections::{Connections, Place};

use crate::{
    bodies::Bodies,
    handler::AdmissionHandler,
    large::LargeReviews,
    metrics::{Metrics, Rejection, Verdict},
    review,
    task::Task,
};

/// Connections that are open at the same time.
pub const CONNECTIONS: usize = 512;
/// How long a handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// How long the first request may take to be there, with its body, from the beginning of the connection on.
pub const FIRST_TIME: Duration = Duration::from_secs(20);
/// How long a connection may stay without a request. The API server keeps its own for 90 seconds.
const IDLE_TIME: Duration = Duration::from_mins(2);
/// How long the other side may take to agree that a connection is over.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long requests under way may take at the end: as long as the API server waits for an answer.
const DRAIN: Duration = Duration::from_secs(10);
/// Requests at the same time on one connection of HTTP/2. Go opens another when these do not do.
const STREAMS: u32 = 64;
/// What a connection holds of requests that are not read yet, in bytes. Over HTTP/2 one request has a part of it, so that
/// bodies that wait for room leave the connection to others.
const UNREAD: u32 = 1024 * 1024;
const UNREAD_OF_STREAM: u32 = 64 * 1024;
const UNREAD_OF_HTTP1: usize = 64 * 1024;
/// Connections that were sent off and may still be there.
const LEAVING: usize = 128;
/// How often a silent connection of HTTP/2 is asked whether it is still there, and for how long.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// How long to wait after a connection could not be accepted, and how often in a row that may happen.
const RETRY: (Duration, u32) = (Duration::from_millis(500), 60);

/// Everything a request needs.
pub struct Server {
    handler: AdmissionHandler,
    metrics: Arc<Metrics>,
    tls: TlsAcceptor,
    bodies: Bodies,
    large: LargeReviews,
}

impl Server {
    /// A server that has not begun: who answers, who counts, and how to speak TLS.
    ///
    /// # Errors
    ///
    /// There is no thread for large reviews.
    pub fn new(
        handler: AdmissionHandler,
        metrics: Arc<Metrics>,
        tls: TlsAcceptor,
    ) -> io::Result<Arc<Self>> {
        let (bodies, large) = (Bodies::default(), LargeReviews::start()?);
        Ok(Arc::new(Self { handler, metrics, tls, bodies, large }))
    }

    /// Answers until `closing` is true or its sender is gone; then finishes what has begun. Connections
    /// that are open when `stop` becomes true are asked to end then; newcomers are still served.
    ///
    /// # Errors
    ///
    /// If no connection could be accepted for half a minute.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: watch::Receiver<bool>,
        mut closing: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let places = Connections::new(CONNECTIONS);
        let mut connections = JoinSet::new();
        let mut failures = 0;
        loop {
            let accepted = tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(_) if connections.len() >= CONNECTIONS + LEAVING => failures = 0,
                Ok((stream, _)) => {
                    failures = 0;
                    if let Some(place) = places.admit() {
                        let server = Arc::clone(&self);
                        let ends = Ends { stop: stop.clone(), closing: closing.clone() };
                        connections.spawn(server.connection(stream, place, ends));
                    }
                }
                // The client has gone already, or the process has no file left for the moment.
                Err(_) if failures < RETRY.1 => {
                    failures += 1;
                    sleep(RETRY.0).await;
                }
                Err(error) => return Err(error),
            }
        }
        drop(listener);
        // What is still open after that is closed with the set.
        let _ = timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
        Ok(())
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, place: Place, ends: Ends) {
        // Small answers are not to wait for more; if that is not possible, they do.
        let _ = stream.set_nodelay(true);
        let stream = tokio::select! {
            shaken = self.tls.accept(stream) => shaken,
            () = place.gives_way(HANDSHAKE_TIME, HANDSHAKE_TIME) => return,
        };
        // Who does not speak TLS gets no answer.
        if let Ok(stream) = stream {
            self.requests(stream, Arc::new(place), ends).await;
        }
    }

    async fn requests(
        self: Arc<Self>,
        stream: TlsStream<TcpStream>,
        place: Arc<Place>,
        mut ends: Ends,
    ) {
        let http = http(stream.get_ref().1.alpn_protocol() == Some(b"h2"));
        let service = service_fn(|request| {
            let (server, place) = (Arc::clone(&self), Arc::clone(&place));
            async move { Ok::<_, Infallible>(server.answer(request, &place).await) }
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        let longest = tokio::select! {
            biased;
            // Both ends may break a connection; there is nobody to tell.
            _ = connection.as_mut() => return,
            () = place.gives_way(FIRST_TIME, IDLE_TIME) => FAREWELL,
            () = ends.come(&place) => DRAIN,
        };
        connection.as_mut().graceful_shutdown();
        let is_over = timeout(longest, connection.as_mut()).await.is_ok();
        // A request may have come in the moment in which the connection was chosen.
        if !is_over && place.is_busy() {
            let _ = timeout(DRAIN, connection).await;
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        place: &Place,
    ) -> Response<Full<Bytes>> {
        let Some(task) = Task::of(request.uri().path()) else {
            return text(StatusCode::NOT_FOUND, "no admission webhook has this path");
        };
        if request.method() != Method::POST {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only POST");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        let body = match self.bodies.read(request.into_body()).await {
            Ok(body) => body,
            Err(rejection) => return self.reject(rejection, rejection.message()),
        };
        let (_under_way, begin) = (place.request(), Instant::now());
        if !body.is_large() {
            let request = match review::read(body.bytes()) {
                Ok(request) => request,
                Err(problem) => return self.reject(Rejection::Malformed, &problem),
            };
            if !self.handler.takes_long(task, &request) {
                return self.judge(task, &request, begin).await;
            }
        }
        let server = Arc::clone(&self);
        let review = async move {
            match review::read(body.bytes()) {
                Ok(request) => server.judge(task, &request, begin).await,
                Err(problem) => server.reject(Rejection::Malformed, &problem),
            }
        };
        let judged = self.large.judge(review).await;
        judged.unwrap_or_else(|| text(StatusCode::INTERNAL_SERVER_ERROR, "cannot judge this"))
    }

    async fn judge(
        &self,
        task: Task,
        request: &review::Request<'_>,
        begin: Instant,
    ) -> Response<Full<Bytes>> {
        let answer = self.handler.answer(task, request).await;
        self.metrics.answered(task, &request.operation, Verdict::of(&answer), begin.elapsed());
        match review::write(&request.uid, &answer) {
            Ok(json) => response(StatusCode::OK, "application/json", json),
            Err(problem) => text(StatusCode::INTERNAL_SERVER_ERROR, &problem.to_string()),
        }
    }

    fn reject(&self, rejection: Rejection, problem: &str) -> Response<Full<Bytes>> {
        self.metrics.rejected(rejection);
        tracing::debug!(problem, "a request was rejected");
        text(rejection.status(), problem)
    }
}

/// How to speak HTTP. How long the head of a request may take is told by the place of its connection.
fn http(is_http2: bool) -> auto::Builder<TokioExecutor> {
    let http = auto::Builder::new(TokioExecutor::new());
    let mut http = if is_http2 { http.http2_only() } else { http.http1_only() };
    http.http1().max_buf_size(UNREAD_OF_HTTP1);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(UNREAD_OF_STREAM)
        .initial_connection_window_size(UNREAD)
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1);
    http
}

/// The two ends of a server: connections are to end, and no more are taken.
struct Ends {
    stop: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
}

impl Ends {
    /// Waits until a connection is to end. One that has not had a request when the server is stopped was
    /// opened to send one: it has until no more are taken.
    async fn come(&mut self, place: &Place) {
        let was_late = *self.stop.borrow();
        // Whoever could say so is gone only when the server is.
        let _ = self.stop.wait_for(|stop| *stop).await;
        if was_late || !place.was_used() {
            let _ = self.closing.wait_for(|closing| *closing).await;
        }
    }
}

fn text(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", message.as_bytes().to_vec())
}

fn response(
    status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
