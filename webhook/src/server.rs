//! The server: TLS and HTTP around the admission handler.
//!
//! Made so that nobody can close it: every step has a time limit, bodies a length limit, and a newcomer
//! always finds a [place](crate::connections). Who has begun a request when the server is told to stop
//! gets an answer.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, SemaphorePermit, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{
    connections::{Connections, Place},
    handler::AdmissionHandler,
    metrics::{Metrics, Rejection, Verdict},
    review,
    task::Task,
};

/// The longest body, in bytes: what the API server accepts of an object.
pub const LONGEST_BODY: usize = 3 * 1024 * 1024;
/// Connections that are open at the same time.
pub const CONNECTIONS: usize = 512;
/// How long a handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// How long a body may take. The API server waits ten seconds for the whole answer.
pub const BODY_TIME: Duration = Duration::from_secs(10);
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
/// How much of bodies there may be at the same time, in KiB.
const BODIES: usize = 64 * 1024;
/// A body up to so many KiB may have any of them; a longer one leaves half of them to others.
const SMALL_BODY: usize = 64;
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
    /// How much of bodies there may be yet, in KiB.
    bodies: Semaphore,
}

impl Server {
    /// A server that has not begun: who answers, who counts, and how to speak TLS.
    #[must_use]
    pub fn new(handler: AdmissionHandler, metrics: Arc<Metrics>, tls: TlsAcceptor) -> Arc<Self> {
        Arc::new(Self { handler, metrics, tls, bodies: Semaphore::new(BODIES) })
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

    async fn answer(&self, request: Request<Incoming>, place: &Place) -> Response<Full<Bytes>> {
        let Some(task) = Task::of(request.uri().path()) else {
            return text(StatusCode::NOT_FOUND, "no admission webhook has this path");
        };
        if request.method() != Method::POST {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only POST");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        let (body, _room) = match self.body(request.into_body()).await {
            Ok(body) => body,
            Err(rejection) => return self.reject(rejection, rejection.message()),
        };
        let _under_way = place.request();
        let begin = Instant::now();
        let request = match review::read(&body) {
            Ok(request) => request,
            Err(problem) => return self.reject(Rejection::Malformed, &problem),
        };
        let answer = self.handler.answer(task, &request).await;
        self.metrics.answered(task, &request.operation, Verdict::of(&answer), begin.elapsed());
        match review::write(&request.uid, &answer) {
            Ok(json) => response(StatusCode::OK, "application/json", json),
            Err(problem) => text(StatusCode::INTERNAL_SERVER_ERROR, &problem.to_string()),
        }
    }

    /// The whole body, and the room it takes.
    async fn body(&self, body: Incoming) -> Result<(Bytes, Room<'_>), Rejection> {
        if body.size_hint().lower() > LONGEST_BODY as u64 {
            return Err(Rejection::TooLong);
        }
        timeout(BODY_TIME, self.collect(body)).await.unwrap_or(Err(Rejection::TooSlow))
    }

    /// Most bodies come in one piece, which then is not copied.
    async fn collect(&self, mut body: Incoming) -> Result<(Bytes, Room<'_>), Rejection> {
        let expected =
            usize::try_from(body.size_hint().lower()).unwrap_or(0).min(SMALL_BODY * 1024);
        let (mut piece, mut pieces) = (Bytes::new(), Vec::new());
        let mut room = Room { bodies: &self.bodies, taken: None };
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame.map_err(|_| Rejection::BrokenOff)?.into_data() else { continue };
            let length = piece.len() + pieces.len() + frame.len();
            if length > LONGEST_BODY {
                return Err(Rejection::TooLong);
            }
            room.grow_to(length)?;
            if length == frame.len() {
                piece = frame;
                continue;
            }
            if pieces.is_empty() {
                pieces.reserve(expected);
                pieces.extend_from_slice(&std::mem::take(&mut piece));
            }
            pieces.extend_from_slice(&frame);
        }
        Ok((if pieces.is_empty() { piece } else { pieces.into() }, room))
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
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
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

/// The room of a body, given back when dropped.
struct Room<'a> {
    bodies: &'a Semaphore,
    taken: Option<SemaphorePermit<'a>>,
}

impl Room<'_> {
    /// Takes what is needed for so many bytes.
    fn grow_to(&mut self, bytes: usize) -> Result<(), Rejection> {
        let needed = bytes.div_ceil(1024);
        let more =
            needed.saturating_sub(self.taken.as_ref().map_or(0, SemaphorePermit::num_permits));
        if more == 0 {
            return Ok(());
        }
        if needed > SMALL_BODY && self.bodies.available_permits() < BODIES / 2 {
            return Err(Rejection::NoRoom);
        }
        let more = u32::try_from(more).map_err(|_| Rejection::TooLong)?;
        let permit = self.bodies.try_acquire_many(more).map_err(|_| Rejection::NoRoom)?;
        match &mut self.taken {
            Some(taken) => taken.merge(permit),
            None => self.taken = Some(permit),
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn room(bodies: &Semaphore) -> Room<'_> {
        Room { bodies, taken: None }
    }

    #[test]
    fn long_bodies_leave_half_of_the_room_to_short_ones() {
        let bodies = Semaphore::new(BODIES);
        let mut long: Vec<_> = (0..BODIES * KIB / LONGEST_BODY).map(|_| room(&bodies)).collect();
        let grown = long.iter_mut().map(|room| room.grow_to(LONGEST_BODY));
        let taken = grown.take_while(Result::is_ok).count();
        assert_eq!(taken, (BODIES / 2 * KIB).div_ceil(LONGEST_BODY));
        let mut short = room(&bodies);
        assert_eq!(short.grow_to(SMALL_BODY * KIB), Ok(()));
        assert_eq!(short.grow_to(SMALL_BODY * KIB + 1), Err(Rejection::NoRoom));
        drop(long);
        assert_eq!(short.grow_to(LONGEST_BODY), Ok(()));
    }

    #[test]
    fn short_bodies_have_all_of_the_room_and_give_it_back() {
        let bodies = Semaphore::new(BODIES);
        let mut short: Vec<_> = (0..BODIES / SMALL_BODY).map(|_| room(&bodies)).collect();
        for room in &mut short {
            assert_eq!(room.grow_to(1), Ok(()));
            assert_eq!(room.grow_to(SMALL_BODY * KIB), Ok(()));
        }
        assert_eq!(room(&bodies).grow_to(1), Err(Rejection::NoRoom));
        drop(short);
        assert_eq!(bodies.available_permits(), BODIES);
    }
}
