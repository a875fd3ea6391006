//! A running server, before an API server that knows of nothing.

use std::{net::SocketAddr, sync::Arc, time::SystemTime};

use http_body_util::Full;
use hyper::body::Bytes;
use kube::client::Body;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use trainjob_core::{
    admission::{lifecycle::FieldUpdates, limits::ClusterLimits},
    lifecycle::deadline::Clock,
};
use trainjob_process::{
    config::{self, Flags},
    tls,
};
use trainjob_webhook::{
    certificate::serving::{Serving, certified},
    handler::{AdmissionHandler, Rules},
    lookup::Lookup,
    metrics::Metrics,
    server::Server,
    task::Task,
};

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    connector: TlsConnector,
    closing: watch::Sender<bool>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (own.cert.pem(), own.signing_key.serialize_pem());
        let serving = Serving::default();
        let pair = certified(chain.as_bytes(), key.as_bytes(), SystemTime::now()).unwrap();
        serving.set(pair.key, pair.expiry);
        let mut roots = RootCertStore::empty();
        roots.add(own.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();

        let config = config::load(&Flags::default()).unwrap();
        let rules = Rules {
            field_updates: FieldUpdates::Immutable,
            deadline_clock: Clock::Creation,
            limits: ClusterLimits::default(),
        };
        let lookup = Lookup::new(Arc::default(), Arc::default(), empty_cluster());
        let tls = tls::acceptor(&config.admission.tls, Arc::new(serving)).unwrap();
        let handler = AdmissionHandler::new(rules, lookup);
        let server = Server::new(handler, Metrics::new().unwrap(), tls).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (closing, closed) = watch::channel(false);
        let task = tokio::spawn(server.serve(listener, closed.clone(), closed));
        Self { address, connector: TlsConnector::from(Arc::new(client)), closing, task }
    }

    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        self.connector.connect(name, stream).await.unwrap()
    }

    /// Status and body of the answer to a request.
    pub(crate) async fn request(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let mut stream = self.connect().await;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may have answered and gone before it has read all.
        let _ = stream.write_all(body).await;
        answer(&mut stream).await
    }

    pub(crate) async fn post(&self, path: &str, body: &[u8]) -> (u16, String) {
        self.request("POST", path, body).await
    }

    /// Sees that it still answers.
    pub(crate) async fn is_well(&self) {
        let (status, text) = self.post(Task::ValidateTrainJob.path(), b"{}").await;
        assert_eq!(status, 400, "{text}");
    }

    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    pub(crate) async fn ended(self) {
        self.task.await.unwrap().unwrap();
    }
}

/// Reads one answer. Its body ends with the connection, or where its head says.
pub(crate) async fn answer(stream: &mut TlsStream<TcpStream>) -> (u16, String) {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if body.len() >= length {
                return (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned());
            }
        }
        let count = stream.read_buf(&mut read).await.unwrap();
        assert!(count > 0, "no answer: {text}");
    }
}

/// An API server that says of everything that it is not there.
fn empty_cluster() -> kube::Client {
    let service = tower::service_fn(|_: http::Request<Body>| async {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
            "message": "not found", "code": 404,
        });
        let body = Full::new(Bytes::from(status.to_string()));
        http::Response::builder().status(404).body(body)
    });
    kube::Client::new(service, "default")
}
