//! Health over HTTP: whether the process lives, and whether it can do its work.
//!
//! Liveness is answered as long as anything is. Readiness is 200 once every condition is met, and until
//! then 503 with the names of those that are not. Anybody in the cluster's network can ask: connections
//! are few, short and used once.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::ready,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
const CONNECTIONS: usize = 64;
/// How long one may take, from its acceptance to the last byte of the answer: as long as probes wait.
const CONNECTION_TIME: Duration = Duration::from_secs(3);
/// How long connections may go on after the end.
const DRAIN: Duration = Duration::from_secs(1);
/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(500);
/// How often in a row accepting may fail.
const ATTEMPTS: u32 = 60;

/// The paths that health is served under, with their leading slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Says whether the process can do its work; `/readyz` by default.
    pub ready: String,
    /// Says whether the process lives; `/healthz` by default.
    pub live: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self { ready: "/readyz".to_owned(), live: "/healthz".to_owned() }
    }
}

/// What is still missing before the operator can do its work. Clones share what they know.
#[derive(Debug, Clone)]
pub struct Readiness(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    missing: BTreeSet<&'static str>,
    shutting_down: bool,
}

impl Readiness {
    /// Not ready before every one of `conditions` has been met.
    #[must_use]
    pub fn awaiting(conditions: impl IntoIterator<Item = &'static str>) -> Self {
        let missing = conditions.into_iter().collect();
        Self(Arc::new(Mutex::new(State { missing, shutting_down: false })))
    }

    /// Says whether the condition `name` is met from now on. It need not have been awaited.
    pub fn set(&self, name: &'static str, ready: bool) {
        let missing = &mut self.state().missing;
        if ready {
            missing.remove(name);
        } else {
            missing.insert(name);
        }
    }

    /// Says that the process is about to end: it is never ready again.
    pub fn shutting_down(&self) {
        self.state().shutting_down = true;
    }

    /// Why the operator is not ready, in one line; `None` if it is.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let state = self.state();
        if state.shutting_down {
            return Some("shutting down".to_owned());
        }
        let names: Vec<_> = state.missing.iter().copied().collect();
        (!names.is_empty()).then(|| format!("not ready: {}", names.join(", ")))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing here panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    endpoints: Endpoints,
    readiness: Readiness,
    mut shutdown: watch::Receiver<bool>,
) -> io::Result<()> {
    let server = Arc::new(Server { endpoints, readiness });
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
                connections.spawn(Arc::clone(&server).connection(stream));
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

struct Server {
    endpoints: Endpoints,
    readiness: Readiness,
}

impl Server {
    async fn connection(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request: Request<Incoming>| {
            ready(Ok::<_, Infallible>(self.answer(request.method(), request.uri().path())))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(CONNECTION_TIME)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        // A client that goes away or takes too long gets no answer; there is nobody else to tell.
        let _ = timeout(CONNECTION_TIME, connection).await;
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let missing = if path == self.endpoints.live {
            None
        } else if path == self.endpoints.ready {
            self.readiness.missing()
        } else {
            return plain(StatusCode::NOT_FOUND, "not found".to_owned());
        };
        if method != Method::GET && method != Method::HEAD {
            let refusal = "only GET and HEAD".to_owned();
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, refusal);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match missing {
            None => plain(StatusCode::OK, "ok".to_owned()),
            Some(missing) => plain(StatusCode::SERVICE_UNAVAILABLE, missing),
        }
    }
}

fn plain(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        task::JoinHandle,
        time::Instant,
    };

    use super::*;

    struct Running {
        address: SocketAddr,
        readiness: Readiness,
        stop: watch::Sender<bool>,
        server: JoinHandle<io::Result<()>>,
    }

    async fn running(endpoints: Endpoints) -> Running {
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let readiness = Readiness::awaiting(["TrainJob", "JobSet"]);
        let (stop, stopped) = watch::channel(false);
        let server = tokio::spawn(serve(listener, endpoints, readiness.clone(), stopped));
        Running { address, readiness, stop, server }
    }

    impl Running {
        /// The whole answer to a request.
        async fn answer(&self, method: &str, path: &str) -> String {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            // Ends because the server closes the connection.
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }

        /// The status and the body of an answer.
        async fn get(&self, path: &str) -> (u16, String) {
            let answer = self.answer("GET", path).await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
        }
    }

    #[tokio::test]
    async fn readiness_names_what_is_missing_and_liveness_does_not_care() {
        let server = running(Endpoints::default()).await;
        let not_ready = |names: &str| (503, format!("not ready: {names}"));
        let ok = (200, "ok".to_owned());
        assert_eq!(server.get("/readyz").await, not_ready("JobSet, TrainJob"));
        assert_eq!(server.get("/healthz").await, ok);
        server.readiness.set("JobSet", true);
        assert_eq!(server.get("/readyz").await, not_ready("TrainJob"));
        server.readiness.set("TrainJob", true);
        assert_eq!(server.get("/readyz?verbose").await, ok);
        server.readiness.set("TrainJob", false);
        assert_eq!(server.get("/readyz").await, not_ready("TrainJob"));
        server.readiness.set("TrainJob", true);
        server.readiness.shutting_down();
        server.readiness.set("TrainJob", true);
        assert_eq!(server.get("/readyz").await, (503, "shutting down".to_owned()));
        assert_eq!(server.get("/healthz").await, ok);
    }

    #[tokio::test]
    async fn only_the_two_paths_are_known_and_may_only_be_read() {
        let endpoints = Endpoints { ready: "/ready".to_owned(), live: "/live".to_owned() };
        let server = running(endpoints).await;
        assert_eq!(server.get("/live").await.0, 200);
        assert_eq!(server.get("/ready").await.0, 503);
        for path in ["/", "/readyz", "/healthz", "/live/", "/metrics"] {
            assert_eq!(server.get(path).await.0, 404, "{path}");
        }
        let head = server.answer("HEAD", "/live").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        let post = server.answer("POST", "/live").await;
        assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("allow: GET, HEAD"), "{post}");
        assert!(server.answer("POST", "/other").await.starts_with("HTTP/1.1 404 "));
        assert!(server.answer("\0", "/live").await.starts_with("HTTP/1.1 400 "));
    }

    #[tokio::test]
    async fn it_ends_when_told_to_also_with_a_connection_that_says_nothing() {
        let server = running(Endpoints::default()).await;
        let _silent = TcpStream::connect(server.address).await.unwrap();
        assert_eq!(server.get("/healthz").await.0, 200);
        let begin = Instant::now();
        server.stop.send_replace(true);
        server.server.await.unwrap().unwrap();
        assert!(begin.elapsed() < CONNECTION_TIME, "{:?}", begin.elapsed());
        assert!(TcpStream::connect(server.address).await.is_err());
    }

    #[tokio::test]
    async fn it_ends_when_nobody_can_tell_it_to() {
        let Running { stop, server, .. } = running(Endpoints::default()).await;
        drop(stop);
        server.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn silent_connections_lock_nobody_out_for_long() {
        let server = running(Endpoints::default()).await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS + 10 {
            silent.push(TcpStream::connect(server.address).await.unwrap());
        }
        let begin = Instant::now();
        assert_eq!(server.get("/healthz").await.0, 200);
        assert!(begin.elapsed() <= 2 * CONNECTION_TIME, "{:?}", begin.elapsed());
    }

    #[tokio::test]
    async fn an_address_in_use_is_an_error_that_names_it() {
        for host in ["127.0.0.1", "[::]"] {
            let first = listen(format!("{host}:0").parse().unwrap()).await.unwrap();
            let address: SocketAddr =
                format!("{host}:{}", first.local_addr().unwrap().port()).parse().unwrap();
            let error = listen(address).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            assert!(error.to_string().starts_with(&format!("{address}: ")), "{error}");
        }
    }
}
