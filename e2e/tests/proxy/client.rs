//! A client of which a test can see every connection, over both versions of HTTP.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use e2e::cluster::Cluster;
use e2e::yaml;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

pub(crate) const BOTH: [Version; 2] = [Version::One, Version::Two];

/// One connection, with the permissions of a kubeconfig.
pub(crate) struct Connection {
    sender: Sender,
    task: AbortHandle,
    token: String,
    server: String,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    pub(crate) async fn open(
        cluster: &Cluster,
        kubeconfig: &Path,
        version: Version,
    ) -> Result<Self> {
        let config = std::fs::read_to_string(kubeconfig)?;
        let config = yaml::documents(&config)?.pop().context("an empty kubeconfig")?;
        let text = |pointer| {
            let text = config.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned).with_context(|| format!("no {pointer}"))
        };
        let server = text("/clusters/0/cluster/server")?;
        let address = server.trim_start_matches("https://");
        let stream = tls(cluster, address, version).await?;
        let (sender, task) = match version {
            Version::One => {
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
                (Sender::One(sender), tokio::spawn(connection).abort_handle())
            }
            Version::Two => {
                let executor = TokioExecutor::new();
                let (sender, connection) = http2::handshake(executor, TokioIo::new(stream)).await?;
                (Sender::Two(sender), tokio::spawn(connection).abort_handle())
            }
        };
        Ok(Self { sender, task, token: text("/users/0/user/token")?, server })
    }

    /// Sends a request and waits for the head of its reply.
    async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<http::Response<Incoming>> {
        let content = match (method, body) {
            ("PATCH", _) => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", content)
            .body(Full::new(Bytes::from(body)))?;
        Ok(match &mut self.sender {
            Sender::One(sender) => {
                let mut request = request;
                let address = self.server.trim_start_matches("https://").parse()?;
                request.headers_mut().insert("host", address);
                *request.uri_mut() = path.parse()?;
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        })
    }

    /// Begins a watch.
    pub(crate) async fn watch(&mut self, path: &str) -> Result<Watch> {
        let reply = self.send("GET", path, &Value::Null).await?;
        anyhow::ensure!(reply.status() == 200, "{reply:?}");
        Ok(Watch { body: reply.into_body(), begun: Vec::new() })
    }

    /// Sends a request; returns the head and the object of its reply.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<(http::response::Parts, Value)> {
        let (head, body) = self.send(method, path, body).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok((head, serde_json::from_slice(&body)?))
    }
}

impl Drop for Connection {
    /// As when the process of the client dies.
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn tls(cluster: &Cluster, address: &str, version: Version) -> Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(cluster.authority().as_bytes())?)?;
    let mut config =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let protocol: &[u8] = if version == Version::One { b"http/1.1" } else { b"h2" };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let agreed = stream.get_ref().1.alpn_protocol();
    anyhow::ensure!(agreed == Some(protocol), "{version:?} is not spoken: {agreed:?}");
    Ok(stream)
}

/// The reply to a watch.
pub(crate) struct Watch {
    body: Incoming,
    /// What has come of the next events.
    begun: Vec<u8>,
}

impl Watch {
    /// The next event; `None` at its end.
    pub(crate) async fn event(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            self.begun.extend_from_slice(frame?.data_ref().context("a trailer")?);
        }
    }
}
