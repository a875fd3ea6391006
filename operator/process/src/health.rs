//! Health over HTTP: whether the process lives, and whether it can do its work.
//!
//! Liveness is answered as long as anything is. Readiness is 200 once every condition is met, and until
//! then 503 with the names of those that are not. Anybody in the cluster's network can ask.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hyper::StatusCode;

use crate::pages::{Page, Pages};

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

/// The pages of health.
#[derive(Debug, Clone)]
pub struct Health {
    /// Their paths.
    pub endpoints: Endpoints,
    /// What readiness says.
    pub readiness: Readiness,
}

impl Pages for Health {
    fn at(&self, path: &str) -> Option<Page> {
        let missing = if path == self.endpoints.live {
            None
        } else if path == self.endpoints.ready {
            self.readiness.missing()
        } else {
            return None;
        };
        Some(match missing {
            None => Page::text(StatusCode::OK, "ok".to_owned()),
            Some(missing) => Page::text(StatusCode::SERVICE_UNAVAILABLE, missing),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{io, net::SocketAddr, time::Duration};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        sync::watch,
        task::JoinHandle,
        time::Instant,
    };

    use super::*;
    use crate::pages::{CONNECTION_TIME, Site, listen, serve_for};

    struct Running {
        address: SocketAddr,
        readiness: Readiness,
        stop: watch::Sender<bool>,
        server: JoinHandle<io::Result<()>>,
    }

    async fn running(endpoints: Endpoints) -> Running {
        running_for(CONNECTION_TIME, endpoints).await
    }

    async fn running_for(long: Duration, endpoints: Endpoints) -> Running {
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let readiness = Readiness::awaiting(["TrainJob", "JobSet"]);
        let (stop, stopped) = watch::channel(false);
        let pages = Arc::new(Health { endpoints, readiness: readiness.clone() });
        let server = tokio::spawn(serve_for(long, listener, Site::open(pages), stopped));
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

    /// A day: a connection that is waited for is waited for longer than a test.
    const FOR_EVER: Duration = Duration::from_hours(24);

    #[tokio::test]
    async fn silent_connections_lock_nobody_out() {
        let server = running_for(FOR_EVER, Endpoints::default()).await;
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(TcpStream::connect(server.address).await.unwrap());
        }
        assert_eq!(server.get("/healthz").await.0, 200);
        let mut oldest = silent.swap_remove(0);
        assert_eq!(oldest.read(&mut [0]).await.unwrap(), 0, "it is closed");
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
