//! The clock, before a real HTTP server whose clock differs from that of this machine.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, DATE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinSet};
use trainjob_api::time::Timestamp;
use trainjob_core::{facts::ObjectKey, priority::QueuePosition, server_time::Precision};
use trainjob_engine::{
    clock::{self, Clock},
    places::Places,
    queue::Queue,
    shares::FEWEST_PLACES,
};
use trainjob_process::{
    client::{self, Clients},
    metrics::Requests,
    server_time::ServerTime,
};

const HOUR: i64 = 3_600;

/// How long a test waits for what has to happen.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is the same in every answer.
const VERSION: &str = r#"{"major":"1","minor":"36","gitVersion":"v1.36.0","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;

/// An API server that knows of nothing but its version, and what is sent to it.
struct Server {
    clients: Clients,
    clock: Clock,
    shown: Arc<Shown>,
    _tasks: JoinSet<()>,
}

/// The `Date` of its answers.
struct Shown {
    /// How many seconds its clock is ahead of this machine's.
    ahead: AtomicI64,
    /// Whether there is one.
    dated: AtomicBool,
}

impl Shown {
    fn clock(&self, at: SystemTime) -> SystemTime {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 { at - by } else { at + by }
    }

    fn answer(&self) -> Response<Full<Bytes>> {
        let mut answer = Response::new(Full::from(VERSION));
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(CONTENT_TYPE, json);
        if self.dated.load(Ordering::Relaxed) {
            let date = httpdate::fmt_http_date(self.clock(SystemTime::now()));
            answer.headers_mut().insert(DATE, date.parse().unwrap());
        }
        answer
    }
}

impl Server {
    async fn start(ahead: i64, dated: bool) -> Self {
        let shown = Shown { ahead: AtomicI64::new(ahead), dated: AtomicBool::new(dated) };
        let (shown, mut tasks) = (Arc::new(shown), JoinSet::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let of_server = Arc::clone(&shown);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let shown = Arc::clone(&of_server);
                let service = service_fn(move |_: Request<Incoming>| {
                    let answer = shown.answer();
                    async { Ok::<_, Infallible>(answer) }
                });
                let mut server = http1::Builder::new();
                server.auto_date_header(false);
                connections.spawn(server.serve_connection(TokioIo::new(stream), service));
            }
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        let kubeconfig = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, users: [], \
             clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}], \
             contexts: [{{name: c, context: {{cluster: c, user: ''}}}}]}}"
        );
        std::fs::write(file.path(), kubeconfig).unwrap();
        let requests = Requests::new("test", &[]).unwrap();
        let server_time = ServerTime::new(Duration::from_mins(10));
        let clients = client::connect(Some(file.path()), requests, server_time).await.unwrap();
        let clock = Clock::new(Arc::clone(&clients.server_time));
        Self { clients, clock, shown, _tasks: tasks }
    }

    /// What its clock shows.
    fn now(&self) -> SystemTime {
        self.shown.clock(SystemTime::now())
    }

    async fn ask(&self) {
        self.clients.work.apiserver_version().await.unwrap();
    }
}

/// Waits until something holds.
async fn until(holds: impl Fn() -> bool) {
    let look = async {
        let mut often = tokio::time::interval(Duration::from_millis(5));
        while !holds() {
            often.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap();
}

#[tokio::test]
async fn time_is_that_of_the_api_server_whatever_the_clock_of_this_machine_shows() {
    for ahead in [HOUR, -HOUR] {
        let server = Server::start(ahead, true).await;
        let (client, time) = (server.clients.work.clone(), Arc::clone(&server.clients.server_time));
        let width = || time.reading().map(|reading| reading.clock.width());
        let mut keeping = JoinSet::new();
        keeping.spawn(clock::keep(client, Arc::clone(&time), || Precision::Promised));
        until(|| width().is_some_and(|width| width <= 100_000)).await;

        let error = Duration::from_millis(100);
        let (before, likely, after) = (server.now(), server.clock.likely(), server.now());
        assert!(before - error <= likely && likely <= after + error, "{before:?} {likely:?}");
        let reached = server.clock.now().reached().unwrap();
        assert!(reached <= Timestamp::from(server.now()), "{ahead}: early");
        assert_eq!(time.jumps(), 0);
    }
}

#[tokio::test]
async fn timer_fires_by_the_clock_of_the_api_server_and_never_before() {
    for ahead in [HOUR, -HOUR] {
        let server = Server::start(ahead, true).await;
        server.ask().await;
        let queue = Arc::new(Queue::standby(Places::new(FEWEST_PLACES), server.clock.clone()));
        queue.open();
        let due = Timestamp::from(server.now()).plus(2);
        let key = ObjectKey::new("ns", "job");
        queue.requeue_at(&key, Some(due));
        let timers = Arc::clone(&queue);
        let timers = std::thread::spawn(move || timers.run_timers(|_| Some(QueuePosition::LIVE)));
        let next = tokio::time::timeout(PATIENCE, queue.next()).await.unwrap();
        assert_eq!(next.key, key);
        assert!(Timestamp::from(server.now()) >= due, "{ahead}: early");
        queue.close();
        timers.join().unwrap();
    }
}

#[tokio::test]
async fn no_instant_has_come_while_the_time_is_not_known_or_has_jumped() {
    let server = Server::start(0, false).await;
    let past = Timestamp(0);
    server.ask().await;
    assert!(!server.clock.now().has_come(past), "no answer had a date");
    assert_eq!(server.clock.until(past), None);

    server.shown.dated.store(true, Ordering::Relaxed);
    server.ask().await;
    assert!(server.clock.now().has_come(past));
    assert_eq!(server.clock.until(past), Some(Duration::ZERO));

    server.shown.ahead.store(24 * HOUR, Ordering::Relaxed);
    server.ask().await;
    assert!(!server.clock.now().has_come(past), "the clock has jumped by a day");
    assert_eq!(server.clock.until(past), None);
    assert_eq!(server.clients.server_time.jumps(), 1);
}
